//! Pages of memory.
use memmap2::MmapRaw;
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
