//! A file of a commit log or a consume queue, open for reading: through `pread` into a buffer, or through a map.
//!
//! The default is `pread`: if a file is truncated, `pread` returns fewer bytes, while a map raises SIGBUS.
use super::mounts;
use super::reads::Reads;
use super::storage::{Part, RangeFile};
use crate::{Error, Result};
use memmap2::Mmap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Read with system calls into a buffer. Safe even if another process truncates the file.
    #[default]
    Pread,
    /// Read through maps. Faster for scattered reads, but nobody may truncate the files meanwhile.
    Mmap,
}

/// Length of a block in gaps, at least: a gap then costs little of it.
const BLOCK_GAPS: usize = 8;
/// Bytes of a read in a search for the first written byte.
const STEP: u64 = 256 << 10;

#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: Arc<dyn RangeFile>,
    /// The map of the file. `None` with `pread`, for an empty file (it cannot be mapped), and for a file of more than
    /// 4 GiB.
    map: Option<Arc<Mmap>>,
    buffer: Vec<u8>,
}

impl Segment {
    /// Opens the file for reading. Its access time does not change, if the system permits this.
    pub fn open(path: &Path, io: Io) -> Result<Self> {
        let file = mounts::with(path, |storage| storage.open(path))?;
        let map = match io {
            Io::Mmap => file.map()?.map(Arc::new),
            Io::Pread => None,
        };
        Ok(Self { path: path.to_path_buf(), file, map, buffer: Vec::new() })
    }

    /// Returns another reader of the same open file and map, so that pages need not be faulted in again.
    pub fn share(&self) -> Self {
        Self { path: self.path.clone(), file: self.file.clone(), map: self.map.clone(), buffer: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_len(&self) -> Result<u64> {
        self.file.file_len().map_err(|e| Error::io(&self.path, e))
    }

    /// Returns whether the path now leads to another file, or does not exist.
    pub fn is_replaced(&self) -> bool {
        self.file.is_replaced()
    }

    /// Returns the greatest distance between two ranges up to which it is cheaper to read the bytes between them.
    pub fn gap(&self) -> u64 {
        self.file.gap()
    }

    /// Returns the length of a block that is read at once: `len`, or more if each request takes so long that great gaps
    /// are read, too.
    pub fn block_len(&self, len: usize) -> usize {
        len.max(BLOCK_GAPS * self.gap() as usize)
    }

    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Returns `len` bytes from `at`, or fewer at the end of the file.
    pub fn window(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        if let Some(map) = &self.map {
            return Ok(slice_of(map, at, len));
        }
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let got = read(&*self.file, &mut self.buffer[..len], at);
        Ok(&self.buffer[..got.map_err(|e| Error::io(&self.path, e))?])
    }

    /// Returns a window that begins at `at` in the [last](Self::last_window) one, of which `position` and `length` are
    /// given. Reads only the bytes behind the last window.
    pub fn next_window(&mut self, (position, length): (u64, usize), at: u64, len: usize) -> Result<&[u8]> {
        let kept = (position + length as u64).saturating_sub(at) as usize;
        if self.map.is_some() || at < position || kept == 0 || kept > len || length > self.buffer.len() {
            return self.window(at, len);
        }
        self.buffer.copy_within(length - kept..length, 0);
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let got = read(&*self.file, &mut self.buffer[kept..len], at + kept as u64);
        Ok(&self.buffer[..kept + got.map_err(|e| Error::io(&self.path, e))?])
    }

    /// Appends `len` bytes from `at` to `out`, or fewer at the end of the file. Returns the number of bytes appended.
    /// After an error `out` is unchanged.
    pub fn read_into(&self, at: u64, len: usize, out: &mut Vec<u8>) -> Result<usize> {
        let start = out.len();
        if let Some(map) = &self.map {
            out.extend_from_slice(slice_of(map, at, len));
        } else {
            out.resize(start + len, 0);
            let got = read(&*self.file, &mut out[start..], at);
            out.truncate(start + *got.as_ref().unwrap_or(&0));
            got.map_err(|e| Error::io(&self.path, e))?;
        }
        Ok(out.len() - start)
    }

    /// Reads all `parts` of the file in one request, or copies them out of the map.
    pub fn read_ranges(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let Some(map) = &self.map else {
            return self.file.read_ranges(parts).map_err(|e| Error::io(&self.path, e));
        };
        for part in parts {
            let bytes = slice_of(map, part.at, part.buffer.len());
            part.buffer[..bytes.len()].copy_from_slice(bytes);
            part.count = bytes.len();
        }
        Ok(())
    }

    /// Returns the position of the first nonzero byte from `from` to `end`, or `None`. Skips holes and allocated blocks
    /// that were never written.
    pub fn first_written(&self, from: u64, end: u64) -> Result<Option<u64>> {
        for stored in self.file.stored_ranges(from, end) {
            if let Some(at) = self.first_nonzero(stored).map_err(|e| Error::io(&self.path, e))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Drops the pages from `from` to `end` from the page cache. Called after a range that was never written was
    /// read, because the pages in the cache would count as stored data. Nobody may write to the range during the
    /// call.
    pub fn forget(&self, from: u64, end: u64) {
        self.file.forget(from, end);
    }

    /// Returns the most that [`first_written`](Self::first_written) reads.
    pub fn most_reads_of_search(&self, from: u64, end: u64) -> Reads {
        let stored = self.file.stored_ranges(from, end).into_iter();
        stored.map(|range| Reads::in_blocks(range.end - range.start, STEP)).sum()
    }

    fn first_nonzero(&self, range: Range<u64>) -> io::Result<Option<u64>> {
        let mut buffer = vec![0; STEP.min(range.end - range.start) as usize];
        let mut at = range.start;
        while at < range.end {
            let length = STEP.min(range.end - at) as usize;
            let got = read(&*self.file, &mut buffer[..length], at)?;
            if let Some(first) = first_nonzero(&buffer[..got]) {
                return Ok(Some(at + first as u64));
            }
            // The file has been truncated meanwhile.
            if got == 0 {
                break;
            }
            at += got as u64;
        }
        Ok(None)
    }

    /// Returns the end of the last block before `end`, or `from` if there are no blocks.
    pub fn end_of_data(&self, from: u64, end: u64) -> u64 {
        self.file.stored_ranges(from, end).last().map_or(from, |last| last.end)
    }

    /// Returns the position of the next byte that has a block, or `end`.
    pub fn next_data(&self, at: u64, end: u64) -> u64 {
        self.file.next_stored(at, end)
    }

    pub fn map(&self) -> Option<&[u8]> {
        self.map.as_deref().map(|map| &map[..])
    }

    /// Returns the result of the last [`window`](Self::window) again. The arguments must be the same.
    pub fn last_window(&self, at: u64, len: usize) -> &[u8] {
        match &self.map {
            Some(map) => slice_of(map, at, len),
            None => self.buffer.get(..len).unwrap_or(&self.buffer),
        }
    }
}

fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    const CHUNK: usize = 256;
    // Whole chunks first, since the compiler can check a chunk with wide instructions.
    let is_zero = |chunk: &&[u8]| chunk.iter().fold(0, |all, byte| all | byte) == 0;
    let skipped = CHUNK * bytes.chunks(CHUNK).take_while(is_zero).count();
    bytes.get(skipped..)?.iter().position(|byte| *byte != 0).map(|at| skipped + at)
}

fn slice_of(bytes: &[u8], at: u64, len: usize) -> &[u8] {
    let start = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    &bytes[start..start.saturating_add(len).min(bytes.len())]
}

fn read(file: &dyn RangeFile, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut part = [Part::new(at, buffer)];
    file.read_ranges(&mut part)?;
    Ok(part[0].count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_os::file::FileExt;
    use std::fs::File;

    #[test]
    fn both_ways_of_reading_give_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        std::fs::write(&path, b"0123456789").expect("written");
        for io in [Io::Pread, Io::Mmap] {
            let mut segment = Segment::open(&path, io).expect("opens");
            assert_eq!(segment.window(3, 4).expect("reads"), b"3456");
            assert_eq!(segment.last_window(3, 4), b"3456");
            assert_eq!(segment.window(8, 100).expect("reads"), b"89");
            assert_eq!(segment.window(100, 1).expect("reads"), b"");
            let mut out = b"x".to_vec();
            assert_eq!(segment.read_into(9, 5, &mut out).expect("reads"), 1);
            assert_eq!(out, b"x9");
        }
    }

    #[test]
    fn the_next_window_reads_only_what_the_last_one_lacks() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"0123456789").expect("written");
        let mut segment = Segment::open(file.path(), Io::Pread).expect("opens");
        assert_eq!(segment.window(2, 4).expect("reads"), b"2345");
        file.as_file().write_at(b"abcdefghij", 0).expect("written");
        assert_eq!(segment.next_window((2, 4), 4, 5).expect("reads"), b"45ghi");
        assert_eq!(segment.last_window(4, 5), b"45ghi");
        assert_eq!(segment.next_window((4, 5), 8, 100).expect("reads"), b"ij");
        // Nothing of it is in the last window, or more is than is asked for.
        assert_eq!(segment.next_window((8, 2), 3, 4).expect("reads"), b"defg");
        assert_eq!(segment.next_window((3, 4), 4, 2).expect("reads"), b"ef");
        let mut mapped = Segment::open(file.path(), Io::Mmap).expect("opens");
        assert_eq!(mapped.window(2, 4).expect("reads"), b"cdef");
        assert_eq!(mapped.next_window((2, 4), 4, 100).expect("reads"), b"efghij");
    }

    #[test]
    fn the_first_written_byte_is_found_behind_a_hole() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(5 << 20).expect("grown");
        for io in [Io::Pread, Io::Mmap] {
            let segment = Segment::open(file.path(), io).expect("opens");
            assert_eq!(segment.first_written(0, 5 << 20).expect("reads"), None);
        }
        file.as_file().write_at(&[7], 3 << 20).expect("written");
        for io in [Io::Pread, Io::Mmap] {
            let segment = Segment::open(file.path(), io).expect("opens");
            assert_eq!(segment.first_written(9, 5 << 20).expect("reads"), Some(3 << 20));
            assert_eq!(segment.first_written(9, 3 << 20).expect("reads"), None);
            assert_eq!(segment.first_written((3 << 20) + 1, u64::MAX).expect("reads"), None);
        }
    }

    #[test]
    fn reading_leaves_the_access_time_and_a_replaced_file_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        std::fs::write(&path, b"abc").expect("written");
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let times = std::fs::FileTimes::new().set_accessed(old);
        File::options().write(true).open(&path).and_then(|f| f.set_times(times)).expect("set");
        let mut segment = Segment::open(&path, Io::Pread).expect("opens");
        assert_eq!(segment.window(0, 9).expect("reads"), b"abc");
        assert_eq!(path.metadata().and_then(|m| m.accessed()).expect("read"), old);
        assert_eq!((segment.file_len().expect("read"), segment.is_replaced()), (3, false));
        std::fs::rename(&path, dir.path().join("g")).expect("moved");
        assert!(segment.is_replaced());
        std::fs::write(&path, b"abc").expect("written");
        assert!(segment.is_replaced());
    }

    #[test]
    fn an_empty_file_reads_as_nothing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for io in [Io::Pread, Io::Mmap] {
            assert_eq!(Segment::open(file.path(), io).expect("opens").window(0, 9).expect("reads"), b"");
        }
    }

    #[test]
    fn a_file_shortened_under_pread_gives_fewer_bytes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [7; 100]).expect("written");
        let mut segment = Segment::open(file.path(), Io::Pread).expect("opens");
        assert_eq!(segment.window(0, 100).expect("reads").len(), 100);
        file.as_file().set_len(10).expect("shortened");
        assert_eq!(segment.window(0, 100).expect("reads").len(), 10);
    }
}
