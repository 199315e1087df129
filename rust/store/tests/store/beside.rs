//! A walk over the files of a log that a broker is appending to.
use crate::directory;
use rmqfast_store::file::StoreLock;
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::commit_log::{Damage, DamageLog};
use rmqfast_store::store::log_walk::LogWalk;
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const FILE: u64 = 4 << 20;
const BATCHES: u64 = 150;
const BATCH: u64 = 200;

fn options() -> AppendOptions {
    AppendOptions { file_size: FILE, ..AppendOptions::default() }
}

fn append(appender: &Appender, count: u64) {
    let message = |n| OwnedMessage { topic: "T".into(), body: vec![b'x'; 50 + n as usize % 300], ..Default::default() };
    appender.append(&Messages::new((0..count).map(message).collect()), None, 0).expect("appended");
}

fn store(root: &Path) -> MessageStore {
    MessageStore::open(root, &OpenOptions::default()).expect("opened")
}

fn walk(root: &Path) -> LogWalk {
    LogWalk::new(store(root).log().clone(), 0, u64::MAX, 0)
}

/// How many records a walk finds by now, and the first damage.
fn walked(root: &Path) -> (u64, Option<Damage>) {
    rest(walk(root))
}

/// How many records a walk still finds, and the first damage.
fn rest(mut walk: LogWalk) -> (u64, Option<Damage>) {
    let (mut damage, mut count) = (DamageLog::default(), 0);
    while walk.advance(&mut damage).expect("read") {
        count += walk.block().records.len() as u64;
    }
    (count, damage.entries().first().cloned())
}

#[test]
fn a_reader_beside_a_writer_sees_ever_more_records_and_no_damage() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..BATCHES).for_each(|_| append(&appender, BATCH));
            is_over.store(true, Ordering::Release);
        });
        let mut seen = 0;
        while !is_over.load(Ordering::Acquire) {
            let (count, damage) = walked(dir.path());
            assert_eq!(damage, None, "behind {count} records");
            assert!(count >= seen, "{count} after {seen}");
            seen = count;
        }
    });
    assert_eq!(walked(dir.path()), (BATCHES * BATCH, None));
}

#[test]
fn a_file_that_was_short_when_it_was_listed_and_is_whole_again_is_read_to_where_it_was_cut() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    // short ones: all of the third is in the first bytes that are looked at
    let message = || OwnedMessage { topic: "T".into(), body: b"x".to_vec(), ..Default::default() };
    appender.append(&Messages::new(vec![message(), message(), message(), message()]), None, 0).expect("appended");
    appender.close().expect("closed");
    let path = dir.path().join("commitlog/00000000000000000000");
    let whole = std::fs::read(&path).expect("read");
    let mut first = walk(dir.path());
    assert!(first.advance(&mut DamageLog::default()).expect("read"));
    let third = u64::from(first.block().records[2].at);
    std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(third + 60)).expect("cut");
    let listed_short = walk(dir.path());
    std::fs::write(&path, whole).expect("whole again");
    let (count, damage) = rest(listed_short);
    assert_eq!((count, damage.map(|damage| (damage.offset, damage.length))), (2, Some((third, 60))));
}

#[test]
fn a_record_in_the_making_ends_the_log_while_a_broker_has_the_store_and_is_damage_afterwards() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append(&appender, 3);
    appender.close().expect("closed");
    let file = std::fs::File::options().write(true).open(dir.path().join("commitlog/00000000000000000000"));
    let end = store(dir.path()).unlisted().expect("read").log_end();
    // all but the size of the next record, which is written last
    file.expect("there").write_all_at(&[0x55; 100], end + 4).expect("written");
    let broker = StoreLock::acquire(dir.path()).expect("free");
    assert_eq!(walked(dir.path()), (3, None));
    drop(broker);
    let (count, damage) = walked(dir.path());
    assert_eq!((count, damage.map(|damage| damage.offset)), (3, Some(end)));
}
