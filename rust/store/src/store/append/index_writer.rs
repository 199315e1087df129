//! Writes the index. Entries go into a map of the newest file, and a new file follows a full file. All slots of a file are
//! allocated at once, because an entry may use any slot. Blocks for entries are allocated step by step.
//!
//! Source: `IndexService.buildIndex`, `retryGetAndCreateIndexFile`, `getAndCreateLastIndexFile`, `IndexFile.putKey`.
use super::flusher::{OpenFile, SyncList};
use crate::file::mmap::{self, OwnedMap};
use crate::file::{AllocatedFile, Io, Segment};
use crate::format::index::{self, HEADER_SIZE, IndexHeader, slot_of, slot_position};
use crate::format::java::java_hash;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Stands in `pending` for a record without keys.
const NO_KEY: i32 = -1;
/// Number of entries by which prefetching of slots is ahead of writing.
const PREFETCH: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub slots: u32,
    /// Number of entries, including entry 0, which is never used.
    pub entries: u32,
}

/// The writer of the index. Entries are buffered until [`write`](Self::write).
#[derive(Debug)]
pub struct IndexWriter {
    directory: PathBuf,
    geometry: Geometry,
    /// Name of the newest file, including the files in `ahead`.
    last_name: Option<String>,
    current: Option<IndexFile>,
    ahead: VecDeque<IndexFile>,
    /// Buffered entries: the hash of the key, and the physical offset of the record.
    pending: Vec<(i32, i64)>,
    unsynced: Vec<Arc<AllocatedFile>>,
    /// Store time of the last entry in the last full file, in milliseconds.
    full_until: i64,
    created: bool,
    dirty: bool,
}

#[derive(Debug)]
struct IndexFile {
    file: Arc<AllocatedFile>,
    map: OwnedMap,
    /// End of the allocated blocks, in bytes. Even reads stop here, because reading a hole through a map would take
    /// memory in a tmpfs.
    allocated_to: u64,
    next_entry: u32,
}

impl IndexWriter {
    /// Continues in the file `newest`, given with its name, or in a new file.
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

    /// Allocates blocks and files for the keys of a batch. After an error, [`release`](Self::release) removes the new files.
    pub fn reserve(&mut self, keys: usize, local_ms: i64) -> Result<()> {
        // One less, because entry 0 is never used.
        let (geometry, per_file) = (self.geometry, self.geometry.entries as usize - 1);
        let mut room = 0;
        if let Some(file) = &mut self.current {
            room = file.room(geometry);
            file.grow(geometry, keys.min(room))?;
        }
        // As in Java, a record without keys also starts a new file if the newest file is full.
        while room < keys.max(1) {
            let file = self.create(local_ms)?;
            // Stored before it grows, so that `release` can remove the file if growing fails.
            self.ahead.push_back(file);
            let entries = keys.saturating_sub(room).min(per_file);
            self.ahead.back_mut().map_or(Ok(()), |file| file.grow(geometry, entries))?;
            room += per_file;
        }
        Ok(())
    }

    fn create(&mut self, local_ms: i64) -> Result<IndexFile> {
        let name = name_behind(self.last_name.as_deref(), local_ms);
        let size = index::file_size(self.geometry.slots, self.geometry.entries);
        let file = AllocatedFile::create_sparse(&self.directory.join(&name), size)?;
        self.last_name = Some(name);
        self.created = true;
        IndexFile::new(file)
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the name of the file that is being written, or `None`. The files in `ahead` come after it.
    pub fn in_use(&self) -> Option<String> {
        let name = self.current.as_ref()?.file.path().file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Removes the files in `ahead`, which are not in use yet.
    pub fn release(&mut self) {
        self.ahead.drain(..).for_each(|file| file.file.discard());
    }

    /// Buffers an entry for a key of the record at `physical_offset`.
    #[inline]
    pub fn push(&mut self, hash: i32, physical_offset: i64) {
        self.pending.push((hash, physical_offset));
    }

    /// Buffers a record without keys. Like a record with keys, it makes the writer start a new file if the newest
    /// file is full.
    #[inline]
    pub fn push_none(&mut self) {
        if self.pending.last().is_none_or(|(hash, _)| *hash != NO_KEY) {
            self.pending.push((NO_KEY, 0));
        }
    }

    /// Writes the buffered entries into the map. All of them get the store time `store_ms`.
    pub fn write(&mut self, store_ms: i64, local_ms: i64) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        for (n, (hash, physical_offset)) in pending.iter().enumerate() {
            if self.current.as_ref().is_none_or(|file| file.room(self.geometry) == 0) {
                self.roll(local_ms)?;
            }
            let Some(file) = self.current.as_mut().filter(|_| *hash != NO_KEY) else { continue };
            file.grow(self.geometry, 1)?;
            // Slots are spread over 20 MB. Without prefetching, each entry would wait for memory.
            if let Some((ahead, _)) = pending.get(n + PREFETCH) {
                mmap::prefetch(&file.map, slot_position(slot_of(*ahead, self.geometry.slots)));
            }
            file.put(self.geometry, (*hash, *physical_offset), store_ms);
            self.dirty = true;
        }
        self.pending = pending;
        self.pending.clear();
        // Writes into a truncated file are lost without an error, so the file is checked afterwards.
        self.current.as_ref().map_or(Ok(()), IndexFile::check)
    }

    /// Continues in the next file. Its header begins with the time and offset at which the full file ended.
    fn roll(&mut self, local_ms: i64) -> Result<()> {
        let mut next = match self.ahead.pop_front() {
            Some(next) => next,
            None => self.create(local_ms)?,
        };
        next.grow(self.geometry, 0)?;
        if let Some(full) = self.current.take() {
            let header = full.header();
            // As in Java, time differences in the new file count from the end of the full file.
            let following = IndexHeader::following(header.end_timestamp, header.end_phy_offset);
            next.map[..HEADER_SIZE].copy_from_slice(&following.encode());
            self.full_until = header.end_timestamp;
            self.unsynced.push(full.file);
        }
        self.current = Some(next);
        self.dirty = true;
        Ok(())
    }

    pub fn open_files(&self) -> impl Iterator<Item = OpenFile> {
        let open = self.current.iter().chain(&self.ahead);
        open.map(|file| OpenFile { file: file.file.clone(), len: file.map.len() as u64 })
    }

    /// Adds to `out` the files that were written since the last call. Returns the store time up to which all entries
    /// are in full files; 0 if no file is full.
    pub fn take_unsynced(&mut self, out: &mut SyncList) -> i64 {
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
        // Entry 0 is never used, so the first entry of a new file has number 1.
        let next_entry = header.map_or(1, |header| header.index_count.cast_unsigned());
        Ok(Self { map: file.map()?, file: file.into(), allocated_to: 0, next_entry })
    }

    /// Allocates blocks for more entries, which must fit into the file.
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

    /// Adds an entry. The blocks for it must be allocated.
    #[inline]
    fn put(&mut self, geometry: Geometry, (hash, physical_offset): (i32, i64), store_ms: i64) {
        let is_put = index::put(&mut self.map, geometry.slots, geometry.entries, hash, physical_offset, store_ms);
        self.next_entry += u32::from(is_put);
    }

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

    #[inline]
    fn room(&self, geometry: Geometry) -> usize {
        geometry.entries.saturating_sub(self.next_entry) as usize
    }
}

/// Caches Java's hash of a topic and `#` for the next record, which often has the same topic.
#[derive(Debug, Default)]
pub struct TopicHash {
    topic: Vec<u8>,
    hash: i32,
}

impl TopicHash {
    pub fn of(&mut self, topic: &[u8]) -> i32 {
        // The cached hash of the empty topic may not be computed yet.
        if self.topic != topic || topic.is_empty() {
            self.topic = topic.to_vec();
            self.hash = java_hash(&format!("{}#", String::from_utf8_lossy(topic)));
        }
        self.hash
    }
}

/// Returns the index hash of `key`. `topic_hash` is Java's hash of the topic and `#`.
#[inline]
pub fn key_hash(topic_hash: i32, key: &[u8]) -> i32 {
    let hash = match key.is_ascii() {
        true => continue_ascii(topic_hash, key),
        false => String::from_utf8_lossy(key).encode_utf16().fold(topic_hash, continue_hash),
    };
    // Java's `Math.abs` of the least number is negative, and `indexKeyHashMethod` replaces a negative number by 0.
    hash.checked_abs().unwrap_or(0)
}

fn continue_hash(hash: i32, unit: u16) -> i32 {
    hash.wrapping_mul(31).wrapping_add(i32::from(unit))
}

/// Hashes eight characters at a time. If each character were hashed alone, each multiplication would wait for the one
/// before it.
#[inline]
fn continue_ascii(hash: i32, key: &[u8]) -> i32 {
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
    rest.iter().fold(hash, |hash, byte| continue_hash(hash, u16::from(*byte)))
}

/// Returns the name of an index file for a local time, in milliseconds since 1970.
pub fn name_at(millis: i64) -> String {
    let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, millis) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}{millis:03}")
}

/// Returns the name of the index file that follows the file `last`: the name for `millis`, or the next number after
/// `last` if that is higher, because the order of the names is the order of the files.
pub fn name_behind(last: Option<&str>, millis: i64) -> String {
    let name = name_at(millis);
    match last.and_then(|last| last.parse::<u64>().ok()) {
        Some(last) if name.parse().is_ok_and(|number: u64| number <= last) => format!("{:017}", last + 1),
        _ => name,
    }
}

/// Returns year, month and day for days since 1970. Years begin in March here, so that the leap day is the last day.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days + 719_468; // Days since 1 March of year 0.
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let calendar_month = if month < 10 { month + 3 } else { month - 9 };
    let calendar_year = era * 400 + year + i64::from(calendar_month <= 2);
    (calendar_year, calendar_month, day_of_year - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::index::{IndexView, index_hash};

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
        let mut unsynced = SyncList::default();
        assert_eq!(writer.take_unsynced(&mut unsynced), 9_000);
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

    #[test]
    fn names_are_times_and_never_go_back() {
        for (millis, name) in [
            (0, "19700101000000000"),
            (951_782_400_123, "20000229000000123"),
            (1_700_000_000_000, "20231114221320000"),
            (4_107_542_399_999, "21000228235959999"),
            (4_107_542_400_000, "21000301000000000"),
        ] {
            assert_eq!(name_at(millis), name);
        }
        assert_eq!(name_behind(Some("19700101000000000"), 0), "19700101000000001");
        assert_eq!(name_behind(Some("19700101000000000"), 5), "19700101000000005");
        assert_eq!(name_behind(None, 0), "19700101000000000");
    }
}
