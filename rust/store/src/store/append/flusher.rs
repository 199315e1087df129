//! When appended messages are on the disk. Who waits shares the wait: one flushes for all who appended until it began.
//!
//! Source: `CommitLog.GroupCommitService`, `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`.
use super::checkpoint::CheckpointWriter;
use super::unsynced::Unsynced;
use super::writers::Written;
use crate::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Flushes, one at a time, and knows how far the log is on the disk.
#[derive(Debug)]
pub struct Flusher {
    root: PathBuf,
    progress: Mutex<Progress>,
    changed: Condvar,
    checkpoint: Mutex<CheckpointWriter>,
}

#[derive(Debug, Default)]
struct Progress {
    flushed: u64,
    is_busy: bool,
    failure: Option<String>,
}

impl Flusher {
    /// Flushes the store below `root`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(root: &Path) -> Result<Self> {
        let checkpoint = Mutex::new(CheckpointWriter::open(root)?);
        Ok(Self { root: root.to_path_buf(), progress: Mutex::default(), changed: Condvar::new(), checkpoint })
    }

    /// Waits until the log is on the disk up to `position`; `take` hands over what was written.
    ///
    /// # Errors
    /// [`Error::Io`] where a flush failed: nobody knows what is on the disk, and no later flush would tell.
    pub fn commit(&self, position: u64, take: &dyn Fn() -> Result<(Unsynced, u64)>) -> Result<()> {
        let mut progress = self.progress();
        while progress.flushed < position {
            self.check(&progress)?;
            progress = match progress.is_busy {
                true => self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner),
                false => self.flush_as_first(progress, || {
                    let (log, position) = take()?;
                    log.sync().map(|()| position)
                })?,
            };
        }
        Ok(())
    }

    /// Waits until everything is on the disk, and notes that in the checkpoint.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn flush(&self, take: &dyn Fn() -> Result<Written>) -> Result<()> {
        let mut progress = self.progress();
        while progress.is_busy {
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        self.check(&progress)?;
        let flushed = self.flush_as_first(progress, || {
            let written = take()?;
            written.log.sync()?;
            written.lists.sync()?;
            let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
            checkpoint.write(written.stored_until, written.indexed_until)?;
            Ok(written.position)
        });
        flushed.map(drop)
    }

    /// Fails once a flush or a write has failed.
    ///
    /// # Errors
    /// [`Error::Io`] with that failure.
    pub fn check_failure(&self) -> Result<()> {
        self.check(&self.progress())
    }

    /// Notes a failed write: it may have left anything, and nothing may follow it.
    pub fn fail(&self, error: &Error) {
        self.progress().failure.get_or_insert_with(|| error.to_string());
        self.changed.notify_all();
    }

    fn check(&self, progress: &Progress) -> Result<()> {
        let Some(failure) = &progress.failure else { return Ok(()) };
        let text = format!("nothing can be appended after a failed write ({failure}); close the store");
        Err(Error::io(&self.root, io::Error::other(text)))
    }

    /// Runs `work` while others wait; it returns how far the log is flushed.
    fn flush_as_first<'a>(
        &'a self,
        mut progress: MutexGuard<'a, Progress>,
        work: impl FnOnce() -> Result<u64>,
    ) -> Result<MutexGuard<'a, Progress>> {
        progress.is_busy = true;
        drop(progress);
        let done = work();
        let mut progress = self.progress();
        progress.is_busy = false;
        match &done {
            Ok(position) => progress.flushed = progress.flushed.max(*position),
            Err(error) => drop(progress.failure.get_or_insert_with(|| error.to_string())),
        }
        self.changed.notify_all();
        done.map(|_| progress)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn one_flush_serves_all_who_wait() {
        let dir = tempfile::tempdir().expect("dir");
        let flusher = Flusher::new(dir.path()).expect("made");
        let (flushes, position) = (AtomicU64::new(0), AtomicU64::new(0));
        let take = || {
            flushes.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            Ok((Unsynced::default(), position.load(Ordering::SeqCst)))
        };
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let mine = position.fetch_add(10, Ordering::SeqCst) + 10;
                    flusher.commit(mine, &take).expect("flushed");
                });
            }
        });
        assert!(flushes.load(Ordering::SeqCst) < 10, "{flushes:?}");
        flusher.commit(200, &|| unreachable!("all of it is flushed")).expect("nothing to do");
    }

    #[test]
    fn a_failed_flush_is_final() {
        let dir = tempfile::tempdir().expect("dir");
        let flusher = Flusher::new(dir.path()).expect("made");
        let fail = || Err(Error::io("the disk", io::Error::other("gone")));
        flusher.commit(1, &fail).expect_err("failed");
        let error = flusher.commit(1, &|| Ok((Unsynced::default(), 9))).expect_err("final").to_string();
        assert!(error.contains("the disk: gone") && error.contains("close the store"), "{error}");
        assert!(flusher.check_failure().is_err());
    }
}
