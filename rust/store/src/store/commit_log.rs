//! The commit log: one sequence of records over all topics, cut into files of one size.
//!
//! Source: `CommitLog`, `MappedFileQueue.findMappedFileByOffset`.
use super::damage::Damage;
use crate::file::{Io, Place, Segment, Segments, StoreLock, place};
use crate::format::message::{Item, Layout, Message};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most records fit into a page: the first read of one.
const FIRST_READ: usize = 4096;

/// The files of a commit log, as they were listed.
#[derive(Debug)]
pub struct CommitLog {
    root: PathBuf,
    segments: Segments,
    io: Io,
    /// Mapped files stay mapped: what faults a page in is dearer than what reads it.
    mapped: Mutex<BTreeMap<usize, Segment>>,
    lost_end: OnceLock<Option<LostEnd>>,
}

/// An end of the log that was flushed and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEnd {
    /// Up to where it was flushed.
    pub end: u64,
    pub witness: String,
}

impl CommitLog {
    /// Lists the files of all its directories; the store is the one below `root`.
    pub fn list(root: &Path, directories: &[PathBuf], io: Io) -> Result<Self> {
        let (segments, mapped) = (Segments::list(directories)?, Mutex::default());
        Ok(Self { root: root.to_path_buf(), segments, io, mapped, lost_end: OnceLock::new() })
    }

    /// The end that is lost, as far as somebody has looked; `Some(None)` where nothing is.
    pub fn lost_end(&self) -> Option<Option<&LostEnd>> {
        self.lost_end.get().map(Option::as_ref)
    }

    /// Notes it for all walks; the first note stays.
    pub(super) fn note_lost_end(&self, lost: Option<LostEnd>) {
        self.lost_end.get_or_init(|| lost);
    }

    /// Whether a broker has the store: what its last bytes are no record yet is one in the making.
    pub fn has_writer(&self) -> bool {
        StoreLock::is_held(&self.root)
    }

    /// The directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Offset of the first byte that is still there.
    pub fn min_offset(&self) -> u64 {
        self.segments.start()
    }

    /// Opens the file that `index` names.
    pub fn open(&self, index: usize) -> Result<Segment> {
        if self.io == Io::Pread {
            return self.segments.open(index, self.io);
        }
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = mapped.get(&index) {
            return Ok(segment.share());
        }
        let segment = self.segments.open(index, self.io)?;
        mapped.insert(index, segment.share());
        Ok(segment)
    }

    /// Position of the first byte that is not zero, from `from` to the end of the file at `index`, whose `segment` it is.
    ///
    /// Where there is none, and nobody writes there (`is_still`), the look leaves no pages behind. The system reads ahead of it, into
    /// blocks that were allocated and never written: the next look would find those stored, and read them.
    pub fn first_written(&self, index: usize, segment: &Segment, from: u64, is_still: bool) -> Result<Option<u64>> {
        let len = self.segments.files()[index].len;
        let written = segment.first_written(from, len)?;
        if written.is_none() && is_still {
            segment.forget(from, len);
        }
        Ok(written)
    }

    /// Whether a file behind the one at `index` holds something: then the log does not end before it.
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
            // a link that leads nowhere: what it led to may hold anything
            Err(Error::Corrupt { .. }) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The whole record at `offset`, body CRC checked.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where no sound record stands there, [`Error::Io`].
    pub fn record_at(&self, offset: u64) -> Result<Vec<u8>> {
        RecordReader::new(self).record_at(offset)
    }

    /// Up to `len` bytes from `offset`, nothing checked.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an offset outside of the files, [`Error::Corrupt`] for a file that was removed, [`Error::Io`].
    pub fn record_head(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let index = self.segments.find(offset).ok_or_else(|| self.outside(offset))?;
        let file = &self.segments.files()[index];
        let mut bytes = Vec::new();
        let len = len.min((file.end() - offset) as usize);
        self.open(index)?.read_into(offset - file.base, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Damage of `length` bytes from `offset`, with the file that holds them.
    pub fn damage(&self, offset: u64, length: u64, reason: impl Into<String>) -> Damage {
        let files = self.segments.files();
        // also in a gap: the file before it is where a person looks
        let index = files.partition_point(|f| f.base <= offset).saturating_sub(1);
        let file = files.get(index).map_or_else(|| self.root.join("commitlog"), |f| f.path.clone());
        Damage { offset, length, reason: reason.into(), file }
    }

    /// Where the log begins now, if retention removed the file at `index` since it was listed.
    pub fn retained_from(&self, index: usize) -> Option<u64> {
        let files = self.segments.files();
        // no listing of the directories, which a file that goes meanwhile would fail
        let is_gone = |path: &Path| matches!(Place::look(path), Ok(Place::Absent));
        let start = match files.iter().find(|file| !is_gone(&file.path)) {
            Some(first) => first.base,
            None => self.listed_again()?.start(),
        };
        (start > files[index].base).then_some(start)
    }

    fn listed_again(&self) -> Option<Segments> {
        let directories: BTreeSet<PathBuf> =
            self.segments.files().iter().filter_map(|file| Some(file.path.parent()?.to_path_buf())).collect();
        Segments::list(&directories.into_iter().collect::<Vec<_>>()).ok()
    }

    /// Why the file at `index` is not there: a link that leads nowhere, or removed since it was listed.
    pub fn removed(&self, index: usize) -> String {
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

/// Reads records by offset, one file open at a time.
#[derive(Debug)]
pub struct RecordReader<'a> {
    log: &'a CommitLog,
    open: Option<(usize, Segment)>,
}

impl<'a> RecordReader<'a> {
    /// A reader of `log`.
    pub fn new(log: &'a CommitLog) -> Self {
        Self { log, open: None }
    }

    /// As [`CommitLog::record_at`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] where no sound record stands there, [`Error::Invalid`] outside of the files, [`Error::Io`].
    pub fn record_at(&mut self, offset: u64) -> Result<Vec<u8>> {
        let index = self.log.segments.find(offset).ok_or_else(|| self.log.outside(offset))?;
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            self.open = Some((index, self.log.open(index)?));
        }
        let file = &self.log.segments.files()[index];
        let at = offset - file.base;
        let mut bytes = Vec::new();
        let Some((_, segment)) = &self.open else { return Ok(bytes) };
        // a page: what a damaged length claims is not read for it
        segment.read_into(at, FIRST_READ.min((file.len - at) as usize), &mut bytes)?;
        if let Ok(Item::Partial(needed)) = Layout::decode(&bytes)
            && needed as u64 <= file.len - at
        {
            bytes.clear();
            segment.read_into(at, needed, &mut bytes)?;
        }
        match fault_of(&bytes, offset) {
            Ok(len) => bytes.truncate(len),
            Err(reason) => return Err(Error::Corrupt { path: file.path.clone(), offset: at, reason }),
        }
        Ok(bytes)
    }

    /// The record at `offset`, or in words why there is none; a file that retention removed meanwhile is one reason.
    pub fn try_record(&mut self, offset: u64) -> Result<std::result::Result<Vec<u8>, String>> {
        match self.record_at(offset) {
            Ok(record) => Ok(Ok(record)),
            Err(Error::Corrupt { reason, .. }) => Ok(Err(reason)),
            Err(Error::Invalid { expected, got, .. }) => Ok(Err(format!("expected {expected}, got {got}"))),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Err(self.log.segments.find(offset).map_or_else(String::new, |index| self.log.removed(index))))
            }
            Err(error) => Err(error),
        }
    }
}

/// Bytes of the record that `bytes` begin with, or why it is none that stands at `offset`.
fn fault_of(bytes: &[u8], offset: u64) -> std::result::Result<usize, String> {
    match Layout::decode(bytes) {
        Ok(Item::Message(layout)) => sound(bytes, layout, offset, true).map_or(Ok(layout.total as usize), Err),
        Ok(Item::Blank(_)) => Err("expected a message, got the end of the file".to_owned()),
        Ok(Item::Unwritten) => Err("expected a message, got bytes that were never written".to_owned()),
        Ok(Item::Partial(needed)) => Err(format!("expected {needed} bytes, got {}", bytes.len())),
        Err(malformed) => Err(malformed.to_string()),
    }
}

/// Why the record at `offset` cannot be trusted although its lengths agree; `None` where it can.
#[inline]
pub fn sound(bytes: &[u8], layout: Layout, offset: u64, verify_crc: bool) -> Option<String> {
    let message = Message::new(bytes, layout)?;
    // an old record behind a cut log, or of another store, says where it once stood
    if message.physical_offset() != offset as i64 {
        return Some(format!("physical offset at +28: expected {offset}, got {}", message.physical_offset()));
    }
    if verify_crc && !message.body_crc_matches() {
        let got = crate::format::message::body_crc(message.body());
        return Some(format!("body crc at +8: expected {}, got {got}", message.body_crc()));
    }
    None
}
