//! The seam to the disk: files are created, written, waited for, renamed and removed through here, so that a test can watch it,
//! let it fail, or know what a loss of power would leave. Directories are made beside it, and the index is written through a map.
//! What is looked at and read comes through here as well, so that a test can let it fail.
use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What is done to a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A file is created, or made longer.
    Create,
    /// Room is found for bytes of a file that is there.
    Allocate,
    /// Bytes are written or made zero.
    Write,
    /// What was written to a file is waited for.
    Sync,
    /// The names in a directory are waited for.
    SyncDirectory,
    /// All that was written to the file system of a directory is waited for.
    SyncAll,
    /// A file goes to another name.
    Rename,
    /// A file is removed.
    Remove,
}

/// What is asked of a file or a directory, and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// The names in a directory.
    List,
    /// What stands at a path.
    Stat,
    /// A file is opened to be read.
    Open,
    /// Bytes of an open file; not what is read through a map.
    Read,
}

/// Whoever watches calls of this process.
pub trait Watcher: Send + Sync {
    /// Before a look; an error is its result.
    ///
    /// # Errors
    /// What the look shall fail with.
    fn before_look(&self, _look: Look, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Before a call; an error is its result, and nothing is done.
    ///
    /// # Errors
    /// What the call shall fail with.
    fn before(&self, call: Call, path: &Path) -> io::Result<()>;
    /// After a call that was done.
    fn after(&self, call: Call, path: &Path);
}

type Place = (PathBuf, Arc<dyn Watcher>);

static WATCHERS: RwLock<Vec<Place>> = RwLock::new(Vec::new());
// so that a call that nobody watches, as all are outside tests, asks for no lock
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Lets `watcher` watch what is done to `path` and below it, until the result is dropped.
pub fn watch(path: &Path, watcher: Arc<dyn Watcher>) -> Watch {
    let mut watchers = WATCHERS.write().unwrap_or_else(PoisonError::into_inner);
    watchers.push((path.to_path_buf(), watcher.clone()));
    COUNT.store(watchers.len(), Ordering::SeqCst);
    Watch(watcher)
}

/// A watcher that watches.
#[must_use = "dropped, it watches no more"]
pub struct Watch(Arc<dyn Watcher>);

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watchers = WATCHERS.write().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(_, watcher)| !Arc::ptr_eq(watcher, &self.0));
        COUNT.store(watchers.len(), Ordering::SeqCst);
    }
}

/// Does what changes the file at `path`.
#[inline]
pub fn call<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let done = if COUNT.load(Ordering::Relaxed) > 0 { watched(call, path, action) } else { action() };
    done.map_err(|e| Error::io(path, e))
}

#[cold]
fn watched<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let here = watchers_of(path);
    here.iter().try_for_each(|watcher| watcher.before(call, path))?;
    let done = action()?;
    here.iter().for_each(|watcher| watcher.after(call, path));
    Ok(done)
}

/// Those that watch `path`, without the lock: a watcher may wait.
#[cold]
fn watchers_of(path: &Path) -> Vec<Arc<dyn Watcher>> {
    let watchers = WATCHERS.read().unwrap_or_else(PoisonError::into_inner);
    watchers.iter().filter(|(place, _)| path.starts_with(place)).map(|(_, watcher)| watcher.clone()).collect()
}

/// Asks something of what is at `path`.
#[inline]
pub fn look<T>(look: Look, path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if COUNT.load(Ordering::Relaxed) > 0 {
        watchers_of(path).iter().try_for_each(|watcher| watcher.before_look(look, path))?;
    }
    action()
}

/// Waits until the names in `directory` are on the disk.
pub fn sync_directory(directory: &Path) -> Result<()> {
    call(Call::SyncDirectory, directory, || rmqfast_os::disk::sync_directory(directory))
}

/// Waits until all that was written to the file system that `directory` is on is on the disk.
pub fn sync_all(directory: &Path) -> Result<()> {
    call(Call::SyncAll, directory, || rmqfast_os::disk::sync_file_system(directory))
}

/// Removes a file.
pub fn remove_file(path: &Path) -> Result<()> {
    call(Call::Remove, path, || fs::remove_file(path))
}

/// Removes an empty directory.
pub fn remove_directory(path: &Path) -> Result<()> {
    call(Call::Remove, path, || fs::remove_dir(path))
}

/// Gives a file another name.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    call(Call::Rename, to, || fs::rename(from, to))
}
