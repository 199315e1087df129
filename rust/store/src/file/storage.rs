//! The door through which readers get all files of a store: bytes, directories and small files. Behind it are local files,
//! or [another storage](super::mounts). Writers, locks and maps need local files.
use super::mmap::ReadMap;
use crate::Result;
use rmqfast_os::identity::FileId;
use rmqfast_os::lease::Lease;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The files below a path.
pub trait Storage: Debug + Send + Sync {
    fn look(&self, path: &Path) -> Result<Place>;
    /// Lists a directory, in no particular order. Empty if the directory does not exist.
    fn list(&self, directory: &Path) -> Result<Vec<Entry>>;
    /// Reads up to `most` bytes of a small file; `None` if it does not exist. Fails for anything but a file.
    fn read_small(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>>;
    fn open(&self, path: &Path) -> Result<Arc<dyn RangeFile>>;
}

/// A file that is open for reading.
pub trait RangeFile: Debug + Send + Sync {
    fn file_len(&self) -> io::Result<u64>;
    /// Reads all `parts` in one request. Sets how many bytes of each were read: fewer than it has room for at the end of
    /// the file.
    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()>;
    /// Returns whether the path now leads to another file, or does not exist.
    fn is_replaced(&self) -> bool;
    /// Returns the ranges between `from` and `end` that may hold data. A storage without holes returns the whole range.
    fn stored_ranges(&self, from: u64, end: u64) -> Vec<Range<u64>>;
    /// Returns the position of the next byte at or behind `at` that may be data; `end` if there is none.
    fn next_stored(&self, at: u64, end: u64) -> u64;
    /// Drops cached bytes, which were never written.
    fn forget(&self, _from: u64, _end: u64) {}
    /// Maps the file. `None` if it cannot be mapped.
    fn map(&self) -> Result<Option<ReadMap>> {
        Ok(None)
    }
    /// Returns the identity of the file, if it can have a [lease](Self::lease).
    fn id_for_lease(&self) -> Option<FileId> {
        None
    }
    /// Takes a [lease](rmqfast_os::lease) of the file, if nobody writes to it.
    fn lease(&self) -> Option<Lease> {
        None
    }
    /// Returns the greatest distance between two ranges up to which it is cheaper to read the bytes between them.
    fn gap(&self) -> u64;
}

/// A range of a file, and the buffer into which it is read.
#[derive(Debug)]
pub struct Part<'a> {
    pub at: u64,
    pub buffer: &'a mut [u8],
    /// The number of bytes that were read.
    pub count: usize,
}

impl<'a> Part<'a> {
    pub fn new(at: u64, buffer: &'a mut [u8]) -> Self {
        Self { at, buffer, count: 0 }
    }
}

#[derive(Debug)]
pub enum Place {
    Absent,
    /// A symbolic link whose target does not exist.
    DeadLink,
    /// The path leads to a file, directory or other object. Links are followed.
    There(Stat),
}

/// A name in a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    pub path: PathBuf,
    /// The kind and length, if the listing tells them. Never set for a link.
    pub stat: Option<Stat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Other,
}

/// The kind and length of a file or directory. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    kind: Kind,
    len: u64,
    modified: Option<SystemTime>,
}

impl Stat {
    pub fn new(kind: Kind, len: u64, modified: Option<SystemTime>) -> Self {
        Self { kind, len, modified }
    }

    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    pub fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the time of the last change. Fails where the storage does not tell it.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.modified.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}
