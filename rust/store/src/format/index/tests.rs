//! A file that 4.9.4 wrote, chains, cycles, and guesses of the geometry.
use crate::format::cursor::{Expected, Malformed};
use crate::format::index::{IndexView, guess_geometry, put, *};
use crate::format::java::java_hash;

const SLOTS: u32 = 10;
const ENTRIES: u32 = 8;
const STORED: i64 = 0x01A1_FC12_F11F;

fn new_file(slots: u32, entries: u32) -> Vec<u8> {
    vec![0; file_size(slots, entries) as usize]
}

/// Returns the file that 4.9.4 wrote for a message with UNIQ_KEY `U1` and KEYS `k1 k2` in topic `T`, with 10 slots and 8 entries.
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

/// Returns a file with 12 entries in its only slot, ten seconds apart, in pairs with the same key.
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
    // The difference counts from the file before, although the header's begin is now the first entry.
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
}

#[test]
fn a_chain_ends_where_java_ends_it_and_a_cycle_is_told() {
    let previous_of = |n| entry_position(1, n) + 16;
    for (previous, result) in [(-1, Ok(())), (0, Ok(())), (14, Ok(())), (5, Ok(()))] {
        let mut file = chain();
        file[previous_of(5)..][..4].copy_from_slice(&i32::to_be_bytes(previous));
        assert_eq!(query_chain(&file, 2, 0, i64::MAX, 64), (vec![500, 400], result));
        assert_eq!(query_chain(&file, 0, 0, i64::MAX, 64), (vec![], Ok(())));
    }
    let mut file = chain();
    file[previous_of(5)..][..4].copy_from_slice(&9_i32.to_be_bytes());
    let (out, result) = query_chain(&file, 2, 0, i64::MAX, 64);
    let error = result.expect_err("entry 9 leads to 5 again");
    assert_eq!((out, error.at, error.expected, error.got), (vec![500, 400], previous_of(5), Expected::AtMost(4), 9));
    // An entry with a negative time ends the chain.
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
