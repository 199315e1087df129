//! A store that this process owns and appends to.
//!
//! Source: `DefaultMessageStore.putMessage`, `DefaultMessageStore.shutdown`.
use super::options::{AppendOptions, Flush};
use super::resume;
use super::row::Rows;
pub use super::writers::Place;
use super::writers::Writers;
use crate::file::StoreLock;
use crate::format::host::Host;
use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the file that is there while a store is open.
pub const ABORT: &str = "abort";

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Messages that were stored.
    pub rows: usize,
    /// Where the last one is.
    pub last: Option<Place>,
}

/// The appender; threads may share it and take turns.
///
/// Dropped without [`close`](Self::close) it gives up the lock but leaves `abort`, as a process that ends would.
#[derive(Debug)]
pub struct Appender {
    root: PathBuf,
    options: AppendOptions,
    state: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    writers: Writers,
    failure: Option<String>,
    _lock: StoreLock,
}

impl Appender {
    /// Opens the store below `root`, or makes a new one where there is nothing.
    ///
    /// # Errors
    /// [`Error::Busy`] for a store that is locked, was not closed, or whose queues lag behind its log; [`Error::Unsupported`]
    /// for one of another kind; [`Error::Corrupt`] for a damaged end; [`Error::Io`].
    pub fn open(root: &Path, options: AppendOptions) -> Result<Self> {
        let options = options.checked()?;
        resume::create_root(root)?;
        let lock = StoreLock::acquire(root)?;
        let writers = resume::resume(root, &options)?;
        lock.mark()?;
        let abort = root.join(ABORT);
        fs::write(&abort, b"").map_err(|e| Error::io(&abort, e))?;
        let open = Open { writers, failure: None, _lock: lock };
        Ok(Self { root: root.to_path_buf(), options, state: Mutex::new(Some(open)) })
    }

    /// Stores a batch, or nothing of it: rows are checked and files allocated before the first byte is written.
    ///
    /// `store_ms` is the store time in milliseconds; the clock's unless given. `first_row` is the number of the first row
    /// in errors.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a row; [`Error::Io`], after which the appender only fails if bytes were written.
    pub fn append<R: Rows>(&self, rows: &R, store_ms: Option<i64>, first_row: usize) -> Result<Appended> {
        let options = &self.options;
        self.with(|open| {
            let store_ms = store_ms.unwrap_or_else(now);
            let plan = open.writers.prepare(rows, options, store_ms, first_row)?;
            let written = open.writers.write(rows, &plan, options, store_ms);
            let last = open.poisoned_by(written)?;
            if options.flush == Flush::Sync {
                let synced = open.writers.log.sync();
                open.poisoned_by(synced)?;
            }
            Ok(Appended { rows: rows.len(), last })
        })
    }

    /// Waits until all that was appended is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`], after which the appender only fails.
    pub fn flush(&self) -> Result<()> {
        self.with(|open| {
            let synced = open.writers.sync();
            open.poisoned_by(synced)
        })
    }

    /// Flushes and gives the store up. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`]; then, and after an earlier failure, `abort` stays.
    pub fn close(&self) -> Result<()> {
        let Some(mut open) = self.state.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        if open.failure.is_some() {
            return Ok(());
        }
        open.writers.sync()?;
        let abort = self.root.join(ABORT);
        fs::remove_file(&abort).map_err(|e| Error::io(&abort, e))
    }

    /// Who stores.
    pub fn store_host(&self) -> Host {
        self.options.store_host
    }

    fn with<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.as_mut().ok_or_else(|| Error::invalid("store", "one that is open", "a closed one"))?;
        match &open.failure {
            None => action(open),
            Some(failure) => {
                let text = format!("nothing can be appended after a failed write ({failure}); close the store");
                Err(Error::io(&self.root, io::Error::other(text)))
            }
        }
    }
}

impl Open {
    /// A write that failed may have left anything: nothing may follow it.
    fn poisoned_by<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.failure = Some(error.to_string()))
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
