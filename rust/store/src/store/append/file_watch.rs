//! Watches the files of an open store for an appender: whether another process has removed one, put another in its place, or cut
//! it off.
//!
//! What is found is [`Harm`](super::harm::Harm). Until then messages may have been taken for a file that has no name any more, so it
//! is written back from what is held open.
use super::owned_store::OwnedStore;
use super::unsynced::HeldFile;
use crate::file::write_back;
use crate::store::recover;
use crate::{Error, Result};
use rmqfast_os::fault;
use rmqfast_os::identity::{FileId, facts_at};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it looks.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// How often it tries to write a file back for which there is no room.
const RETRY: Duration = Duration::from_secs(5);
/// A file that is written back, before it has its name: not beside the log's files, where a broker would not start.
const TEMPORARY: &str = "rescue.tmp";

/// What was seen so far.
#[derive(Debug, Default)]
pub struct FileWatch {
    next: Option<Instant>,
    /// Files that came to harm, and were reported.
    reported: BTreeSet<PathBuf>,
    /// Those that are to be written back.
    lost: Vec<HeldFile>,
    next_try: Option<Instant>,
    is_secured: bool,
}

impl FileWatch {
    /// Looks, if it is time to.
    pub(super) fn look(&mut self, store: &OwnedStore) {
        let is_early = self.next.is_some_and(|next| Instant::now() < next);
        if store.harm.first().is_some() || !is_early {
            self.look_now(store);
        }
    }

    pub(super) fn look_now(&mut self, store: &OwnedStore) {
        self.next = Some(Instant::now() + INTERVAL);
        // another library may have put its handler of SIGBUS on top
        fault::come_first();
        // a run of retention removes files, and it may
        if let Some(_no_run) = store.retention.try_runner() {
            // closed
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
            Ok(open.writers.held())
        })?;
        let harmed =
            files.into_iter().filter(|held| !self.reported.contains(held.file.path()) && change(held).is_some());
        let harmed: Vec<HeldFile> = harmed.collect();
        if harmed.is_empty() {
            return Ok(());
        }
        // it may have been given back, and so removed, meanwhile
        let still = store.with_any(|open| Ok(open.writers.held()))?;
        for held in harmed.into_iter().filter(|held| still.iter().any(|other| other.file.path() == held.file.path())) {
            let Some(change) = change(&held) else { continue };
            let path = held.file.path().to_path_buf();
            // from here on no append is acknowledged
            store.harm.note(&Error::changed_by_another(&path, change));
            self.reported.insert(path);
            self.is_secured = false;
            // a file that another has taken the name of is not written over
            if change == Change::NameGone {
                self.lost.push(held);
            }
        }
        Ok(())
    }

    /// Writes back, then has the checkpoint speak of all that was appended, so that a recovery never takes it for the rest of a crash.
    fn secure(&mut self, store: &OwnedStore) -> Result<()> {
        if self.next_try.is_none_or(|next| Instant::now() >= next) {
            self.lost.retain(|held| !write_back(store, held));
            self.next_try = (!self.lost.is_empty()).then(|| Instant::now() + RETRY);
        }
        if !std::mem::replace(&mut self.is_secured, true) {
            store.flush()?;
            if self.reported.iter().any(|path| !path.starts_with(store.root.join("commitlog"))) {
                // a checkpoint vouches for queues, too, and these may miss units
                recover::begin(&store.root)?;
            }
        }
        Ok(())
    }
}

/// Whether the file has its name again.
fn write_back(store: &OwnedStore, held: &HeldFile) -> bool {
    let path = held.file.path();
    let is_log = path.starts_with(store.root.join("commitlog"));
    match write_back::write_back(&held.file, held.len, is_log, &store.root.join(TEMPORARY)) {
        Ok(()) => {
            store.harm.tell(format!("{}: written back, with all that was appended to it", path.display()));
            true
        }
        Err(error) => {
            store.harm.tell(format!(
                "{}: cannot be written back ({error}); all that is in it is lost when the store is closed",
                path.display()
            ));
            false
        }
    }
}

/// What became of a file.
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

fn change(held: &HeldFile) -> Option<Change> {
    let ours = held.file.facts().ok()?;
    let got = ours.len;
    // `fstat` of the open file: its name may lead to another one
    if got != held.len {
        return Some(Change::Length { expected: held.len, got });
    }
    match named(held.file.path()) {
        Ok(Some(id)) if id == ours.id => None,
        Ok(Some(_)) => Some(Change::NameTaken),
        Ok(None) => Some(Change::NameGone),
        // as where the process may have no more files open: nothing is known
        Err(_) => None,
    }
}

fn named(path: &Path) -> std::io::Result<Option<FileId>> {
    match facts_at(path) {
        Ok(facts) => Ok(Some(facts.id)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}
