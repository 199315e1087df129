#![allow(unsafe_code, reason = "mapping a file and prefetching from it cannot be said in safe Rust")]
//! Maps of whole files, and the prefetch that makes a scan of them fast.
//!
//! A map of a file that somebody truncates kills the process with SIGBUS, so maps are only made on request
//! ([`Io::Mmap`](super::Io)), for stores that nobody else touches, and of files that this process owns.
use memmap2::{Advice, Mmap, MmapMut, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Maps the whole of `file` for reading; an empty file gives `None`, as it cannot be mapped.
///
/// # Errors
/// What the operating system says.
pub fn map(file: &File) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is read-only and private to this process. That nobody changes or shortens the file meanwhile is
    // what the caller of `open_store(..., io="mmap")` promises; the documentation of that option says so.
    unsafe { Mmap::map(file) }.map(Some)
}

/// Maps the whole of `file` for writing; what is written is in the file at once, for every other process, too.
///
/// # Errors
/// What the operating system says.
pub fn map_mut(file: &File) -> io::Result<MmapMut> {
    // SAFETY: only a store that this process has locked is written to, so that no other owner shortens the file; its blocks
    // were allocated when it was created. Nothing else of this process changes the bytes while the map is borrowed.
    unsafe { MmapMut::map_mut(file) }
}

/// A map of a file that this process owns and appends to: read while others write behind what is read.
#[derive(Debug)]
pub struct ReadMap {
    map: MmapRaw,
}

impl ReadMap {
    /// Maps the whole of `file`, which need not be open any longer then.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new(file: &File) -> io::Result<Self> {
        Ok(Self { map: MmapOptions::new().map_raw_read_only(file)? })
    }

    /// The bytes at `at`, of which all must have been published; `None` past the end of the file.
    #[inline]
    pub fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        at.checked_add(len as u64).filter(|end| *end <= self.map.len() as u64)?;
        // SAFETY: all of it lies inside the map. What is published was written before and is never written again, and an owned
        // file is never shortened: who asks keeps to what the owner has published.
        Some(unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(at as usize), len) })
    }
}

/// A map that one owner writes to, while its pages may be made ready from elsewhere.
#[derive(Debug)]
pub struct WriteMap {
    map: Arc<MmapRaw>,
}

/// The pages of a [`WriteMap`], which may be made ready before they are written to.
#[derive(Clone, Debug)]
pub struct Pages {
    map: Arc<MmapRaw>,
}

impl WriteMap {
    /// Maps the whole of `file`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new(file: &File) -> io::Result<Self> {
        Ok(Self { map: MmapRaw::map_raw(file)?.into() })
    }

    /// Writes `bytes` at `at`, those of `last` after all others: whoever reads the file meanwhile and finds them finds all.
    ///
    /// # Errors
    /// What does not fit into the file.
    pub fn write(&mut self, bytes: &[u8], at: u64, last: Range<usize>) -> io::Result<()> {
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= self.map.len() as u64);
        if end.is_none() || last.start > last.end || last.end > bytes.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.copy(&bytes[..last.start], at as usize);
        self.copy(&bytes[last.end..], at as usize + last.end);
        fence(Ordering::Release);
        self.copy(&bytes[last.clone()], at as usize + last.start);
        Ok(())
    }

    fn copy(&mut self, bytes: &[u8], at: usize) {
        // SAFETY: `write` checked that all of it lies inside the map. No reference into the map exists: its bytes are only
        // written here, by the one who holds the map mutably, and read through the file.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(at), bytes.len()) }
    }

    /// The pages of the map.
    pub fn pages(&self) -> Pages {
        Pages { map: self.map.clone() }
    }
}

impl Pages {
    /// Has the operating system find memory for a range of the file now: a later write there does not stop for it. Where it
    /// cannot, nothing is lost but that.
    pub fn touch(&self, range: Range<u64>) {
        let end = range.end.min(self.map.len() as u64);
        if range.start < end {
            let _ = self.map.advise_range(Advice::PopulateWrite, range.start as usize, (end - range.start) as usize);
        }
    }
}

/// Asks the processor to load the cache line at `at`; past the end of `bytes` nothing happens.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        // SAFETY: the address is inside `bytes`; a prefetch has no effect that a program could see.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>((byte as *const u8).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}
