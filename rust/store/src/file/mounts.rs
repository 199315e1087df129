//! Storages that are mounted at a path. All reads at or below this path go to the storage. Any other path is of this machine.
use super::local::LocalFiles;
use super::storage::Storage;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug)]
struct Mounted {
    id: u64,
    path: PathBuf,
    storage: Arc<dyn Storage>,
}

static MOUNTS: RwLock<Vec<Mounted>> = RwLock::new(Vec::new());
// Number of mounts. It is 0 if all stores are local, so that readers of local files need no lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A storage at a path. It is there until this value is dropped.
#[derive(Debug)]
#[must_use = "dropped, the storage is mounted no more"]
pub struct Mount(u64);

impl Mount {
    /// Leads reads at `path` and below it to `storage`. The deepest mount wins, and of several at one path the newest.
    pub fn new(path: &Path, storage: Arc<dyn Storage>) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let mut mounts = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
        mounts.push(Mounted { id, path: path.to_path_buf(), storage });
        COUNT.store(mounts.len(), Ordering::SeqCst);
        Self(id)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut mounts = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
        mounts.retain(|mount| mount.id != self.0);
        COUNT.store(mounts.len(), Ordering::SeqCst);
    }
}

/// Calls `read` with the storage of `path`.
#[inline]
pub fn with<T>(path: &Path, read: impl FnOnce(&dyn Storage) -> T) -> T {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return read(&LocalFiles);
    }
    match mounted_at(path) {
        Some(storage) => read(&*storage),
        None => read(&LocalFiles),
    }
}

/// Returns whether `path` leads to a storage that is not this machine's.
pub fn is_mounted(path: &Path) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && mounted_at(path).is_some()
}

#[cold]
fn mounted_at(path: &Path) -> Option<Arc<dyn Storage>> {
    let mounts = MOUNTS.read().unwrap_or_else(PoisonError::into_inner);
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.path));
    around.max_by_key(|mount| (mount.path.components().count(), mount.id)).map(|mount| mount.storage.clone())
}
