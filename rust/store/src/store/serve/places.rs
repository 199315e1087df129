//! The result of a pull: records copied into a buffer, or the places of records in the log's maps.
use super::map_cache::FileMap;
use crate::file::mmap::prefetch;
use crate::format::consume_queue::Unit;
use std::fmt;
use std::sync::Arc;

/// Number of pieces by which prefetching is ahead of copying. Only the first bytes of a piece are prefetched; the
/// processor prefetches the rest by itself.
const AHEAD: usize = 2;
const FETCHED: usize = 512;
const CACHE_LINE: usize = 64;

/// Receives the records of a pull, one by one.
pub trait Records {
    /// Adds the record at `offset` of the log, which is in `file`.
    fn take(&mut self, file: &Arc<FileMap>, offset: u64, record: &[u8]);

    /// Called for listed messages that the pull cannot return.
    fn skip(&mut self, _range: SkippedRange) {}
}

impl Records for Vec<u8> {
    #[inline]
    fn take(&mut self, _file: &Arc<FileMap>, _offset: u64, record: &[u8]) {
        self.extend_from_slice(record);
    }
}

/// The places of the records that a pull returns. Their files stay mapped while this object exists.
#[derive(Debug, Default)]
pub struct Places {
    files: Vec<Arc<FileMap>>,
    places: Vec<Place>,
    bytes: usize,
    skipped: Vec<SkippedRange>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Index of the file in `Places::files`.
    file: usize,
    offset: u64,
    len: usize,
}

impl Place {
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        self.file == other.file && self.offset + self.len as u64 == other.offset
    }
}

impl Places {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the piece with this number: contiguous records of one file. Returns `None` behind the last piece.
    #[inline]
    pub fn piece(&self, number: usize) -> Option<&[u8]> {
        // Copying this piece hides the latency of loading the later piece.
        if let Some(later) = self.slice(number + AHEAD) {
            (0..FETCHED).step_by(CACHE_LINE).for_each(|at| prefetch(later, at));
        }
        self.slice(number)
    }

    #[inline]
    fn slice(&self, number: usize) -> Option<&[u8]> {
        let place = self.places.get(number)?;
        // The slice existed when the record was added, and mapped bytes do not go away.
        Some(self.files[place.file].slice(place.offset, place.len).unwrap_or_default())
    }

    /// Appends the records to `out`, in their order.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes);
        (0..).map_while(|number| self.piece(number)).for_each(|piece| out.extend_from_slice(piece));
    }

    /// Returns whether all records are complete. If another process has truncated a file, zeroes stand in the place
    /// of records.
    pub fn are_complete(&self) -> bool {
        let ends = self.places.iter().map(|place| (place.file, place.offset + place.len as u64));
        let mut is_complete = true;
        let mut last: Option<(usize, u64)> = None;
        // Records of a file are mostly in order, so only the last record before a change of the file is checked.
        for (file, end) in ends {
            match &mut last {
                Some((same, furthest)) if *same == file => *furthest = end.max(*furthest),
                _ => is_complete &= last.replace((file, end)).is_none_or(|(file, end)| self.files[file].has(end)),
            }
        }
        is_complete && last.is_none_or(|(file, end)| self.files[file].has(end))
    }

    pub fn skipped(&self) -> &[SkippedRange] {
        &self.skipped
    }

    /// Removes all records, but keeps the memory.
    pub fn clear(&mut self) {
        self.files.clear();
        self.places.clear();
        self.skipped.clear();
        self.bytes = 0;
    }
}

impl Records for Places {
    #[inline]
    fn take(&mut self, file: &Arc<FileMap>, offset: u64, record: &[u8]) {
        // A map is stored once for a run of records: a pull of a thousand messages usually has one map.
        if self.files.last().is_none_or(|last| !Arc::ptr_eq(last, file)) {
            self.files.push(file.clone());
        }
        let place = Place { file: self.files.len() - 1, offset, len: record.len() };
        match self.places.last_mut() {
            // Neighbours become one piece, so that a pull in order takes few writes.
            Some(last) if last.is_before(&place) => last.len += place.len,
            _ => self.places.push(place),
        }
        self.bytes += record.len();
    }

    fn skip(&mut self, range: SkippedRange) {
        self.skipped.push(range);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    NoUnit,
    /// The queue file is missing, with all its entries.
    NoQueueFile,
    /// The entry points behind the end of the log.
    BehindLog,
    NoFile,
    /// The log file was truncated and has lost bytes of the record.
    CutOff,
    /// The bytes at the offset are not the record that the entry describes.
    NoRecord,
    /// The body does not match the CRC in the record.
    Body,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "the queue has no unit there",
            Self::NoQueueFile => "the file of the queue is not there, nor the messages behind it that it listed",
            Self::BehindLog => "its unit leads behind the end of the log",
            Self::NoFile => "the file of the log is not there",
            Self::CutOff => "the file of the log was cut off",
            Self::NoRecord => "the log has no such record there",
            Self::Body => "its body does not have its CRC",
        })
    }
}

/// A range of messages that were skipped for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRange {
    pub queue_offset: i64,
    pub messages: u64,
    pub unit: Unit,
    pub fault: Fault,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::name;
    use crate::store::serve::map_cache::MapCache;

    #[test]
    fn places_give_what_a_buffer_was_given_though_their_files_were_removed() {
        let dir = tempfile::tempdir().expect("dir");
        for base in [0, 10] {
            let bytes: Vec<u8> = (0..10).map(|n| b'a' + base as u8 + n).collect();
            std::fs::write(dir.path().join(name::of_offset(base)), bytes).expect("written");
        }
        let cache = MapCache::new(dir.path().to_path_buf(), 10, Arc::default());
        let (mut buffer, mut places) = (Vec::new(), Places::default());
        for (offset, len) in [(8, 1), (9, 1), (10, 2), (12, 1), (0, 1), (14, 1)] {
            let file = cache.file_of(offset).expect("read").expect("there");
            let record = file.slice(offset, len).expect("in the file");
            buffer.take(&file, offset, record);
            places.take(&file, offset, record);
        }
        std::fs::remove_dir_all(dir.path()).expect("removed");
        cache.forget_before(20);
        let mut out = b"-".to_vec();
        places.write(&mut out);
        assert_eq!((&out[..], &buffer[..], places.bytes()), (&b"-ijklmao"[..], &b"ijklmao"[..], 7));
        let pieces: Vec<_> = (0..).map_while(|number| places.piece(number)).collect();
        assert_eq!(pieces, [&b"ij"[..], b"klm", b"a", b"o"], "what stands together is one piece");
        let file = Arc::downgrade(&places.files[0]);
        places.clear();
        places.write(&mut out);
        assert_eq!((out.len(), places.bytes(), file.strong_count()), (8, 0, 0), "nothing stays mapped");
    }
}
