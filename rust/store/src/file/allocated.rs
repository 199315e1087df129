//! A file of a store, open for writing. Its blocks are allocated before bytes are written to them. So on a full disk
//! the allocation fails, before any byte is written. Without the allocation a full disk would leave half a record, or
//! raise a signal when a map is written. A file grows step by step, or has all its blocks from the start.
//!
//! Source: `MappedFile.init`, `MappedFile.appendMessagesInner`.
use super::disk::{self, Call, create_directories, sync_directory};
use super::mmap::{OwnedMap, Pages, WriteMap};
use crate::{Error, Result};
use rmqfast_os::file::FileExt;
use rmqfast_os::identity::{Facts, facts_of};
use rmqfast_os::{blocks, disk as os_disk};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of zeroes per write, on file systems that cannot allocate blocks.
const ZEROES: usize = 1 << 20;
/// Lengths in bytes to which a growing file is allocated. Beyond the last length, the file is allocated up to a
/// multiple of it.
const STEPS: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

#[derive(Debug)]
pub struct AllocatedFile {
    path: PathBuf,
    file: File,
}

impl AllocatedFile {
    /// Creates `path`, which must not exist, with `len` zero bytes and all their blocks. After an error the file does not exist.
    pub fn create(path: &Path, len: u64) -> Result<Self> {
        Self::create_with(path, |file| allocate(file, 0, len))
    }

    /// Creates `path`, which must not exist, with `len` zero bytes and no blocks. After an error the file does not exist.
    pub fn create_sparse(path: &Path, len: u64) -> Result<Self> {
        Self::create_with(path, |file| file.set_len(len))
    }

    fn create_with(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<Self> {
        let file = disk::call(Call::Create, path, || {
            let file = disk::open_new(OpenOptions::new().read(true).write(true).create_new(true), path)?;
            // Remove the file after an error, since a broker does not start if a file has another length.
            fill(&file).inspect_err(|_| drop(fs::remove_file(path))).map(|()| file)
        })?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `bytes` at `at`. After an error any part of the bytes may have been written.
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        disk::call(Call::Write, &self.path, || self.file.write_all_at(bytes, at))
    }

    /// Returns the eight bytes at `at`, or `None` if the file is too short.
    pub fn word(&self, at: u64) -> Option<[u8; 8]> {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at).ok().map(|()| word)
    }

    /// Fills `out` with the bytes from `at` on. Fails if the file is too short.
    pub fn read(&self, out: &mut [u8], at: u64) -> Result<()> {
        self.file.read_exact_at(out, at).map_err(|e| Error::io(&self.path, e))
    }

    /// Returns the ranges of the first `len` bytes that have blocks. If the file system does not report holes, returns the whole range.
    pub fn stored_ranges(&self, len: u64) -> Vec<Range<u64>> {
        blocks::stored_ranges(&self.file, 0, len)
    }

    /// Returns length and identity of the open file, even if its name now belongs to another file.
    pub fn facts(&self) -> Result<Facts> {
        facts_of(&self.file).map_err(|e| Error::io(&self.path, e))
    }

    /// Sets the length. Appends zeroes without blocks, or truncates the file.
    pub fn set_len(&self, len: u64) -> Result<()> {
        disk::call(Call::Create, &self.path, || self.file.set_len(len))
    }

    /// Allocates blocks for `range` without changing the bytes. After an error some blocks may be allocated.
    pub fn allocate(&self, range: Range<u64>) -> Result<()> {
        disk::call(Call::Allocate, &self.path, || allocate(&self.file, range.start, range.end - range.start))
    }

    /// Allocates `range`. Also allocates a step behind it, but not beyond length `len`, so that few calls are needed.
    /// On a nearly full disk allocates only what is needed. Returns the end of the allocated bytes.
    pub fn grow(&self, range: Range<u64>, len: u64) -> Result<u64> {
        let to = step_behind(range.end).min(len);
        match self.allocate(range.start..to) {
            // The step does not fit, but the few bytes needed may.
            Err(error) if error.is_disk_full() => {
                // Blocks of file systems usually have 4 KiB, so a smaller request would not save any.
                let to = range.end.next_multiple_of(STEPS[0]).min(len);
                self.allocate(range.start..to).map(|()| to)
            }
            done => done.map(|()| to),
        }
    }

    /// Sets `len` bytes from `at` to zero and frees their blocks. After an error any of the bytes may be zero.
    pub fn empty(&self, at: u64, len: u64) -> Result<()> {
        disk::call(Call::Write, &self.path, || punch(&self.file, at, len))
    }

    /// Flushes the file, on Unix also bytes written through a map. After an error it is unknown which bytes are on the disk.
    pub fn sync(&self) -> Result<()> {
        // `fdatasync` writes the data and the size of the file, but not its times.
        disk::call(Call::Sync, &self.path, || self.file.sync_data())
    }

    pub fn map(&self) -> Result<OwnedMap> {
        OwnedMap::new(&self.file).map_err(|e| Error::io(&self.path, e))
    }

    /// Maps the file for appends. Returns `None` if the file system copies on write, since a write may then need new
    /// blocks, although all blocks are allocated.
    pub fn write_map(&self) -> Result<Option<WriteMap>> {
        let map = self.keeps_blocks()?.then(|| WriteMap::new(&self.file)).transpose();
        map.map_err(|e| Error::io(&self.path, e))
    }

    /// Returns whether the file system writes into allocated blocks. A file system that copies on write does not: it
    /// takes new blocks for each write.
    pub fn keeps_blocks(&self) -> Result<bool> {
        blocks::keeps_blocks(&self.file).map_err(|e| Error::io(&self.path, e))
    }

    pub fn rename(self, path: &Path) -> Result<Self> {
        disk::rename(&self.path, path)?;
        Ok(Self { path: path.to_path_buf(), file: self.file })
    }

    pub fn discard(&self) {
        let _ = disk::remove_file(&self.path);
    }
}

/// Returns the free bytes on the disk of `path`: those for this user, and those for root, who may also use reserved
/// blocks. `None` if the system does not report them.
pub fn free_bytes(path: &Path) -> Option<(u64, u64)> {
    let space = os_disk::space(path).ok()?;
    Some((space.usable, space.free))
}

fn step_behind(needed: u64) -> u64 {
    STEPS.into_iter().find(|step| *step >= needed).unwrap_or_else(|| needed.next_multiple_of(STEPS[STEPS.len() - 1]))
}

fn allocate(file: &File, at: u64, len: u64) -> io::Result<()> {
    if blocks::allocate(file, at, len)? { Ok(()) } else { rewrite(file, at, len) }
}

fn punch(file: &File, at: u64, len: u64) -> io::Result<()> {
    if blocks::punch(file, at, len)? { Ok(()) } else { write_zeroes(file, at, len) }
}

fn write_zeroes(file: &File, from: u64, len: u64) -> io::Result<()> {
    in_parts(from, len, |at, part| file.write_all_at(part, at))
}

/// Allocates blocks on a file system that cannot allocate without writing. Writes the existing bytes of the file
/// again, and zeroes behind its end.
fn rewrite(file: &File, from: u64, len: u64) -> io::Result<()> {
    in_parts(from, len, |at, part| {
        let there = file.metadata()?.len().saturating_sub(at).min(part.len() as u64);
        file.read_exact_at(&mut part[..there as usize], at)?;
        file.write_all_at(part, at)?;
        // The buffer is used again, and must be zero behind the end of the file.
        part.fill(0);
        Ok(())
    })
}

fn in_parts(from: u64, len: u64, mut each: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> io::Result<()> {
    let mut zeroes = vec![0; ZEROES.min(usize::try_from(len).unwrap_or(ZEROES))];
    let end = from + len;
    let mut at = from;
    while at < end {
        let part = (end - at).min(ZEROES as u64);
        each(at, &mut zeroes[..part as usize])?;
        at += part;
    }
    Ok(())
}

/// A file to which records are appended through a map, since a system call takes longer than copying a small record in
/// memory. Blocks are allocated first, since a write through a map to a full disk raises a signal. A file system that
/// copies on write may need new blocks even for allocated bytes, so files on it are written with `pwrite`.
#[derive(Debug)]
pub struct AppendFile {
    file: Arc<AllocatedFile>,
    map: Option<WriteMap>,
}

impl AppendFile {
    /// Creates the writer, with a map of `file` if writes through a map are safe on its file system.
    pub fn new(file: AllocatedFile) -> Result<Self> {
        Ok(Self { map: file.write_map()?, file: file.into() })
    }

    /// Creates the writer without a map. For a single write a map costs more than it saves.
    pub fn without_map(file: AllocatedFile) -> Self {
        Self { file: file.into(), map: None }
    }

    pub fn file(&self) -> &Arc<AllocatedFile> {
        &self.file
    }

    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Writes `bytes` at `at`. The bytes of the range `last` are written after all others, so a reader that sees
    /// these bytes sees all bytes. After an error any part may be written.
    pub fn write(&mut self, bytes: &[u8], at: u64, last: Range<usize>) -> Result<()> {
        match &mut self.map {
            Some(map) => disk::call(Call::Write, self.file.path(), || map.write(bytes, at, last)),
            None => self.file.write(bytes, at),
        }
    }

    /// Fails if another process has truncated the file. `len` is the expected length of the file. If the map shows
    /// that the bytes up to `end` still exist, the check costs no system call.
    #[inline]
    pub fn check(&self, end: u64, len: u64) -> Result<()> {
        match self.map.as_ref().and_then(|map| map.has(end)) {
            Some(true) => Ok(()),
            _ => self.check_len(len),
        }
    }

    #[cold]
    fn check_len(&self, len: u64) -> Result<()> {
        match self.file.facts()?.len {
            // A lost page is an error even if the file has its old length again, since writes to that page are lost.
            now if now < len || self.is_lost() => Err(self.cut_off(len, now)),
            _ => Ok(()),
        }
    }

    /// Fails if a write hit pages that another process has truncated. Makes no other check, which is enough for files
    /// that can be rebuilt from the log.
    #[inline]
    pub fn check_lost(&self, len: u64) -> Result<()> {
        if self.is_lost() { self.check_len(len) } else { Ok(()) }
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.map.as_ref().is_some_and(WriteMap::is_lost)
    }

    fn cut_off(&self, len: u64, now: u64) -> Error {
        Error::changed_by_another(self.file.path(), format!("expected {len} bytes, got {now}"))
    }

    pub fn word(&self, at: u64) -> Option<[u8; 8]> {
        match &self.map {
            Some(map) => map.word(at),
            None => self.file.word(at),
        }
    }

    pub fn pages(&self) -> Option<Pages> {
        self.map.as_ref().map(WriteMap::pages)
    }
}

const STEP: u64 = 1 << 20;

/// Restores a file whose name was removed. The file is still open, so its bytes still exist. Copies the first `len`
/// bytes to `temporary`, and renames the copy to the lost name. With `has_blocks` all blocks are allocated. The open
/// file must not be written to any more. After an error there is no new file.
pub fn write_back(file: &AllocatedFile, len: u64, has_blocks: bool, temporary: &Path) -> Result<()> {
    let _ = fs::remove_file(temporary);
    let new =
        if has_blocks { AllocatedFile::create(temporary, len) } else { AllocatedFile::create_sparse(temporary, len) }?;
    copy(file, &new, len).and_then(|()| new.sync()).inspect_err(|_| new.discard())?;
    if let Some(directory) = file.path().parent() {
        // The directory may have been removed together with the file.
        create_directories(directory)?;
    }
    // Renamed only when complete, so that nobody finds a partial file.
    disk::rename(temporary, file.path())?;
    // The directories of queue and topic may be new, so their names are flushed as well.
    file.path().ancestors().skip(1).take(3).try_for_each(sync_directory)
}

/// Copies the ranges that have blocks. All other ranges read as zero in both files.
fn copy(file: &AllocatedFile, new: &AllocatedFile, len: u64) -> Result<()> {
    let mut buffer = vec![0; STEP.min(len) as usize];
    for range in file.stored_ranges(len) {
        let mut at = range.start;
        while at < range.end {
            let part = &mut buffer[..STEP.min(range.end - at) as usize];
            file.read(part, at)?;
            new.write(part, at)?;
            at += part.len() as u64;
        }
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
        let file = AllocatedFile::create(&path, 1 << 20).expect("created");
        file.write(b"abc", 5).expect("written");
        file.map().expect("mapped")[..2].copy_from_slice(b"xy");
        file.sync().expect("synced");
        let meta = path.metadata().expect("there");
        assert_eq!((meta.len(), meta.blocks() * 512 >= 1 << 20), (1 << 20, true));
        assert_eq!(&fs::read(&path).expect("read")[..9], b"xy\0\0\0abc\0");
        assert!(AllocatedFile::create(&path, 1).is_err());
        assert_eq!(path.metadata().expect("still there").len(), 1 << 20);
    }

    #[test]
    fn a_file_that_finds_no_room_is_not_left_behind() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("00000000000000000000");
        assert!(AllocatedFile::create(&path, 1 << 62).is_err());
        assert!(!path.exists());
    }

    fn has(file: &AllocatedFile) -> u64 {
        file.path().metadata().expect("there").blocks() * 512
    }

    #[test]
    fn a_file_that_grows_takes_blocks_step_by_step_and_gives_them_back() {
        let dir = tempfile::tempdir().expect("dir");
        let len = 3_000_000;
        let file = AllocatedFile::create_sparse(&dir.path().join("a"), len).expect("created");
        let mut ends = vec![0];
        while ends[ends.len() - 1] < len {
            let from = ends[ends.len() - 1];
            ends.push(file.grow(from..from + 1, len).expect("room"));
            assert!(has(&file) >= ends[ends.len() - 1].min(len / 4096 * 4096));
        }
        assert_eq!(ends, [0, 4096, 16384, 65536, 262_144, 1 << 20, 2 << 20, len]);
        assert_eq!(file.path().metadata().expect("there").len(), len);
        file.write(b"abc", 4_999).expect("written");
        file.grow(0..1, len).expect("what has blocks stays as it is");
        file.empty(5_000, len - 5_000).expect("emptied");
        assert!(has(&file) <= 16_384);
        assert_eq!(fs::read(file.path()).expect("read")[4_998..5_002], *b"\0a\0\0");
        assert_eq!(file.path().metadata().expect("there").len(), len);
    }

    #[test]
    fn zeroes_are_written_where_blocks_cannot_be_allocated() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        write_zeroes(file.as_file(), 0, ZEROES as u64 + 5).expect("written");
        assert_eq!(file.as_file().metadata().expect("there").len(), ZEROES as u64 + 5);
        file.as_file().write_at(&[7; 9], ZEROES as u64 - 4).expect("written");
        rewrite(file.as_file(), 3, 2 * ZEROES as u64).expect("written");
        let bytes = fs::read(file.path()).expect("read");
        assert!(bytes.iter().enumerate().all(|(at, byte)| (*byte == 7) == (ZEROES - 4..ZEROES + 5).contains(&at)));
        assert_eq!(bytes.len(), 2 * ZEROES + 3);
    }

    #[test]
    fn a_range_is_made_zero_and_nothing_beside_it() {
        for by in [punch, write_zeroes] {
            let file = tempfile::NamedTempFile::new().expect("a file");
            fs::write(file.path(), [7; 10_000]).expect("written");
            by(file.as_file(), 3, 9_000).expect("zeroed");
            by(file.as_file(), 9_999, 0).expect("nothing to do");
            let bytes = fs::read(file.path()).expect("read");
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (3..9_003).contains(&at) { 0 } else { 7 }));
            assert_eq!(bytes.len(), 10_000);
        }
    }

    #[test]
    fn what_is_written_is_in_the_file_with_a_map_and_without() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, make) in [("a", AppendFile::new as fn(_) -> _), ("b", |file| Ok(AppendFile::without_map(file)))] {
            let path = dir.path().join(name);
            let mut file = make(AllocatedFile::create(&path, 10_000).expect("created")).expect("made");
            if let Some(pages) = file.pages() {
                pages.touch(5_000..20_000);
            }
            file.write(b"0123456789", 4_090, 0..4).expect("written");
            file.write(b"ab", 9_998, 1..2).expect("written");
            let bytes = std::fs::read(&path).expect("read");
            assert_eq!((&bytes[4_089..4_101], &bytes[9_998..]), (&b"\x000123456789\0"[..], &b"ab"[..]));
            assert_eq!(bytes.len(), 10_000);
        }
    }

    #[test]
    fn nothing_is_written_past_the_end_of_a_map() {
        let dir = tempfile::tempdir().expect("dir");
        let file = AllocatedFile::create(&dir.path().join("a"), 100).expect("created");
        let mut map = file.write_map().expect("mapped").expect("a file system that keeps blocks");
        for at in [99, 100, u64::MAX] {
            assert!(map.write(b"ab", at, 0..1).is_err(), "{at}");
        }
        assert!(map.write(b"ab", 0, 1..3).is_err());
        map.write(b"ab", 98, 0..2).expect("written");
    }

    #[test]
    fn a_file_that_was_removed_comes_back_with_all_its_bytes() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, has_blocks) in [("log/a", true), ("queue/b", false)] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            let len = 3 * STEP + 5;
            let file = AllocatedFile::create_sparse(&path, len).expect("created");
            file.write(&[7; 5000], STEP - 100).expect("written");
            file.write(b"end", len - 3).expect("written");
            let before = fs::read(&path).expect("read");
            fs::remove_dir_all(path.parent().expect("a directory")).expect("removed");
            write_back(&file, len, has_blocks, &dir.path().join("rescue")).expect("written back");
            assert!(fs::read(&path).expect("there again") == before);
            assert_eq!(path.metadata().expect("there").blocks() * 512 >= len, has_blocks);
            assert!(!dir.path().join("rescue").exists());
        }
    }

    #[test]
    fn without_room_there_is_no_half_a_file() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a");
        let file = AllocatedFile::create(&path, 100).expect("created");
        fs::remove_file(&path).expect("removed");
        write_back(&file, 1 << 62, true, &dir.path().join("rescue")).expect_err("no such disk");
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }
}
