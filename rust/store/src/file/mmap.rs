#![allow(unsafe_code, reason = "mapping a file and prefetching from it cannot be said in safe Rust")]
//! Maps of whole files, and the prefetch that makes a scan of them fast.
//!
//! A map of a file that somebody truncates kills the process with SIGBUS, so maps are only made on request
//! ([`Io::Mmap`](super::Io)), for stores that nobody else touches.
use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io;

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
