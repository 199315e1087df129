//! The files of this machine.
use super::disk::{self, Look};
use super::mmap::ReadMap;
use super::storage::{Entry, Kind, Part, Place, RangeFile, Stat, Storage};
use crate::{Error, Result};
use rmqfast_os::file::{FileExt, open_unseen};
use rmqfast_os::identity::{FileId, facts_at, facts_of};
use rmqfast_os::lease::{self, Lease};
use rmqfast_os::{blocks, pages};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes between two ranges that cost about as much as another system call.
const GAP: u64 = 4 << 10;

#[derive(Clone, Copy, Debug)]
pub struct LocalFiles;

impl Storage for LocalFiles {
    fn look(&self, path: &Path) -> Result<Place> {
        let error = match disk::look(Look::Stat, path, || fs::metadata(path)) {
            Ok(meta) => return Ok(Place::There(stat_of(&meta))),
            Err(error) => error,
        };
        if !is_absence(&error) {
            return Err(Error::io(path, error));
        }
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => Ok(Place::DeadLink),
            // The file was created between the two look-ups.
            Ok(_) => fs::metadata(path).map(|meta| Place::There(stat_of(&meta))).map_err(|e| Error::io(path, e)),
            Err(error) if is_absence(&error) => Ok(Place::Absent),
            Err(error) => Err(Error::io(path, error)),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        let entries = disk::look(Look::List, directory, || {
            let entry_of = |entry: fs::DirEntry| {
                let stat = entry.file_type().ok().and_then(stat_of_directory);
                Entry { path: entry.path(), stat }
            };
            fs::read_dir(directory)?.map(|entry| entry.map(entry_of)).collect::<io::Result<Vec<_>>>()
        });
        match entries {
            Err(error) if error.kind() == ErrorKind::NotFound => require_absent(directory).map(|()| Vec::new()),
            entries => entries.map_err(|e| Error::io(directory, e)),
        }
    }

    fn read_small(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
        match self.look(path)? {
            Place::Absent => return Ok(None),
            Place::DeadLink => return Err(no_file(path)),
            // Reading a pipe could block.
            Place::There(stat) if !stat.is_file() => return Err(other_than_file(path)),
            Place::There(_) => {}
        }
        let file = match open(path, || File::open(path)) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        disk::look(Look::Read, path, || file.take(most).read_to_end(&mut bytes)).map_err(|e| Error::io(path, e))?;
        Ok(Some(bytes))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RangeFile>> {
        let file = open(path, || open_unseen(path))?;
        // Unix opens a directory without an error, but cannot read it.
        if file.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(no_file(path));
        }
        Ok(Arc::new(LocalFile { path: path.to_path_buf(), file: Arc::new(file) }))
    }
}

fn stat_of(meta: &Metadata) -> Stat {
    let kind = match meta {
        _ if meta.is_file() => Kind::File,
        _ if meta.is_dir() => Kind::Directory,
        _ => Kind::Other,
    };
    Stat::new(kind, meta.len(), meta.modified().ok())
}

/// The listing tells that a name is a directory, and saves a look at it. The length of a file it does not tell.
fn stat_of_directory(kind: FileType) -> Option<Stat> {
    kind.is_dir().then(|| Stat::new(Kind::Directory, 0, None))
}

/// A file of this machine, read by `pread`.
#[derive(Debug)]
struct LocalFile {
    path: PathBuf,
    file: Arc<File>,
}

impl RangeFile for LocalFile {
    fn file_len(&self) -> io::Result<u64> {
        self.file.metadata().map(|meta| meta.len())
    }

    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        parts.iter_mut().try_for_each(|part| {
            part.count = self.read(part.buffer, part.at)?;
            Ok(())
        })
    }

    fn is_replaced(&self) -> bool {
        facts_of(&self.file).map(|ours| ours.id).ok() != facts_at(&self.path).map(|named| named.id).ok()
    }

    fn stored_ranges(&self, from: u64, end: u64) -> Vec<Range<u64>> {
        blocks::stored_ranges(&self.file, from, end)
    }

    fn next_stored(&self, at: u64, end: u64) -> u64 {
        blocks::next_stored(&self.file, at, end)
    }

    fn forget(&self, from: u64, end: u64) {
        pages::forget(&self.file, from, end);
    }

    fn map(&self) -> Result<Option<ReadMap>> {
        match self.file_len() {
            // An empty file cannot be mapped. Positions within a map have 32 bits. No broker writes a larger file.
            Ok(len) if len == 0 || len > u64::from(u32::MAX) => Ok(None),
            _ => ReadMap::new(&self.file).map(Some).map_err(|e| Error::io(&self.path, e)),
        }
    }

    fn id_for_lease(&self) -> Option<FileId> {
        facts_of(&self.file).ok().filter(|_| lease::is_local(&self.file)).map(|facts| facts.id)
    }

    fn lease(&self) -> Option<Lease> {
        Lease::take(&self.file)
    }

    fn gap(&self) -> u64 {
        GAP
    }
}

impl LocalFile {
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = || self.file.read_at(&mut buffer[filled..], at + filled as u64);
            match disk::look(Look::Read, &self.path, read) {
                Ok(0) => break,
                Ok(n) => filled += n,
                // A signal interrupted the read, so read again.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}

/// Opens the local file at `path` with `open`. The error is "not found" only if the name does not exist. A dead link is
/// [`Error::Corrupt`].
pub fn open<T>(path: &Path, open: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let opened = disk::look(Look::Open, path, open);
    if opened.as_ref().is_err_and(is_absence) {
        require_absent(path)?;
    }
    opened.map_err(|e| Error::io(path, e))
}

pub(super) fn other_than_file(path: &Path) -> Error {
    Error::Corrupt { path: path.to_path_buf(), offset: 0, reason: "expected a file".to_owned() }
}

/// Returns the error for a dead link, or for a directory in the place of a file.
pub fn no_file(path: &Path) -> Error {
    Error::Corrupt { path: path.to_path_buf(), offset: 0, reason: no_file_reason(path) }
}

pub fn no_file_reason(path: &Path) -> String {
    if fs::metadata(path).is_ok() {
        return "expected a file, got another thing of its name, as a directory: remove that".to_owned();
    }
    let target = fs::read_link(path).map_or_else(|_| "a place".to_owned(), |target| target.display().to_string());
    format!("a symbolic link to {target}, which is not there: mount what it leads to, or remove the link")
}

fn require_absent(path: &Path) -> Result<()> {
    match LocalFiles.look(path)? {
        Place::DeadLink => Err(no_file(path)),
        // The name may exist by now, but it did not when the caller looked.
        Place::Absent | Place::There(_) => Ok(()),
    }
}

fn is_absence(error: &io::Error) -> bool {
    // A path below a file does not exist either.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
