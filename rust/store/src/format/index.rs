//! An index file: a hash table on disk from `topic#key` to the physical offsets of messages.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | beginTimestamp: store time of the first entry |
//! | 8 | i64 | endTimestamp: of the last |
//! | 16 | i64 | beginPhyOffset: physical offset of the first entry |
//! | 24 | i64 | endPhyOffset: of the last |
//! | 32 | i32 | hashSlotCount: slots in use |
//! | 36 | i32 | indexCount: number of the next entry, from 1; 0 or less stands for 1 |
//! | 40 | slots × i32 | number of the newest entry of each chain, 0 for none |
//! | 40 + 4 × slots | entries × 20 bytes | entry number 0 is never used |
//!
//! An entry:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i32 | keyHash |
//! | 4 | i64 | phyOffset |
//! | 12 | i32 | timeDiff: seconds since beginTimestamp; of the first entry since the end of the file before |
//! | 16 | i32 | number of the entry before it in the chain, always a smaller one; 0 for none |
//!
//! The header does not tell how many slots and entries there are, and nothing carries a checksum: a flipped hash hides
//! an entry, a flipped offset points elsewhere. Whoever follows an offset compares topic and key of the record there.
//!
//! Source: `IndexHeader`, `IndexFile.putKey`, `selectPhyOffset`, `isTimeMatched`; `IndexService.buildKey`.
use super::cursor::{i32_at, i64_at};
use super::malformed::{Expected, Malformed};

/// Bytes of the header.
pub const HEADER_SIZE: usize = 40;
/// Bytes of a slot.
pub const SLOT_SIZE: usize = 4;
/// Bytes of an entry.
pub const ENTRY_SIZE: usize = 20;
/// `maxHashSlotNum` unless configured.
pub const DEFAULT_SLOT_COUNT: u32 = 5_000_000;
/// `maxIndexNum` unless configured.
pub const DEFAULT_ENTRY_COUNT: u32 = 20_000_000;
/// Entries that a guess at the geometry looks at.
const SAMPLES: u32 = 1000;
/// Geometries that are looked at closely; a file made to fit more is given up.
const MAX_CANDIDATES: usize = 16;

/// What a file says of itself; times in milliseconds, offsets in bytes of the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHeader {
    /// Store time of the first entry.
    pub begin_timestamp: i64,
    /// Store time of the last entry.
    pub end_timestamp: i64,
    /// Physical offset of the first entry.
    pub begin_phy_offset: i64,
    /// Physical offset of the last entry.
    pub end_phy_offset: i64,
    /// Slots in use.
    pub hash_slot_count: i32,
    /// Number of the next entry: 1 if there is none yet.
    pub index_count: i32,
}

impl IndexHeader {
    /// The header of a new file: it starts where the one before it ended, if there is one (0 and 0 otherwise).
    pub fn following(end_timestamp: i64, end_phy_offset: i64) -> Self {
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

    /// Decodes the first 40 bytes, or `None` if there are fewer.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_SIZE] = bytes.first_chunk()?;
        Some(Self {
            begin_timestamp: i64_at(bytes, 0)?,
            end_timestamp: i64_at(bytes, 8)?,
            begin_phy_offset: i64_at(bytes, 16)?,
            end_phy_offset: i64_at(bytes, 24)?,
            hash_slot_count: i32_at(bytes, 32)?,
            index_count: i32_at(bytes, 36)?.max(1),
        })
    }

    /// The 40 bytes. Java writes the count with the first entry, so a file without one holds 0.
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
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

    /// Whether the file can hold messages stored from `begin_ms` to `end_ms`, both included.
    pub fn overlaps(&self, begin_ms: i64, end_ms: i64) -> bool {
        let stored = self.begin_timestamp..=self.end_timestamp;
        let within = begin_ms < self.begin_timestamp && end_ms > self.end_timestamp;
        within || stored.contains(&begin_ms) || stored.contains(&end_ms)
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// [`index_hash`] of topic and key.
    pub key_hash: i32,
    /// Byte offset of the record in the commit log.
    pub physical_offset: i64,
    /// Seconds from the file's beginTimestamp to the record's store time.
    pub time_diff_seconds: i32,
    /// Number of the entry before it in the chain.
    pub previous: i32,
}

impl IndexEntry {
    /// Decodes the first 20 bytes, or `None` if there are fewer.
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

    /// The 20 bytes.
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

/// The hash of `topic#key`: Java's, made positive; of the one that has no positive counterpart, 0.
pub fn index_hash(topic: &str, key: &str) -> i32 {
    let step = |h: i32, unit: u16| h.wrapping_mul(31).wrapping_add(i32::from(unit));
    let units = topic.encode_utf16().chain(std::iter::once(u16::from(b'#'))).chain(key.encode_utf16());
    units.fold(0, step).checked_abs().unwrap_or(0)
}

/// The slot of a hash.
#[inline]
pub fn slot_of(hash: i32, slot_count: u32) -> u32 {
    hash.max(0).cast_unsigned().checked_rem(slot_count).unwrap_or(0)
}

/// Where a slot lies in the file.
#[inline]
pub fn slot_position(slot: u32) -> usize {
    HEADER_SIZE + SLOT_SIZE * slot as usize
}

/// Where entry number `n` lies in the file.
#[inline]
pub fn entry_position(slot_count: u32, n: u32) -> usize {
    slot_position(slot_count) + ENTRY_SIZE * n as usize
}

/// Bytes of a file.
pub fn file_size(slot_count: u32, entry_count: u32) -> u64 {
    HEADER_SIZE as u64 + SLOT_SIZE as u64 * u64::from(slot_count) + ENTRY_SIZE as u64 * u64::from(entry_count)
}

/// A whole file, to be asked.
#[derive(Clone, Copy, Debug)]
pub struct IndexView<'a> {
    bytes: &'a [u8],
    slot_count: u32,
    header: IndexHeader,
}

impl<'a> IndexView<'a> {
    /// A view of a file of this geometry; bytes past its size are ignored, fewer are refused.
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

    /// The header as it was when the view was made.
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// Number of the newest entry in a slot's chain, or `None` if the slot holds none.
    pub fn newest(&self, slot: u32) -> Option<u32> {
        let number = i32_at(self.bytes, slot_position(slot)).filter(|_| slot < self.slot_count)?;
        (number > 0 && number <= self.header.index_count).then(|| number.cast_unsigned())
    }

    /// Entry number `n`, written or not.
    pub fn entry(&self, n: u32) -> Option<IndexEntry> {
        IndexEntry::decode(self.bytes.get(entry_position(self.slot_count, n)..)?)
    }

    /// Appends the physical offsets stored under `hash` from `begin_ms` to `end_ms`, newest first, until
    /// `out` holds `max`.
    ///
    /// The time of an entry is known to the second, rounded down: ask for `begin_ms - 1000` to miss none. Other keys of
    /// the same hash are among the offsets. A chain that does not lead to ever smaller entries is a cycle: what was
    /// found before it stays in `out`, and the error tells where.
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
            let Some(entry) = self.entry(n).filter(|entry| entry.time_diff_seconds >= 0) else { break };
            let time = self.header.begin_timestamp.wrapping_add(i64::from(entry.time_diff_seconds) * 1000);
            if entry.key_hash == hash && (begin_ms..=end_ms).contains(&time) {
                out.push(entry.physical_offset);
            }
            next = if time < begin_ms { None } else { self.before(n, entry.previous)? };
        }
        Ok(())
    }

    /// The entry that `previous` of entry `n` names, `None` at the end of the chain.
    fn before(&self, n: u32, previous: i32) -> Result<Option<u32>, Malformed> {
        let number = previous.cast_unsigned();
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

/// Puts an entry into a whole file: `false` if it is full, or shorter than its geometry.
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
    if n >= entry_count {
        return false;
    }
    let previous = view.newest(slot).unwrap_or(0).cast_signed();
    // The first entry's time counts from the end of the file before, where the header begins until then.
    let time_diff_seconds = match header.begin_timestamp {
        ..=0 => 0,
        begin => (store_ms.wrapping_sub(begin) / 1000).clamp(0, i64::from(i32::MAX)) as i32,
    };
    let entry = IndexEntry { key_hash: hash, physical_offset, time_diff_seconds, previous };
    if n == 1 {
        header.begin_phy_offset = physical_offset;
        header.begin_timestamp = store_ms;
    }
    header.hash_slot_count = header.hash_slot_count.wrapping_add(i32::from(previous == 0));
    header.end_phy_offset = physical_offset;
    header.end_timestamp = store_ms;
    header.index_count = header.index_count.wrapping_add(1);
    let (entry_at, slot_at) = (entry_position(slot_count, n), slot_position(slot));
    bytes[entry_at..entry_at + ENTRY_SIZE].copy_from_slice(&entry.encode());
    bytes[slot_at..slot_at + SLOT_SIZE].copy_from_slice(&n.to_be_bytes());
    bytes[..HEADER_SIZE].copy_from_slice(&header.encode());
    true
}

/// Slots and entries of a file that does not tell: the defaults if it has their size, else the only split of its length
/// that fits what it holds. `None` for a file of another size without entries, as any split would do, or a damaged one.
pub fn guess_geometry(file_len: u64, bytes: &[u8]) -> Option<(u32, u32)> {
    if file_len == file_size(DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT) {
        return Some((DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT));
    }
    let bytes = bytes.get(..usize::try_from(file_len).ok()?)?;
    let words = bytes.len().checked_sub(HEADER_SIZE).filter(|rest| rest % SLOT_SIZE == 0)? / SLOT_SIZE;
    let header = IndexHeader::decode(bytes).filter(|header| header.index_count > 1)?;
    let views = (header.index_count.cast_unsigned() as usize..=words / 5).filter_map(|entries| {
        let (slots, entries) = ((words - 5 * entries).try_into().ok()?, entries.try_into().ok()?);
        Some((IndexView::new(bytes, slots, entries).ok()?, entries))
    });
    let mut fitting = views.filter(|(view, _)| ends_fit(view)).take(MAX_CANDIDATES).filter(|(view, _)| all_fits(view));
    let (view, entries) = fitting.next()?;
    fitting.next().is_none().then_some((view.slot_count, entries))
}

/// Whether the first and the last entry lie where this geometry has them: cheap, and nearly always enough.
fn ends_fit(view: &IndexView) -> bool {
    let header = view.header;
    [(1, header.begin_phy_offset), (header.index_count.cast_unsigned() - 1, header.end_phy_offset)]
        .iter()
        .all(|(n, offset)| view.entry(*n).is_some_and(|e| e.physical_offset == *offset) && is_in_its_chain(view, *n))
}

/// Whether entries all over the file, and all slots, make sense with this geometry.
fn all_fits(view: &IndexView) -> bool {
    let last = view.header.index_count.cast_unsigned() - 1;
    (1..=last).step_by((last / SAMPLES + 1) as usize).all(|n| is_in_its_chain(view, n))
        && used_slots(view) == Some(view.header.hash_slot_count)
}

/// Whether the slot of entry `n` leads to it or past it, and it leads to a smaller one.
fn is_in_its_chain(view: &IndexView, n: u32) -> bool {
    let Some(entry) = view.entry(n) else { return false };
    let newest = view.newest(slot_of(entry.key_hash, view.slot_count));
    entry.key_hash >= 0 && (0..n.cast_signed()).contains(&entry.previous) && newest.is_some_and(|newest| newest >= n)
}

/// How many slots are in use; `None` if one names an entry that was not written.
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

#[cfg(test)]
mod tests {
    use super::super::tag::java_hash;
    use super::*;

    const SLOTS: u32 = 10;
    const ENTRIES: u32 = 8;
    const STORED: i64 = 0x01A1_FC12_F11F;

    fn new_file(slots: u32, entries: u32) -> Vec<u8> {
        vec![0; file_size(slots, entries) as usize]
    }

    /// What 4.9.4 made of the message with UNIQ_KEY `U1` and KEYS `k1 k2` in topic `T`, with 10 slots and 8 entries.
    fn golden() -> Vec<u8> {
        let mut file = new_file(SLOTS, ENTRIES);
        for key in ["U1", "k1", "k2"] {
            assert!(put(&mut file, SLOTS, ENTRIES, index_hash("T", key), 0, STORED));
        }
        file
    }

    fn query(file: &[u8], key: &str, begin: i64, end: i64, max: usize) -> Result<Vec<i64>, Malformed> {
        let mut out = Vec::new();
        IndexView::new(file, SLOTS, ENTRIES)?.query(index_hash("T", key), begin, end, max, &mut out).map(|()| out)
    }

    /// 12 entries in the one slot, ten seconds apart, in pairs of the same key.
    fn chain() -> Vec<u8> {
        let mut file = new_file(1, 20);
        for n in 0..12 {
            assert!(put(&mut file, 1, 20, (n / 2) as i32, n * 100, 1_000_000 + n * 10_000));
        }
        file
    }

    fn query_chain(file: &[u8], hash: i32, begin: i64, end: i64, max: usize) -> (Vec<i64>, Result<(), Malformed>) {
        let mut out = Vec::new();
        let result = IndexView::new(file, 1, 20).and_then(|view| view.query(hash, begin, end, max, &mut out));
        (out, result)
    }

    #[test]
    fn hashes_equal_those_of_java_and_are_never_negative() {
        assert_eq!((index_hash("T", "U1"), index_hash("T", "k1")), (2_538_763, 2_539_445));
        assert_eq!(java_hash("T#jllgvmc"), i32::MIN, "which has no positive counterpart");
        assert_eq!(index_hash("T", "jllgvmc"), 0);
        assert_eq!((java_hash("a#订单😀"), index_hash("a", "订单😀")), (-398_433_416, 398_433_416));
        assert_eq!(slot_of(i32::MAX, 1000), 647);
    }

    #[test]
    fn an_index_of_a_real_broker_is_written_and_read() {
        let file = golden();
        let head = "000001a1fc12f11f000001a1fc12f11f0000000000000000000000000000000000000003000000\
                    04";
        let slots = "000000000000000000000000000000010000000000000002000000030000000000000000000000\
                     00";
        let entry = |hash: &str| format!("{hash}00000000000000000000000000000000");
        let entries = ["00000000", "0026bd0b", "0026bfb5", "0026bfb6"].map(entry).concat();
        let hex: String = file.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex[..80], *head);
        assert_eq!(hex[80..160], *slots);
        assert_eq!(hex[160..320], entries);
        assert!(hex[320..].bytes().all(|b| b == b'0'));
        assert_eq!(query(&file, "k2", 0, i64::MAX, 64), Ok(vec![0]));
        assert_eq!(query(&file, "k3", 0, i64::MAX, 64), Ok(vec![]));
    }

    #[test]
    fn headers_and_entries_round_trip_and_short_ones_are_none() {
        let header = IndexHeader {
            begin_timestamp: 1,
            end_timestamp: i64::MAX,
            begin_phy_offset: -2,
            end_phy_offset: 1 << 40,
            hash_slot_count: 3,
            index_count: 4,
        };
        assert_eq!(IndexHeader::decode(&header.encode()), Some(header));
        assert_eq!(IndexHeader::decode(&header.encode()[..39]), None);
        let entry = IndexEntry { key_hash: 5, physical_offset: 1 << 33, time_diff_seconds: 7, previous: i32::MIN };
        assert_eq!(IndexEntry::decode(&entry.encode()), Some(entry));
        assert_eq!(IndexEntry::decode(&entry.encode()[..19]), None);
    }

    #[test]
    fn a_fresh_file_counts_from_one_and_follows_the_one_before() {
        let fresh = IndexHeader::following(5_000, 77);
        assert_eq!(fresh.encode()[36..], [0; 4]);
        assert_eq!(IndexHeader::decode(&fresh.encode()), Some(fresh));
        let mut file = new_file(SLOTS, ENTRIES);
        file[..HEADER_SIZE].copy_from_slice(&fresh.encode());
        assert!(put(&mut file, SLOTS, ENTRIES, 1, 78, 8_999));
        let view = IndexView::new(&file, SLOTS, ENTRIES).expect("whole");
        // The difference is to the file before, although the file now begins with its own first entry.
        assert_eq!(view.entry(1).map(|entry| entry.time_diff_seconds), Some(3));
        assert_eq!((view.header().begin_timestamp, view.header().begin_phy_offset), (8_999, 78));
    }

    #[test]
    fn a_truncated_file_is_refused_and_a_full_one_takes_no_more() {
        let mut file = golden();
        let error = IndexView::new(&file[..239], SLOTS, ENTRIES).expect_err("cut off");
        assert_eq!(error.to_string(), "index file at +0: expected at least 240, got 239");
        assert!(!put(&mut file[..239], SLOTS, ENTRIES, 1, 1, 1) && IndexView::new(&file, 0, 8).is_err());
        let put_more = (0..10).filter(|n| put(&mut file, SLOTS, ENTRIES, *n, 1, STORED)).count();
        assert_eq!(put_more, 4, "entry 0 is never used, three are");
        let before = file.clone();
        assert!(!put(&mut file, SLOTS, ENTRIES, 1, 1, 1));
        assert_eq!(file, before);
    }

    #[test]
    fn a_flipped_byte_hides_an_entry_or_moves_its_offset() {
        let mut file = golden();
        let at = entry_position(SLOTS, 2);
        file[at + 11] ^= 1;
        assert_eq!(query(&file, "k1", 0, i64::MAX, 64), Ok(vec![1]));
        file[at] ^= 1;
        assert_eq!(query(&file, "k1", 0, i64::MAX, 64), Ok(vec![]));
        file[slot_position(6)] ^= 0x80;
        assert_eq!(query(&file, "k2", 0, i64::MAX, 64), Ok(vec![]));
    }

    #[test]
    fn a_query_gives_the_newest_first_within_time_and_number() {
        let file = chain();
        assert_eq!(query_chain(&file, 2, 0, i64::MAX, 64).0, [500, 400]);
        assert_eq!(query_chain(&file, 2, 0, i64::MAX, 1).0, [500]);
        assert_eq!(query_chain(&file, 2, 1_050_000, 1_050_000, 64).0, [500]);
        assert_eq!(query_chain(&file, 2, 1_050_001, i64::MAX, 64), (vec![], Ok(())));
        assert_eq!(query_chain(&file, 0, 1_000_000, i64::MAX, 64).0, [100, 0]);
        assert_eq!(query_chain(&file, 9, 0, i64::MAX, 64), (vec![], Ok(())));
        let header = IndexHeader::decode(&file).expect("whole");
        assert!(
            header.overlaps(0, 2_000_000) && header.overlaps(1_110_000, 1_110_000) && header.overlaps(0, 1_000_000)
        );
        assert!(!header.overlaps(0, 999_999) && !header.overlaps(1_110_001, 2_000_000));
    }

    #[test]
    fn a_chain_ends_where_java_ends_it_and_a_cycle_is_told() {
        let previous_of = |n| entry_position(1, n) + 16;
        for (previous, found) in [(-1, Ok(())), (0, Ok(())), (14, Ok(())), (5, Ok(()))] {
            let mut file = chain();
            file[previous_of(5)..][..4].copy_from_slice(&i32::to_be_bytes(previous));
            assert_eq!(query_chain(&file, 2, 0, i64::MAX, 64), (vec![500, 400], found));
            assert_eq!(query_chain(&file, 0, 0, i64::MAX, 64), (vec![], Ok(())));
        }
        let mut file = chain();
        file[previous_of(5)..][..4].copy_from_slice(&9_i32.to_be_bytes());
        let (out, result) = query_chain(&file, 2, 0, i64::MAX, 64);
        let error = result.expect_err("entry 9 leads to 5 again");
        assert_eq!(
            (out, error.at, error.expected, error.got),
            (vec![500, 400], previous_of(5), Expected::AtMost(4), 9)
        );
        // Negative time: the chain ends before the entry.
        let mut file = chain();
        file[entry_position(1, 6) + 12] = 0x80;
        assert_eq!(query_chain(&file, 2, 0, i64::MAX, 64), (vec![], Ok(())));
    }

    #[test]
    fn the_geometry_is_found_from_the_content_unless_there_is_none() {
        assert_eq!(guess_geometry(420_000_040, &[]), Some((5_000_000, 20_000_000)));
        assert_eq!(guess_geometry(240, &golden()), Some((SLOTS, ENTRIES)));
        for (slots, entries, put_count) in [(1, 20, 12), (1000, 400, 399), (50, 4000, 7)] {
            let mut file = new_file(slots, entries);
            for n in 0..put_count {
                let hash = index_hash("topic", &n.to_string());
                assert!(put(&mut file, slots, entries, hash, 1000 + n * 250, STORED + n));
            }
            assert_eq!(guess_geometry(file.len() as u64, &file), Some((slots, entries)), "{slots} {entries}");
            assert_eq!(guess_geometry(file.len() as u64 - 1, &file), None);
            file[HEADER_SIZE - 1] ^= 3;
            assert_eq!(guess_geometry(file.len() as u64, &file), None, "the header's count is wrong");
        }
        assert_eq!(guess_geometry(240, &new_file(SLOTS, ENTRIES)), None);
        assert_eq!(guess_geometry(u64::MAX, &[0xFF; 40]), None);
    }
}
