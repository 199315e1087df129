//! The threads of an appender. One thread flushes and runs retention. The other prepares pages and files for the next records,
//! and checks for changes by other processes.
//!
//! Source: `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`, `AllocateMappedFileService`.
use super::background::{INTERVAL, Timer};
use super::flusher::OpenFile;
use super::owned_store::OwnedStore;
use crate::file::allocated::write_back;
use crate::store::recover;
use crate::store::retain::Clock;
use crate::{Error, Result};
use rmqfast_os::fault;
use rmqfast_os::identity::{FileId, facts_at};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which queues and index are flushed and the checkpoint is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Threads {
    _ahead: Timer,
    _flush: Timer,
}

impl Threads {
    pub(super) fn start(store: &Arc<OwnedStore>, watch: &Arc<Mutex<FileWatch>>) -> io::Result<Self> {
        let prepare = preparing(store.clone(), watch.clone());
        let _ahead = Timer::start("rmqfast-ahead", WATCH_INTERVAL, store.work.signal.clone(), prepare)?;
        let _flush = Timer::start("rmqfast-flush", INTERVAL, Arc::default(), flushing(store.clone()))?;
        Ok(Self { _ahead, _flush })
    }
}

/// Returns the work of the preparing thread. It does not hold the append lock, because a page fault may wait for the
/// disk.
fn preparing(store: Arc<OwnedStore>, watch: Arc<Mutex<FileWatch>>) -> impl FnMut(bool) + Send {
    move |_| {
        while let Some((pages, range)) = store.work.next_pages() {
            pages.touch(range);
        }
        // On a full disk, the append that needs the file reports the error.
        let _ = store.create_ahead();
        watch.lock().unwrap_or_else(PoisonError::into_inner).look(&store);
    }
}

/// Returns the work of the flushing thread. After a failed flush the next append fails.
fn flushing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    let mut ticks = 0;
    move |is_time| {
        // Between two removals the thread does its other work. A failure shows at the next append.
        let pause = || {
            let _ = store.create_ahead();
            let _ = store.flush_log();
        };
        // After an error, the next run of retention tries again.
        let _ = store.retention.tick(&*store, Clock::now(), &pause);
        if !is_time {
            return;
        }
        // Most ticks flush only the log, which holds all data. The other files can be rebuilt from it.
        ticks += 1;
        let _ = match ticks % (CHECKPOINT_EVERY.as_millis() / INTERVAL.as_millis()) {
            0 => store.flush(),
            _ => store.flush_log(),
        };
    }
}

// The file watch: another process may remove, replace or truncate a file of an open store. A removed file may hold messages
// that were acknowledged meanwhile, so it is restored from the open file.

const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of attempts to restore a file while the disk has no room.
const RETRY: Duration = Duration::from_secs(5);
/// Temporary name of a restored file. It is in the store's directory: in the log's directory it would keep a broker from
/// starting.
const TEMPORARY: &str = "rescue.tmp";

#[derive(Debug, Default)]
pub struct FileWatch {
    next: Option<Instant>,
    reported: BTreeSet<PathBuf>,
    to_restore: Vec<OpenFile>,
    next_try: Option<Instant>,
    is_secured: bool,
}

impl FileWatch {
    /// Checks the files if the interval is over, or if a change was found before.
    pub(super) fn look(&mut self, store: &OwnedStore) {
        let is_early = self.next.is_some_and(|next| Instant::now() < next);
        // After a change the files are checked at each call, so that they are restored soon.
        if store.harm.first().is_some() || !is_early {
            self.look_now(store);
        }
    }

    pub(super) fn look_now(&mut self, store: &OwnedStore) {
        self.next = Some(Instant::now() + WATCH_INTERVAL);
        // Another library may have installed its handler of SIGBUS over ours.
        fault::come_first();
        // Not during a run of retention, which removes files itself.
        if let Some(_no_run) = store.retention.try_runner() {
            // An error means that the store is closed.
            let _ = self.find(store);
        }
        if store.harm.first().is_some() {
            let _ = self.secure(store);
        }
    }

    fn find(&mut self, store: &OwnedStore) -> Result<()> {
        let files = store.with_any(|open| {
            if let Err(error) = open.writers.log.check() {
                store.harm.note(&error);
            }
            Ok(open.writers.open_files())
        })?;
        let is_new = |open: &OpenFile| !self.reported.contains(open.file.path());
        let changed: Vec<_> = files.into_iter().filter(|open| is_new(open) && find_change(open).is_some()).collect();
        if changed.is_empty() {
            return Ok(());
        }
        // The store may have removed the file meanwhile.
        let still_open = store.with_any(|open| Ok(open.writers.open_files()))?;
        let is_open = |open: &OpenFile| still_open.iter().any(|other| other.file.path() == open.file.path());
        for open in changed.into_iter().filter(is_open) {
            let Some(change) = find_change(&open) else { continue };
            let path = open.file.path().to_path_buf();
            // From here on no append is acknowledged.
            store.harm.note(&Error::changed_by_another(&path, change));
            self.reported.insert(path);
            self.is_secured = false;
            // A file that has taken the name is not overwritten.
            if change == Change::NameGone {
                self.to_restore.push(open);
            }
        }
        Ok(())
    }

    /// Restores removed files, then flushes the store. Then the checkpoint covers everything that was appended, so a
    /// recovery keeps it and does not cut it off.
    fn secure(&mut self, store: &OwnedStore) -> Result<()> {
        if self.next_try.is_none_or(|next| Instant::now() >= next) {
            self.to_restore.retain(|open| !restore(store, open));
            self.next_try = (!self.to_restore.is_empty()).then(|| Instant::now() + RETRY);
        }
        if !std::mem::replace(&mut self.is_secured, true) {
            store.flush()?;
            if self.reported.iter().any(|path| !path.starts_with(store.root.join("commitlog"))) {
                // The checkpoint covers queues, too, but a changed queue file may have lost units.
                recover::begin(&store.root)?;
            }
        }
        Ok(())
    }
}

fn restore(store: &OwnedStore, open: &OpenFile) -> bool {
    let path = open.file.path();
    let is_log = path.starts_with(store.root.join("commitlog"));
    match write_back(&open.file, open.len, is_log, &store.root.join(TEMPORARY)) {
        Ok(()) => {
            store.harm.add_line(format!("{}: written back, with all that was appended to it", path.display()));
            true
        }
        Err(error) => {
            store.harm.add_line(format!(
                "{}: cannot be written back ({error}); all that is in it is lost when the store is closed",
                path.display()
            ));
            false
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    NameGone,
    NameTaken,
    Length { expected: u64, got: u64 },
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NameGone => write!(f, "it was removed"),
            Self::NameTaken => write!(f, "another file has taken its name"),
            Self::Length { expected, got } => write!(f, "expected {expected} bytes, got {got}"),
        }
    }
}

fn find_change(open: &OpenFile) -> Option<Change> {
    let ours = open.file.facts().ok()?;
    let got = ours.len;
    // The size is that of the open file, because its name may lead to another file.
    if got != open.len {
        return Some(Change::Length { expected: open.len, got });
    }
    match id_at(open.file.path()) {
        Ok(Some(id)) if id == ours.id => None,
        Ok(Some(_)) => Some(Change::NameTaken),
        Ok(None) => Some(Change::NameGone),
        // The state is unknown, for example if the process has too many open files.
        Err(_) => None,
    }
}

fn id_at(path: &Path) -> std::io::Result<Option<FileId>> {
    match facts_at(path) {
        Ok(facts) => Ok(Some(facts.id)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}
