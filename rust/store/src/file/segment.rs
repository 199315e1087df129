//! A file of a commit log or a consume queue, open for reading: through `pread` into a buffer, or through a map.
//!
//! If a file is truncated, `pread` returns fewer bytes. A map raises SIGBUS, which the map's guard handles; then the segment
//! goes on by `pread`.
use super::leased::{KeptMap, LeasedFile};
use super::mmap::ReadMap;
use super::mounts;
use super::reads::Reads;
use super::storage::{Part, RangeFile};
use crate::{Error, Result};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Read with system calls into a buffer. Safe even if another process truncates the file.
    #[default]
    Pread,
    /// Scans read through maps under leases where nobody writes to a file. All else is read as by `Pread`.
    Auto,
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
    map: Option<Arc<ReadMap>>,
    /// The maps under leases, for a walk that has asked for them.
    leased: Option<LeasedFile>,
    buffer: Vec<u8>,
    window: WindowIn,
}

/// Where the bytes of the last window are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowIn {
    Buffer,
    Map,
    LeasedMap,
}

impl Segment {
    /// Opens the file for reading. Its access time does not change, if the system permits this.
    pub fn open(path: &Path, io: Io) -> Result<Self> {
        let file = mounts::with(path, |storage| storage.open(path))?;
        let map = match io {
            Io::Mmap => file.map()?.map(Arc::new),
            Io::Pread | Io::Auto => None,
        };
        Ok(Self { path: path.to_path_buf(), file, map, leased: None, buffer: Vec::new(), window: WindowIn::Buffer })
    }

    /// Lets [`next_window`](Self::next_window) and [`read_ranges`](Self::read_ranges) read through a map, which stays in `kept`.
    #[must_use]
    pub fn with_leases(mut self, kept: Arc<KeptMap>) -> Self {
        self.leased = self.file.id_for_lease().map(|_| LeasedFile::new(self.file.clone(), kept));
        self
    }

    /// Returns another reader of the same open file and map, so that pages need not be faulted in again.
    pub fn share(&self) -> Self {
        let (file, map, buffer) = (self.file.clone(), self.map.clone(), Vec::new());
        Self { path: self.path.clone(), file, map, leased: None, buffer, window: WindowIn::Buffer }
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

    /// Returns whether the bytes of the last window are in a map.
    pub fn is_mapped(&self) -> bool {
        self.window != WindowIn::Buffer
    }

    /// Returns the same as [`window`](Self::window), in a map under a lease if it can be had. The lease lasts until
    /// [`release`](Self::release) or [`keep`](Self::keep). Bytes of the [last](Self::last_window) window, of which `last` is the position
    /// and the length, are not read again.
    pub fn next_window(&mut self, last: Option<(u64, usize)>, at: u64, len: usize) -> Result<&[u8]> {
        if self.leased.as_mut().is_some_and(|leased| leased.take_block(at..at.saturating_add(len as u64))) {
            self.window = WindowIn::LeasedMap;
            return Ok(self.last_window(at, len));
        }
        let is_here = |(position, length): &(u64, usize)| *position <= at && *length <= self.buffer.len();
        let last = last.filter(|last| self.window == WindowIn::Buffer && self.sound_map().is_none() && is_here(last));
        let (position, length) = last.unwrap_or_default();
        let kept = (position + length as u64).saturating_sub(at) as usize;
        if kept == 0 || kept > len {
            return self.window(at, len);
        }
        self.buffer.copy_within(length - kept..length, 0);
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let got = read(&*self.file, &mut self.buffer[kept..len], at + kept as u64);
        Ok(&self.buffer[..kept + got.map_err(|e| Error::io(&self.path, e))?])
    }

    /// Ends the lease. The bytes of the last window must not be used any more.
    pub fn release(&mut self) {
        self.leased.iter_mut().for_each(LeasedFile::release);
    }

    /// Ends the lease, and keeps the bytes of the last window in memory. The arguments must be the same as there.
    pub fn keep(&mut self, at: u64, len: usize) {
        if let Some(leased) = self.leased.as_mut().filter(|_| self.window == WindowIn::LeasedMap) {
            self.buffer.clear();
            self.buffer.extend_from_slice(leased.bytes(at, len));
            // Zeroes in place of lost bytes must not pass for the file's own.
            if !leased.is_lost() {
                self.window = WindowIn::Buffer;
            }
            leased.release();
        }
    }

    /// Gives up the map under leases, so that the system can drop the pages that were looked at.
    pub fn leave_map(&mut self) {
        if self.window == WindowIn::Buffer {
            self.leased.iter_mut().for_each(LeasedFile::forget);
        }
    }

    /// Returns the error for bytes of the last window that could not be read. What was read in their place is wrong.
    pub fn check(&self) -> Result<()> {
        if self.is_lost() { Err(self.lost()) } else { Ok(()) }
    }

    /// Returns the error for bytes of a map that could not be read.
    pub fn lost(&self) -> Error {
        let reason = "input/output error, or the file was cut off while it was read through a map";
        Error::io(&self.path, io::Error::other(reason))
    }

    fn is_lost(&self) -> bool {
        match self.window {
            WindowIn::Buffer => false,
            WindowIn::Map => self.is_map_lost(),
            WindowIn::LeasedMap => self.leased.as_ref().is_some_and(LeasedFile::is_lost),
        }
    }

    /// Returns whether bytes of the map of [`Io::Mmap`] could not be read, or the file was cut off. Within a page, the bytes
    /// behind its end are zeroes, and reading them raises no signal.
    pub fn is_map_lost(&self) -> bool {
        let is_cut = |map: &ReadMap| self.file.file_len().is_ok_and(|len| len < map.len_bytes());
        self.map.as_ref().is_some_and(|map| map.is_lost() || is_cut(map))
    }

    /// Gives up the map in which bytes were lost, so that `pread` reads them, or tells why it cannot. Returns whether there
    /// was one.
    pub fn leave_lost_map(&mut self) -> bool {
        let is_lost = self.is_lost();
        if is_lost {
            (self.map, self.leased, self.window) = (None, None, WindowIn::Buffer);
        }
        is_lost
    }

    /// Returns `len` bytes from `at`, or fewer at the end of the file.
    pub fn window(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        self.release();
        if self.sound_map().is_some() {
            self.window = WindowIn::Map;
            return Ok(self.last_window(at, len));
        }
        self.window = WindowIn::Buffer;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let got = read(&*self.file, &mut self.buffer[..len], at);
        Ok(&self.buffer[..got.map_err(|e| Error::io(&self.path, e))?])
    }

    /// Appends `len` bytes from `at` to `out`, or fewer at the end of the file. Returns the number of bytes appended.
    /// After an error `out` is unchanged.
    pub fn read_into(&self, at: u64, len: usize, out: &mut Vec<u8>) -> Result<usize> {
        let start = out.len();
        if let Some(map) = self.sound_map() {
            out.extend_from_slice(slice_of(map.bytes(), at, len));
            if !map.is_lost() {
                return Ok(out.len() - start);
            }
        }
        out.resize(start + len, 0);
        let got = read(&*self.file, &mut out[start..], at);
        out.truncate(start + *got.as_ref().unwrap_or(&0));
        got.map_err(|e| Error::io(&self.path, e))?;
        Ok(out.len() - start)
    }

    /// Reads all `parts` of the file in one request, or copies them out of the map under a lease.
    pub fn read_ranges(&mut self, parts: &mut [Part<'_>]) -> Result<()> {
        if self.leased.as_mut().is_some_and(|leased| leased.copy(parts)) {
            return Ok(());
        }
        self.file.read_ranges(parts).map_err(|e| Error::io(&self.path, e))
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
        self.map.as_deref().map(ReadMap::bytes)
    }

    /// Returns the map of [`Io::Mmap`], unless an access to it has failed.
    pub fn sound_map(&self) -> Option<&ReadMap> {
        self.map.as_deref().filter(|map| !map.is_lost())
    }

    /// Returns the result of the last [`window`](Self::window) again. The arguments must be the same.
    pub fn last_window(&self, at: u64, len: usize) -> &[u8] {
        match self.window {
            WindowIn::Buffer => self.buffer.get(..len).unwrap_or(&self.buffer),
            WindowIn::Map => self.map.as_ref().map_or(&[], |map| slice_of(map.bytes(), at, len)),
            WindowIn::LeasedMap => self.leased.as_ref().map_or(&[], |leased| leased.bytes(at, len)),
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
        assert_eq!(segment.next_window(Some((2, 4)), 4, 5).expect("reads"), b"45ghi");
        assert_eq!(segment.last_window(4, 5), b"45ghi");
        assert_eq!(segment.next_window(Some((4, 5)), 8, 100).expect("reads"), b"ij");
        // Nothing of it is in the last window, or more is than is asked for.
        assert_eq!(segment.next_window(Some((8, 2)), 3, 4).expect("reads"), b"defg");
        assert_eq!(segment.next_window(Some((3, 4)), 4, 2).expect("reads"), b"ef");
        let mut mapped = Segment::open(file.path(), Io::Mmap).expect("opens");
        assert_eq!(mapped.window(2, 4).expect("reads"), b"cdef");
        assert_eq!(mapped.next_window(Some((2, 4)), 4, 100).expect("reads"), b"efghij");
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
