//! A file of a store that is open for writing: its blocks are allocated when it is created, so that a full disk shows then,
//! and never in the middle of a record or under a map.
//!
//! Source: `MappedFile.init`, which creates at full length but sparse.
use super::mmap;
use crate::{Error, Result};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes written at a time where the file system cannot allocate.
const ZEROES: usize = 1 << 20;

/// The open file.
#[derive(Debug)]
pub struct Allocated {
    path: PathBuf,
    file: File,
}

impl Allocated {
    /// Creates `path`, which must not exist, with `len` bytes of zeroes that the disk has room for.
    ///
    /// # Errors
    /// [`Error::Io`]; then there is no such file.
    pub fn create(path: &Path, len: u64) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|e| Error::io(path, e))?;
        if let Err(error) = allocate(&file, len) {
            let _ = fs::remove_file(path);
            return Err(Error::io(path, error));
        }
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `bytes` at `at`.
    ///
    /// # Errors
    /// [`Error::Io`]; any part of the bytes may have been written.
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(|e| Error::io(&self.path, e))
    }

    /// Waits until what was written is on the disk, through a map as well.
    ///
    /// # Errors
    /// [`Error::Io`]; then nobody knows what is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, e))
    }

    /// Maps the whole file for writing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn map(&self) -> Result<MmapMut> {
        mmap::map_mut(&self.file).map_err(|e| Error::io(&self.path, e))
    }

    /// Removes the file, which nothing was written to.
    pub fn discard(self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn allocate(file: &File, len: u64) -> std::io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, len) {
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return write_zeroes(file, len),
            other => return Ok(other?),
        }
    }
}

fn write_zeroes(file: &File, len: u64) -> std::io::Result<()> {
    let zeroes = vec![0; ZEROES];
    let mut at = 0;
    while at < len {
        let part = (len - at).min(ZEROES as u64) as usize;
        file.write_all_at(&zeroes[..part], at)?;
        at += part as u64;
    }
    Ok(())
}

/// Waits until the names in `directory` are on the disk.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| Error::io(directory, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_created_file_has_its_length_and_its_blocks() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("00000000000000000000");
        let file = Allocated::create(&path, 1 << 20).expect("created");
        file.write(b"abc", 5).expect("written");
        file.map().expect("mapped")[..2].copy_from_slice(b"xy");
        file.sync().expect("synced");
        let meta = path.metadata().expect("there");
        assert_eq!((meta.len(), meta.blocks() * 512 >= 1 << 20), (1 << 20, true));
        assert_eq!(&fs::read(&path).expect("read")[..9], b"xy\0\0\0abc\0");
        assert!(Allocated::create(&path, 1).is_err());
        assert_eq!(path.metadata().expect("still there").len(), 1 << 20);
    }

    #[test]
    fn a_file_that_finds_no_room_is_not_left_behind() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("00000000000000000000");
        assert!(Allocated::create(&path, 1 << 62).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn zeroes_are_written_where_blocks_cannot_be_allocated() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        write_zeroes(file.as_file(), ZEROES as u64 + 5).expect("written");
        assert_eq!(file.as_file().metadata().expect("there").len(), ZEROES as u64 + 5);
    }
}
