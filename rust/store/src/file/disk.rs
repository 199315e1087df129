//! All calls to the disk go through this module: creating, writing, flushing, renaming, removing, listing and reading
//! files. So tests can observe the calls, make them fail, or compute the files that a power loss would leave.
//! Exceptions are the creation of directories, and writes to the index, which go through a map.
use crate::{Error, Result};
use rmqfast_os::mode as os_mode;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Allocate,
    Write,
    Sync,
    SyncDirectory,
    SyncAll,
    Rename,
    Remove,
}

/// A call that only reads from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
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
    /// Called before a call that changes the disk. If it returns an error, the call is not made and fails with this
    /// error.
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

/// Returns the watchers of `path`. Copies the list of watchers, so that its lock is not held while a watcher waits.
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

// Only the owner may open the files that a store creates, unless the store was opened with another mode. The umask is ignored,
// since services often run with 022, with which everybody could read message bodies.

pub const OWNER_ONLY: u32 = 0o600;

static OTHERS: RwLock<Vec<(PathBuf, u32)>> = RwLock::new(Vec::new());

/// The mode of new files below a directory. It applies until this object is dropped.
#[derive(Debug)]
#[must_use = "dropped, it holds no more"]
pub struct Permission(Option<PathBuf>);

impl Permission {
    /// Sets the mode of new files below `root`. Directories also get execute permission for everybody to whom `mode`
    /// gives read permission.
    pub fn hold(root: &Path, mode: u32) -> Self {
        // The default mode needs no entry in the list.
        if mode == OWNER_ONLY {
            return Self(None);
        }
        OTHERS.write().unwrap_or_else(PoisonError::into_inner).push((root.to_path_buf(), mode));
        Self(Some(root.to_path_buf()))
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        let Some(root) = &self.0 else { return };
        let mut others = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = others.iter().position(|(place, _)| place == root) {
            others.remove(at);
        }
    }
}

/// Opens the file at `path` with `options`, which must create the file.
pub fn open_new(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let mode = mode_of(path);
    let file = os_mode::open(options, path, mode)?;
    if mode != OWNER_ONLY {
        os_mode::set(&file, mode)?; // Again, since the umask applies to `open`.
    }
    Ok(file)
}

pub fn create(path: &Path) -> io::Result<File> {
    open_new(OpenOptions::new().write(true).create(true).truncate(true), path)
}

pub fn create_directories(path: &Path) -> Result<()> {
    let mode = mode_of(path);
    // Reading a directory needs execute permission as well.
    let entered = mode | (mode & 0o444) >> 2;
    os_mode::create_directories(path, entered).map_err(|e| Error::io(path, e))
}

fn mode_of(path: &Path) -> u32 {
    let others = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    others.iter().find(|(root, _)| path.starts_with(root)).map_or(OWNER_ONLY, |(_, mode)| *mode)
}

/// Writes `text` to a temporary file, flushes it and renames it to `path`. The caller must flush the directory to make the rename durable.
/// After an error the old file still exists.
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let result = write_new(&temporary, text).and_then(|()| rename(&temporary, path));
    result.inspect_err(|_| drop(remove_file(&temporary)))
}

/// Writes a whole new file. Overwrites a file that a killed process has left.
fn write_new(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = call(Call::Create, path, || create(path))?;
    call(Call::Write, path, || file.write_all(text))?;
    call(Call::Sync, path, || file.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_their_owners_unless_another_permission_is_held() {
        let dir = tempfile::tempdir().expect("dir");
        let (store, other) = (dir.path().join("store"), dir.path().join("other"));
        for (held, file, directory) in [(OWNER_ONLY, 0o600, 0o700), (0o640, 0o640, 0o750), (0o664, 0o664, 0o775)] {
            let _held = Permission::hold(&store, held);
            for (root, file, directory) in [(&store, file, directory), (&other, 0o600, 0o700)] {
                let deep = root.join("consumequeue/orders");
                create_directories(&deep).expect("made");
                drop(create(&deep.join("0")).expect("made"));
                assert_eq!(mode(&deep.join("0")), file, "{held:o}");
                // A umask of 022 removes the write permission of directories.
                assert_eq!(mode(&deep) | 0o020, directory | 0o020, "{held:o}");
                std::fs::remove_dir_all(root).expect("removed");
            }
        }
    }
}
