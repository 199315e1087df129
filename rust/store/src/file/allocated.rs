//! A file of a store that is open for writing: its blocks are allocated when it is created, so that a full disk shows then,
//! and never in the middle of a record or under a map.
//!
//! Source: `MappedFile.init`, which creates at full length but sparse.
use super::disk::{self, Call};
use super::mmap::{self, WriteMap};
use crate::{Error, Result};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// `f_type` of ext4, XFS and tmpfs, where a write to an allocated block finds room. Others may write to a copy.
const KEEPS_BLOCKS: [i64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];
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
        let file = disk::call(Call::Create, path, || {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
            allocate(&file, len).inspect_err(|_| drop(fs::remove_file(path))).map(|()| file)
        })?;
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
        disk::call(Call::Write, &self.path, || self.file.write_all_at(bytes, at))
    }

    /// Makes a file that is shorter `len` bytes long, with zeroes that the disk has room for.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn extend(&self, len: u64) -> Result<()> {
        disk::call(Call::Create, &self.path, || allocate(&self.file, len))
    }

    /// Makes `len` bytes from `at` zero.
    ///
    /// # Errors
    /// [`Error::Io`]; any of the bytes may be zero then.
    pub fn zero(&self, at: u64, len: u64) -> Result<()> {
        disk::call(Call::Write, &self.path, || zero(&self.file, at, len))
    }

    /// Waits until what was written is on the disk, through a map as well.
    ///
    /// # Errors
    /// [`Error::Io`]; then nobody knows what is on the disk.
    pub fn sync(&self) -> Result<()> {
        disk::call(Call::Sync, &self.path, || self.file.sync_data())
    }

    /// Maps the whole file for writing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn map(&self) -> Result<MmapMut> {
        mmap::map_mut(&self.file).map_err(|e| Error::io(&self.path, e))
    }

    /// Maps the file to be appended to; `None` where the file system does not promise room for allocated blocks.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_map(&self) -> Result<Option<WriteMap>> {
        let map = fstatfs(&self.file)
            .map_err(std::io::Error::from)
            .and_then(|kind| KEEPS_BLOCKS.contains(&kind.f_type).then(|| WriteMap::new(&self.file)).transpose());
        map.map_err(|e| Error::io(&self.path, e))
    }

    /// Moves the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(self, path: &Path) -> Result<Self> {
        disk::rename(&self.path, path)?;
        Ok(Self { path: path.to_path_buf(), file: self.file })
    }

    /// Removes the file, which nothing was written to.
    pub fn discard(&self) {
        let _ = disk::remove_file(&self.path);
    }
}

fn allocate(file: &File, len: u64) -> std::io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, len) {
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => {
                let from = file.metadata()?.len();
                return write_zeroes(file, from, len.saturating_sub(from));
            }
            other => return Ok(other?),
        }
    }
}

fn zero(file: &File, at: u64, len: u64) -> std::io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    loop {
        match fallocate(file, FallocateFlags::ZERO_RANGE, at, len) {
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return write_zeroes(file, at, len),
            other => return Ok(other?),
        }
    }
}

fn write_zeroes(file: &File, from: u64, len: u64) -> std::io::Result<()> {
    let zeroes = vec![0; ZEROES];
    let mut at = 0;
    while at < len {
        let part = (len - at).min(ZEROES as u64) as usize;
        file.write_all_at(&zeroes[..part], from + at)?;
        at += part as u64;
    }
    Ok(())
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
        write_zeroes(file.as_file(), 0, ZEROES as u64 + 5).expect("written");
        assert_eq!(file.as_file().metadata().expect("there").len(), ZEROES as u64 + 5);
    }

    #[test]
    fn a_range_is_made_zero_and_nothing_beside_it() {
        for by in [zero, write_zeroes] {
            let file = tempfile::NamedTempFile::new().expect("a file");
            fs::write(file.path(), [7; 10_000]).expect("written");
            by(file.as_file(), 3, 9_000).expect("zeroed");
            by(file.as_file(), 9_999, 0).expect("nothing to do");
            let bytes = fs::read(file.path()).expect("read");
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (3..9_003).contains(&at) { 0 } else { 7 }));
            assert_eq!(bytes.len(), 10_000);
        }
    }
}
