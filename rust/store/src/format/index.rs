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
//! Source: `IndexHeader`, `IndexFile.putKey`, `selectPhyOffset`, `isTimeMatched`; `IndexService.buildKey`.
use super::cursor::{i32_at, i64_at};

pub mod geometry;
pub mod view;

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
