//! Files that were written to and may not be on the disk: gathered under the lock of the appender, waited for without it.
use crate::Result;
use crate::file::disk::sync_directory;
use crate::file::{Allocated, Mapped};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What must be waited for.
#[derive(Debug, Default)]
pub struct Unsynced {
    open: Vec<Arc<Allocated>>,
    retired: Vec<Mapped>,
    closed: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Unsynced {
    /// Adds a file that is open.
    pub fn file(&mut self, file: Arc<Allocated>) {
        self.open.push(file);
    }

    /// Adds a file that is not written to any more; its map goes with this, as that may take a while.
    pub fn retire(&mut self, file: Mapped) {
        self.open.push(file.file().clone());
        self.retired.push(file);
    }

    /// Adds a file that is not open.
    pub fn path(&mut self, path: PathBuf) {
        self.closed.insert(path);
    }

    /// Adds a directory in which files were created or removed.
    pub fn directory(&mut self, directory: PathBuf) {
        self.directories.insert(directory);
    }

    /// Waits for all of it.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; then nobody knows what is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.open.iter().try_for_each(|file| file.sync())?;
        self.closed.iter().try_for_each(|path| Allocated::open(path)?.sync())?;
        self.directories.iter().try_for_each(|directory| sync_directory(directory))
    }
}
