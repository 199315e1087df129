//! Reads of files, counted: what readers say that they will ask for, and what they have asked for.
use std::iter::Sum;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of ranges that are read, each by a system call or as a part of a larger request, and their bytes. Bytes that
/// are read through a map count, but are no range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    pub ranges: u64,
    pub bytes: u64,
}

impl Reads {
    /// Returns the reads of `bytes` in blocks of `block` bytes.
    pub fn in_blocks(bytes: u64, block: u64) -> Self {
        Self { ranges: bytes.div_ceil(block.max(1)), bytes }
    }

    /// Returns the same bytes, read through a map if the file is mapped.
    #[must_use]
    pub fn of_map(self, is_mapped: bool) -> Self {
        if is_mapped { Self { ranges: 0, ..self } } else { self }
    }
}

impl Add for Reads {
    type Output = Self;

    /// Saturates, since a damaged file name can make a file look endless.
    fn add(self, other: Self) -> Self {
        Self { ranges: self.ranges.saturating_add(other.ranges), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Sum for Reads {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// Counts reads while they happen, of several readers.
#[derive(Debug, Default)]
pub struct ReadCounter {
    ranges: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounter {
    pub fn add(&self, ranges: u64, bytes: u64) {
        self.ranges.fetch_add(ranges, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the reads since the last call.
    pub fn take(&self) -> Reads {
        Reads { ranges: self.ranges.swap(0, Ordering::Relaxed), bytes: self.bytes.swap(0, Ordering::Relaxed) }
    }
}
