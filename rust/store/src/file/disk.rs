//! All calls to the disk go through this module: creating, writing, flushing, renaming, removing, listing and reading
//! files. So tests can observe the calls, make them fail, or compute the files that a power loss would leave.
//! Exceptions are the creation of directories, and writes to the index, which go through a map.
use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A call that changes or flushes a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Creates or resizes a file.
    Create,
    /// Allocates blocks for bytes of an existing file.
    Allocate,
    /// Writes bytes, or sets them to zero.
    Write,
    /// Flushes the content of a file.
    Sync,
    /// Flushes the names in a directory.
    SyncDirectory,
    /// Flushes the whole file system of a directory.
    SyncAll,
    Rename,
    Remove,
}

/// A call that only reads from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// Lists the names in a directory.
    List,
    Stat,
    Open,
    /// Reads bytes of an open file. Reads through a map are not reported.
    Read,
}

/// Observes all calls in tests, and can make them fail.
pub trait Watcher: Send + Sync {
    /// Called before a call that only reads. If it returns an error, the call fails with this error.
    fn before_look(&self, _look: Look, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Called before any other call. If it returns an error, the call is not made and fails with this error.
    fn before(&self, call: Call, path: &Path) -> io::Result<()>;
    /// Called after a successful call.
    fn after(&self, call: Call, path: &Path);
}

type Place = (PathBuf, Arc<dyn Watcher>);

static WATCHERS: RwLock<Vec<Place>> = RwLock::new(Vec::new());
// Number of watchers. It is 0 outside tests, so calls need no lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reports all calls for `path` and the paths below it to `watcher`, until the returned value is dropped.
pub fn watch(path: &Path, watcher: Arc<dyn Watcher>) -> Watch {
    let mut watchers = WATCHERS.write().unwrap_or_else(PoisonError::into_inner);
    watchers.push((path.to_path_buf(), watcher.clone()));
    COUNT.store(watchers.len(), Ordering::SeqCst);
    Watch(watcher)
}

#[must_use = "dropped, it watches no more"]
pub struct Watch(Arc<dyn Watcher>);

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watchers = WATCHERS.write().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(_, watcher)| !Arc::ptr_eq(watcher, &self.0));
        COUNT.store(watchers.len(), Ordering::SeqCst);
    }
}

#[inline]
pub fn call<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let result = if COUNT.load(Ordering::Relaxed) > 0 { call_watched(call, path, action) } else { action() };
    result.map_err(|e| Error::io(path, e))
}

#[cold]
fn call_watched<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let watchers = watchers_of(path);
    // An error from here replaces the call, which simulates a failing disk.
    watchers.iter().try_for_each(|watcher| watcher.before(call, path))?;
    let value = action()?;
    watchers.iter().for_each(|watcher| watcher.after(call, path));
    Ok(value)
}

/// Returns the watchers of `path`. Copies them, so that the lock is not held while a watcher waits.
#[cold]
fn watchers_of(path: &Path) -> Vec<Arc<dyn Watcher>> {
    let watchers = WATCHERS.read().unwrap_or_else(PoisonError::into_inner);
    watchers.iter().filter(|(place, _)| path.starts_with(place)).map(|(_, watcher)| watcher.clone()).collect()
}

#[inline]
pub fn look<T>(look: Look, path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if COUNT.load(Ordering::Relaxed) > 0 {
        watchers_of(path).iter().try_for_each(|watcher| watcher.before_look(look, path))?;
    }
    action()
}

pub fn sync_directory(directory: &Path) -> Result<()> {
    call(Call::SyncDirectory, directory, || rmqfast_os::disk::sync_directory(directory))
}

pub fn sync_all(directory: &Path) -> Result<()> {
    call(Call::SyncAll, directory, || rmqfast_os::disk::sync_file_system(directory))
}

pub fn remove_file(path: &Path) -> Result<()> {
    call(Call::Remove, path, || fs::remove_file(path))
}

pub fn remove_directory(path: &Path) -> Result<()> {
    call(Call::Remove, path, || fs::remove_dir(path))
}

pub fn rename(from: &Path, to: &Path) -> Result<()> {
    // Watchers see the new name, since tests watch the files of the store and not temporary names.
    call(Call::Rename, to, || fs::rename(from, to))
}
