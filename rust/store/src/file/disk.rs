//! The seam to the disk: files are created, written, waited for, renamed and removed through here, so that a test can watch it,
//! let it fail, or know what a loss of power would leave. Directories are made beside it, and the index is written through a map.
use crate::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What is done to a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A file is created, or made longer.
    Create,
    /// Bytes are written or made zero.
    Write,
    /// What was written to a file is waited for.
    Sync,
    /// The names in a directory are waited for.
    SyncDirectory,
    /// A file goes to another name.
    Rename,
    /// A file is removed.
    Remove,
}

/// Whoever watches the calls of this process.
pub trait Watcher: Send + Sync {
    /// Before a call; an error is its result, and nothing is done.
    ///
    /// # Errors
    /// What the call shall fail with.
    fn before(&self, call: Call, path: &Path) -> io::Result<()>;
    /// After a call that was done.
    fn after(&self, call: Call, path: &Path);
}

static IS_WATCHED: AtomicBool = AtomicBool::new(false);
static WATCHER: RwLock<Option<Arc<dyn Watcher>>> = RwLock::new(None);

/// Lets `watcher` watch, or nobody.
pub fn watch(watcher: Option<Arc<dyn Watcher>>) {
    IS_WATCHED.store(watcher.is_some(), Ordering::SeqCst);
    *WATCHER.write().unwrap_or_else(PoisonError::into_inner) = watcher;
}

/// Does what changes the file at `path`.
///
/// # Errors
/// [`Error::Io`] with the path.
#[inline]
pub fn call<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let done = if IS_WATCHED.load(Ordering::Relaxed) { watched(call, path, action) } else { action() };
    done.map_err(|e| Error::io(path, e))
}

#[cold]
fn watched<T>(call: Call, path: &Path, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let watcher = WATCHER.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(watcher) = watcher else { return action() };
    watcher.before(call, path)?;
    let done = action()?;
    watcher.after(call, path);
    Ok(done)
}

/// Waits until the names in `directory` are on the disk.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_directory(directory: &Path) -> Result<()> {
    call(Call::SyncDirectory, directory, || File::open(directory).and_then(|d| d.sync_all()))
}

/// Removes a file.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_file(path: &Path) -> Result<()> {
    call(Call::Remove, path, || fs::remove_file(path))
}

/// Gives a file another name.
///
/// # Errors
/// [`Error::Io`].
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    call(Call::Rename, to, || fs::rename(from, to))
}
