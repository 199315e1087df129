//! A store that this process owns and appends to.
//!
//! One lock makes one ordered log. Under it bytes go to the operating system's cache and no further: who waits for the disk, and
//! the thread that flushes, wait without it.
//!
//! Source: `DefaultMessageStore.putMessage`, `DefaultMessageStore.shutdown`.
use super::flusher::Flusher;
use super::options::{AppendOptions, Flush};
use super::resume;
use super::row::Rows;
use super::timer::{INTERVAL, Timer};
use super::unsynced::Unsynced;
pub use super::writers::Place;
use super::writers::Writers;
use crate::file::StoreLock;
use crate::file::disk::{self, Call, sync_directory};
use crate::format::host::Host;
use crate::store::recover::{Extent, Recovered, is_begun, recover};
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name of the file that is there while a store is open.
pub const ABORT: &str = "abort";
/// How often queues and index are flushed, too, and the checkpoint is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Messages that were stored.
    pub rows: usize,
    /// Where the last one is.
    pub last: Option<Place>,
}

/// The appender; threads may share it.
///
/// Dropped without [`close`](Self::close) it gives up the lock but leaves `abort`, as a process that ends would.
#[derive(Debug)]
pub struct Appender {
    recovered: Option<Recovered>,
    // before the store, which its thread writes to
    timer: Mutex<Option<Timer>>,
    store: Arc<OwnedStore>,
}

#[derive(Debug)]
struct OwnedStore {
    root: PathBuf,
    options: AppendOptions,
    flusher: Flusher,
    state: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    writers: Writers,
    /// Nothing is appended any more, but what was is still to be flushed.
    is_closing: bool,
    _lock: StoreLock,
}

impl Appender {
    /// Opens the store below `root`, or makes a new one where there is nothing. A store that was not closed, or whose parts
    /// disagree, is recovered first.
    ///
    /// # Errors
    /// [`Error::Busy`] for a store that is locked; [`Error::Unsupported`] for one of another kind; [`Error::Corrupt`] for one
    /// that cannot be recovered without a loss; [`Error::Io`].
    pub fn open(root: &Path, options: AppendOptions) -> Result<Self> {
        Self::open_watched(root, options, &mut |_, _| Ok(()))
    }

    /// As [`open`](Self::open); `watch` is told how far a recovery is, and may end it.
    ///
    /// # Errors
    /// As [`open`](Self::open); what `watch` returns.
    pub fn open_watched(root: &Path, options: AppendOptions, watch: Watch<'_>) -> Result<Self> {
        let options = options.checked()?;
        resume::create_root(root)?;
        let lock = StoreLock::acquire(root)?;
        let (writers, recovered) = resume_or_recover(root, &options, watch)?;
        lock.mark()?;
        let abort = root.join(ABORT);
        disk::call(Call::Create, &abort, || fs::write(&abort, b""))?;
        sync_directory(root)?;
        let state = Mutex::new(Some(Open { writers, is_closing: false, _lock: lock }));
        let store = Arc::new(OwnedStore { root: root.to_path_buf(), options, flusher: Flusher::new(root)?, state });
        let timer = Timer::start(flushing(store.clone())).map_err(|e| Error::io(root, e))?;
        Ok(Self { recovered, timer: Mutex::new(Some(timer)), store })
    }

    /// What recovery did when the store was opened; `None` where nothing had to be recovered.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Stores a batch, or nothing of it: rows are checked and files allocated before the first byte is written.
    ///
    /// `store_ms` is the store time in milliseconds; the clock's unless given. `first_row` is the number of the first row
    /// in errors.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a row; [`Error::Io`], after which the appender only fails if bytes were written.
    pub fn append<R: Rows>(&self, rows: &R, store_ms: Option<i64>, first_row: usize) -> Result<Appended> {
        let store = &self.store;
        let options = &store.options;
        let (last, position, wants_file) = store.with(|open| {
            if open.is_closing {
                return Err(closed());
            }
            let store_ms = store_ms.unwrap_or_else(now);
            let plan = open.writers.prepare(rows, options, store_ms, first_row)?;
            let last = open.writers.write(rows, &plan, options, store_ms).inspect_err(|e| store.flusher.fail(e))?;
            Ok((last, open.writers.log.position(), open.writers.log.wanted().is_some()))
        })?;
        if wants_file {
            self.with_timer(Timer::call);
        }
        if options.flush == Flush::Sync {
            store.flusher.commit(position, &|| store.unsynced_log())?;
        }
        Ok(Appended { rows: rows.len(), last })
    }

    /// Waits until all that was appended is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`], after which the appender only fails.
    pub fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    /// Flushes and gives the store up. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`]; then, and after an earlier failure, `abort` stays.
    pub fn close(&self) -> Result<()> {
        drop(self.timer.lock().unwrap_or_else(PoisonError::into_inner).take());
        let store = &self.store;
        let closing = store.with(|open| {
            open.is_closing = true;
            Ok(())
        });
        let flushed = closing.is_ok().then(|| store.flush());
        let open = store.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(mut open), Some(flushed)) = (open, flushed) else { return Ok(()) };
        flushed?;
        open.writers.log.release_all();
        disk::remove_file(&store.root.join(ABORT))?;
        sync_directory(&store.root)
    }

    /// Who stores.
    pub fn store_host(&self) -> Host {
        self.store.options.store_host
    }

    fn with_timer(&self, action: impl FnOnce(&Timer)) {
        if let Some(timer) = &*self.timer.lock().unwrap_or_else(PoisonError::into_inner) {
            action(timer);
        }
    }
}

impl OwnedStore {
    fn with<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.as_mut().ok_or_else(closed)?;
        self.flusher.check_failure()?;
        action(open)
    }

    fn flush(&self) -> Result<()> {
        self.flusher.flush(&|| self.with(|open| Ok(open.writers.unsynced())))
    }

    fn unsynced_log(&self) -> Result<(Unsynced, u64)> {
        self.with(|open| {
            let mut log = Unsynced::default();
            let position = open.writers.log.unsynced(&mut log);
            Ok((log, position))
        })
    }

    /// Creates the log's next file, outside of the lock.
    fn create_ahead(&self) -> Result<()> {
        let Some(wanted) = self.with(|open| Ok(open.writers.log.wanted()))? else { return Ok(()) };
        let file = wanted.create(&self.root)?;
        self.with(|open| open.writers.log.take_ahead(wanted, file))
    }
}

fn closed() -> Error {
    Error::invalid("store", "one that is open", "a closed one")
}

/// What the thread of a store does; a failure shows at the next append.
fn flushing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    let mut ticks = 0;
    move |is_time| {
        // a full disk is told to the append that needs the file
        let _ = store.create_ahead();
        if !is_time {
            return;
        }
        ticks += 1;
        let _ = match ticks % (CHECKPOINT_EVERY.as_millis() / INTERVAL.as_millis()) {
            0 => store.flush(),
            _ => store
                .with(|open| Ok(open.writers.log.position()))
                .and_then(|position| store.flusher.commit(position, &|| store.unsynced_log())),
        };
    }
}

/// Makes the store below `root` whole: all queues and the index are compared with the log or built from it, and what stands
/// behind the log's last whole record is cut.
///
/// # Errors
/// As [`Appender::open`].
pub fn repair(root: &Path, options: AppendOptions, watch: Watch<'_>) -> Result<Recovered> {
    let options = options.checked()?;
    root.metadata().map_err(|e| Error::io(root, e))?;
    resume::create_root(root)?;
    let _lock = StoreLock::acquire(root)?;
    resume::refuse_other_kinds(root)?;
    recovered(root, &options, Extent::Whole, watch)
}

fn recovered(root: &Path, options: &AppendOptions, extent: Extent, watch: Watch<'_>) -> Result<Recovered> {
    let recovered = recover(root, options, extent, watch)?;
    let abort = root.join(ABORT);
    if abort.exists() {
        disk::remove_file(&abort)?;
        sync_directory(root)?;
    }
    Ok(recovered)
}

/// Goes on where the store ends, if need be behind a recovery, which begins again if this process dies in it.
fn resume_or_recover(root: &Path, options: &AppendOptions, watch: Watch<'_>) -> Result<(Writers, Option<Recovered>)> {
    resume::refuse_other_kinds(root)?;
    let extent = match root.join(ABORT).exists() {
        true => Extent::Checkpoint,
        false if is_begun(root) => Extent::Whole,
        false => match resume::resume(root, options) {
            Err(Error::Corrupt { .. }) => Extent::Whole,
            resumed => return Ok((resumed?, None)),
        },
    };
    let recovered = recovered(root, options, extent, watch)?;
    Ok((resume::resume(root, options)?, Some(recovered)))
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
