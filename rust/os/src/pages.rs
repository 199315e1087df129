//! Memory pages: their size, preparation of a map, and release of cached file pages.
use memmap2::MmapRaw;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

static SIZE: AtomicUsize = AtomicUsize::new(0);

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

/// Allocates memory for a range of a map, so that later writes do not wait for it. Failures are ignored.
pub fn populate(map: &MmapRaw, range: Range<usize>) {
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::PopulateWrite, range.start, range.len());
    #[cfg(not(target_os = "linux"))]
    let _ = (map, range);
}

/// Maps the pages of a range of a file's map, so that reading them needs no page faults and the processor can prefetch them.
/// Returns false if the file has lost some of them, or the disk failed.
pub fn map_in(map: &MmapRaw, range: Range<usize>) -> bool {
    #[cfg(target_os = "linux")]
    {
        let advised = map.advise_range(memmap2::Advice::PopulateRead, range.start, range.len());
        // Linux before 5.14 does not know it.
        advised.is_ok() || advised.is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidInput)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (map, range);
        true
    }
}

/// Releases the cached pages of a file from `from` to `end`. The range must not contain unflushed changes, and nobody
/// may write to it during the call. Does nothing on systems that have no call for this.
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
