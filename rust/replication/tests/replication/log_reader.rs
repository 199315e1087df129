//! A stretch of a log, read without a copy.
use crate::peers::{FILE, Log, Peer, frame, frames};
use rmqfast_replication::wire::NO_REPLICA;
use rmqfast_replication::{End, LogReader, LogStep, LogStretch};
use rmqfast_store::format::message::Message;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);

fn stretch(peer: &Peer, from: u64, end: u64) -> LogStretch {
    LogStretch { addresses: vec![peer.address.clone()], file_size: FILE, max_record: FILE, from, end }
}

fn reader(stretch: LogStretch) -> LogReader {
    // some more than is asked for, as a pool of buffers may give
    LogReader::new(stretch, Box::new(|len| vec![0; len + len / 8]))
}

/// Places of the records that it reads, until it ends.
fn places(mut reader: LogReader) -> Result<Vec<u64>, End> {
    let mut places = Vec::new();
    loop {
        match reader.advance(WAIT)? {
            LogStep::Block { buffer, len } => places.extend(reader.records().iter().map(|record| {
                let message = Message::new(&buffer[record.at as usize..len], record.layout).expect("whole");
                message.physical_offset().cast_unsigned()
            })),
            LogStep::Waiting => {}
            LogStep::Done => return Ok(places),
        }
    }
}

fn all(log: &Log) -> Vec<u64> {
    let peer = Peer::serving(&log.bytes, 1 << 20);
    places(reader(stretch(&peer, 0, log.bytes.len() as u64))).expect("sound")
}

#[test]
fn each_record_of_a_stretch_comes_once_however_the_master_cuts_it() {
    let log = Log::new(400, 20_000);
    let end = log.bytes.len() as u64;
    let every = all(&log);
    assert_eq!((every.len(), every[0]), (400, 0));
    assert!(every.last().expect("some") > &(2 << 20), "several blocks of several files");
    for size in [700, 5000, 32 << 10] {
        let peer = Peer::serving(&log.bytes, size);
        assert_eq!(places(reader(stretch(&peer, 0, end))).expect("sound"), every, "{size}");
        // 0 would mean the last file
        assert_eq!(peer.heard(), 1);
    }
    let (from, to) = (every[13], every[390]);
    let peer = Peer::serving(&log.bytes, 1000);
    assert_eq!(places(reader(stretch(&peer, from, to))).expect("sound"), every[13..390]);
    assert_eq!(peer.heard(), from as i64);
}

#[test]
fn frames_of_a_byte_each_are_a_log_too_and_a_wait_for_more_ends() {
    let log = Log::new(20, 300);
    let (every, end) = (all(&log), log.bytes.len() as u64);
    let peer = Peer::serving(&log.bytes, 1);
    assert_eq!(places(reader(stretch(&peer, 0, end))).expect("sound"), every);
    // the last byte does not come
    let peer = Peer::serving(&log.bytes[..log.bytes.len() - 1], 1);
    let mut reader = reader(stretch(&peer, 0, end));
    for _ in 0..3 {
        assert!(matches!(reader.advance(Duration::ZERO).expect("sound"), LogStep::Waiting));
    }
}

#[test]
fn records_larger_than_a_block_are_read_and_a_size_that_is_claimed_takes_no_memory() {
    let log = Log::of_large(&[10, 3 << 20, 20, 2 << 20, 1 << 20]);
    let end = log.bytes.len() as u64;
    let peer = Peer::serving(&log.bytes, 32 << 10);
    let large = |peer: &Peer| LogStretch { file_size: Log::LARGE, max_record: 64 << 20, ..stretch(peer, 0, end) };
    let found = places(reader(large(&peer))).expect("sound");
    assert_eq!(found.len(), 5);
    // behind a record that needed much room comes one that is broken
    let mut bytes = log.bytes.clone();
    bytes[found[3] as usize + 4] ^= 1;
    let peer = Peer::serving(&bytes, 32 << 10);
    let broken = places(reader(large(&peer))).expect_err("no magic");
    assert!(matches!(broken, End::Broken { at, .. } if at == found[3]), "{broken}");
    // one of more bytes than a record may have
    let peer = Peer::serving(&log.bytes, 32 << 10);
    let small = LogStretch { max_record: 1 << 20, ..large(&peer) };
    let text = places(reader(small)).expect_err("too large").to_string();
    assert!(text.contains("total size at +0: expected at most 1048576 bytes, got 3145"), "{text}");
}

#[test]
fn whoever_reads_is_no_replica() {
    let log = Log::new(400, 20_000);
    let peer = Peer::serving(&log.bytes, 1000);
    let mut reader = reader(stretch(&peer, 0, 1 << 40));
    while !matches!(reader.advance(Duration::ZERO).expect("sound"), LogStep::Block { .. }) {}
    assert_eq!((peer.heard(), peer.heard()), (1, NO_REPLICA));
}

#[test]
fn a_connection_that_ends_is_opened_again_where_it_was() {
    let log = Log::new(300, 900);
    let bytes = log.bytes.clone();
    // 5,000 bytes, and half of what stands before the next ones
    let peer = Peer::closing(move |asked| {
        let mut part = frames(&bytes[..(asked as usize + 5000).min(bytes.len())], asked as usize, 700);
        part.extend(&frame(asked + 5000, &[])[..6]);
        part
    });
    assert_eq!(places(reader(stretch(&peer, 0, log.bytes.len() as u64))).expect("sound"), all(&log));
    let mut asked = std::iter::repeat_with(|| peer.heard()).filter(|heard| *heard != NO_REPLICA);
    assert_eq!((asked.next(), asked.next()), (Some(1), Some(5001)));
}

#[test]
fn one_that_gives_nothing_is_not_asked_again() {
    let peer = Peer::closing(|asked| frame(asked, &[]));
    assert!(matches!(places(reader(stretch(&peer, 77, 1000))), Err(End::Closed(_))));
    let nobody = LogStretch { addresses: vec!["127.0.0.1:1".into()], ..stretch(&peer, 77, 1000) };
    assert!(matches!(places(reader(nobody.clone())), Err(End::Connect { .. })));
    let log = Log::new(20, 300);
    let other = Peer::serving(&log.bytes, 1000);
    let both = LogStretch { addresses: vec!["127.0.0.1:1".into(), other.address.clone()], ..nobody };
    let both = LogStretch { from: 0, end: log.bytes.len() as u64, ..both };
    assert_eq!(places(reader(both)).expect("the second address").len(), 20);
}

#[test]
fn what_is_no_sound_log_ends_it() {
    let log = Log::new(60, 900);
    let end = log.bytes.len() as u64;
    let every = all(&log);
    let spoilt = |at: usize, value: u8| {
        let mut bytes = log.bytes.clone();
        bytes[at] = value;
        let peer = Peer::serving(&bytes, 1000);
        places(reader(stretch(&peer, 0, end))).expect_err("refused")
    };
    let record = every[30] as usize;
    // its size, its magic, the topmost byte of its own place, and its body
    for at in [record, record + 4, record + 28, record + 90] {
        let end = spoilt(at, 0x5a);
        assert!(matches!(end, End::Broken { at, .. } if at == record as u64), "{at}: {end}");
    }
    let peer = Peer::serving(&log.bytes, 1000);
    let inside = places(reader(stretch(&peer, every[1] + 1, end)));
    assert!(matches!(inside, Err(End::Broken { at, .. }) if at == every[1] + 1));
    let cut = places(reader(stretch(&peer, 0, every[5] + 20)));
    assert!(matches!(cut, Err(End::Broken { at, .. }) if at == every[5]));
}

#[test]
fn frames_of_another_place_and_impossible_sizes_end_it() {
    for (offset, size) in [(5, 100), (0, -1), (0, i32::MAX), (i64::MIN, 0)] {
        let peer = Peer::new(move |asked| {
            let mut bytes = (asked + offset).to_be_bytes().to_vec();
            bytes.extend(size.to_be_bytes());
            bytes
        });
        let end = places(reader(stretch(&peer, 77, 1 << 30))).expect_err("refused");
        assert!(matches!(end, End::Frame { at: 77, .. }), "{end}");
    }
}
