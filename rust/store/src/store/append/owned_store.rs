//! The store of an appender, behind its one lock; what each of its threads needs of it.
use super::background_work::BackgroundWork;
use super::flusher::Flusher;
use super::harm::Harm;
use super::options::AppendOptions;
use super::plan::Plan;
use super::unsynced::Unsynced;
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

/// The store, whose threads and callers share it.
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
    /// When the append that is in flight began, by [`now_if_asked`](Self::now_if_asked); 0 while none is.
    held_since: AtomicU64,
    state: Mutex<Option<Open>>,
}

/// What the append lock protects.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) writers: Writers,
    pub(super) plan: Plan,
    /// Nothing is appended any more, but what was is still to be flushed.
    pub(super) is_closing: bool,
    pub(super) _lock: StoreLock,
    pub(super) _permission: Permission,
}

impl OwnedStore {
    /// The store below `root`, which this process has locked.
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

    /// Takes the open files away for good: whatever comes later finds the store closed.
    pub(super) fn take_open(&self) -> Option<Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.with_any(|open| {
            self.flusher.check_failure()?;
            action(open)
        })
    }

    /// As [`with`](Self::with), also where nothing can be written any more.
    pub(super) fn with_any<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(state.as_mut().ok_or_else(|| closed(&self.root))?)
    }

    /// Notes a write that failed. Of what came to harm by another process all that was written before is still flushed.
    pub(super) fn failed(&self, error: &Error) {
        match error {
            Error::NotWritable { .. } => self.harm.note(error),
            // a write that failed halfway may have left anything: nothing may follow it
            _ => self.flusher.fail(error),
        }
        self.work.look();
    }

    /// Looks whether the log has what was appended to it.
    ///
    /// # Errors
    /// [`Error::NotWritable`] where another process has changed its file.
    pub(super) fn check_log(&self) -> Result<()> {
        let checked = self.with(|open| open.writers.log.check());
        checked.inspect_err(|error| self.failed(error))
    }

    /// Appends, unless the store is closed.
    pub(super) fn with_log<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.check_busy()?;
        self.with(|open| {
            if open.is_closing {
                return Err(closed(&self.root));
            }
            // under the lock, so that no append slips in between the check and the write
            self.harm.check()?;
            self.held_since.store(self.now_if_asked(), Ordering::Relaxed);
            let done = action(open);
            self.held_since.store(0, Ordering::Relaxed);
            done
        })
    }

    /// Refuses where somebody has held the log for long, as when the disk does not keep up.
    ///
    /// Source: `DefaultMessageStore.isOSPageCacheBusy`.
    fn check_busy(&self) -> Result<()> {
        let Some(limit) = self.options.busy_after else { return Ok(()) };
        let since = self.held_since.load(Ordering::Relaxed);
        let held = self.now_if_asked().saturating_sub(since);
        if since == 0 || u128::from(held) <= limit.as_millis() {
            return Ok(());
        }
        let reason = format!("another append has held the log for {held} ms, more than {} ms", limit.as_millis());
        Err(Error::Busy { path: self.root.clone(), reason })
    }

    /// Milliseconds since the store was opened, from 1; 0 where nobody asks for them.
    fn now_if_asked(&self) -> u64 {
        self.options.busy_after.map_or(0, |_| self.opened.elapsed().as_millis() as u64 + 1)
    }

    pub(super) fn flush(&self) -> Result<()> {
        let flushed = self.flusher.flush(&|| self.with(|open| Ok(open.writers.unsynced())));
        self.live.growth().tell();
        flushed
    }

    pub(super) fn unsynced_log(&self) -> Result<(Unsynced, u64)> {
        self.with(|open| {
            let mut log = Unsynced::default();
            let position = open.writers.log.unsynced(&mut log);
            Ok((log, position))
        })
    }

    pub(super) fn flush_log(&self) -> Result<()> {
        let position = self.with(|open| Ok(open.writers.log.position()))?;
        let flushed = self.flusher.commit(position, None, &|| self.unsynced_log());
        self.live.growth().tell();
        flushed
    }

    /// Creates the log's next file, outside of the lock.
    pub(super) fn create_ahead(&self) -> Result<()> {
        let Some(next) = self.with(|open| Ok(open.writers.log.wanted()))? else { return Ok(()) };
        let file = next.create(&self.root)?;
        self.with(|open| open.writers.log.take_ahead(next, file))
    }
}

fn closed(root: &Path) -> Error {
    Error::NotWritable { path: root.to_path_buf(), reason: "the store is closed".into() }
}
