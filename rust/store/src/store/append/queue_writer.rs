//! Writes the entries of one consume queue.
//!
//! Source: `ConsumeQueue.putMessagePositionInfo`.
use super::flusher::{OpenFile, SyncList};
use crate::Result;
use crate::file::disk::{self, create_directories};
use crate::file::{AllocatedFile, AppendFile, Segments, name, place};
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use std::ops::Range;
use std::path::PathBuf;

const UNIT: u64 = UNIT_SIZE as u64;
/// The size in a consume-queue entry. It is written after the other bytes, because an entry without a size does not
/// count as a message.
const SIZE_WORD: Range<usize> = 8..12;
const BLANKS: i64 = 1 << 16;
/// Maximum number of missing messages before a message. A larger gap counts as a damaged offset, because no checksum
/// covers offsets.
pub const MAX_GAP: i64 = 1 << 20;

/// Returns whether a message with `offset` may be the next in a queue that ends at `next`. Messages between the two
/// may be missing.
pub fn can_follow(next: i64, offset: i64) -> bool {
    (0..=i64::MAX >> 8).contains(&offset) && (next == 0 || offset.saturating_sub(next) <= MAX_GAP)
}

/// The end of one queue. Entries are buffered until [`write`](Self::write).
#[derive(Debug)]
pub struct QueueWriter {
    pub topic: usize,
    pub queue_id: i32,
    directory: PathBuf,
    file_size: u64,
    next_offset: i64,
    allocated_to: u64,
    /// Number of messages that are planned, but whose entries are not buffered yet.
    planned: u64,
    /// Encoded entries that are not written yet. They end at `next_offset`.
    pending: Vec<u8>,
    open: Option<(u64, AppendFile)>,
    stays_open: bool,
    unsynced: Vec<PathBuf>,
    created: bool,
    dirty: bool,
}

impl QueueWriter {
    /// Continues a queue at `next_offset`. With `stays_open` the file stays open between writes. The files of all
    /// queues may be more than a process can have open.
    pub fn new(
        topic: usize,
        queue_id: i32,
        directory: PathBuf,
        file_size: u64,
        next_offset: i64,
        stays_open: bool,
    ) -> Self {
        let end = next_offset as u64 * UNIT;
        Self {
            topic,
            queue_id,
            directory,
            file_size,
            next_offset,
            // More blocks may be allocated. The first unit checks this.
            allocated_to: end,
            planned: 0,
            pending: Vec::new(),
            open: None,
            stays_open,
            unsynced: Vec::new(),
            created: false,
            dirty: false,
        }
    }

    /// Plans a message. Returns the queue offset of the message.
    #[inline]
    pub fn plan(&mut self) -> i64 {
        self.planned += 1;
        self.next_planned() - 1
    }

    #[inline]
    pub fn next_planned(&self) -> i64 {
        self.next_offset + self.planned as i64
    }

    pub fn forget(&mut self) {
        self.planned = 0;
    }

    /// Allocates blocks for the planned messages. Unused consume-queue entries stay zero, which means unwritten.
    pub fn reserve(&mut self) -> Result<()> {
        let needed = (self.next_offset as u64 + std::mem::take(&mut self.planned)) * UNIT;
        while self.allocated_to < needed {
            let base = self.allocated_to / self.file_size * self.file_size;
            let missing = self.allocated_to - base..(needed - base).min(self.file_size);
            self.allocated_to = base + self.grow(base, missing)?;
        }
        Ok(())
    }

    /// Allocates blocks in the file at `base`, which is created if necessary. Returns the end of the allocated blocks.
    fn grow(&mut self, base: u64, missing: Range<u64>) -> Result<u64> {
        if let Some((_, file)) = self.open.as_ref().filter(|(open, _)| *open == base) {
            return file.file().grow(missing, self.file_size);
        }
        let path = self.path(base);
        if missing.start > 0 || place::exists(&path)? {
            return AllocatedFile::open(&path)?.grow(missing, self.file_size);
        }
        if !self.created {
            create_directories(&self.directory)?;
        }
        // A queue with few messages should not occupy a whole file, so blocks are allocated step by step.
        let file = AllocatedFile::create_sparse(&path, self.file_size)?;
        let end = file.grow(missing, self.file_size).inspect_err(|_| file.discard())?;
        self.created = true;
        Ok(end)
    }

    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Buffers the entry of the next message. Returns whether it is the first entry since the last
    /// [`write`](Self::write).
    #[inline]
    pub fn push(&mut self, unit: Unit) -> bool {
        self.next_offset += 1;
        self.pending.extend_from_slice(&unit.encode());
        // One entry in the buffer means that it was empty before.
        self.pending.len() == UNIT_SIZE
    }

    /// Cuts the queue at `offset`. Entries from `offset` on become zero, and later files are removed.
    pub fn cut(&mut self, offset: i64) -> Result<()> {
        self.write()?;
        self.close_file();
        let at = u64::try_from(offset).unwrap_or(0).saturating_mul(UNIT);
        let segments = Segments::list(std::slice::from_ref(&self.directory))?;
        // Removes the last file first, so that an interrupted cut leaves no hole.
        for file in segments.files().iter().rev() {
            if file.base > at {
                disk::remove_file(&file.path)?;
                self.created = true;
            } else if file.end() > at {
                AllocatedFile::open(&file.path)?.empty(at - file.base, file.end() - at)?;
                self.unsynced.push(file.path.clone());
            }
        }
        // A path that cannot be examined stays in the list, because its flush will fail and report the error.
        self.unsynced.retain(|path| place::exists(path).unwrap_or(true));
        let has_file = segments.files().iter().any(|file| file.base <= at && at <= file.end());
        // Without a file the next start would see an empty queue, so the queue continues at 0.
        self.next_offset = if has_file { offset } else { 0 };
        self.allocated_to = self.next_offset as u64 * UNIT;
        Ok(())
    }

    /// Returns whether a message at `offset` may be the next, with missing messages before it.
    pub fn can_fill(&self, offset: i64) -> bool {
        // Planned messages count, because the first message of a new queue may be among them.
        can_follow(self.next_planned(), offset)
    }

    /// Writes blank entries for missing messages, up to queue offset `offset` exclusive. `log_file` is the physical
    /// offset at which the log file of the next message begins.
    pub fn fill(&mut self, offset: i64, log_file: i64) -> Result<()> {
        self.fill_up(offset, log_file, None)
    }

    /// Skips lost messages at the end of the queue. `tail` becomes the last entry.
    pub fn leave_out(&mut self, offset: i64, log_file: i64, tail: Unit) -> Result<()> {
        self.fill_up(offset, log_file, Some(tail))
    }

    fn fill_up(&mut self, offset: i64, log_file: i64, tail: Option<Unit>) -> Result<()> {
        let is_start = self.next_offset == 0;
        if is_start {
            // Starts in the file of the last unit. Without a file the next start would see an empty queue.
            let first = if tail.is_some() { offset.saturating_sub(1) } else { offset };
            self.start_in(first as u64 * UNIT / self.file_size * self.file_size)?;
        }
        let units_per_file = (self.file_size / UNIT) as i64;
        while self.next_offset < offset {
            self.planned = (offset - self.next_offset).min(BLANKS) as u64;
            let end = self.next_offset + self.planned as i64;
            self.reserve()?;
            while self.next_offset < end {
                // A broker removes a queue file when the log has lost the record of the file's last unit. So the last unit must
                // not point before the start of the log.
                let is_last = (self.next_offset + 1) % units_per_file == 0;
                self.push(match tail.filter(|_| self.next_offset + 1 == offset) {
                    Some(tail) => tail,
                    None if is_start => Unit::PRE_BLANK,
                    None => Unit::left_out(if is_last { log_file } else { 0 }),
                });
            }
            self.write()?;
        }
        Ok(())
    }

    /// Starts an empty queue in the file at `base`.
    fn start_in(&mut self, base: u64) -> Result<()> {
        let segments = Segments::list(std::slice::from_ref(&self.directory))?;
        for file in segments.files().iter().filter(|file| file.end() <= base) {
            disk::remove_file(&file.path)?;
        }
        self.allocated_to = self.allocated_to.max(base);
        self.next_offset = (base / UNIT) as i64;
        Ok(())
    }

    /// Writes the buffered consume-queue entries. After an error a part of them may be written.
    pub fn write(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        let mut at = self.next_offset as u64 * UNIT - rest.len() as u64;
        while !rest.is_empty() {
            let base = at / self.file_size * self.file_size;
            let (part, behind) = rest.split_at(rest.len().min((base + self.file_size - at) as usize));
            let len = self.file_size;
            let file = self.file(base)?;
            file.write(part, at - base, SIZE_WORD)?;
            // The length of the file is not checked, because a queue that has lost units is rebuilt from the log.
            file.check_lost(len)?;
            self.dirty = true;
            (rest, at) = (behind, at + part.len() as u64);
        }
        // A process may not have a file open for each of many queues.
        if !self.stays_open {
            self.close_file();
        }
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    fn file(&mut self, base: u64) -> Result<&mut AppendFile> {
        if self.open.as_ref().is_some_and(|(open, _)| *open != base) {
            self.close_file();
        }
        let file = match self.open.take() {
            Some((_, file)) => file,
            None if self.stays_open => AppendFile::new(AllocatedFile::open(&self.path(base))?)?,
            None => AppendFile::without_map(AllocatedFile::open(&self.path(base))?),
        };
        Ok(&mut self.open.insert((base, file)).1)
    }

    fn close_file(&mut self) {
        if let Some((_, file)) = self.open.take().filter(|_| std::mem::take(&mut self.dirty)) {
            self.unsynced.push(file.file().path().to_path_buf());
        }
    }

    fn path(&self, base: u64) -> PathBuf {
        self.directory.join(name::of_offset(base))
    }

    pub fn open_file(&self) -> Option<OpenFile> {
        self.open.as_ref().map(|(_, file)| OpenFile { file: file.file().clone(), len: self.file_size })
    }

    /// Adds to `out` the files that were written since the last call.
    pub fn take_unsynced(&mut self, out: &mut SyncList) {
        self.unsynced.drain(..).for_each(|path| out.path(path));
        if let Some((_, file)) = self.open.as_ref().filter(|_| std::mem::take(&mut self.dirty)) {
            out.file(file.file().clone());
        }
        if std::mem::take(&mut self.created) {
            // A new queue may have created its own directory, its topic's directory, and an entry in `consumequeue`.
            self.directory.ancestors().take(3).for_each(|directory| out.directory(directory.to_path_buf()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ConsumeQueue;
    use std::os::unix::fs::MetadataExt;

    fn sync(queue: &mut QueueWriter) {
        let mut unsynced = SyncList::default();
        queue.take_unsynced(&mut unsynced);
        unsynced.sync().expect("synced");
    }

    fn append(queue: &mut QueueWriter, count: i64) {
        for _ in 0..count {
            queue.plan();
        }
        queue.reserve().expect("room");
        for n in 0..count {
            queue.push(Unit { physical_offset: 100 * n, size: 100, tags_code: n });
        }
        queue.write().expect("written");
    }

    #[test]
    fn blocks_come_with_units_and_go_with_them() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("T/0");
        let blocks = || {
            let meta = path.join(name::of_offset(0)).metadata().expect("there");
            assert_eq!(meta.len(), 3000 * UNIT);
            meta.blocks() * 512
        };
        let mut queue = QueueWriter::new(0, 0, path.clone(), 3000 * UNIT, 0, true);
        // Bounds and not exact numbers, because a file system may use some blocks for itself.
        append(&mut queue, 204);
        assert!((4096..16_384).contains(&blocks()));
        append(&mut queue, 1);
        assert!((16_384..60_000).contains(&blocks()));
        queue.cut(1).expect("cut");
        assert!((4096..16_384).contains(&blocks()));
        append(&mut queue, 999);
        assert!((60_000..80_000).contains(&blocks()));
    }

    #[test]
    fn what_is_cut_is_zero_and_comes_anew() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("T/0");
        let mut queue = QueueWriter::new(0, 0, path.clone(), 5 * UNIT, 0, true);
        append(&mut queue, 13);
        let files = || [0, 100].map(|base| std::fs::read(path.join(name::of_offset(base))).expect("read"));
        let whole = files();
        for left in [13, 12, 10, 7, 5, 0] {
            queue.cut(left).expect("cut");
            let read = ConsumeQueue::list("T", 0, &path).expect("listed");
            assert_eq!((queue.next_offset(), read.max_offset().expect("read")), (left, left));
        }
        append(&mut queue, 10);
        sync(&mut queue);
        assert_eq!(files(), whole);
    }

    #[test]
    fn a_queue_whose_beginning_is_gone_starts_with_units_that_lead_nowhere() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("T/0");
        let mut queue = QueueWriter::new(0, 0, path.clone(), 5 * UNIT, 0, true);
        append(&mut queue, 1);
        queue.cut(0).expect("cut");
        queue.fill(13, 4096).expect("filled");
        append(&mut queue, 1);
        let read = ConsumeQueue::list("T", 0, &path).expect("listed");
        assert_eq!((read.first_offset(), read.max_offset().expect("read")), (10, 14));
        assert_eq!(read.lower_bound(0, 14).expect("read"), 13);
    }

    #[test]
    fn messages_that_are_gone_in_the_middle_keep_their_places() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("T/0");
        let mut queue = QueueWriter::new(0, 0, path.clone(), 5 * UNIT, 0, true);
        append(&mut queue, 2);
        queue.fill(12, 4096).expect("filled");
        append(&mut queue, 1);
        let read = ConsumeQueue::list("T", 0, &path).expect("listed");
        let mut reader = crate::store::consume_queue::UnitReader::new(&read);
        let mut unit = |offset| reader.unit(offset).expect("read").expect("there");
        assert!((0..13).all(|offset| unit(offset).is_message() == matches!(offset, 0 | 1 | 12)));
        // These are the last units of files. A broker reads them to decide whether a file can be removed.
        assert_eq!([4, 9].map(&mut unit), [Unit::left_out(4096); 2]);
        assert_eq!([2, 11].map(&mut unit), [Unit::left_out(0); 2]);
        assert_eq!(read.max_offset().expect("read"), 13);
    }

    #[test]
    fn units_go_over_the_end_of_a_file() {
        let dir = tempfile::tempdir().expect("dir");
        let mut queue = QueueWriter::new(0, 0, dir.path().join("T/0"), 5 * UNIT, 0, true);
        for round in 0..4 {
            let first = [queue.plan(), queue.plan(), queue.plan()];
            assert_eq!(first, [0, 1, 2].map(|n| 3 * round + n));
            queue.reserve().expect("room");
            for n in 0..3 {
                queue.push(Unit { physical_offset: 100 * (3 * round + n), size: 100, tags_code: n });
            }
            queue.write().expect("written");
        }
        sync(&mut queue);
        let read = ConsumeQueue::list("T", 0, &dir.path().join("T/0")).expect("listed");
        assert_eq!((read.segments().files().len(), read.max_offset().expect("read")), (3, 12));
        assert_eq!(read.max_physical_offset().expect("read"), 1200);
        assert_eq!(read.lower_bound(600, 12).expect("read"), 6);
    }
}
