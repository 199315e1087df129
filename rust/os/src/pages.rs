//! Pages of memory: their size, those of a map, those that keep a file's bytes.
use memmap2::MmapRaw;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

static SIZE: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a page.
#[inline]
pub fn size() -> usize {
    match SIZE.load(Ordering::Relaxed) {
        0 => ask_size(),
        size => size,
    }
}

#[cold]
fn ask_size() -> usize {
    #[cfg(unix)]
    let size = rustix::param::page_size();
    #[cfg(windows)]
    let size = 4096;
    SIZE.store(size, Ordering::Relaxed);
    size
}

/// Has the operating system find memory for a range of a map now: a later write there does not stop for it. Where it cannot,
/// nothing is lost but that.
pub fn populate(map: &MmapRaw, range: Range<usize>) {
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::PopulateWrite, range.start, range.len());
    #[cfg(not(target_os = "linux"))]
    let _ = (map, range);
}

/// Gives back the memory that keeps the bytes of a file from `from` to `end`, of which none was written. Not while somebody writes
/// there. Where the system takes no such advice nothing happens.
pub fn forget(file: &File, from: u64, end: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let len = std::num::NonZeroU64::new(end.saturating_sub(from));
        let _ = fadvise(file, from, len, Advice::DontNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, from, end);
}
