//! Writes the commit log. Records go into a buffer, and the buffer into the current file. A full file ends with a blank record.
//!
//! Source: `CommitLog.DefaultAppendMessageCallback.doAppend`, `MappedFileQueue.getLastMappedFile`.
use super::flusher::{OpenFile, SyncList};
use crate::file::mmap::Pages;
use crate::file::{AllocatedFile, AppendFile, disk, free_bytes, name};
use crate::format::checkpoint::FlushedEnd;
use crate::format::message::{MIN_BLANK_LEN, encode_blank, has_room};
use crate::store::serve::LiveLog;
use crate::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Temporary name of the log's next file while it is created.
const NEXT_FILE: &str = "commitlog.next";
/// Maximum bytes in the buffer. More bytes cause a write.
pub const BUFFER_LEN: usize = 1 << 20;
/// Maximum distance in bytes by which pages are loaded into memory before records are written there. The distance
/// grows with the bytes appended so far.
const AHEAD: u64 = 16 << 20;
/// Minimum bytes to load into memory at a time. For fewer bytes, waking another thread costs more than the page
/// faults.
const MIN_TOUCH: u64 = 64 << 10;
pub const MAX_FULL: usize = 64;
/// The first word of a record, which is its size. It is written after the other bytes, so that readers never see half
/// a record.
const SIZE_WORD: Range<usize> = 0..4;

#[derive(Debug)]
pub struct LogWriter {
    directory: PathBuf,
    file_size: u64,
    is_mapped: bool,
    /// Offset of the next record. The buffered records end here.
    position: u64,
    last: u64,
    live: Arc<LiveLog>,
    current: Option<LogFile>,
    /// Files behind the current file that were created early, in order.
    ahead: VecDeque<LogFile>,
    /// The last files before the current file, by base offset. They stay open, so that a file that another process
    /// removes can be restored.
    full: BTreeMap<u64, Arc<AllocatedFile>>,
    /// Number of files that were in `ahead` before the last [`reserve`](Self::reserve). `release` keeps these files.
    reserved_from: usize,
    buffer: Vec<u8>,
    opened_at: u64,
    /// Offset up to which pages have been faulted in.
    touched_to: u64,
    unsynced: Vec<AppendFile>,
    created: bool,
    dirty: bool,
}

#[derive(Debug)]
struct LogFile {
    base: u64,
    file: AppendFile,
    is_allocated: bool,
    /// Position and first eight bytes of the last written record.
    last: Option<(u64, [u8; 8])>,
}

impl LogFile {
    fn new(base: u64, file: AllocatedFile, is_mapped: bool) -> Result<Self> {
        let file = if is_mapped { AppendFile::new(file)? } else { AppendFile::without_map(file) };
        Ok(Self { base, file, is_allocated: true, last: None })
    }

    /// Continues in an existing file. Parts that were not written may be holes, as brokers and recovery leave them.
    fn from_existing(base: u64, file: AllocatedFile, is_mapped: bool) -> Result<Self> {
        let is_allocated = !file.keeps_blocks()?;
        Ok(Self { is_allocated, ..Self::new(base, file, is_mapped)? })
    }

    /// Checks that the last record is still in the file. If another process had overwritten the record, the next
    /// recovery would cut all records behind it.
    #[inline]
    fn check_last(&self) -> Result<()> {
        match self.last {
            Some((at, head)) if self.file.word(at) != Some(head) => Err(self.overwrite_error(at)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn overwrite_error(&self, at: u64) -> Error {
        let what = format!("the message that was written at position {at} is not there any more");
        Error::changed_by_another(self.file.file().path(), what)
    }
}

/// The next file of the log, which does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextFile {
    base: u64,
    size: u64,
}

impl NextFile {
    /// Creates the file in the store's directory, since a stray file in the log's directory would keep a broker from
    /// starting.
    pub fn create(self, root: &Path) -> Result<AllocatedFile> {
        Self::remove_left_over(root);
        AllocatedFile::create(&root.join(NEXT_FILE), self.size)
    }

    /// Removes the file that a killed process may have left.
    pub fn remove_left_over(root: &Path) {
        let _ = disk::remove_file(&root.join(NEXT_FILE));
    }
}

impl LogWriter {
    /// Continues at `position`, in the file `current` (given with its base offset) or in a new file. Without
    /// `is_mapped` writes through system calls, which are faster than a map if each append waits for a flush.
    pub fn new(
        directory: PathBuf,
        file_size: u64,
        position: u64,
        current: Option<(u64, AllocatedFile)>,
        is_mapped: bool,
    ) -> Result<Self> {
        let current = current.map(|(base, file)| LogFile::from_existing(base, file, is_mapped)).transpose()?;
        Ok(Self {
            live: Arc::new(LiveLog::new(directory.clone(), file_size, position)),
            directory,
            file_size,
            position,
            last: position,
            is_mapped,
            current,
            ahead: VecDeque::new(),
            full: BTreeMap::new(),
            reserved_from: 0,
            buffer: Vec::with_capacity(BUFFER_LEN + (64 << 10)),
            opened_at: position,
            touched_to: position,
            unsynced: Vec::new(),
            created: false,
            dirty: false,
        })
    }

    pub fn live(&self) -> &Arc<LiveLog> {
        &self.live
    }

    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Creates the files for records of these sizes. With `is_whole` the records must be in one file. After an error,
    /// [`release`](Self::release) removes the new files.
    pub fn reserve(&mut self, sizes: impl Iterator<Item = u32>, is_whole: bool) -> Result<()> {
        let mut sizes = sizes.map(u64::from);
        // A batch that must be in one file counts as one large record.
        let one = is_whole.then(|| sizes.by_ref().sum());
        let sizes = one.into_iter().chain(sizes);
        let mut end = self.current.as_ref().map_or(self.position, |file| file.base + self.file_size);
        let mut at = self.position;
        self.reserved_from = self.ahead.len();
        self.allocate_existing()?;
        for size in sizes {
            if !has_room(end.saturating_sub(at), size) {
                at = end;
                if self.ahead.back().is_none_or(|last| last.base < end) {
                    let file = self.create(end)?;
                    self.ahead.push_back(file);
                }
                end += self.file_size;
            }
            at += size;
        }
        Ok(())
    }

    /// Creates the file for bytes that [`copy`](Self::copy) will write.
    pub fn reserve_copy(&mut self, bytes: u64) -> Result<()> {
        self.reserved_from = self.ahead.len();
        self.allocate_existing()?;
        let end = self.current.as_ref().map_or(self.position, |file| file.base + self.file_size);
        if bytes > 0 && self.position == end && self.ahead.is_empty() {
            let file = self.create(end)?;
            self.ahead.push_back(file);
        }
        Ok(())
    }

    /// Allocates the rest of a file that existed before the log was opened.
    fn allocate_existing(&mut self) -> Result<()> {
        let Some(current) = self.current.as_ref().filter(|file| !file.is_allocated) else { return Ok(()) };
        let file = current.file.file();
        let allocation = file.allocate(self.position - current.base..self.file_size);
        allocation.map_err(|error| self.explain_full(error, file.path().to_path_buf()))?;
        self.current.iter_mut().for_each(|file| file.is_allocated = true);
        Ok(())
    }

    fn create(&mut self, base: u64) -> Result<LogFile> {
        let path = self.directory.join(name::of_offset(base));
        let file = AllocatedFile::create(&path, self.file_size).map_err(|error| self.explain_full(error, path))?;
        self.created = true;
        LogFile::new(base, file, self.is_mapped)
    }

    fn explain_full(&self, error: Error, path: PathBuf) -> Error {
        match free_bytes(&self.directory).filter(|_| error.is_disk_full()) {
            Some((free, _)) => Error::NoRoom { path, needed: self.file_size, free },
            None => error,
        }
    }

    pub fn has_files(&self) -> bool {
        self.position > self.live.min_offset()
    }

    /// Returns `offset` in the form that the checkpoint stores.
    pub fn flushed_end(&self, offset: u64) -> FlushedEnd {
        FlushedEnd { offset, file_size: u32::try_from(self.file_size).unwrap_or(u32::MAX) }
    }

    /// Refuses a new log if the disk has no room for a file. An existing log is accepted, because it can be read and may get
    /// room later.
    pub fn check_room(&self) -> Result<()> {
        let is_new = self.current.is_none() && self.position == 0;
        match free_bytes(&self.directory).filter(|(_, all)| is_new && *all < self.file_size) {
            Some((free, _)) => Err(Error::NoRoom { path: self.directory.clone(), needed: self.file_size, free }),
            None => Ok(()),
        }
    }

    /// Removes unused files that the last [`reserve`](Self::reserve) created.
    pub fn release(&mut self) {
        let from = self.reserved_from.min(self.ahead.len());
        self.ahead.drain(from..).for_each(|file| file.file.file().discard());
    }

    /// Removes all files in `ahead`.
    pub fn release_all(&mut self) {
        self.ahead.drain(..).for_each(|file| file.file.file().discard());
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next file of the log, if it should be created now. This is so if the current file is half full and
    /// the next file does not exist.
    pub fn next_needed(&self) -> Option<NextFile> {
        let current = self.current.as_ref().filter(|_| self.ahead.is_empty())?;
        // Early enough for the next file to exist when the current file is full.
        let is_half_full = self.position - current.base > self.file_size / 2;
        // The caller creates the file under a temporary name, see `NEXT_FILE`.
        is_half_full.then_some(NextFile { base: current.base + self.file_size, size: self.file_size })
    }

    /// Adds a file that was created without the append lock. Discards the file if it is no longer needed.
    pub fn add_ahead(&mut self, next: NextFile, file: AllocatedFile) -> Result<()> {
        if self.next_needed() != Some(next) {
            file.discard();
            return Ok(());
        }
        let file = file.rename(&self.directory.join(name::of_offset(next.base)))?;
        self.created = true;
        self.ahead.push_back(LogFile::new(next.base, file, self.is_mapped)?);
        Ok(())
    }

    /// Returns the pages to fault in, for records of `size` bytes and for later records; `None` if there are too few.
    #[inline]
    pub fn to_touch(&mut self, size: u64) -> Option<(Pages, Range<u64>)> {
        let end = self.position + size;
        // A store that is opened for a few messages should not occupy more pages than these need.
        let window = (end - self.opened_at).min(AHEAD);
        if self.touched_to >= end + window / 2 {
            return None;
        }
        let file = self.current.as_ref()?;
        let from = self.touched_to.clamp(self.position, file.base + self.file_size);
        let to = (end + window).min(file.base + self.file_size);
        let pages = file.file.pages().filter(|_| to - from > MIN_TOUCH)?;
        self.touched_to = to;
        Some((pages, from - file.base..to - file.base))
    }

    pub fn buffer_len(&self) -> usize {
        self.buffer.len()
    }

    /// Continues in the next file unless the current file has room for `size` bytes.
    pub fn begin(&mut self, size: u64) -> Result<()> {
        let end = self.current.as_ref().map_or(self.position, |file| file.base + self.file_size);
        if has_room(end.saturating_sub(self.position), size) { Ok(()) } else { self.roll(end) }
    }

    /// Assigns an offset to a record. Returns the offset and the buffer for the bytes of the record.
    #[inline]
    pub fn place(&mut self, size: u32) -> Result<(u64, &mut Vec<u8>)> {
        self.begin(size.into())?;
        let offset = self.position;
        self.position += u64::from(size);
        self.last = offset;
        Ok((offset, &mut self.buffer))
    }

    /// Ends the current file with a blank record and continues in the next file.
    fn roll(&mut self, end: u64) -> Result<()> {
        // Each record leaves room for a blank, so the rest is 0 or at least 8 bytes.
        let remaining = end - self.position;
        if remaining > 0 {
            // As in Java, only the first 8 bytes of the blank are written.
            self.buffer.extend_from_slice(&encode_blank(remaining as u32));
            self.position += MIN_BLANK_LEN as u64;
        }
        self.write()?;
        self.position = end;
        let next = match self.ahead.pop_front() {
            Some(next) => next,
            None => self.create(end)?,
        };
        if let Some(full) = self.current.replace(next) {
            self.hold(full.base, full.file.file().clone());
            // The map is dropped at the next flush, without the append lock, because unmapping takes time.
            self.unsynced.push(full.file);
        }
        Ok(())
    }

    /// Keeps a full file open as one of the last files. Closes the oldest of these files if there are too many.
    pub fn hold(&mut self, base: u64, file: Arc<AllocatedFile>) {
        self.full.insert(base, file);
        if self.full.len() > MAX_FULL {
            self.full.pop_first();
        }
    }

    pub fn open_files(&mut self) -> impl Iterator<Item = OpenFile> {
        // Files that retention has removed must not be restored.
        self.full = self.full.split_off(&self.live.min_offset());
        let open = self.current.iter().chain(&self.ahead).map(|file| file.file.file());
        let len = self.file_size;
        self.full.values().chain(open).map(move |file| OpenFile { file: file.clone(), len })
    }

    /// Writes the buffer and publishes its records to readers. After an error a part of the buffer may be written.
    pub fn write(&mut self) -> Result<()> {
        // The buffer is put back below. After an error nothing is written any more.
        let mut buffer = std::mem::take(&mut self.buffer);
        let start = self.position - buffer.len() as u64;
        self.put(&buffer, start).inspect_err(|_| self.position = start)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    /// Copies records of another log to the same offsets, within one file. `last` is the offset of the last record. A
    /// complete blank record at the end of the file may follow the records.
    pub fn copy(&mut self, bytes: &[u8], last: Option<u64>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.current.as_ref().is_none_or(|file| file.base + self.file_size <= self.position) {
            self.roll(self.position)?;
        }
        let start = self.position;
        (self.position, self.last) = (start + bytes.len() as u64, last.unwrap_or(start));
        self.put(bytes, start)
    }

    /// Writes `bytes`, whose end is `self.position`.
    fn put(&mut self, bytes: &[u8], start: u64) -> Result<()> {
        let Some(current) = self.current.as_mut().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        let mut at = start - current.base;
        // Checked before the copy: if another process has zeroed the last record, a recovery would not find the new records
        // behind it.
        current.check_last()?;
        // Records are written one by one, as in Java, so that a concurrent walk never finds a record behind a half written
        // record.
        for record in records(bytes, current.file.is_mapped()) {
            current.file.write(record, at, SIZE_WORD)?;
            at += record.len() as u64;
        }
        // Checked after the copy and before anybody is notified: a write behind the end of a truncated file is lost without a
        // signal (decision 0012).
        current.file.check(at, self.file_size)?;
        let head = self.last.checked_sub(start).and_then(|at| bytes.get(at as usize..)?.first_chunk());
        current.last = head.map(|head| (self.last - current.base, *head));
        self.dirty = true;
        // Published last, because readers expect everything before the published end to be complete.
        self.live.publish(self.position);
        Ok(())
    }

    /// Checks that no other process has changed the current file.
    pub fn check(&self) -> Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        current.check_last()?;
        current.file.check(self.position - self.buffer.len() as u64 - current.base, self.file_size)
    }

    /// Adds to `out` the files that were written since the last call. Returns the offset up to which these files are
    /// written.
    pub fn take_unsynced(&mut self, out: &mut SyncList) -> u64 {
        self.unsynced.drain(..).for_each(|file| out.retire(file));
        if let Some(current) = self.current.as_ref().filter(|_| std::mem::take(&mut self.dirty)) {
            out.file(current.file.file().clone());
        }
        if std::mem::take(&mut self.created) {
            out.directory(self.directory.clone());
        }
        // Buffered records are not in a file yet.
        self.position - self.buffer.len() as u64
    }
}

/// Splits the buffer into parts. Each part is one write. With `one_by_one` each part is a record, otherwise the whole
/// buffer is one part, because a system call copies bytes in order.
fn records(mut rest: &[u8], one_by_one: bool) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let size = rest.first_chunk().map_or(0, |word| u32::from_be_bytes(*word) as usize);
        // Only the head of a blank record is in the buffer, so its size may be greater than the rest.
        let len = if one_by_one { size.clamp(SIZE_WORD.end, rest.len().max(SIZE_WORD.end)) } else { rest.len() };
        let (record, behind) = rest.split_at(len.min(rest.len()));
        rest = behind;
        (!record.is_empty()).then_some(record)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(dir: &std::path::Path) -> LogWriter {
        LogWriter::new(dir.to_path_buf(), 100, 0, None, true).expect("made")
    }

    fn put(log: &mut LogWriter, size: u32) -> u64 {
        let (offset, buffer) = log.place(size).expect("placed");
        buffer.extend(std::iter::repeat_n(b'r', size as usize));
        offset
    }

    #[test]
    fn a_record_and_a_blank_one_must_fit() {
        let dir = tempfile::tempdir().expect("dir");
        let mut log = writer(dir.path());
        log.reserve([50, 42, 10].into_iter(), false).expect("room");
        assert_eq!([50, 42, 10].map(|size| put(&mut log, size)), [0, 50, 100]);
        log.write().expect("written");
        let first = std::fs::read(dir.path().join(name::of_offset(0))).expect("there");
        assert_eq!(first[92..], encode_blank(8));
        let mut log = writer(&dir.path().join("b"));
        std::fs::create_dir(dir.path().join("b")).expect("dir");
        assert_eq!([50, 43].map(|size| put(&mut log, size)), [0, 100]);
    }

    #[test]
    fn files_that_are_not_used_go_again() {
        let dir = tempfile::tempdir().expect("dir");
        let mut log = writer(dir.path());
        log.reserve([50, 50, 50].into_iter(), false).expect("room");
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 3);
        log.release();
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 0);
        assert_eq!(put(&mut log, 50), 0);
    }

    #[test]
    fn what_is_to_be_whole_goes_to_the_next_file_as_a_whole() {
        let dir = tempfile::tempdir().expect("dir");
        let mut log = writer(dir.path());
        log.reserve([50].into_iter(), true).expect("room");
        put(&mut log, 50);
        log.reserve([21, 22].into_iter(), true).expect("room");
        log.begin(43).expect("begun");
        assert_eq!([21, 22].map(|size| put(&mut log, size)), [100, 121]);
        log.reserve([24, 25].into_iter(), true).expect("room");
        log.begin(49).expect("begun");
        assert_eq!([24, 25].map(|size| put(&mut log, size)), [143, 167]);
    }
}
