//! An index file in memory: finds the entries of a key, and adds an entry.
use super::{
    ENTRY_SIZE, HEADER_SIZE, IndexEntry, IndexHeader, SLOT_SIZE, entry_position, file_size, slot_of, slot_position,
};
use crate::format::cursor::i32_at;
use crate::format::malformed::{Expected, Malformed};

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
