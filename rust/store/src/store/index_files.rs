//! The index files of a store. A query for a hash needs a few small reads, however large a file is.
//!
//! Source: `IndexService.load`, `IndexService.queryOffset`, `IndexFile.selectPhyOffset`.
use super::commit_log::Damage;
use crate::Result;
use crate::file::{Io, Place, Segment, place};
use crate::format::index::{
    DEFAULT_ENTRY_COUNT, DEFAULT_SLOT_COUNT, ENTRY_SIZE, HEADER_SIZE, IndexEntry, IndexHeader, SLOT_SIZE,
    entry_position, file_size, guess_geometry, slot_of, slot_position,
};
use std::path::{Path, PathBuf};

/// Maximum bytes of a file that is read as a whole. This is needed only for a file that has not the default size, to
/// guess its number of slots.
const MAX_GUESSED: u64 = 512 << 20;

#[derive(Clone, Debug)]
pub struct IndexFile {
    pub path: PathBuf,
    pub len: u64,
    pub header: IndexHeader,
    /// Number of slots and of entries; `None` if these numbers could not be guessed from this file or another file of
    /// the same size.
    pub geometry: Option<(u32, u32)>,
    /// Whether the file is a dead link. If so, the other fields are empty.
    pub is_missing: bool,
}

impl IndexFile {
    /// Lists the files in `directory`, oldest first. Skips names that are not numbers.
    pub fn list(directory: &Path) -> Result<Vec<Self>> {
        let mut paths = place::list(directory)?;
        paths.retain(|path| is_numbered(path));
        // A name is the time of creation, so names sort by age.
        paths.sort_unstable();
        let mut files = Vec::new();
        for path in paths {
            files.extend(Self::look(path)?);
        }
        let geometries: Vec<(u64, (u32, u32))> = files.iter().filter_map(|f| Some((f.len, f.geometry?))).collect();
        for file in &mut files {
            let like = geometries.iter().find(|(len, _)| *len == file.len).map(|(_, geometry)| *geometry);
            // A broker uses one geometry for all files.
            file.geometry = file.geometry.or(like);
        }
        Ok(files)
    }

    /// Reads the size and the header of the index file at `path`. Returns `None` for a directory, and for a file that
    /// a broker has removed since the listing.
    fn look(path: PathBuf) -> Result<Option<Self>> {
        let len = match Place::look(&path)? {
            Place::There(meta) if meta.is_file() => meta.len(),
            Place::There(_) | Place::Absent => return Ok(None),
            Place::DeadLink => {
                let header = IndexHeader::following(0, 0);
                return Ok(Some(Self { path, len: 0, header, geometry: None, is_missing: true }));
            }
        };
        let mut segment = match Segment::open(&path, Io::Pread) {
            Err(error) if error.is_not_found() => return Ok(None),
            segment => segment?,
        };
        let header = IndexHeader::decode(segment.window(0, HEADER_SIZE)?);
        let header = header.unwrap_or_else(|| IndexHeader::following(0, 0));
        let geometry = match len {
            _ if len == file_size(DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT) => guess_geometry(len, &[]),
            // Without entries, any geometry would fit the file.
            _ if len <= MAX_GUESSED && header.index_count > 1 => {
                let bytes = place::read(&path, MAX_GUESSED)?.unwrap_or_default();
                guess_geometry(bytes.len() as u64, &bytes)
            }
            _ => None,
        };
        Ok(Some(Self { path, len, header, geometry, is_missing: false }))
    }

    pub fn entries(&self) -> u32 {
        self.header.index_count.cast_unsigned() - 1
    }

    /// Opens the file for queries. Returns `None` if its numbers of slots and entries are unknown.
    pub fn open(&self) -> Result<Option<IndexReader<'_>>> {
        let Some((slot_count, entry_count)) = self.geometry else { return Ok(None) };
        let segment = Segment::open(&self.path, Io::Pread)?;
        Ok(Some(IndexReader { file: self, segment, slot_count, entry_count }))
    }
}

fn is_numbered(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
}

#[derive(Debug)]
pub struct IndexReader<'a> {
    file: &'a IndexFile,
    segment: Segment,
    slot_count: u32,
    entry_count: u32,
}

impl IndexReader<'_> {
    pub fn slot_count(&self) -> u32 {
        self.slot_count
    }

    /// Returns the number of the newest entry of a slot; 0 for an empty slot.
    pub fn newest(&mut self, slot: u32) -> Result<i32> {
        let bytes = self.segment.window(slot_position(slot) as u64, SLOT_SIZE)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes)))
    }

    pub fn entries(&mut self, n: u32, count: u32) -> Result<&[u8]> {
        let count = count.min(self.entry_count.saturating_sub(n)) as usize;
        self.segment.window(entry_position(self.slot_count, n) as u64, count * ENTRY_SIZE)
    }

    pub fn slots(&mut self, slot: u32, count: u32) -> Result<&[u8]> {
        let count = count.min(self.slot_count.saturating_sub(slot)) as usize;
        self.segment.window(slot_position(slot) as u64, count * SLOT_SIZE)
    }

    /// Calls `visit` with the physical offsets under `hash` from `begin_ms` to `end_ms`, newest first, until `visit`
    /// returns false. The offsets may belong to another key with the same hash, and times are exact to a second. A
    /// damaged chain ends the search, which then returns the damage.
    pub fn query(
        &mut self,
        hash: i32,
        (begin_ms, end_ms): (i64, i64),
        visit: &mut dyn FnMut(i64) -> Result<bool>,
    ) -> Result<Option<Damage>> {
        let header = self.file.header;
        let mut next = self.newest(slot_of(hash, self.slot_count))?;
        let mut limit = header.index_count;
        while next > 0 && next < limit {
            let n = next.cast_unsigned();
            let Some(entry) = IndexEntry::decode(self.entries(n, 1)?).filter(|e| e.time_diff_seconds >= 0) else {
                break;
            };
            // The time of the first entry counts from the end of the file before this file.
            let seconds = if n == 1 { 0 } else { i64::from(entry.time_diff_seconds) };
            let time = header.begin_timestamp.saturating_add(seconds * 1000);
            let matches = entry.key_hash == hash && time >= begin_ms.saturating_sub(1000) && time <= end_ms;
            if matches && !visit(entry.physical_offset)? || time < begin_ms.saturating_sub(1000) {
                return Ok(None);
            }
            // Numbers of entries must decrease along a chain, so a cycle ends the search.
            (limit, next) = (next, entry.previous);
        }
        Ok((next >= limit && limit < header.index_count && next != limit).then(|| self.damage(limit, next)))
    }

    fn damage(&self, n: i32, previous: i32) -> Damage {
        let reason = format!("previous index entry: expected less than {n}, got {previous}");
        let offset = entry_position(self.slot_count, n.cast_unsigned()) as u64 + 16;
        Damage { offset, length: 4, reason, file: self.file.path.clone() }
    }
}
