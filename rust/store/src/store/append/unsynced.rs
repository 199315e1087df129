//! Files that were written to and may not be on the disk: gathered under the lock of the appender, waited for without it.
use crate::file::disk::{sync_all, sync_directory};
use crate::file::{AllocatedFile, AppendFile};
use crate::{Error, Result};
use rmqfast_os::identity::{FileId, facts_at};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More files and directories than this are not waited for one by one.
const MANY: usize = 256;

/// A file that is held open for writing, and the length that it has as long as nobody else changes it.
#[derive(Clone, Debug)]
pub struct HeldFile {
    pub file: Arc<AllocatedFile>,
    pub len: u64,
}

/// What must be waited for.
#[derive(Debug, Default)]
pub struct Unsynced {
    open: Vec<Arc<AllocatedFile>>,
    retired: Vec<AppendFile>,
    closed: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Unsynced {
    /// Adds a file that is open.
    pub fn file(&mut self, file: Arc<AllocatedFile>) {
        self.open.push(file);
    }

    /// Adds a file that is not written to any more; its map goes with this, as that may take a while.
    pub fn retire(&mut self, file: AppendFile) {
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
        if self.open.len() + self.closed.len() + self.directories.len() > MANY {
            match self.sync_file_systems() {
                Err(error) if error.is_unsupported() => {}
                done => return done,
            }
        }
        self.open.iter().try_for_each(|file| file.sync())?;
        self.closed.iter().try_for_each(|path| AllocatedFile::open(path)?.sync())?;
        self.directories.iter().try_for_each(|directory| match sync_directory(directory) {
            // another process removed it, and its files: that is found, and those that are held open are written back
            Err(error) if error.is_not_found() => Ok(()),
            done => done,
        })
    }

    /// Waits once for each file system, which takes what others write along, and is a hundred times as fast as a wait for each of
    /// thousands of files.
    fn sync_file_systems(&self) -> Result<()> {
        let open = self.open.iter().map(|file| file.path());
        let paths = open.chain(self.closed.iter().map(PathBuf::as_path));
        let directories: BTreeSet<_> =
            paths.filter_map(Path::parent).chain(self.directories.iter().map(|d| &**d)).collect();
        let mut devices = BTreeSet::new();
        for directory in directories {
            // as above
            let Some(id) = there(directory)? else { continue };
            if devices.insert(id.device) {
                sync_all(directory)?;
            }
        }
        Ok(())
    }
}

fn there(directory: &Path) -> Result<Option<FileId>> {
    match facts_at(directory) {
        Ok(facts) => Ok(Some(facts.id)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(directory, error)),
    }
}
