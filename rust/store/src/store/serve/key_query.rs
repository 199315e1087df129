//! Finds messages by key as a broker does. Returns all messages that the index lists under the hash of the key; the
//! client compares the keys themselves.
//!
//! Source: `DefaultMessageStore.queryMessage`, `IndexService.queryOffset`, `IndexFile.isTimeMatched`, `selectPhyOffset`.
use super::live_log::{LiveLog, LiveRecord};
use crate::Result;
use crate::file::mmap::ReadMap;
use crate::file::place;
use crate::format::index::{IndexHeader, IndexView, index_hash};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Maximum number of messages in one answer (`maxMsgsNumBatch`).
const MAX_MESSAGES: usize = 64;
/// Maximum number of searches. If no message that a search found can be read, a broker searches for earlier messages.
const ROUNDS: usize = 3;

#[derive(Debug, Default)]
pub struct KeyQueryResult {
    pub records: Vec<LiveRecord>,
    pub index_last_update_timestamp: i64,
    pub index_last_update_phy_offset: i64,
}

/// The index of a store that this process appends to. Each query lists the index files again.
#[derive(Debug)]
pub struct LiveIndex {
    directory: PathBuf,
    slots: u32,
    entries: u32,
}

#[derive(Default)]
struct Offsets {
    offsets: Vec<i64>,
    /// Store time in milliseconds and physical offset of the last entry of the index.
    last_update: (i64, i64),
}

impl LiveIndex {
    pub fn new(directory: PathBuf, slots: u32, entries: u32) -> Self {
        Self { directory, slots, entries }
    }

    /// Returns the newest messages of a topic whose key has the same hash as `key`. Their store times are from
    /// `begin` to `end`, in milliseconds.
    pub fn query(
        &self,
        log: &LiveLog,
        (topic, key): (&str, &str),
        most: usize,
        begin: i64,
        end: i64,
    ) -> Result<KeyQueryResult> {
        let mut result = KeyQueryResult::default();
        let mut last_time = end;
        for _ in 0..ROUNDS {
            let Offsets { mut offsets, last_update } = self.offsets((topic, key), most, begin, last_time)?;
            let Some(first) = offsets.iter().min().copied() else { break };
            offsets.sort_unstable();
            (result.index_last_update_timestamp, result.index_last_update_phy_offset) = last_update;
            for offset in &offsets {
                // A record that retention has removed is left out.
                result.records.extend(log.record(u64::try_from(*offset).unwrap_or(u64::MAX))?);
            }
            // As in a broker, the next search ends at the store time of the first message found.
            if let Some(message) = result.records.first().and_then(LiveRecord::message)
                && message.physical_offset() == first
            {
                last_time = message.store_timestamp();
            }
            if !result.records.is_empty() || last_time < begin {
                break;
            }
        }
        Ok(result)
    }

    fn offsets(&self, (topic, key): (&str, &str), most: usize, begin: i64, end: i64) -> Result<Offsets> {
        let (most, hash) = (most.min(MAX_MESSAGES), index_hash(topic, key));
        let mut result = Offsets::default();
        let mut is_last = true;
        for path in list_files(&self.directory)?.iter().rev() {
            let Some(map) = open(path)? else { continue };
            // A file of another size is not a file of this writer.
            let Ok(view) = IndexView::new(map.bytes(), self.slots, self.entries) else { continue };
            let header = *view.header();
            if header.index_count <= 1 {
                continue; // The file was created ahead and has no entries.
            }
            if std::mem::take(&mut is_last) {
                result.last_update = (header.end_timestamp, header.end_phy_offset);
            }
            if overlaps(&header, begin, end) {
                // At a damaged chain, the offsets before the damage are returned.
                let _ = view.query(hash, begin, end, most, &mut result.offsets);
            }
            // Files are in the order of time, so older files have no entries from `begin` on.
            if header.begin_timestamp < begin || result.offsets.len() >= most {
                break;
            }
        }
        Ok(result)
    }
}

fn overlaps(header: &IndexHeader, begin: i64, end: i64) -> bool {
    let within = header.begin_timestamp..=header.end_timestamp;
    begin < header.begin_timestamp && end > header.end_timestamp || within.contains(&begin) || within.contains(&end)
}

fn list_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut names = place::names(directory)?;
    names.retain(|name| name.bytes().all(|b| b.is_ascii_digit()));
    names.sort_unstable();
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// Maps a file; returns `None` if retention has removed it meanwhile.
fn open(path: &Path) -> Result<Option<ReadMap>> {
    let map = |file: File| (file.metadata()?.len() > 0).then(|| ReadMap::new(&file)).transpose();
    match place::open(path, || File::open(path).and_then(map)) {
        Err(error) if error.is_not_found() => Ok(None),
        map => map,
    }
}
