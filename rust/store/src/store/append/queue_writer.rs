//! The end of one consume queue.
//!
//! Source: `ConsumeQueue.putMessagePositionInfo`.
use crate::file::allocated::{Allocated, sync_directory};
use crate::file::name;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::{Error, Result};
use std::fs;
use std::path::PathBuf;

const UNIT: u64 = UNIT_SIZE as u64;

/// Writes units, which are gathered until [`write`](Self::write).
#[derive(Debug)]
pub struct QueueWriter {
    /// Number of its topic in the table.
    pub topic: usize,
    /// Number within the topic.
    pub queue_id: i32,
    directory: PathBuf,
    file_size: u64,
    next_offset: i64,
    allocated_to: u64,
    planned: u64,
    pending: Vec<u8>,
    open: Option<(u64, Allocated)>,
    unsynced: Vec<PathBuf>,
    created: bool,
    dirty: bool,
}

impl QueueWriter {
    /// A queue whose next message gets `next_offset` and whose files reach to byte `allocated_to`.
    pub fn new(topic: usize, queue_id: i32, directory: PathBuf, file_size: u64, next_offset: i64) -> Self {
        let written = next_offset as u64 * UNIT;
        Self {
            topic,
            queue_id,
            directory,
            file_size,
            next_offset,
            allocated_to: written.next_multiple_of(file_size),
            planned: 0,
            pending: Vec::new(),
            open: None,
            unsynced: Vec::new(),
            created: false,
            dirty: false,
        }
    }

    /// Counts a message that is about to come. Returns whether it is the first one since [`reserve`](Self::reserve).
    pub fn plan(&mut self) -> bool {
        self.planned += 1;
        self.planned == 1
    }

    /// Forgets what was planned.
    pub fn forget(&mut self) {
        self.planned = 0;
    }

    /// Creates the files that the planned messages need. Those that stay unused are all zero, which means empty.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn reserve(&mut self) -> Result<()> {
        let needed = (self.next_offset as u64 + std::mem::take(&mut self.planned)) * UNIT;
        while self.allocated_to < needed {
            if !self.created {
                fs::create_dir_all(&self.directory).map_err(|e| Error::io(&self.directory, e))?;
            }
            let path = self.path(self.allocated_to);
            // one that was created for messages that did not come is empty still
            if !path.exists() {
                Allocated::create(&path, self.file_size)?;
            }
            self.created = true;
            self.allocated_to += self.file_size;
        }
        Ok(())
    }

    /// Offset of the next message.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Adds the unit of the next message. Returns whether it is the first one since [`write`](Self::write).
    #[inline]
    pub fn push(&mut self, unit: Unit) -> bool {
        self.next_offset += 1;
        self.pending.extend_from_slice(&unit.encode());
        self.pending.len() == UNIT_SIZE
    }

    /// Hands the units to the operating system.
    ///
    /// # Errors
    /// [`Error::Io`]; then part of them may be in the file.
    pub fn write(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        let mut at = self.next_offset as u64 * UNIT - rest.len() as u64;
        while !rest.is_empty() {
            let base = at / self.file_size * self.file_size;
            let (part, behind) = rest.split_at(rest.len().min((base + self.file_size - at) as usize));
            self.file(base)?.write(part, at - base)?;
            self.dirty = true;
            (rest, at) = (behind, at + part.len() as u64);
        }
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    fn file(&mut self, base: u64) -> Result<&Allocated> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != base) {
            self.close_file();
            self.open = Some((base, Allocated::open(&self.path(base))?));
        }
        match &self.open {
            Some((_, file)) => Ok(file),
            None => Err(Error::io(self.path(base), std::io::ErrorKind::NotFound.into())),
        }
    }

    /// Closes the open file, if any: a process may have only so many.
    pub fn close_file(&mut self) {
        if let Some((_, file)) = self.open.take().filter(|_| self.dirty) {
            self.unsynced.push(file.path().to_path_buf());
        }
    }

    fn path(&self, base: u64) -> PathBuf {
        self.directory.join(name::of_offset(base))
    }

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        for path in self.unsynced.drain(..) {
            Allocated::open(&path)?.sync()?;
        }
        if let Some((_, file)) = self.open.as_ref().filter(|_| self.dirty) {
            file.sync()?;
        }
        if std::mem::take(&mut self.created) {
            // the queue's files, its topic's queues, the topics
            self.directory.ancestors().take(3).try_for_each(sync_directory)?;
        }
        self.dirty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ConsumeQueue;

    #[test]
    fn units_go_over_the_end_of_a_file() {
        let dir = tempfile::tempdir().expect("dir");
        let mut queue = QueueWriter::new(0, 0, dir.path().join("T/0"), 5 * UNIT, 0);
        for round in 0..4 {
            let first = [queue.plan(), queue.plan(), queue.plan()];
            assert_eq!(first, [true, false, false]);
            queue.reserve().expect("room");
            for n in 0..3 {
                queue.push(Unit { physical_offset: 100 * (3 * round + n), size: 100, tags_code: n });
            }
            queue.write().expect("written");
        }
        queue.sync().expect("synced");
        let read = ConsumeQueue::list("T", 0, &dir.path().join("T/0")).expect("listed");
        assert_eq!((read.segments().files().len(), read.max_offset().expect("read")), (3, 12));
        assert_eq!(read.max_physical_offset().expect("read"), 1200);
        assert_eq!(read.lower_bound(600, 12).expect("read"), 6);
    }
}
