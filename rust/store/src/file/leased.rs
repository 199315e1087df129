//! Reads of a file through a map, each under a [lease](rmqfast_os::lease). See `docs/decisions/0017-leased-maps.md`.
use super::mmap::{self, ReadMap};
use super::storage::{Part, RangeFile};
use rmqfast_os::identity::FileId;
use rmqfast_os::lease::Lease;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of parts by which prefetching is ahead of copying.
const AHEAD: usize = 16;

/// A file that is read through its map while nobody writes to it. A caller holds the lease for one block at a time, so that
/// a process that opens the file for writing waits for a block at most.
#[derive(Debug)]
pub struct LeasedFile {
    file: Arc<dyn RangeFile>,
    kept: Arc<KeptMap>,
    map: Option<Arc<ReadMap>>,
    lease: Option<Lease>,
    /// Whether a lease was refused. It is not asked for again, since whoever writes to the file keeps it open for long.
    is_refused: bool,
}

impl LeasedFile {
    pub fn new(file: Arc<dyn RangeFile>, kept: Arc<KeptMap>) -> Self {
        Self { file, kept, map: None, lease: None, is_refused: false }
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
        let is_there = len.is_some_and(|len| range.end <= len) && self.has_map(range.end);
        if !is_there {
            self.release();
        }
        is_there
    }

    /// Finds or makes a map that reaches up to `end`.
    fn has_map(&mut self, end: u64) -> bool {
        let is_usable = |map: &Arc<ReadMap>| end <= map.len_bytes() && !map.is_lost();
        if !self.map.as_ref().is_some_and(is_usable) {
            self.map = self.kept.of_file(&*self.file, end);
            // Without memory for a map there will be none for the next block either.
            self.is_refused = self.map.is_none();
        }
        self.map.is_some()
    }

    /// Does the same for a block that is read from its first to its last byte: prepares its pages, all at once.
    pub fn take_block(&mut self, range: Range<u64>) -> bool {
        let (at, len) = (range.start, range.end.saturating_sub(range.start) as usize);
        let is_there = self.take(range) && self.map.as_ref().is_some_and(|map| map.map_in(at, len));
        if !is_there {
            self.release();
        }
        is_there
    }

    /// Returns `len` bytes at `at`, of the range of the last [`take`](Self::take).
    pub fn bytes(&self, at: u64, len: usize) -> &[u8] {
        self.map.as_ref().and_then(|map| map.slice(at, len)).unwrap_or_default()
    }

    /// Copies all `parts` out of the map, under a lease of their own. Returns false if they must be read in another way.
    pub fn copy(&mut self, parts: &mut [Part<'_>]) -> bool {
        let from = parts.iter().map(|part| part.at).min().unwrap_or_default();
        let end = parts.iter().map(|part| part.at.saturating_add(part.buffer.len() as u64)).max().unwrap_or_default();
        if !self.take(from..end) {
            return false;
        }
        for number in 0..parts.len() {
            // Parts are far apart, so the processor cannot prefetch them by itself.
            if let Some(later) = parts.get(number + AHEAD) {
                let bytes = self.bytes(later.at, later.buffer.len());
                mmap::prefetch_range(bytes, 0..bytes.len());
            }
            let part = &mut parts[number];
            part.buffer.copy_from_slice(self.bytes(part.at, part.buffer.len()));
            part.count = part.buffer.len();
        }
        self.release();
        !self.is_lost()
    }

    /// Returns whether bytes could not be read, because the disk failed or the kernel has ended the lease.
    pub fn is_lost(&self) -> bool {
        self.map.as_ref().is_some_and(|map| map.is_lost())
    }

    /// Ends the lease. The map is kept, but not used until the next one.
    pub fn release(&mut self) {
        self.lease = None;
    }

    /// Ends the lease, and gives up the map.
    pub fn forget(&mut self) {
        self.release();
        self.map = None;
        self.kept.forget();
    }
}

/// The map of a file that is kept for later reads, since mapping pages costs about as much as copying them.
#[derive(Debug, Default)]
pub struct KeptMap(Mutex<Option<(FileId, Arc<ReadMap>)>>);

impl KeptMap {
    /// Returns a map of `file` that reaches up to `end`. Makes one if the kept map is too short, has lost bytes or is of
    /// another file. `None` if the file cannot be mapped.
    fn of_file(&self, file: &dyn RangeFile, end: u64) -> Option<Arc<ReadMap>> {
        let id = file.id_for_lease()?;
        let mut kept = self.lock();
        let is_usable = |(of, map): &(FileId, Arc<ReadMap>)| *of == id && end <= map.len_bytes() && !map.is_lost();
        if let Some((_, map)) = kept.as_ref().filter(|kept| is_usable(kept)) {
            return Some(map.clone());
        }
        let map = file.map().ok().flatten().map(Arc::new).filter(|map| end <= map.len_bytes());
        *kept = map.clone().map(|map| (id, map));
        map
    }

    fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(FileId, Arc<ReadMap>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
