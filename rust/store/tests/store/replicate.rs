//! A copy that takes its master's log in place of messages has the master's files.
use crate::chance::Chance;
use crate::directory;
use crate::recover::{append, differing, files, index, message, options, part};
use rmqfast_store::Error;
use rmqfast_store::filter::TagExpression;
use rmqfast_store::store::append::replicate::{Dispatch, Rest, whole_records};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage, cut, repair};
use rmqfast_store::store::log_walk::Block;
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeSet;
use std::path::Path;

fn replica(root: &Path, from: u64) -> Appender {
    Appender::open(root, AppendOptions { replica_from: Some(from), ..options() }).expect("opened")
}

/// The bytes of a log from `from` to its end.
fn log(root: &Path, from: u64, to: u64) -> Vec<u8> {
    let all = part(&files(root), "commitlog").into_values().flatten().collect::<Vec<u8>>();
    let start = MessageStore::open(root, &OpenOptions::default()).expect("opened").log().min_offset();
    all[(from - start) as usize..(to - start) as usize].to_vec()
}

/// Copies the log from `start` on in pieces; what a piece has in part comes with the next one, and lists lag behind at times.
fn copy(copy: &Appender, bytes: &[u8], start: u64, chance: &mut Chance) {
    let (mut taken, mut given, mut dispatch) = (0, 0, Dispatch::default());
    let mut unlisted: Vec<(usize, usize, Vec<_>)> = Vec::new();
    let file_size = copy.live().log_file_size();
    while taken < bytes.len() {
        given = bytes.len().min(given + 1 + chance.index(600));
        loop {
            let (at, mut records) = (start + taken as u64, Vec::new());
            let (count, rest) = whole_records(&bytes[taken..given], at, file_size, &mut records);
            assert!(!matches!(rest, Rest::Broken(_)), "{rest:?}");
            if count == 0 {
                break;
            }
            let last = records.last().map(|last| at + u64::from(last.at));
            copy.copy_log(at, &bytes[taken..taken + count], last).expect("copied");
            unlisted.push((taken, taken + count, records));
            taken += count;
        }
        if chance.below(3) == 0 || taken == bytes.len() {
            for (from, to, records) in unlisted.drain(..) {
                dispatch.read(Block { bytes: &bytes[from..to], records: &records }, &copy.delay_levels());
                copy.list(&mut dispatch).expect("listed");
            }
        }
    }
}

fn assert_same(master: &Path, copy: &Path, seed: u64) {
    let (master, copy) = (files(master), files(copy));
    for directory in ["commitlog", "consumequeue"] {
        assert_eq!(differing(&part(&master, directory), &part(&copy, directory)), <Vec<&Path>>::new(), "seed {seed}");
    }
    assert!(index(&master) == index(&copy), "seed {seed}");
}

#[test]
fn a_copy_in_pieces_has_the_masters_log_queues_and_index() {
    for seed in 0..20 {
        let (master, other, mut chance) = (directory(), directory(), Chance(seed));
        let appender = Appender::open(master.path(), options()).expect("new");
        append(&appender, 0, 100 + chance.index(100));
        let end = appender.log_end().expect("open");
        let (half, replica) = (end / 2, replica(other.path(), 0));
        // killed in the middle, and opened again: where the last whole record ends
        copy(&replica, &log(master.path(), 0, whole(master.path(), half)), 0, &mut chance);
        drop(replica);
        let replica = self::replica(other.path(), 0);
        // before the blank, where that was the last
        let start = replica.log_end().expect("open");
        assert!(start <= half && whole(master.path(), start) == start, "{start} of {half}, seed {seed}");
        copy(&replica, &log(master.path(), start, end), start, &mut chance);
        replica.close().expect("closed");
        appender.close().expect("closed");
        assert_same(master.path(), other.path(), seed);
    }
}

/// The end of the last record that ends at `at` or before.
fn whole(root: &Path, at: u64) -> u64 {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    rmqfast_store::store::recover::log_end::record_end(store.log(), at).expect("read")
}

#[test]
fn queues_of_a_topic_that_was_deleted_and_made_again_begin_anew() {
    let (master, other) = (directory(), directory());
    let appender = Appender::open(master.path(), options()).expect("new");
    append(&appender, 0, 40);
    let kept = BTreeSet::from(["clicks".to_owned(), "%RETRY%g".to_owned()]);
    assert!(!appender.clean_unused_topics(&kept).expect("cleaned").is_empty());
    append(&appender, 40, 70);
    let end = appender.log_end().expect("open");
    let replica = replica(other.path(), 0);
    copy(&replica, &log(master.path(), 0, end), 0, &mut Chance(1));
    replica.close().expect("closed");
    appender.close().expect("closed");
    assert_same(master.path(), other.path(), 1);
}

#[test]
fn a_message_on_the_way_that_says_offset_0_begins_no_queue_anew_where_the_next_one_goes_on() {
    let (master, other) = (directory(), directory());
    let appender = Appender::open(master.path(), options()).expect("new");
    let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; 10], ..OwnedMessage::default() };
    appender.append(&Messages::new(vec![message; 10]), None, 0).expect("appended");
    let end = appender.log_end().expect("open");
    let mut bytes = log(master.path(), 0, end);
    let (mut records, mut dispatch) = (Vec::new(), Dispatch::default());
    let copy = replica(other.path(), 0);
    let size = bytes.len() / 10;
    // no checksum guards the queue offset
    bytes[6 * size + 20..6 * size + 28].fill(0);
    let (count, _) = whole_records(&bytes, 0, copy.live().log_file_size(), &mut records);
    assert_eq!((count, records.len()), (bytes.len(), 10));
    copy.copy_log(0, &bytes, records.last().map(|last| u64::from(last.at))).expect("copied");
    dispatch.read(Block { bytes: &bytes, records: &records }, &copy.delay_levels());
    copy.list(&mut dispatch).expect("listed");
    copy.close().expect("closed");
    appender.close().expect("closed");
    let store = MessageStore::open(other.path(), &OpenOptions::default()).expect("opened");
    let got = store.get("T", 0, 0, 99, &TagExpression::parse("*").expect("a tag")).expect("got");
    assert_eq!((got.records.len(), got.min_offset, got.max_offset), (9, 0, 10));
}

#[test]
fn a_copy_that_begins_later_has_the_offsets_of_its_master() {
    let (master, other) = (directory(), directory());
    let appender = Appender::open(master.path(), options()).expect("new");
    append(&appender, 0, 100);
    let end = appender.log_end().expect("open");
    let replica = replica(other.path(), 8192);
    assert_eq!(replica.live().log_bounds(), (8192, 8192));
    copy(&replica, &log(master.path(), 8192, end), 8192, &mut Chance(2));
    for topic in ["orders", "clicks", "%RETRY%g"] {
        for queue_id in 0..2 {
            let bounds = |store: &Appender| store.live().queue(topic, queue_id).expect("a queue").bounds();
            let (own, of_master) = (bounds(&replica), bounds(&appender));
            assert_eq!(own.1, of_master.1, "{topic} {queue_id}");
            let units =
                |store: &Appender, n| store.live().queue(topic, queue_id).expect("a queue").unit(n).expect("read");
            (own.0.max(1)..own.1).filter(|n| units(&replica, *n).is_some_and(|unit| unit.is_message())).for_each(|n| {
                assert_eq!(units(&replica, n), units(&appender, n), "{topic} {queue_id} {n}");
            });
        }
    }
    replica.close().expect("closed");
    let store = MessageStore::open(other.path(), &OpenOptions::default()).expect("opened");
    assert!(store.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
}

#[test]
fn a_copy_takes_nothing_but_what_comes_next() {
    let dir = directory();
    let replica = replica(dir.path(), 4096);
    let refused = replica.append(&Messages::new(vec![message(0)]), None, 0).expect_err("refused").to_string();
    assert!(refused.contains("from its master alone"), "{refused}");
    for (start, len) in [(0, 10), (4095, 10), (4097, 10), (4096, 4097)] {
        let error = replica.copy_log(start, &vec![1; len], None).expect_err("refused");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    assert_eq!(part(&files(dir.path()), "commitlog").len(), 0);
}

#[test]
fn a_copy_that_is_cut_ends_behind_a_whole_record_and_lists_no_more() {
    let (master, other) = (directory(), directory());
    let appender = Appender::open(master.path(), options()).expect("new");
    append(&appender, 0, 60);
    let end = appender.log_end().expect("open");
    let replica = replica(other.path(), 0);
    copy(&replica, &log(master.path(), 0, end), 0, &mut Chance(3));
    replica.close().expect("closed");
    let at = end - 300;
    let left = cut(other.path(), at, options(), &mut |_, _| Ok(())).expect("cut");
    assert_eq!(left, whole(master.path(), at));
    let store = MessageStore::open(other.path(), &OpenOptions::default()).expect("opened");
    assert!(store.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
    // and goes on as if nothing had been
    let replica = self::replica(other.path(), 0);
    copy(&replica, &log(master.path(), left, end), left, &mut Chance(4));
    replica.close().expect("closed");
    appender.close().expect("closed");
    assert_same(master.path(), other.path(), 3);
}

#[test]
fn a_copy_is_compared_from_a_whole_record_at_least() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append(&appender, 0, 60);
    let end = appender.log_end().expect("open");
    for end in [end, end - 1, end - 150, 8192, 4097] {
        for most in [1, 50, 300, 1000, u64::MAX] {
            let from = appender.compare_from(end, most).expect("read");
            // where records are longer than asked for, or the file ends in a blank, some more
            assert!(
                from < end && (end - from <= most.saturating_mul(4).max(1024) || from.is_multiple_of(4096)),
                "{most}: {from} of {end}"
            );
            assert_eq!(whole(dir.path(), from), from, "{most}");
        }
    }
    let from = |most| appender.compare_from(end, most).expect("read");
    assert_eq!([end % 4096 + 1, 9000, u64::MAX].map(from), [4096, 0, 0], "files before: {end}");
    assert_eq!(replica(directory().path(), 8192).compare_from(8192, 100).expect("empty"), 8192);
}

#[test]
fn queues_that_ended_go_and_what_was_removed_before_stays_so() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append(&appender, 0, 60);
    let next = |topic: &str, queue_id| appender.live().queue(topic, queue_id).map(|queue| queue.bounds().1);
    let ended = |queue_id, by| (("orders".to_owned(), queue_id), next("orders", queue_id).expect("a queue") + by);
    // one that went on since it was looked at is left
    let before = next("orders", 1);
    let removed = appender.remove_queues(&[ended(0, 0), ended(1, -1)]).expect("removed");
    assert_eq!(removed, [("orders".to_owned(), 0)]);
    assert_eq!((next("orders", 0), next("orders", 1)), (None, before));
    assert_eq!(appender.remove_queues(&[ended(1, 0)]).expect("removed"), [("orders".to_owned(), 1)]);
    appender.close().expect("closed");
    // a start that looks at all of the log does not list them again
    repair(dir.path(), options(), None, &mut |_, _| Ok(())).expect("repaired");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    assert!(store.queues("orders").expect("read").is_empty());
    assert_eq!(store.queues("clicks").expect("read").len(), 2);
}
