//! The end of the index: entries go through a map of the newest file; a full file is followed by a new one. A file has blocks for all
//! slots, as an entry may belong to any of them, and takes more for entries step by step.
//!
//! Source: `IndexService.buildIndex`, `retryGetAndCreateIndexFile`, `getAndCreateLastIndexFile`, `IndexFile.putKey`.
use super::index_name;
use super::unsynced::{HeldFile, Unsynced};
use crate::file::mmap::{self, OwnedMap};
use crate::file::{AllocatedFile, Io, Segment};
use crate::format::index::{self, HEADER_SIZE, IndexHeader, slot_of, slot_position};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Stands in the list of what is to be put for a record without keys.
const NO_KEY: i32 = -1;
/// How many entries ahead the slots are fetched into the cache.
const PREFETCH: usize = 16;

/// Slots and entries of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub slots: u32,
    /// Entries; number 0 is never used.
    pub entries: u32,
}

/// Writes entries, which are gathered until [`write`](Self::write).
#[derive(Debug)]
pub struct IndexWriter {
    directory: PathBuf,
    geometry: Geometry,
    last_name: Option<String>,
    current: Option<IndexFile>,
    ahead: VecDeque<IndexFile>,
    pending: Vec<(i32, i64)>,
    unsynced: Vec<Arc<AllocatedFile>>,
    full_until: i64,
    created: bool,
    dirty: bool,
}

#[derive(Debug)]
struct IndexFile {
    file: Arc<AllocatedFile>,
    map: OwnedMap,
    /// Up to here the disk has room for bytes: behind it the map is not even read, as in a file in memory that takes room, too.
    allocated_to: u64,
    /// Number of the next entry.
    next_entry: u32,
}

impl IndexWriter {
    /// Goes on in `newest`, name and file, or in a new file.
    pub fn new(directory: PathBuf, geometry: Geometry, newest: Option<(String, AllocatedFile)>) -> Result<Self> {
        let (last_name, file) = newest.unzip();
        let current = file.map(IndexFile::new).transpose()?;
        Ok(Self {
            directory,
            geometry,
            last_name,
            current,
            ahead: VecDeque::new(),
            pending: Vec::new(),
            unsynced: Vec::new(),
            full_until: 0,
            created: false,
            dirty: false,
        })
    }

    /// Finds room for so many keys of a batch, and creates the files that they will need.
    ///
    /// # Errors
    /// [`crate::Error::Io`], as for a full disk: [`release`](Self::release) gives back what was created.
    pub fn reserve(&mut self, keys: usize, local_ms: i64) -> Result<()> {
        let (geometry, per_file) = (self.geometry, self.geometry.entries as usize - 1);
        let mut room = 0;
        if let Some(file) = &mut self.current {
            room = file.room(geometry);
            file.grow(geometry, keys.min(room))?;
        }
        // one at least: also a record without keys goes on to a new file where the newest is full
        while room < keys.max(1) {
            let file = self.create(local_ms)?;
            // before it grows, which may fail
            self.ahead.push_back(file);
            let entries = keys.saturating_sub(room).min(per_file);
            self.ahead.back_mut().map_or(Ok(()), |file| file.grow(geometry, entries))?;
            room += per_file;
        }
        Ok(())
    }

    fn create(&mut self, local_ms: i64) -> Result<IndexFile> {
        let name = index_name::behind(self.last_name.as_deref(), local_ms);
        let size = index::file_size(self.geometry.slots, self.geometry.entries);
        let file = AllocatedFile::create_sparse(&self.directory.join(&name), size)?;
        self.last_name = Some(name);
        self.created = true;
        IndexFile::new(file)
    }

    /// Slots and entries of its files.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Name of the file that is written to, where there is one: files behind it are created ahead.
    pub fn in_use(&self) -> Option<String> {
        let name = self.current.as_ref()?.file.path().file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Removes files that were created and not used.
    pub fn release(&mut self) {
        self.ahead.drain(..).for_each(|file| file.file.discard());
    }

    /// Adds a key of the record at `physical_offset`, by its hash.
    #[inline]
    pub fn push(&mut self, hash: i32, physical_offset: i64) {
        self.pending.push((hash, physical_offset));
    }

    /// Notes a record without keys: it, too, is followed by a new file where the newest is full.
    #[inline]
    pub fn push_none(&mut self) {
        if self.pending.last().is_none_or(|(hash, _)| *hash != NO_KEY) {
            self.pending.push((NO_KEY, 0));
        }
    }

    /// Puts the entries into the map, as of messages stored at `store_ms`.
    pub fn write(&mut self, store_ms: i64, local_ms: i64) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        for (n, (hash, physical_offset)) in pending.iter().enumerate() {
            if self.current.as_ref().is_none_or(|file| file.room(self.geometry) == 0) {
                self.roll(local_ms)?;
            }
            let Some(file) = self.current.as_mut().filter(|_| *hash != NO_KEY) else { continue };
            file.grow(self.geometry, 1)?;
            // slots are spread over 20 MB: without this each entry waits for memory
            if let Some((ahead, _)) = pending.get(n + PREFETCH) {
                mmap::prefetch(&file.map, slot_position(slot_of(*ahead, self.geometry.slots)));
            }
            file.put(self.geometry, (*hash, *physical_offset), store_ms);
            self.dirty = true;
        }
        self.pending = pending;
        self.pending.clear();
        self.current.as_ref().map_or(Ok(()), IndexFile::check)
    }

    /// Goes on in the next file, which begins where the full one ended.
    fn roll(&mut self, local_ms: i64) -> Result<()> {
        let mut next = match self.ahead.pop_front() {
            Some(next) => next,
            None => self.create(local_ms)?,
        };
        next.grow(self.geometry, 0)?;
        if let Some(full) = self.current.take() {
            let header = full.header();
            // Java's: time differences in the new file count from where the full one ended
            let following = IndexHeader::following(header.end_timestamp, header.end_phy_offset);
            next.map[..HEADER_SIZE].copy_from_slice(&following.encode());
            self.full_until = header.end_timestamp;
            self.unsynced.push(full.file);
        }
        self.current = Some(next);
        self.dirty = true;
        Ok(())
    }

    /// All files that are held open.
    pub fn held(&self) -> impl Iterator<Item = HeldFile> {
        let open = self.current.iter().chain(&self.ahead);
        open.map(|file| HeldFile { file: file.file.clone(), len: file.map.len() as u64 })
    }

    /// Hands over what was written since the last call. Returns the store time up to which full files hold entries, 0 for none.
    pub fn unsynced(&mut self, out: &mut Unsynced) -> i64 {
        self.unsynced.drain(..).for_each(|file| out.file(file));
        if let Some(current) = self.current.as_ref().filter(|_| std::mem::take(&mut self.dirty)) {
            out.file(current.file.clone());
        }
        if std::mem::take(&mut self.created) {
            out.directory(self.directory.clone());
        }
        self.full_until
    }
}

impl IndexFile {
    fn new(file: AllocatedFile) -> Result<Self> {
        let mut segment = Segment::open(file.path(), Io::Pread)?;
        let header = IndexHeader::decode(segment.window(0, HEADER_SIZE)?);
        let next_entry = header.map_or(1, |header| header.index_count.cast_unsigned());
        Ok(Self { map: file.map()?, file: file.into(), allocated_to: 0, next_entry })
    }

    /// Finds room for so many more entries, which fit into the file.
    #[inline]
    fn grow(&mut self, geometry: Geometry, entries: usize) -> Result<()> {
        let needed = index::entry_position(geometry.slots, self.next_entry + entries as u32) as u64;
        if needed <= self.allocated_to {
            return Ok(());
        }
        let len = index::file_size(geometry.slots, geometry.entries);
        self.allocated_to = self.file.grow(self.allocated_to..needed.min(len), len)?;
        Ok(())
    }

    /// Puts an entry, for which there is room.
    #[inline]
    fn put(&mut self, geometry: Geometry, (hash, physical_offset): (i32, i64), store_ms: i64) {
        let is_put = index::view::put(&mut self.map, geometry.slots, geometry.entries, hash, physical_offset, store_ms);
        self.next_entry += u32::from(is_put);
    }

    /// Fails where another process cut the file off.
    #[inline]
    fn check(&self) -> Result<()> {
        if !self.map.is_lost() {
            return Ok(());
        }
        let what = format!("expected {} bytes, got {}", self.map.len(), self.file.facts()?.len);
        Err(Error::changed_by_another(self.file.path(), what))
    }

    fn header(&self) -> IndexHeader {
        IndexHeader::decode(&self.map).unwrap_or_else(|| IndexHeader::following(0, 0))
    }

    /// How many entries it can still take.
    #[inline]
    fn room(&self, geometry: Geometry) -> usize {
        geometry.entries.saturating_sub(self.next_entry) as usize
    }
}

/// The index hash of `key`, where `topic_hash` is Java's hash of topic and `#` before it.
#[inline]
pub fn key_hash(topic_hash: i32, key: &[u8]) -> i32 {
    let hash = match key.is_ascii() {
        true => go_on_ascii(topic_hash, key),
        false => String::from_utf8_lossy(key).encode_utf16().fold(topic_hash, go_on),
    };
    // Java's `Math.abs` of the least number is negative, and `indexKeyHashMethod` makes 0 of that
    hash.checked_abs().unwrap_or(0)
}

fn go_on(hash: i32, unit: u16) -> i32 {
    hash.wrapping_mul(31).wrapping_add(i32::from(unit))
}

/// Eight characters at a time: one by one, each would wait for the product of the one before.
#[inline]
fn go_on_ascii(hash: i32, key: &[u8]) -> i32 {
    const POWERS: [i32; 9] = {
        let (mut powers, mut n) = ([1_i32; 9], 1);
        while n < powers.len() {
            powers[n] = powers[n - 1].wrapping_mul(31);
            n += 1;
        }
        powers
    };
    let (chunks, rest) = key.as_chunks::<8>();
    let hash = chunks.iter().fold(hash, |hash, chunk| {
        let own = (0..8).fold(0_i32, |own, n| own.wrapping_add(i32::from(chunk[n]).wrapping_mul(POWERS[7 - n])));
        hash.wrapping_mul(POWERS[8]).wrapping_add(own)
    });
    rest.iter().fold(hash, |hash, byte| go_on(hash, u16::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::index::index_hash;
    use crate::format::index::view::IndexView;
    use crate::format::tag::java_hash;

    const GEOMETRY: Geometry = Geometry { slots: 10, entries: 4 };

    #[test]
    fn the_hash_goes_on_where_that_of_the_topic_ends() {
        for key in ["U1", "订单😀", "", "7F00000100002A139A55000001", "12345678", "~~~~~~~~~~~~~~~~~"] {
            assert_eq!(key_hash(java_hash("T#"), key.as_bytes()), index_hash("T", key));
        }
    }

    #[test]
    fn a_full_file_is_followed_by_one_that_begins_where_it_ended() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = IndexWriter::new(dir.path().into(), GEOMETRY, None).expect("made");
        writer.reserve(5, 0).expect("room");
        for n in 0..5 {
            writer.push(n, i64::from(n) * 100 + 7);
        }
        writer.write(9_000, 0).expect("written");
        let mut unsynced = Unsynced::default();
        assert_eq!(writer.unsynced(&mut unsynced), 9_000);
        unsynced.sync().expect("synced");
        let mut names: Vec<_> = std::fs::read_dir(dir.path()).expect("dir").flatten().map(|e| e.path()).collect();
        names.sort();
        let files: Vec<_> = names.iter().map(|path| std::fs::read(path).expect("read")).collect();
        let views: Vec<_> = files.iter().map(|f| IndexView::new(f, 10, 4).expect("whole")).collect();
        assert_eq!(views.iter().map(|v| v.header().index_count).collect::<Vec<_>>(), [4, 3]);
        assert_eq!(views[1].header().begin_phy_offset, 307);
        let mut offsets = Vec::new();
        views[1].query(4, 0, i64::MAX, 9, &mut offsets).expect("sound");
        assert_eq!(offsets, [407]);
    }

    #[test]
    fn a_record_without_keys_starts_a_file_too() {
        let dir = tempfile::tempdir().expect("dir");
        let mut writer = IndexWriter::new(dir.path().into(), GEOMETRY, None).expect("made");
        writer.push_none();
        writer.write(1, 0).expect("written");
        (0..3).for_each(|n| writer.push(n, 0));
        writer.write(1, 0).expect("written");
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 1);
        writer.push_none();
        writer.write(1, 0).expect("written");
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 2);
    }
}
