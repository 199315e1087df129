//! The lock on a store. It is a lock on the first byte of the file `lock`, which a Java broker locks, too. So a broker
//! and this project never write to a store at the same time.
//!
//! The operating system grants such a lock again within the same process. It also releases the lock when any part of the process closes the
//! file ([`rmqfast_os::lock`]). So this module keeps a list of the stores that this process has locked, and checks the list first.
//!
//! Source: `DefaultMessageStore.start`, `FileChannel.tryLock(0, 1, false)`.
use super::disk;
use crate::{Error, Result};
use rmqfast_os::file::FileExt;
use rmqfast_os::identity::{FileId, facts_at};
use rmqfast_os::lock::{Holder, holder, try_lock};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub const NAME: &str = "lock";

static OWNERSHIPS: Mutex<Vec<Ownership>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ownership {
    directory: FileId,
    /// Id of the process that took the lock. A forked process inherits this entry, but not the lock.
    process: u32,
}

/// The lock on a store directory. Released when dropped.
#[derive(Debug)]
pub struct StoreLock {
    ownership: Ownership,
    path: PathBuf,
    file: Option<File>,
}

impl StoreLock {
    /// Locks the store at `root`, which must exist. The error [`Error::Busy`] names the process that holds the lock.
    pub fn acquire(root: &Path) -> Result<Self> {
        let path = root.join(NAME);
        // The identity of the directory, since two paths may lead to the same store.
        let directory = facts_at(root).map_err(|e| Error::io(root, e))?.id;
        let ownership = Ownership { directory, process: std::process::id() };
        // Check the list first, since the operating system would grant the lock to this process again.
        enlist(ownership, &path)?;
        // From here on, dropping `lock` removes the entry from the list.
        let mut lock = Self { ownership, path, file: None };
        let mut options = OpenOptions::new();
        let file = disk::open_new(options.read(true).write(true).create(true).truncate(false), &lock.path);
        let file = file.map_err(|e| Error::io(&lock.path, e))?;
        if !try_lock(&file).map_err(|e| Error::io(&lock.path, e))? {
            return Err(busy(&lock.path, &owner(&file)));
        }
        lock.file = Some(file);
        Ok(lock)
    }

    /// Returns whether any process, including this one, has locked the store at `root`. If so, the last record of its
    /// log may be incomplete.
    pub fn is_held(root: &Path) -> bool {
        let Ok(facts) = facts_at(root) else { return false };
        let ours = Ownership { directory: facts.id, process: std::process::id() };
        // Keep the list locked until the file is closed, since closing any descriptor of the file releases this process's lock.
        let list = OWNERSHIPS.lock().unwrap_or_else(PoisonError::into_inner);
        list.contains(&ours) || File::open(root.join(NAME)).is_ok_and(|file| holder(&file).is_some())
    }

    /// Writes the four letters that RocketMQ writes into the file.
    pub fn mark(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_all_at(b"lock", 0).map_err(|e| Error::io(&self.path, e))
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Close the file before the list entry is removed: closing it later would release the lock of the next owner.
        drop(self.file.take());
        OWNERSHIPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|ownership| *ownership != self.ownership);
    }
}

fn enlist(ownership: Ownership, path: &Path) -> Result<()> {
    let mut list = OWNERSHIPS.lock().unwrap_or_else(PoisonError::into_inner);
    if list.contains(&ownership) {
        return Err(busy(path, &format!("this process, {}, which has it open already", ownership.process)));
    }
    list.push(ownership);
    Ok(())
}

fn busy(path: &Path, owner: &str) -> Error {
    let reason = format!("the store is locked by {owner}; close it there, or read it with mode \"r\"");
    Error::Busy { path: path.to_path_buf(), reason }
}

fn owner(file: &File) -> String {
    match holder(file) {
        Some(Holder { process: Some(process) }) => format!("process {process}"),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_in_one_process_is_refused_and_does_not_end_the_first() {
        let dir = tempfile::tempdir().expect("dir");
        let lock = StoreLock::acquire(dir.path()).expect("free");
        lock.mark().expect("written");
        let error = StoreLock::acquire(dir.path()).expect_err("owned");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        assert!(StoreLock::acquire(dir.path()).is_err());
        assert!(StoreLock::is_held(dir.path()));
        drop(lock);
        assert!(!StoreLock::is_held(dir.path()));
        StoreLock::acquire(dir.path()).expect("free again");
        assert_eq!(std::fs::read(dir.path().join(NAME)).expect("read"), b"lock");
    }
}
