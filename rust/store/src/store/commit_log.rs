//! The commit log: the records of all topics in the order of their arrival, in files of equal size.
//!
//! Source: `CommitLog`, `MappedFileQueue.findMappedFileByOffset`.
use crate::file::{Io, KeptMap, Place, Segment, Segments, StoreLock, place};
use crate::format::message::{Item, Layout, Message};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of the first read of a record. Most records fit into one page.
pub(crate) const FIRST_READ: usize = 4096;
/// Bytes behind the noted end of a log that tell whether it goes on there.
const LOOK: u64 = 64 << 10;

/// Maximum number of maps that a log keeps. A process may have 65,530 (`vm.max_map_count`), and needs some for its memory.
const MAX_MAPS: usize = 4096;

/// Reason in the damage report for a missing file in the middle of the log.
pub(crate) const NO_FILE: &str = "expected a file of the commit log, got none";

/// The files of a commit log, listed once when the log is opened.
#[derive(Debug)]
pub struct CommitLog {
    root: PathBuf,
    segments: Segments,
    io: Io,
    /// Maps of files by number. They are kept, because faulting pages in again costs more than reading them.
    mapped: Mutex<BTreeMap<usize, Segment>>,
    /// The same for reads under leases.
    leased: Mutex<BTreeMap<usize, Arc<KeptMap>>>,
    lost_end: OnceLock<Option<LostEnd>>,
}

/// Describes a log that has lost its end: the offset up to which it was flushed, which is behind its present end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEnd {
    pub end: u64,
    /// Names the source of `end` in error texts, for example the checkpoint.
    pub witness: String,
}

impl CommitLog {
    /// Lists the files in all directories of the log. `root` is the directory of the store.
    pub fn list(root: &Path, directories: &[PathBuf], io: Io) -> Result<Self> {
        let (segments, root) = (Segments::list(directories)?, root.to_path_buf());
        let (mapped, leased) = (Mutex::default(), Mutex::default());
        Ok(Self { root, segments, io, mapped, leased, lost_end: OnceLock::new() })
    }

    /// Returns the result of the check for a lost end: `None` before the check, `Some(None)` if nothing is lost.
    pub fn lost_end(&self) -> Option<Option<&LostEnd>> {
        self.lost_end.get().map(Option::as_ref)
    }

    /// Stores the result of the check, for all readers of the log. Only the first call has an effect.
    pub(super) fn note_lost_end(&self, lost: Option<LostEnd>) {
        self.lost_end.get_or_init(|| lost);
    }

    /// Returns whether a broker owns the store. If so, incomplete bytes at the end of the log may be a record that is
    /// being written.
    pub fn has_writer(&self) -> bool {
        StoreLock::is_held(&self.root)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn io(&self) -> Io {
        self.io
    }

    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the offset of the first byte that retention has not removed.
    pub fn min_offset(&self) -> u64 {
        self.segments.start()
    }

    pub fn open(&self, index: usize) -> Result<Segment> {
        // Only maps are worth keeping; a file for `pread` or leases is opened for each use.
        if self.io != Io::Mmap {
            return self.segments.open(index, self.io);
        }
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = mapped.get(&index) {
            return Ok(segment.share());
        }
        let segment = self.segments.open(index, self.io)?;
        if mapped.len() < MAX_MAPS {
            mapped.insert(index, segment.share());
        }
        Ok(segment)
    }

    /// Opens a file for a scan. Its blocks are in a map under leases, if the store was opened so.
    pub fn open_for_scan(&self, index: usize) -> Result<Segment> {
        let segment = self.open(index)?;
        if self.io != Io::Auto {
            return Ok(segment);
        }
        let mut leased = self.leased.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match leased.get(&index) {
            Some(kept) => kept.clone(),
            // Dropped with the segment.
            None if leased.len() >= MAX_MAPS => Arc::default(),
            None => leased.entry(index).or_default().clone(),
        };
        Ok(segment.with_leases(kept))
    }

    /// Returns the position of the first nonzero byte from `from` to the end of file `index`, or `None`. `segment` is
    /// the open file.
    ///
    /// If all bytes are zero and `is_still` says that nobody writes there, the pages that were read are dropped from the page
    /// cache. Otherwise the system's read-ahead would make the next search read all allocated blocks.
    pub fn first_written(&self, index: usize, segment: &Segment, from: u64, is_still: bool) -> Result<Option<u64>> {
        let len = self.segments.files()[index].len;
        let written = segment.first_written(from, len)?;
        if written.is_none() && is_still {
            segment.forget(from, len);
        }
        Ok(written)
    }

    /// Returns whether a file behind file `index` holds data. If so, the log does not end in file `index`.
    pub fn continues_behind(&self, index: usize) -> Result<bool> {
        for index in index + 1..self.segments.files().len() {
            if self.holds_data(index)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn holds_data(&self, index: usize) -> Result<bool> {
        let len = self.segments.files()[index].len;
        match self.open(index).and_then(|segment| segment.first_written(0, len)) {
            Ok(offset) => Ok(offset.is_some()),
            // The target of a dead link is unknown, so the file counts as one with data.
            Err(Error::Corrupt { .. }) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the log goes on at or behind `end`, where it has been noted to end. One block there is looked at,
    /// and the first page of each later file: to read all of the zeroes would take long where files have no holes.
    pub fn goes_on_behind(&self, end: u64) -> Result<bool> {
        for (index, file) in self.segments.files().iter().enumerate().filter(|(_, file)| file.end() > end) {
            let (from, count) = if file.base <= end { (end - file.base, LOOK) } else { (0, FIRST_READ as u64) };
            match self.open(index).and_then(|segment| segment.first_written(from, file.len.min(from + count))) {
                Ok(None) => {}
                // The content of a file that cannot be read is unknown.
                Ok(Some(_)) | Err(Error::Corrupt { .. }) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns the record at `offset`, and checks its body CRC. Fails with [`Error::Corrupt`] if no valid record
    /// begins there.
    pub fn record_at(&self, offset: u64) -> Result<Vec<u8>> {
        RecordReader::new(self).record_at(offset)
    }

    /// Returns up to `len` unchecked bytes from `offset`. Fails with [`Error::Invalid`] if no file contains the offset.
    pub fn record_head(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let index = self.segments.find(offset).ok_or_else(|| self.outside(offset))?;
        let file = &self.segments.files()[index];
        let mut bytes = Vec::new();
        let len = len.min((file.end() - offset) as usize);
        self.open(index)?.read_into(offset - file.base, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns a damage report for `length` bytes from `offset`, with the path of their file.
    pub fn damage(&self, offset: u64, length: u64, reason: impl Into<String>) -> Damage {
        let files = self.segments.files();
        // In a gap between files, the report names the file before the gap, because a person would look there.
        let index = files.partition_point(|f| f.base <= offset).saturating_sub(1);
        let file = files.get(index).map_or_else(|| self.root.join("commitlog"), |f| f.path.clone());
        Damage { offset, length, reason: reason.into(), file }
    }

    /// Returns the present start of the log, if retention has removed file `index` since the listing; otherwise
    /// returns `None`.
    pub fn retained_from(&self, index: usize) -> Option<u64> {
        let files = self.segments.files();
        // Looks at each path in place of listing the directory, because a listing fails if a file disappears meanwhile.
        let is_gone = |path: &Path| matches!(Place::look(path), Ok(Place::Absent));
        let start = match files.iter().find(|file| !is_gone(&file.path)) {
            Some(first) => first.base,
            None => self.list_again()?.start(),
        };
        // If the log still begins at or before the file, retention has not removed it.
        (start > files[index].base).then_some(start)
    }

    fn list_again(&self) -> Option<Segments> {
        let directories: BTreeSet<PathBuf> =
            self.segments.files().iter().filter_map(|file| Some(file.path.parent()?.to_path_buf())).collect();
        Segments::list(&directories.into_iter().collect::<Vec<_>>()).ok()
    }

    /// Returns the reason for the absence of file `index`: a dead link, a directory, or a removal since the listing.
    pub fn reason_of_absence(&self, index: usize) -> String {
        let file = &self.segments.files()[index];
        match Place::look(&file.path) {
            Ok(Place::DeadLink) => return place::no_file_reason(&file.path),
            Ok(Place::There(meta)) if meta.is_dir() => return place::no_file_reason(&file.path),
            _ => {}
        }
        match self.retained_from(index) {
            Some(begin) => {
                format!("retention removed the file since the store was opened: the log begins at {begin} now")
            }
            None => "the file was removed while the log was read".to_owned(),
        }
    }

    fn outside(&self, offset: u64) -> Error {
        let (start, end) = (self.segments.start(), self.segments.end());
        Error::invalid("physical offset", format!("one in a file of the commit log, {start} to {end}"), offset)
    }
}

/// Reads records by offset and keeps the last used file open.
#[derive(Debug)]
pub struct RecordReader<'a> {
    log: &'a CommitLog,
    open: Option<(usize, Segment)>,
}

impl<'a> RecordReader<'a> {
    pub fn new(log: &'a CommitLog) -> Self {
        Self { log, open: None }
    }

    pub fn record_at(&mut self, offset: u64) -> Result<Vec<u8>> {
        let index = self.log.segments.find(offset).ok_or_else(|| self.log.outside(offset))?;
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            self.open = Some((index, self.log.open(index)?));
        }
        let file = &self.log.segments.files()[index];
        let at = offset - file.base;
        let mut bytes = Vec::new();
        let Some((_, segment)) = &self.open else { return Ok(bytes) };
        // The first read takes one page, because a damaged length may be arbitrarily large.
        segment.read_into(at, FIRST_READ.min((file.len - at) as usize), &mut bytes)?;
        // The record is longer than the first read, and its file has room for it.
        if let Ok(Item::Partial(needed)) = Layout::decode(&bytes)
            && needed as u64 <= file.len - at
        {
            bytes.clear();
            segment.read_into(at, needed, &mut bytes)?;
        }
        match check_record(&bytes, offset) {
            Ok(len) => bytes.truncate(len),
            Err(reason) => return Err(Error::Corrupt { path: file.path.clone(), offset: at, reason }),
        }
        Ok(bytes)
    }

    /// Returns the record at `offset`, or the reason for its absence. The removal of a file by retention counts as a
    /// reason, not as an error.
    pub fn try_record(&mut self, offset: u64) -> Result<std::result::Result<Vec<u8>, String>> {
        match self.record_at(offset) {
            Ok(record) => Ok(Ok(record)),
            Err(Error::Corrupt { reason, .. }) => Ok(Err(reason)),
            Err(Error::Invalid { expected, got, .. }) => Ok(Err(format!("expected {expected}, got {got}"))),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Err(self
                .log
                .segments
                .find(offset)
                .map_or_else(String::new, |index| self.log.reason_of_absence(index)))),
            Err(error) => Err(error),
        }
    }
}

/// Returns the length of the record at the start of `bytes`, or the reason that these bytes are not the record at `offset`.
fn check_record(bytes: &[u8], offset: u64) -> std::result::Result<usize, String> {
    match Layout::decode(bytes) {
        Ok(Item::Message(layout)) => find_fault(bytes, layout, offset, true).map_or(Ok(layout.total as usize), Err),
        Ok(Item::Blank(_)) => Err("expected a message, got the end of the file".to_owned()),
        Ok(Item::Unwritten) => Err("expected a message, got bytes that were never written".to_owned()),
        Ok(Item::Partial(needed)) => Err(format!("expected {needed} bytes, got {}", bytes.len())),
        Err(malformed) => Err(malformed.to_string()),
    }
}

/// Returns the reason not to trust a decoded record: a wrong offset or a wrong body CRC. Returns `None` for a sound
/// record.
#[inline]
pub fn find_fault(bytes: &[u8], layout: Layout, offset: u64, verify_crc: bool) -> Option<String> {
    let message = Message::new(bytes, layout)?;
    // A record of another store, or an old one behind a truncated log, contains another offset.
    if message.physical_offset() != offset as i64 {
        return Some(format!("physical offset at +28: expected {offset}, got {}", message.physical_offset()));
    }
    if verify_crc && !message.body_crc_matches() {
        let got = crate::format::message::body_crc(message.body());
        return Some(format!("body crc at +8: expected {}, got {got}", message.body_crc()));
    }
    None
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the commit log. If `file` is a consume queue or an index file, offset in that queue or file.
    pub offset: u64,
    /// Number of bytes that were skipped; 0 if only a part of a row is missing.
    pub length: u64,
    pub reason: String,
    pub file: PathBuf,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}, {} bytes: {}", self.file.display(), self.offset, self.length, self.reason)
    }
}

/// Returns `reason`, the fault of a record, with the queue and queue offset that list the record. The queue's entry may
/// be wrong instead of the record.
pub fn listed_there(reason: &str, topic: &str, queue_id: i32, queue_offset: i64) -> String {
    format!("{reason}; message {queue_offset} of queue {queue_id} of topic {topic} is listed there")
}

/// The damage found so far. Entries beyond [`DamageLog::LIMIT`] are only counted, so that a ruined store does not fill the
/// memory.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    entries: Vec<Damage>,
    more: u64,
}

impl DamageLog {
    pub const LIMIT: usize = 10_000;

    pub fn push(&mut self, damage: Damage) {
        if self.entries.len() < Self::LIMIT {
            self.entries.push(damage);
        } else {
            self.more += 1;
        }
    }

    pub fn extend(&mut self, damage: impl IntoIterator<Item = Damage>) {
        damage.into_iter().for_each(|damage| self.push(damage));
    }

    pub fn append(&mut self, other: Self) {
        other.entries.into_iter().for_each(|damage| self.push(damage));
        self.more += other.more;
    }

    pub fn entries(&self) -> &[Damage] {
        &self.entries
    }

    /// Returns the number of entries that were only counted.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Returns the first damage as an error that also has the number of further damages; `None` without damage.
    pub fn error(&self) -> Option<Error> {
        let first = self.entries.first()?;
        let more = match self.entries.len() as u64 - 1 + self.more {
            0 => String::new(),
            more => format!(", and {more} more places"),
        };
        let reason = format!("{}{more}; on_damage=\"warn\" reads what is left", first.reason);
        Some(Error::Corrupt { path: first.file.clone(), offset: first.offset, reason })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_the_limit_damages_are_counted() {
        let damage = Damage { offset: 1, length: 2, reason: "r".into(), file: "f".into() };
        let mut log = DamageLog::default();
        (0..DamageLog::LIMIT + 3).for_each(|_| log.push(damage.clone()));
        assert_eq!((log.entries().len(), log.more()), (DamageLog::LIMIT, 3));
        assert_eq!(damage.to_string(), "f at offset 1, 2 bytes: r");
    }
}
