//! Group commit. One thread flushes for all threads that appended before the flush began; the other threads wait.
//!
//! Source: `CommitLog.GroupCommitService`, `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`,
//! `StoreCheckpoint.flush`.
use crate::file::disk::{sync_all, sync_directory};
use crate::file::{AllocatedFile, AppendFile, Place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::{Error, Result};
use rmqfast_os::identity::{FileId, facts_at};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Runs one flush at a time, and holds the flushed end of the log.
#[derive(Debug)]
pub struct Flusher {
    root: PathBuf,
    progress: Mutex<Progress>,
    checkpoint: Mutex<CheckpointWriter>,
}

#[derive(Debug, Default)]
struct Progress {
    flushed: u64,
    is_busy: bool,
    /// Description of the first flush or write that failed.
    failure: Option<String>,
    waiting: Vec<Arc<Waiter>>,
}

/// A thread that waits until another thread has flushed the log up to `position`, or until its turn to flush has come.
#[derive(Debug)]
struct Waiter {
    position: u64,
    thread: Thread,
    is_called: AtomicBool,
}

impl Flusher {
    pub fn new(root: &Path) -> Result<Self> {
        let checkpoint = Mutex::new(CheckpointWriter::open(root)?);
        Ok(Self { root: root.to_path_buf(), progress: Mutex::default(), checkpoint })
    }

    /// Waits until the log is flushed up to `position`. `take` returns the files that must be flushed. Fails with
    /// [`Error::NotWritable`] after a failed flush. The state of the disk is unknown then, and no later flush can repair it.
    /// [`Error::FlushTimeout`] after waiting longer than `timeout` for the flush of another thread.
    pub fn commit(
        &self,
        position: u64,
        timeout: Option<Duration>,
        take: &dyn Fn() -> Result<(SyncList, u64)>,
    ) -> Result<()> {
        if self.is_served(position, timeout)? {
            return Ok(());
        }
        self.flush_in_turn(|| {
            let (log, position) = take()?;
            log.sync().map(|()| position)
        })
    }

    /// Flushes log, queues and index, then writes the checkpoint.
    pub fn flush(&self, take: &dyn Fn() -> Result<UnsyncedFiles>) -> Result<()> {
        // Other flushes may include only the log, so this flush always waits for its turn.
        self.is_served(u64::MAX, None)?;
        self.flush_in_turn(|| {
            let files = take()?;
            files.log.sync()?;
            // Flushed after the log, because a unit must not be on the disk before its record.
            files.lists.sync()?;
            let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
            // Written last, because the checkpoint claims that log and queues are flushed.
            let UnsyncedFiles { stored_until, indexed_until, position, end, .. } = files;
            checkpoint.write(FlushState { stored_until, end, indexed_until })?;
            Ok(position)
        })
    }

    /// Runs `work` while no thread flushes, and returns its result. Files are removed in this way.
    pub fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.is_served(u64::MAX, None)?;
        let mut result = None;
        self.flush_in_turn(|| {
            result = Some(work());
            Ok(0)
        })?;
        result.unwrap_or_else(|| Err(Error::io(&self.root, std::io::ErrorKind::Interrupted.into())))
    }

    pub fn flushed_offset(&self) -> u64 {
        self.progress().flushed
    }

    pub fn check_failure(&self) -> Result<()> {
        self.check(&self.progress())
    }

    /// Records a failed write. Nothing may be appended afterwards, because the state of the file is unknown.
    pub fn fail(&self, error: &Error) {
        self.progress().failure.get_or_insert_with(|| error.to_string());
    }

    fn check(&self, progress: &Progress) -> Result<()> {
        let Some(failure) = &progress.failure else { return Ok(()) };
        let reason = format!("nothing can be appended after a failed write ({failure}); close the store");
        Err(Error::NotWritable { path: self.root.clone(), reason })
    }

    /// Waits until other threads have flushed up to `position`. Returns false if this thread must flush itself.
    fn is_served(&self, position: u64, timeout: Option<Duration>) -> Result<bool> {
        let waiter = {
            let mut progress = self.progress();
            if progress.flushed >= position {
                return Ok(true);
            }
            self.check(&progress)?;
            // The first thread flushes for all threads that come meanwhile.
            if !progress.is_busy {
                progress.is_busy = true;
                return Ok(false);
            }
            let waiter = Waiter { position, thread: thread::current(), is_called: AtomicBool::new(false) };
            let waiter = Arc::new(waiter);
            progress.waiting.push(waiter.clone());
            waiter
        };
        waiter.wait(timeout, || self.give_up(&waiter))?;
        Ok(self.progress().flushed >= position)
    }

    /// Removes the waiter from the queue and returns the error of the timeout. Does nothing if the waiter is no
    /// longer queued, because another thread is about to wake it.
    fn give_up(&self, waiter: &Arc<Waiter>) -> Result<()> {
        let mut progress = self.progress();
        let Some(at) = progress.waiting.iter().position(|other| Arc::ptr_eq(other, waiter)) else { return Ok(()) };
        // The message is stored nevertheless. Only this caller stops waiting.
        progress.waiting.swap_remove(at);
        Err(Error::FlushTimeout { path: self.root.clone(), position: waiter.position })
    }

    /// Runs `work`, which returns the flushed end of the log. Wakes the threads that waited for an offset up to this
    /// end, and the thread that flushes next.
    fn flush_in_turn(&self, work: impl FnOnce() -> Result<u64>) -> Result<()> {
        let result = self.check_failure().and_then(|()| work());
        let mut progress = self.progress();
        match &result {
            Ok(position) => progress.flushed = progress.flushed.max(*position),
            // A failure is permanent: after a failed fsync the kernel may have dropped the pages, and the next fsync would
            // succeed.
            Err(error) => drop(progress.failure.get_or_insert_with(|| error.to_string())),
        }
        let (flushed, has_failed) = (progress.flushed, progress.failure.is_some());
        let waiting = std::mem::take(&mut progress.waiting);
        // After a failure all waiters are woken, and each of them finds the failure itself.
        let (served, others): (Vec<_>, _) = waiting.into_iter().partition(|w| has_failed || w.position <= flushed);
        progress.waiting = others;
        let next = progress.waiting.pop();
        // The next thread flushes for all others, so the flusher stays busy.
        progress.is_busy = next.is_some();
        drop(progress);
        // The next flushing thread is woken first, so that the disk is not idle while the others are woken.
        next.iter().chain(&served).for_each(|waiter| waiter.call());
        result.map(drop)
    }

    #[inline]
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Sleeps until another thread wakes the waiter, or until `give_up` succeeds after `timeout`.
    fn wait(&self, timeout: Option<Duration>, give_up: impl Fn() -> Result<()>) -> Result<()> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        while !self.is_called.load(Ordering::Acquire) {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                // If `give_up` returns `Ok`, the call is on its way and comes soon.
                Some(Duration::ZERO) => {
                    give_up()?;
                    thread::park();
                }
                Some(rest) => thread::park_timeout(rest),
            }
        }
        Ok(())
    }

    fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Maximum number of files and directories to flush one by one. For more, whole file systems are flushed.
const MANY: usize = 256;

/// A file open for writing, and its expected length. Any other length means that another process has changed the
/// file.
#[derive(Clone, Debug)]
pub struct OpenFile {
    pub file: Arc<AllocatedFile>,
    pub len: u64,
}

/// The files and directories to flush. They are collected under the append lock and flushed without it.
#[derive(Debug, Default)]
pub struct SyncList {
    open: Vec<Arc<AllocatedFile>>,
    retired: Vec<AppendFile>,
    closed: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl SyncList {
    pub fn file(&mut self, file: Arc<AllocatedFile>) {
        self.open.push(file);
    }

    /// Adds a file that will not be written any more. Its map is dropped later, together with this list, because
    /// unmapping may take a while.
    pub fn retire(&mut self, file: AppendFile) {
        self.open.push(file.file().clone());
        self.retired.push(file);
    }

    pub fn path(&mut self, path: PathBuf) {
        self.closed.insert(path);
    }

    /// Adds a directory in which files were created or removed.
    pub fn directory(&mut self, directory: PathBuf) {
        self.directories.insert(directory);
    }

    /// Flushes all files and directories of the list. After an error it is unknown which bytes are on the disk.
    pub fn sync(&self) -> Result<()> {
        if self.open.len() + self.closed.len() + self.directories.len() > MANY {
            match self.sync_file_systems() {
                // Without a call for a whole file system, the files are flushed one by one.
                Err(error) if error.is_unsupported() => {}
                result => return result,
            }
        }
        self.open.iter().try_for_each(|file| file.sync())?;
        self.closed.iter().try_for_each(|path| AllocatedFile::open(path)?.sync())?;
        self.directories.iter().try_for_each(|directory| match sync_directory(directory) {
            // Another process has removed the directory. The file watch detects this and restores the open files.
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        })
    }

    /// Flushes each file system once. This flushes writes of other processes, too, but is a hundred times as fast as
    /// flushing thousands of files.
    fn sync_file_systems(&self) -> Result<()> {
        let open = self.open.iter().map(|file| file.path());
        let paths = open.chain(self.closed.iter().map(PathBuf::as_path));
        let directories: BTreeSet<_> =
            paths.filter_map(Path::parent).chain(self.directories.iter().map(|d| &**d)).collect();
        let mut devices = BTreeSet::new();
        for directory in directories {
            // Another process has removed the directory, as above.
            let Some(id) = id_at(directory)? else { continue };
            if devices.insert(id.device) {
                sync_all(directory)?;
            }
        }
        Ok(())
    }
}

/// Files to flush, and the values for the checkpoint after the flush.
#[derive(Debug)]
pub struct UnsyncedFiles {
    pub log: SyncList,
    /// Files and directories of queues and index.
    pub lists: SyncList,
    /// Offset up to which the log is written.
    pub position: u64,
    /// The flushed end to save in the checkpoint; `None` for a log without files.
    pub end: Option<FlushedEnd>,
    /// Store time of the last message, in milliseconds.
    pub stored_until: i64,
    /// Store time up to which full index files hold the keys, in milliseconds.
    pub indexed_until: i64,
}

fn id_at(directory: &Path) -> Result<Option<FileId>> {
    match facts_at(directory) {
        Ok(facts) => Ok(Some(facts.id)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(directory, error)),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FlushState {
    /// Store time of the last flushed message, in milliseconds.
    pub stored_until: i64,
    /// Flushed end of the log; `None` for a log without files.
    pub end: Option<FlushedEnd>,
    /// Store time up to which all keys are in full and flushed index files, in milliseconds.
    pub indexed_until: i64,
}

pub const NAME: &str = "checkpoint";

/// The open checkpoint file and its bytes, which may include fields of a later version of RocketMQ.
#[derive(Debug)]
pub struct CheckpointWriter {
    file: AllocatedFile,
    page: Vec<u8>,
    values: Checkpoint,
    end: Option<FlushedEnd>,
}

impl CheckpointWriter {
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(NAME);
        let is_new = Place::metadata(&path)?.is_none();
        let file = if is_new { AllocatedFile::create(&path, FILE_SIZE as u64)? } else { AllocatedFile::open(&path)? };
        let mut page = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        // A short file is filled up with zeroes. A longer file keeps its later fields.
        page.resize(page.len().max(FILE_SIZE), 0);
        let values = Checkpoint::decode(&page).unwrap_or_default();
        let end = values.flushed_end(&page);
        Ok(Self { file, page, values, end })
    }

    /// Writes the checkpoint. Values that are already higher in the checkpoint stay as they are.
    pub fn write(&mut self, flushed: FlushState) -> Result<()> {
        let values = &mut self.values;
        // Values never go back, because an earlier flush may have reached further.
        values.physic_msg_timestamp = values.physic_msg_timestamp.max(flushed.stored_until);
        values.logics_msg_timestamp = values.logics_msg_timestamp.max(flushed.stored_until);
        values.index_msg_timestamp = values.index_msg_timestamp.max(flushed.indexed_until);
        self.end = self.end.max(flushed.end);
        self.save()
    }

    /// Replaces the values, even by lower ones, and saves them.
    pub fn reset(&mut self, flushed: FlushState) -> Result<()> {
        let values = &mut self.values;
        (values.physic_msg_timestamp, values.logics_msg_timestamp) = (flushed.stored_until, flushed.stored_until);
        values.index_msg_timestamp = flushed.indexed_until;
        self.end = flushed.end;
        self.save()
    }

    /// Lowers the flushed end to `offset`. Called before the log is cut at `offset`.
    pub fn lower_end(&mut self, offset: u64) -> Result<()> {
        self.end = self.end.map(|end| FlushedEnd { offset: end.offset.min(offset), ..end });
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        // The page has the size of a whole file, so encoding cannot fail.
        let _ = self.values.encode_into(&mut self.page);
        if let Some(page) = self.page.first_chunk_mut() {
            self.values.put_flushed_end(self.end, page);
        }
        self.file.write(&self.page, 0)?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn one_flush_serves_all_who_wait() {
        let dir = tempfile::tempdir().expect("dir");
        let flusher = Flusher::new(dir.path()).expect("made");
        let (flushes, position) = (AtomicU64::new(0), AtomicU64::new(0));
        let take = || {
            flushes.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            Ok((SyncList::default(), position.load(Ordering::SeqCst)))
        };
        let all_wait = std::sync::Barrier::new(20);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let mine = position.fetch_add(10, Ordering::SeqCst) + 10;
                    all_wait.wait();
                    flusher.commit(mine, None, &take).expect("flushed");
                });
            }
        });
        assert!(flushes.load(Ordering::SeqCst) < 10, "{flushes:?}");
        flusher.commit(200, None, &|| unreachable!("all of it is flushed")).expect("nothing to do");
    }

    #[test]
    fn a_failed_flush_is_final() {
        let dir = tempfile::tempdir().expect("dir");
        let flusher = Flusher::new(dir.path()).expect("made");
        let fail = || Err(Error::io("the disk", std::io::Error::other("gone")));
        flusher.commit(1, None, &fail).expect_err("failed");
        let error = flusher.commit(1, None, &|| Ok((SyncList::default(), 9))).expect_err("final").to_string();
        assert!(error.contains("the disk: gone") && error.contains("close the store"), "{error}");
        assert!(flusher.check_failure().is_err());
    }

    #[test]
    fn who_waits_too_long_is_told_and_others_are_served() {
        let dir = tempfile::tempdir().expect("dir");
        let flusher = Flusher::new(dir.path()).expect("made");
        let (begun, ended) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let slow = || {
            begun.wait();
            ended.wait();
            Ok((SyncList::default(), 1))
        };
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| flusher.commit(1, None, &slow));
            begun.wait();
            let late = flusher.commit(1, Some(Duration::from_millis(5)), &slow).expect_err("not in time");
            assert!(matches!(late, Error::FlushTimeout { position: 1, .. }), "{late}");
            let patient = scope.spawn(|| flusher.commit(1, Some(Duration::from_secs(60)), &slow));
            while flusher.progress().waiting.is_empty() {
                std::thread::yield_now();
            }
            ended.wait();
            leader.join().expect("no panic").expect("flushed");
            patient.join().expect("no panic").expect("served");
        });
    }
}
