//! Files that were written and may not be flushed. The append lock is held to collect them, but not while they are
//! flushed.
use crate::file::disk::{sync_all, sync_directory};
use crate::file::{AllocatedFile, AppendFile};
use crate::{Error, Result};
use rmqfast_os::identity::{FileId, facts_at};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of files and directories to flush one by one. For more, whole file systems are flushed.
const MANY: usize = 256;

/// A file open for writing, and its expected length. Any other length means that another process has changed the
/// file.
#[derive(Clone, Debug)]
pub struct OpenFile {
    pub file: Arc<AllocatedFile>,
    pub len: u64,
}

#[derive(Debug, Default)]
pub struct SyncList {
    open: Vec<Arc<AllocatedFile>>,
    retired: Vec<AppendFile>,
    closed: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl SyncList {
    pub fn file(&mut self, file: Arc<AllocatedFile>) {
        self.open.push(file);
    }

    /// Adds a file that will not be written any more. Its map is dropped together with this list, because unmapping
    /// may take a while.
    pub fn retire(&mut self, file: AppendFile) {
        self.open.push(file.file().clone());
        self.retired.push(file);
    }

    /// Adds a closed file by its path.
    pub fn path(&mut self, path: PathBuf) {
        self.closed.insert(path);
    }

    /// Adds a directory in which files were created or removed.
    pub fn directory(&mut self, directory: PathBuf) {
        self.directories.insert(directory);
    }

    /// Flushes all files and directories of the list. After an error it is unknown which bytes are on the disk.
    pub fn sync(&self) -> Result<()> {
        if self.open.len() + self.closed.len() + self.directories.len() > MANY {
            match self.sync_file_systems() {
                // Without a call for a whole file system, the files are flushed one by one.
                Err(error) if error.is_unsupported() => {}
                result => return result,
            }
        }
        self.open.iter().try_for_each(|file| file.sync())?;
        self.closed.iter().try_for_each(|path| AllocatedFile::open(path)?.sync())?;
        self.directories.iter().try_for_each(|directory| match sync_directory(directory) {
            // Another process has removed the directory. The file watch detects this and restores the open files.
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        })
    }

    /// Flushes each file system once. This flushes writes of other processes, too, but is a hundred times as fast as
    /// flushing thousands of files.
    fn sync_file_systems(&self) -> Result<()> {
        let open = self.open.iter().map(|file| file.path());
        let paths = open.chain(self.closed.iter().map(PathBuf::as_path));
        let directories: BTreeSet<_> =
            paths.filter_map(Path::parent).chain(self.directories.iter().map(|d| &**d)).collect();
        let mut devices = BTreeSet::new();
        for directory in directories {
            // Another process has removed the directory, as above.
            let Some(id) = id_at(directory)? else { continue };
            if devices.insert(id.device) {
                sync_all(directory)?;
            }
        }
        Ok(())
    }
}

fn id_at(directory: &Path) -> Result<Option<FileId>> {
    match facts_at(directory) {
        Ok(facts) => Ok(Some(facts.id)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(directory, error)),
    }
}
