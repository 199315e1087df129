//! Reads of a file through a map, each under a [lease](rmqfast_os::lease). See `docs/decisions/0017-leased-maps.md`.
use super::mmap::ReadMap;
use super::storage::RangeFile;
use rmqfast_os::lease::Lease;
use rmqfast_os::pages;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a map, at least: enough that maps cost little, and so few that the memory they show stays small.
const MAP_LEN: u64 = 8 << 20;

/// A file that is read through maps while nobody writes to it. A caller holds the lease for one block at a time, so that
/// a process that opens the file for writing waits for a block at most.
#[derive(Debug)]
pub struct LeasedFile {
    file: Arc<dyn RangeFile>,
    /// The map, and the position of its first byte in the file.
    map: Option<(u64, ReadMap)>,
    lease: Option<Lease>,
    /// Whether a lease was refused. It is not asked for again, since whoever writes to the file keeps it open for long.
    is_refused: bool,
}

impl LeasedFile {
    pub fn new(file: Arc<dyn RangeFile>) -> Self {
        Self { file, map: None, lease: None, is_refused: false }
    }

    /// Takes the lease. Returns whether the bytes of `range` can be read by [`bytes`](Self::bytes) until
    /// [`release`](Self::release). They cannot if the file is being written or ends before them.
    pub fn take(&mut self, range: Range<u64>) -> bool {
        self.release();
        if self.is_refused || range.is_empty() {
            return false;
        }
        self.lease = self.file.lease();
        // Looked at under the lease: from here on nobody can cut the file off.
        let len = self.lease.as_ref().and_then(|_| self.file.file_len().ok());
        self.is_refused = len.is_none();
        let is_there = len.is_some_and(|len| range.end <= len && self.has_map(&range, len) && self.has_pages(&range));
        if !is_there {
            self.release();
        }
        is_there
    }

    /// Makes a map that contains `range`, unless there is one already.
    fn has_map(&mut self, range: &Range<u64>, file_len: u64) -> bool {
        let contains = |(from, map): &(u64, ReadMap)| *from <= range.start && range.end - *from <= map.len_bytes();
        if self.map.as_ref().is_some_and(|map| contains(map) && !map.1.is_lost()) {
            return true;
        }
        let from = range.start - range.start % pages::size() as u64;
        let len = MAP_LEN.max(range.end - from).min(file_len - from);
        // The old one goes first, so that there are never two.
        self.map = None;
        self.map = self.file.map_range(from, len).ok().flatten().map(|map| (from, map));
        // Without memory for a map there will be none for the next one either.
        self.is_refused = self.map.is_none();
        self.map.is_some()
    }

    fn has_pages(&self, range: &Range<u64>) -> bool {
        let is_in = |(from, map): &(u64, ReadMap)| map.map_in(range.start - from, (range.end - range.start) as usize);
        self.map.as_ref().is_some_and(is_in)
    }

    /// Returns `len` bytes at `at`, of the range of the last [`take`](Self::take).
    pub fn bytes(&self, at: u64, len: usize) -> &[u8] {
        let slice = self.map.as_ref().and_then(|(from, map)| map.slice(at.checked_sub(*from)?, len));
        slice.unwrap_or_default()
    }

    /// Returns whether bytes could not be read, because the disk failed or the kernel has ended the lease.
    pub fn is_lost(&self) -> bool {
        self.map.as_ref().is_some_and(|(_, map)| map.is_lost())
    }

    /// Ends the lease. The map is kept, but not used until the next one.
    pub fn release(&mut self) {
        self.lease = None;
    }

    /// Ends the lease, and gives up the map.
    pub fn forget(&mut self) {
        self.release();
        self.map = None;
    }
}
