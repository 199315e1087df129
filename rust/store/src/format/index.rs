//! An index file: a hash table on disk that maps `topic#key` to the physical offsets of messages.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | beginTimestamp: store time of the first entry |
//! | 8 | i64 | endTimestamp: store time of the last entry |
//! | 16 | i64 | beginPhyOffset: physical offset of the first entry |
//! | 24 | i64 | endPhyOffset: physical offset of the last entry |
//! | 32 | i32 | hashSlotCount: slots in use |
//! | 36 | i32 | indexCount: number of the next entry, from 1; 0 or less stands for 1 |
//! | 40 | slots × i32 | for each slot: number of the newest entry in its chain, or 0 |
//! | 40 + 4 × slots | entries × 20 bytes | entry number 0 is never used |
//!
//! Fields of an entry:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i32 | keyHash |
//! | 4 | i64 | phyOffset |
//! | 12 | i32 | timeDiff: seconds since beginTimestamp; for the first entry, seconds since the last entry of the file before |
//! | 16 | i32 | number of the previous entry in the chain, always a smaller number; 0 if there is none |
//!
//! The header does not contain the number of slots and entries. There is no checksum: a flipped hash hides an entry, and a flipped offset
//! points to another record. So a reader must compare topic and key of each record that it finds.
//!
//! Source: `IndexHeader`, `IndexFile.putKey`, `selectPhyOffset`, `isTimeMatched`, `IndexService.buildKey`.
use super::cursor::{Expected, Malformed, i32_at, i64_at};

pub const HEADER_SIZE: usize = 40;
pub const SLOT_SIZE: usize = 4;
pub const ENTRY_SIZE: usize = 20;
/// Default of the broker's option `maxHashSlotNum`.
pub const DEFAULT_SLOT_COUNT: u32 = 5_000_000;
/// Default of the broker's option `maxIndexNum`.
pub const DEFAULT_ENTRY_COUNT: u32 = 20_000_000;

/// The header of an index file. Times are in milliseconds, offsets are bytes of the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHeader {
    pub begin_timestamp: i64,
    pub end_timestamp: i64,
    pub begin_phy_offset: i64,
    pub end_phy_offset: i64,
    pub hash_slot_count: i32,
    /// Number of the next entry, from 1.
    pub index_count: i32,
}

impl IndexHeader {
    /// Creates the header of a new file, which begins at the time and offset where the file before it ended.
    pub fn following(end_timestamp: i64, end_phy_offset: i64) -> Self {
        // The end of the file before may come from a damaged header.
        let (time, offset) = (end_timestamp.max(0), end_phy_offset.max(0));
        Self {
            begin_timestamp: time,
            end_timestamp: time,
            begin_phy_offset: offset,
            end_phy_offset: offset,
            hash_slot_count: 0,
            index_count: 1,
        }
    }

    /// Decodes the first 40 bytes. `None` if there are fewer.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_SIZE] = bytes.first_chunk()?;
        Some(Self {
            begin_timestamp: i64_at(bytes, 0)?,
            end_timestamp: i64_at(bytes, 8)?,
            begin_phy_offset: i64_at(bytes, 16)?,
            end_phy_offset: i64_at(bytes, 24)?,
            hash_slot_count: i32_at(bytes, 32)?,
            // Entries are numbered from 1, but Java writes 0 until the first entry.
            index_count: i32_at(bytes, 36)?.max(1),
        })
    }

    /// Encodes the header. The count of a file without entries is 0, since Java writes it with the first entry.
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        // Java writes the count with the first entry, and until then the field is 0.
        let count = if self.index_count <= 1 { 0 } else { self.index_count };
        let mut out = [0; HEADER_SIZE];
        out[..8].copy_from_slice(&self.begin_timestamp.to_be_bytes());
        out[8..16].copy_from_slice(&self.end_timestamp.to_be_bytes());
        out[16..24].copy_from_slice(&self.begin_phy_offset.to_be_bytes());
        out[24..32].copy_from_slice(&self.end_phy_offset.to_be_bytes());
        out[32..36].copy_from_slice(&self.hash_slot_count.to_be_bytes());
        out[36..].copy_from_slice(&count.to_be_bytes());
        out
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The [`index_hash`] of topic and key.
    pub key_hash: i32,
    pub physical_offset: i64,
    /// Store time of the record, in seconds since the header's beginTimestamp.
    pub time_diff_seconds: i32,
    /// Number of the previous entry in the chain, or 0.
    pub previous: i32,
}

impl IndexEntry {
    /// Decodes the first 20 bytes. `None` if there are fewer.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ENTRY_SIZE] = bytes.first_chunk()?;
        Some(Self {
            key_hash: i32_at(bytes, 0)?,
            physical_offset: i64_at(bytes, 4)?,
            time_diff_seconds: i32_at(bytes, 12)?,
            previous: i32_at(bytes, 16)?,
        })
    }

    #[inline]
    pub fn encode(&self) -> [u8; ENTRY_SIZE] {
        let mut out = [0; ENTRY_SIZE];
        out[..4].copy_from_slice(&self.key_hash.to_be_bytes());
        out[4..12].copy_from_slice(&self.physical_offset.to_be_bytes());
        out[12..16].copy_from_slice(&self.time_diff_seconds.to_be_bytes());
        out[16..].copy_from_slice(&self.previous.to_be_bytes());
        out
    }
}

/// Returns the absolute value of Java's hash of `topic#key`. The hash -2^31 has no absolute value and becomes 0.
pub fn index_hash(topic: &str, key: &str) -> i32 {
    let step = |h: i32, unit: u16| h.wrapping_mul(31).wrapping_add(i32::from(unit));
    // `String.hashCode` works on UTF-16, where a character beyond U+FFFF counts as two.
    let units = topic.encode_utf16().chain(std::iter::once(u16::from(b'#'))).chain(key.encode_utf16());
    units.fold(0, step).checked_abs().unwrap_or(0)
}

#[inline]
pub fn slot_of(hash: i32, slot_count: u32) -> u32 {
    // A damaged entry may have a negative hash, and a damaged file no slots.
    hash.max(0).cast_unsigned().checked_rem(slot_count).unwrap_or(0)
}

#[inline]
pub fn slot_position(slot: u32) -> usize {
    HEADER_SIZE + SLOT_SIZE * slot as usize
}

#[inline]
pub fn entry_position(slot_count: u32, n: u32) -> usize {
    slot_position(slot_count) + ENTRY_SIZE * n as usize
}

pub fn file_size(slot_count: u32, entry_count: u32) -> u64 {
    HEADER_SIZE as u64 + SLOT_SIZE as u64 * u64::from(slot_count) + ENTRY_SIZE as u64 * u64::from(entry_count)
}

#[cfg(test)]
mod tests;

const SAMPLES: u32 = 1000;
/// Maximum number of guesses that are checked in full. Further guesses, which only a constructed file has, are
/// ignored.
const MAX_CANDIDATES: usize = 16;

/// Returns the number of slots and of entries. A file of the default size has the default numbers. For another size,
/// returns the only numbers that fit both the length and the content. `None` for a damaged file, and for a file of
/// another size without entries, since many numbers fit it.
pub fn guess_geometry(file_len: u64, bytes: &[u8]) -> Option<(u32, u32)> {
    if file_len == file_size(DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT) {
        return Some((DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT));
    }
    let bytes = bytes.get(..usize::try_from(file_len).ok()?)?;
    let words = bytes.len().checked_sub(HEADER_SIZE).filter(|rest| rest % SLOT_SIZE == 0)? / SLOT_SIZE;
    let header = IndexHeader::decode(bytes).filter(|header| header.index_count > 1)?;
    // An entry is as long as 5 slots, so each number of entries leaves a whole number of slots.
    let views = (header.index_count.cast_unsigned() as usize..=words / 5).filter_map(|entries| {
        let (slots, entries) = ((words - 5 * entries).try_into().ok()?, entries.try_into().ok()?);
        Some((IndexView::new(bytes, slots, entries).ok()?, entries))
    });
    // The cheap test first, since nearly all splits fail it.
    let mut fitting = views.filter(|(view, _)| ends_fit(view)).take(MAX_CANDIDATES).filter(|(view, _)| all_fits(view));
    let (view, entries) = fitting.next()?;
    // If two splits fit, neither is certain.
    fitting.next().is_none().then_some((view.slot_count, entries))
}

/// Returns whether the first and the last entry fit these numbers of slots and entries. This cheap test rejects
/// nearly all wrong guesses.
fn ends_fit(view: &IndexView) -> bool {
    let header = view.header;
    [(1, header.begin_phy_offset), (header.index_count.cast_unsigned() - 1, header.end_phy_offset)]
        .iter()
        .all(|(n, offset)| view.entry(*n).is_some_and(|e| e.physical_offset == *offset) && is_in_its_chain(view, *n))
}

/// Returns whether all slots and a sample of the entries fit these numbers of slots and entries.
fn all_fits(view: &IndexView) -> bool {
    let last = view.header.index_count.cast_unsigned() - 1;
    (1..=last).step_by((last / SAMPLES + 1) as usize).all(|n| is_in_its_chain(view, n))
        && used_slots(view) == Some(view.header.hash_slot_count)
}

/// Returns whether the slot of entry `n` points to `n` or a later entry, and the entry's `previous` is an earlier
/// entry.
fn is_in_its_chain(view: &IndexView, n: u32) -> bool {
    let Some(entry) = view.entry(n) else { return false };
    let newest = view.newest(slot_of(entry.key_hash, view.slot_count));
    entry.key_hash >= 0 && (0..n.cast_signed()).contains(&entry.previous) && newest.is_some_and(|newest| newest >= n)
}

/// Returns the number of slots in use. Returns `None` if a slot points to an unwritten entry.
fn used_slots(view: &IndexView) -> Option<i32> {
    let (slots, _) = view.bytes[HEADER_SIZE..slot_position(view.slot_count)].as_chunks();
    let numbers = slots.iter().map(|slot| i32::from_be_bytes(*slot));
    let mut used = 0;
    for number in numbers.filter(|number| *number != 0) {
        if number < 0 || number >= view.header.index_count {
            return None;
        }
        used += 1;
    }
    Some(used)
}

#[derive(Clone, Copy, Debug)]
pub struct IndexView<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) slot_count: u32,
    pub(super) header: IndexHeader,
}

impl<'a> IndexView<'a> {
    /// Creates a view of a file with these numbers of slots and entries. Ignores bytes behind the end of the file.
    /// Fails if there are too few bytes.
    pub fn new(bytes: &'a [u8], slot_count: u32, entry_count: u32) -> Result<Self, Malformed> {
        let size = file_size(slot_count, entry_count);
        let whole = usize::try_from(size).ok().filter(|_| slot_count > 0).and_then(|size| bytes.get(..size));
        match whole.and_then(|bytes| Some((bytes, IndexHeader::decode(bytes)?))) {
            Some((bytes, header)) => Ok(Self { bytes, slot_count, header }),
            None => Err(Malformed {
                field: "index file",
                at: 0,
                expected: Expected::AtLeast(size as i64),
                got: bytes.len() as i64,
            }),
        }
    }

    /// Returns the header as it was when the view was created.
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// Returns the number of the newest entry in a slot's chain.
    pub fn newest(&self, slot: u32) -> Option<u32> {
        let number = i32_at(self.bytes, slot_position(slot)).filter(|_| slot < self.slot_count)?;
        // Like Java, treats a slot with any other number as empty.
        (number > 0 && number <= self.header.index_count).then(|| number.cast_unsigned())
    }

    /// Returns entry `n`, which may be unwritten.
    pub fn entry(&self, n: u32) -> Option<IndexEntry> {
        IndexEntry::decode(self.bytes.get(entry_position(self.slot_count, n)..)?)
    }

    /// Appends the physical offsets stored under `hash` from `begin_ms` to `end_ms`, newest first, until `out` has `max` elements.
    ///
    /// Times are stored in seconds, rounded down: subtract 1000 from `begin_ms` to find all messages. Offsets of other keys with the same
    /// hash are included. A chain whose numbers do not decrease may be a cycle and is an error; `out` keeps the offsets found before.
    pub fn query(
        &self,
        hash: i32,
        begin_ms: i64,
        end_ms: i64,
        max: usize,
        out: &mut Vec<i64>,
    ) -> Result<(), Malformed> {
        let newest = self.newest(slot_of(hash, self.slot_count)).filter(|_| self.header.index_count > 1);
        let mut next = newest;
        while let Some(n) = next.filter(|_| out.len() < max) {
            // Java stops at a negative time, too.
            let Some(entry) = self.entry(n).filter(|entry| entry.time_diff_seconds >= 0) else { break };
            let time = self.header.begin_timestamp.wrapping_add(i64::from(entry.time_diff_seconds) * 1000);
            if entry.key_hash == hash && (begin_ms..=end_ms).contains(&time) {
                out.push(entry.physical_offset);
            }
            // A chain goes back in time, so all remaining entries are older.
            next = if time < begin_ms { None } else { self.before(n, entry.previous)? };
        }
        Ok(())
    }

    /// Returns the number of the entry before entry `n` in its chain, or `None` at the chain's end.
    fn before(&self, n: u32, previous: i32) -> Result<Option<u32>, Malformed> {
        let number = previous.cast_unsigned();
        // At these numbers Java ends the chain as well.
        if previous <= 0 || previous > self.header.index_count || number == n {
            return Ok(None);
        }
        if number < n {
            return Ok(Some(number));
        }
        Err(Malformed {
            field: "previous index entry",
            at: entry_position(self.slot_count, n) + 16,
            expected: Expected::AtMost(i64::from(n) - 1),
            got: i64::from(previous),
        })
    }
}

/// Adds an entry to a file. Returns false if the file is full, or too short for its numbers of slots and entries.
pub fn put(
    bytes: &mut [u8],
    slot_count: u32,
    entry_count: u32,
    hash: i32,
    physical_offset: i64,
    store_ms: i64,
) -> bool {
    let Ok(view) = IndexView::new(bytes, slot_count, entry_count) else { return false };
    let (mut header, slot) = (view.header, slot_of(hash, slot_count));
    let n = header.index_count.cast_unsigned();
    // Entry number 0 is never used, so a file holds one entry less than `entry_count`.
    if n >= entry_count {
        return false;
    }
    let previous = view.newest(slot).unwrap_or(0).cast_signed();
    // Until the first entry the header's begin is the end of the file before, so the first entry's time counts from there.
    let time_diff_seconds = match header.begin_timestamp {
        ..=0 => 0,
        begin => (store_ms.wrapping_sub(begin) / 1000).clamp(0, i64::from(i32::MAX)) as i32,
    };
    let entry = IndexEntry { key_hash: hash, physical_offset, time_diff_seconds, previous };
    if n == 1 {
        header.begin_phy_offset = physical_offset;
        header.begin_timestamp = store_ms;
    }
    // The first entry of a chain takes a new slot.
    header.hash_slot_count = header.hash_slot_count.wrapping_add(i32::from(previous == 0));
    header.end_phy_offset = physical_offset;
    header.end_timestamp = store_ms;
    header.index_count = header.index_count.wrapping_add(1);
    let (entry_at, slot_at) = (entry_position(slot_count, n), slot_position(slot));
    // Write the entry before the slot, so that a concurrent reader never follows a slot to an unwritten entry.
    bytes[entry_at..entry_at + ENTRY_SIZE].copy_from_slice(&entry.encode());
    bytes[slot_at..slot_at + SLOT_SIZE].copy_from_slice(&n.to_be_bytes());
    bytes[..HEADER_SIZE].copy_from_slice(&header.encode());
    true
}
