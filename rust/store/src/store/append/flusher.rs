//! Group commit: one caller flushes for all who appended until it began; the others wait for it.
//!
//! Source: `CommitLog.GroupCommitService`, `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`.
use super::checkpoint::{CheckpointWriter, Flushed};
use super::unsynced::Unsynced;
use super::writers::Written;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Flushes, one at a time, and knows how far the log is on the disk.
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
    failure: Option<String>,
    waiting: Vec<Arc<Waiter>>,
}

/// A thread that sleeps until its bytes are on the disk, or it is its turn to flush.
#[derive(Debug)]
struct Waiter {
    position: u64,
    thread: Thread,
    is_called: AtomicBool,
}

impl Flusher {
    /// Flushes the store below `root`.
    pub fn new(root: &Path) -> Result<Self> {
        let checkpoint = Mutex::new(CheckpointWriter::open(root)?);
        Ok(Self { root: root.to_path_buf(), progress: Mutex::default(), checkpoint })
    }

    /// Waits until the log is on the disk up to `position`; `take` hands over what was written.
    ///
    /// # Errors
    /// [`Error::NotWritable`] where a flush failed: nobody knows what is on the disk, and no later flush would tell.
    /// [`Error::FlushTimeout`] for who waited longer than `timeout` for another's flush.
    pub fn commit(
        &self,
        position: u64,
        timeout: Option<Duration>,
        take: &dyn Fn() -> Result<(Unsynced, u64)>,
    ) -> Result<()> {
        if self.is_served(position, timeout)? {
            return Ok(());
        }
        self.flush_in_turn(|| {
            let (log, position) = take()?;
            log.sync().map(|()| position)
        })
    }

    /// Waits until everything is on the disk, and notes that in the checkpoint.
    pub fn flush(&self, take: &dyn Fn() -> Result<Written>) -> Result<()> {
        // no flush of others serves this one: it waits for its turn
        self.is_served(u64::MAX, None)?;
        self.flush_in_turn(|| {
            let written = take()?;
            written.log.sync()?;
            // behind the log: a unit must not be on the disk before the record that it leads to
            written.lists.sync()?;
            let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
            // last: it vouches for both
            let Written { stored_until, indexed_until, position, end, .. } = written;
            checkpoint.write(Flushed { stored_until, end, indexed_until })?;
            Ok(position)
        })
    }

    /// Runs `work`, which removes what could be waited for, while nobody waits for the disk.
    ///
    /// # Errors
    /// What `work` returns; as [`commit`](Self::commit) for an earlier failure.
    pub fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.is_served(u64::MAX, None)?;
        let mut done = None;
        self.flush_in_turn(|| {
            done = Some(work());
            Ok(0)
        })?;
        done.unwrap_or_else(|| Err(Error::io(&self.root, std::io::ErrorKind::Interrupted.into())))
    }

    /// Offset up to which the log is known to be on the disk.
    pub fn flushed_to(&self) -> u64 {
        self.progress().flushed
    }

    /// Fails once a flush or a write has failed.
    pub fn check_failure(&self) -> Result<()> {
        self.check(&self.progress())
    }

    /// Notes a failed write: it may have left anything, and nothing may follow it.
    pub fn fail(&self, error: &Error) {
        self.progress().failure.get_or_insert_with(|| error.to_string());
    }

    fn check(&self, progress: &Progress) -> Result<()> {
        let Some(failure) = &progress.failure else { return Ok(()) };
        let reason = format!("nothing can be appended after a failed write ({failure}); close the store");
        Err(Error::NotWritable { path: self.root.clone(), reason })
    }

    /// Waits for others to flush up to `position`: true where they did; false where it is this thread's turn to flush.
    fn is_served(&self, position: u64, timeout: Option<Duration>) -> Result<bool> {
        let waiter = {
            let mut progress = self.progress();
            if progress.flushed >= position {
                return Ok(true);
            }
            self.check(&progress)?;
            // the first one flushes for all who come while it does
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

    /// Waits no longer, unless it is about to be called.
    fn give_up(&self, waiter: &Arc<Waiter>) -> Result<()> {
        let mut progress = self.progress();
        let Some(at) = progress.waiting.iter().position(|other| Arc::ptr_eq(other, waiter)) else { return Ok(()) };
        // the message is stored all the same; only this caller waits no longer
        progress.waiting.swap_remove(at);
        Err(Error::FlushTimeout { path: self.root.clone(), position: waiter.position })
    }

    /// Runs `work`, which says how far the log is flushed then; calls those whom it served, and the next to flush.
    fn flush_in_turn(&self, work: impl FnOnce() -> Result<u64>) -> Result<()> {
        let done = self.check_failure().and_then(|()| work());
        let mut progress = self.progress();
        match &done {
            Ok(position) => progress.flushed = progress.flushed.max(*position),
            // for good: after a failed fsync the kernel may have dropped the pages, and the next one would succeed
            Err(error) => drop(progress.failure.get_or_insert_with(|| error.to_string())),
        }
        let (flushed, has_failed) = (progress.flushed, progress.failure.is_some());
        let waiting = std::mem::take(&mut progress.waiting);
        // after a failure all of them are called: each finds it out by itself
        let (served, left): (Vec<_>, _) = waiting.into_iter().partition(|w| has_failed || w.position <= flushed);
        progress.waiting = left;
        let next = progress.waiting.pop();
        progress.is_busy = next.is_some();
        drop(progress);
        // the next one first: the disk must not idle while threads are woken
        next.iter().chain(&served).for_each(|waiter| waiter.call());
        done.map(drop)
    }

    #[inline]
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Sleeps until it is called; after `timeout` `give_up` may say that it is not.
    fn wait(&self, timeout: Option<Duration>, give_up: impl Fn() -> Result<()>) -> Result<()> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        while !self.is_called.load(Ordering::Acquire) {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                // `give_up` finds no waiter where its call is on its way: then it is waited for, which is not long
                Some(Duration::ZERO) => {
                    give_up()?;
                    thread::park();
                }
                Some(left) => thread::park_timeout(left),
            }
        }
        Ok(())
    }

    fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.unpark();
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
            Ok((Unsynced::default(), position.load(Ordering::SeqCst)))
        };
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let mine = position.fetch_add(10, Ordering::SeqCst) + 10;
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
        let error = flusher.commit(1, None, &|| Ok((Unsynced::default(), 9))).expect_err("final").to_string();
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
            Ok((Unsynced::default(), 1))
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
