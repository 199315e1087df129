//! Room on the disk: as much as is needed, found before anything is written.
use crate::directory;
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options() -> AppendOptions {
    AppendOptions { file_size: 1 << 20, index_slots: 100, index_entries: 400, ..AppendOptions::default() }
}

fn message(topic: &str) -> Messages {
    Messages::new(vec![OwnedMessage { topic: topic.into(), body: b"body".to_vec(), ..OwnedMessage::default() }])
}

/// Length and bytes on the disk of the files below `path`.
fn taken(path: &Path) -> (u64, u64) {
    let meta = fs::metadata(path).expect("there");
    if meta.is_file() {
        return (meta.len(), meta.blocks() * 512);
    }
    let entries = fs::read_dir(path).expect("listed").map(|entry| taken(&entry.expect("listed").path()));
    entries.fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
}

/// The disk is full where blocks are asked for, as long as it is told so.
struct Full(AtomicBool);

impl Watcher for Full {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        let is_full = call == Call::Allocate && self.0.load(Ordering::SeqCst);
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_queue_with_one_message_takes_a_block_or_two() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    for n in 0..1000 {
        appender.append(&message(&format!("T{n}")), None, 0).expect("appended");
    }
    appender.close().expect("closed");
    // what RocketMQ sees has the length that it expects
    let (len, blocks) = taken(&dir.path().join("consumequeue"));
    assert_eq!(len, 1000 * 6_000_000);
    assert!(blocks <= 1000 * 8192, "{blocks}");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    assert!(store.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
}

#[test]
fn an_index_takes_its_slots_and_what_entries_need() {
    let dir = directory();
    let options = AppendOptions { file_size: 1 << 20, ..AppendOptions::default() };
    let appender = Appender::open(dir.path(), options).expect("opened");
    let with_key = |key: String| {
        Messages::new(vec![OwnedMessage { topic: "T".into(), keys: Some(key), ..OwnedMessage::default() }])
    };
    appender.append(&with_key("k".into()), None, 0).expect("appended");
    let (len, blocks) = taken(&dir.path().join("index"));
    assert_eq!(len, 420_000_040);
    assert!(blocks < 22 << 20, "{blocks}");
    let keys = (0..3000).map(|n| format!("k{n}")).collect::<Vec<_>>().join(" ");
    for _ in 0..20 {
        appender.append(&with_key(keys.clone()), None, 0).expect("appended");
    }
    let (_, blocks) = taken(&dir.path().join("index"));
    assert!((20_000_040 + 60_000 * 20..24 << 20).contains(&blocks), "{blocks}");
    appender.close().expect("closed");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    assert!(store.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
}

#[test]
fn an_index_that_finds_no_room_refuses_the_message() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    let full = Arc::new(Full(AtomicBool::new(true)));
    let watch = disk::watch(&dir.path().join("index"), full);
    for _ in 0..2 {
        assert!(appender.append(&message("T"), None, 0).expect_err("no room").is_disk_full());
        assert_eq!(taken(&dir.path().join("index")).0, 0, "nothing is left behind");
    }
    drop(watch);
    let place = appender.append(&message("T"), None, 0).expect("appended").last;
    assert_eq!(place.map(|place| (place.queue_offset, place.physical_offset)), Some((0, 0)));
}

#[test]
fn a_step_that_finds_no_room_refuses_the_message_and_the_next_one_goes_on() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    let full = Arc::new(Full(AtomicBool::new(false)));
    let watch = disk::watch(&dir.path().join("consumequeue"), full.clone());
    let mut refused = 0;
    for n in 0..1000 {
        full.0.store(true, Ordering::SeqCst);
        let appended = match appender.append(&message("T"), None, 0) {
            Err(error) => {
                assert!(error.is_disk_full(), "{error}");
                refused += 1;
                full.0.store(false, Ordering::SeqCst);
                appender.append(&message("T"), None, 0).expect("appended")
            }
            Ok(appended) => appended,
        };
        assert_eq!(appended.last.map(|place| place.queue_offset), Some(n));
    }
    assert_eq!(refused, 3, "4096, 16384 and 65536 bytes");
    drop(watch);
    appender.close().expect("closed");
    let appender = Appender::open(dir.path(), options()).expect("opened");
    assert!(appender.recovery().is_none());
}

#[test]
fn a_queue_whose_file_has_blocks_for_what_was_written_alone_takes_more() {
    let dir = directory();
    let append = |count| {
        let appender = Appender::open(dir.path(), options()).expect("opened");
        for _ in 0..count {
            appender.append(&message("T"), None, 0).expect("appended");
        }
        appender.close().expect("closed");
    };
    append(3);
    let path = dir.path().join("consumequeue/T/0/00000000000000000000");
    let file = fs::File::options().write(true).open(&path).expect("opened");
    file.set_len(60).and_then(|()| file.set_len(6_000_000)).expect("as a broker leaves it");
    append(1000);
    let (len, blocks) = taken(&path);
    assert_eq!(len, 6_000_000);
    assert!((60_060..100_000).contains(&blocks), "{blocks}");
}

/// Bytes that this thread has read.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").expect("told");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("counted");
    line.parse().expect("a number")
}

#[test]
fn a_start_reads_what_was_written_and_not_the_rest_of_the_files() {
    // a real disk, which reads ahead
    let dir = tempfile::tempdir().expect("a directory");
    let open = || Appender::open(dir.path(), AppendOptions::default()).expect("opened");
    let appender = open();
    appender.append(&message("T"), None, 0).expect("appended");
    appender.close().expect("closed");
    for _ in 0..5 {
        for is_killed in [false, true] {
            let before = bytes_read();
            let appender = open();
            let read = bytes_read() - before;
            assert!(read < 128 << 20, "{read}");
            if is_killed { drop(appender) } else { appender.close().expect("closed") }
        }
    }
}
