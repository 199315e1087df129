//! The store of an appender. Its threads share it. Most of its state is behind the append lock.
use super::background_work::BackgroundWork;
use super::flusher::Flusher;
use super::harm::Harm;
use super::options::AppendOptions;
use super::plan::Plan;
use super::unsynced::SyncList;
use super::writers::Writers;
use crate::file::StoreLock;
use crate::file::permission::Permission;
use crate::store::retain::retention::Retention;
use crate::store::serve::Live;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[derive(Debug)]
pub(super) struct OwnedStore {
    pub(super) root: PathBuf,
    pub(super) options: AppendOptions,
    pub(super) flusher: Flusher,
    pub(super) retention: Retention,
    pub(super) harm: Harm,
    pub(super) work: BackgroundWork,
    pub(super) live: Live,
    opened: Instant,
    /// Start of the append that holds the lock, as [`now_if_limited`](Self::now_if_limited) returns it; 0 if no
    /// append holds the lock.
    held_since: AtomicU64,
    /// The append lock. The state is `None` after the store was closed.
    state: Mutex<Option<Open>>,
}

/// The state behind the append lock.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) writers: Writers,
    pub(super) plan: Plan,
    /// Whether the store is being closed. If so, appends are refused, but earlier appends are still flushed.
    pub(super) is_closing: bool,
    pub(super) _lock: StoreLock,
    pub(super) _permission: Permission,
}

impl OwnedStore {
    pub(super) fn new(root: &Path, options: AppendOptions, open: Open) -> Result<Self> {
        Ok(Self {
            root: root.to_path_buf(),
            options,
            flusher: Flusher::new(root)?,
            retention: Retention::new(root, options.retain, options.zone_offset_ms),
            harm: Harm::default(),
            work: BackgroundWork::default(),
            live: open.writers.live(root),
            opened: Instant::now(),
            held_since: AtomicU64::new(0),
            state: Mutex::new(Some(open)),
        })
    }

    /// Takes the state away, which closes the store.
    pub(super) fn take_open(&self) -> Option<Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.with_any(|open| {
            self.flusher.check_failure()?;
            action(open)
        })
    }

    /// Runs `action` like [`with`](Self::with), even if a flush or write has failed before.
    pub(super) fn with_any<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(state.as_mut().ok_or_else(|| closed_error(&self.root))?)
    }

    /// Records a failed write. If the cause is a file that another process has changed, earlier writes are still
    /// flushed.
    pub(super) fn on_write_error(&self, error: &Error) {
        match error {
            Error::NotWritable { .. } => self.harm.note(error),
            // A write that failed halfway leaves the file in an unknown state, so nothing may follow it.
            _ => self.flusher.fail(error),
        }
        // The background thread checks all files at once, to restore a removed file soon.
        self.work.look();
    }

    /// Checks that no other process has changed the log's current file.
    pub(super) fn check_log(&self) -> Result<()> {
        self.with(|open| open.writers.log.check()).inspect_err(|error| self.on_write_error(error))
    }

    /// Runs an append under the lock. Fails if the store is closed.
    pub(super) fn with_log<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.check_busy()?;
        self.with(|open| {
            if open.is_closing {
                return Err(closed_error(&self.root));
            }
            // Checked under the lock, so that no append comes between this check and the write.
            self.harm.check()?;
            // Other threads read this without the lock, to refuse appends while this append takes too long.
            self.held_since.store(self.now_if_limited(), Ordering::Relaxed);
            let result = action(open);
            self.held_since.store(0, Ordering::Relaxed);
            result
        })
    }

    /// Fails if another append holds the lock for too long, for example because the disk does not keep up
    /// (`DefaultMessageStore.isOSPageCacheBusy`).
    fn check_busy(&self) -> Result<()> {
        let Some(limit) = self.options.busy_after else { return Ok(()) };
        let since = self.held_since.load(Ordering::Relaxed);
        let duration = self.now_if_limited().saturating_sub(since);
        if since == 0 || u128::from(duration) <= limit.as_millis() {
            return Ok(());
        }
        let reason = format!("another append has held the log for {duration} ms, more than {} ms", limit.as_millis());
        Err(Error::Busy { path: self.root.clone(), reason })
    }

    /// Returns the milliseconds since the store was opened, plus 1. Without a limit returns 0, to avoid reading the
    /// clock.
    fn now_if_limited(&self) -> u64 {
        self.options.busy_after.map_or(0, |_| self.opened.elapsed().as_millis() as u64 + 1)
    }

    pub(super) fn flush(&self) -> Result<()> {
        let result = self.flusher.flush(&|| self.with(|open| Ok(open.writers.take_unsynced())));
        self.live.growth().notify();
        result
    }

    pub(super) fn unsynced_log(&self) -> Result<(SyncList, u64)> {
        self.with(|open| {
            let mut log = SyncList::default();
            let position = open.writers.log.take_unsynced(&mut log);
            Ok((log, position))
        })
    }

    pub(super) fn flush_log(&self) -> Result<()> {
        let position = self.with(|open| Ok(open.writers.log.position()))?;
        let result = self.flusher.commit(position, None, &|| self.unsynced_log());
        self.live.growth().notify();
        result
    }

    /// Creates the log's next file. Does not hold the append lock while the file is created.
    pub(super) fn create_ahead(&self) -> Result<()> {
        let Some(next) = self.with(|open| Ok(open.writers.log.next_needed()))? else { return Ok(()) };
        // Allocating a file of 1 GiB may take long, so it happens between two uses of the lock.
        let file = next.create(&self.root)?;
        self.with(|open| open.writers.log.add_ahead(next, file))
    }
}

fn closed_error(root: &Path) -> Error {
    Error::NotWritable { path: root.to_path_buf(), reason: "the store is closed".into() }
}
