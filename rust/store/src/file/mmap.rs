#![allow(unsafe_code, reason = "mapping a file and prefetching from it cannot be said in safe Rust")]
//! Maps of whole files, and prefetching, which makes a scan of a mapped file fast.
//!
//! An access to a truncated part of a mapped file raises SIGBUS, which would kill the process. So a [guard](rmqfast_os::fault) handles
//! the signal. Files are mapped in three cases only: under a [lease](super::leased), on request ([`Io::Mmap`](super::Io)), for
//! stores that nobody else changes, and if this process has locked the store.
use memmap2::{MmapMut, MmapOptions, MmapRaw};
use rmqfast_os::fault::Guard;
use rmqfast_os::pages;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

const CACHE_LINE: usize = 64;

/// A map to read and write a file of a store that this process has locked. Other processes see writes at once.
#[derive(Debug)]
pub struct OwnedMap {
    guard: Guard,
    map: MmapMut,
}

impl OwnedMap {
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: this process has locked the store, and blocks were allocated before bytes are written to them. No other code of this
        // process changes the bytes while the map is borrowed. If another process truncates the file in spite of the lock, the guard
        // replaces the lost pages with zeroes.
        let map = unsafe { MmapMut::map_mut(file) }?;
        Ok(Self { guard: Guard::new(map.as_ptr(), map.len(), true)?, map })
    }

    /// Returns whether an access has hit pages that another process has truncated.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }
}

impl Deref for OwnedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl DerefMut for OwnedMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

/// A map for reading a file whose bytes do not change: nobody writes there, or only this process, which appends behind the
/// bytes that it has published.
#[derive(Debug)]
pub struct ReadMap {
    guard: Guard,
    map: MmapRaw,
}

impl ReadMap {
    /// Maps all of `file`. The file may be closed afterwards.
    pub fn new(file: &File) -> io::Result<Self> {
        let map = MmapOptions::new().map_raw_read_only(file)?;
        Ok(Self { guard: Guard::new(map.as_ptr(), map.len(), false)?, map })
    }

    pub fn len_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns all bytes. Bytes that the appender has not published yet may change while they are read, so no
    /// decision may depend on them.
    pub fn bytes(&self) -> &[u8] {
        self.slice(0, self.map.len()).unwrap_or_default()
    }

    /// Returns whether the file still has all bytes before `end`. See [`WriteMap::has`].
    #[inline]
    pub fn has(&self, end: u64) -> Option<bool> {
        has(&self.map, &self.guard, end)
    }

    /// Returns the position of the first byte that an access did not find, because another process had truncated the
    /// file. `u64::MAX` if all accesses succeeded.
    #[inline]
    pub fn lost_from(&self) -> u64 {
        self.guard.lost_from() as u64
    }

    /// Prepares `len` bytes at `at` for reads. Returns false if they cannot be read.
    pub fn map_in(&self, at: u64, len: usize) -> bool {
        let end = at.checked_add(len as u64).filter(|end| *end <= self.len_bytes());
        end.is_some_and(|end| pages::map_in(&self.map, at as usize..end as usize))
    }

    /// Returns whether an access has not found its bytes: another process had truncated the file, or the disk failed.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// Returns `len` bytes at `at`, or `None` if the file is too short. The appender must have published all of these
    /// bytes.
    #[inline]
    pub fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        at.checked_add(len as u64).filter(|end| *end <= self.map.len() as u64)?;
        // SAFETY: the range is inside the map. Callers ask only for bytes that are not written again: published ones, those of a file
        // under a lease, or those of a store that nobody changes, as the caller of `open_store(..., io="mmap")` promises. If another
        // process truncates the file, the guard replaces the lost pages with zeroes.
        Some(unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(at as usize), len) })
    }
}

/// A map through which one thread writes, while another thread prepares its pages.
#[derive(Debug)]
pub struct WriteMap {
    guard: Guard,
    map: Arc<MmapRaw>,
}

/// The pages of a [`WriteMap`], for a thread that loads them into memory before they are written.
#[derive(Clone, Debug)]
pub struct Pages {
    map: Arc<MmapRaw>,
}

impl WriteMap {
    pub fn new(file: &File) -> io::Result<Self> {
        let map = MmapRaw::map_raw(file)?;
        Ok(Self { guard: Guard::new(map.as_ptr(), map.len(), true)?, map: map.into() })
    }

    /// Returns whether the file still has all bytes before `end`, without a system call. `None` if `end` is in the
    /// last page; then only `fstat` can tell.
    ///
    /// A write to the last page of a truncated file raises no signal, and its bytes are lost. So this reads a byte of the page behind
    /// `end`, which exists only if the file continues behind the written page.
    #[inline]
    pub fn has(&self, end: u64) -> Option<bool> {
        has(&self.map, &self.guard, end)
    }

    #[inline]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// Returns the eight bytes at `at`, or `None` if the file is too short.
    #[inline]
    pub fn word(&self, at: u64) -> Option<[u8; 8]> {
        at.checked_add(8).filter(|end| *end <= self.map.len() as u64)?;
        // SAFETY: the eight bytes are inside the map, and bytes have no alignment.
        Some(unsafe { std::ptr::read_volatile(self.map.as_ptr().add(at as usize).cast()) })
    }

    /// Writes `bytes` at `at`. The bytes of the range `last` are written after all others, so a reader that sees
    /// these bytes sees all bytes. Fails if the file is too short.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], at: u64, last: Range<usize>) -> io::Result<()> {
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= self.map.len() as u64);
        if end.is_none() || last.start > last.end || last.end > bytes.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.copy(&bytes[..last.start], at as usize);
        self.copy(&bytes[last.end..], at as usize + last.end);
        // Readers take the bytes of `last` as the sign that all other bytes are written.
        fence(Ordering::Release);
        self.copy(&bytes[last.clone()], at as usize + last.start);
        Ok(())
    }

    fn copy(&mut self, bytes: &[u8], at: usize) {
        // SAFETY: `write` has checked that the range is inside the map. There are no references into the map: its bytes are written only
        // here, with exclusive access to the map, and read through the file.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(at), bytes.len()) }
    }

    pub fn pages(&self) -> Pages {
        Pages { map: self.map.clone() }
    }
}

impl Pages {
    /// Loads a range of pages into memory, so that a later write does not wait for them. Errors are ignored, since
    /// they only cost time.
    pub fn touch(&self, range: Range<u64>) {
        let end = range.end.min(self.map.len() as u64);
        if range.start < end {
            pages::populate(&self.map, range.start as usize..end as usize);
        }
    }
}

#[inline]
fn has(map: &MmapRaw, guard: &Guard, end: u64) -> Option<bool> {
    let next = usize::try_from(end).ok()?.checked_next_multiple_of(pages::size())?;
    // Behind the last page there is no page to read, so only `fstat` can tell.
    if next >= map.len() {
        return if guard.is_lost() { Some(false) } else { None };
    }
    // SAFETY: the byte is inside the map, and any byte is a valid `u8`. Its value is not used.
    unsafe { std::ptr::read_volatile(map.as_ptr().add(next)) };
    Some(guard.lost_from() > next)
}

/// Asks the processor to load the cache lines of a range.
#[inline]
pub fn prefetch_range(bytes: &[u8], range: Range<usize>) {
    (range.start..range.end.min(bytes.len())).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, at));
}

/// Asks the processor to load the cache line at `at`. Does nothing behind the end of `bytes`.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        // SAFETY: the address is inside `bytes`, and a prefetch has no visible effect.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>((byte as *const u8).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::path::Path;

    fn file(path: &Path, len: u64) -> File {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).expect("opened");
        file.set_len(len).expect("grown");
        file
    }

    #[test]
    fn a_map_that_lost_its_file_reads_as_zeroes_and_says_so() {
        let dir = tempfile::tempdir().expect("dir");
        let page = pages::size();
        let file = file(&dir.path().join("a"), 10 * page as u64);
        let (mut write, read) = (WriteMap::new(&file).expect("mapped"), ReadMap::new(&file).expect("mapped"));
        write.write(&[7; 100], 5 * page as u64, 0..4).expect("written");
        let at = 5 * page as u64;
        assert_eq!((read.slice(at, 100), read.lost_from(), write.is_lost()), (Some(&[7; 100][..]), u64::MAX, false));
        file.set_len(3 * page as u64).expect("cut");
        assert_eq!(read.slice(at, 100).expect("in the map"), [0; 100]);
        assert_eq!((read.lost_from(), write.is_lost()), (at, false));
        write.write(&[8; 100], 8 * page as u64, 0..4).expect("no signal ends the process");
        assert!(write.is_lost());
        assert_eq!(file.metadata().expect("there").len(), 3 * page as u64);
    }

    #[test]
    fn a_file_that_ends_in_the_page_of_the_last_byte_is_seen_by_the_next_page() {
        let dir = tempfile::tempdir().expect("dir");
        let page = pages::size() as u64;
        let file = file(&dir.path().join("a"), 10 * page);
        let mut write = WriteMap::new(&file).expect("mapped");
        let read = ReadMap::new(&file).expect("mapped");
        write.write(&[7; 100], 5 * page, 0..4).expect("written");
        assert_eq!((write.has(5 * page + 100), read.has(5 * page + 100)), (Some(true), Some(true)));
        assert_eq!((write.has(10 * page), write.has(9 * page + 1)), (None, None), "no page is behind the last one");
        file.set_len(5 * page + 100).expect("cut");
        write.write(&[8; 100], 5 * page + 100, 0..4).expect("written into nothing, without a signal");
        assert_eq!((write.has(5 * page + 200), read.has(5 * page + 200)), (Some(false), Some(false)));
        assert_eq!((write.is_lost(), read.lost_from()), (true, 6 * page));
    }

    #[test]
    fn maps_come_and_go_in_many_threads_beside_faults() {
        let dir = tempfile::tempdir().expect("dir");
        std::thread::scope(|scope| {
            for n in 0..4 {
                let path = dir.path().join(n.to_string());
                scope.spawn(move || {
                    for round in 0..200 {
                        let file = file(&path, 4 * pages::size() as u64);
                        let mut map = WriteMap::new(&file).expect("mapped");
                        if round % 2 == 0 {
                            file.set_len(0).expect("cut");
                        }
                        map.write(b"abcd", 0, 0..1).expect("no signal ends the process");
                        assert_eq!(map.is_lost(), round % 2 == 0);
                    }
                });
            }
        });
    }
}
