//! An export that meets a disk that fails, or is ended, leaves nothing where it was to stand.
use rmqfast_store::Error;
use rmqfast_store::export::{ExportReport, export};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::format::consume_queue::Unit;
use rmqfast_store::scan::{OffsetBound, QueueCounts, ScanRequest};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::consume_queue::UnitReader;
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

fn sizes() -> AppendOptions {
    AppendOptions { file_size: 4096, queue_file_size: 200, index_slots: 16, index_entries: 40, ..Default::default() }
}

/// A store of sixty messages, every third of which has the tag `a`.
fn store_below(root: &Path) -> MessageStore {
    let message = |n: usize| OwnedMessage {
        topic: "T".into(),
        body: vec![b'x'; 50 + n],
        keys: Some(format!("k{n}")),
        tags: Some(["a", "b", "c"][n % 3].into()),
        ..OwnedMessage::default()
    };
    let appender = Appender::open(root, sizes()).expect("new");
    for n in 0..60 {
        appender.append(&Messages::new(vec![message(n)]), Some(1000 + n as i64), 0).expect("appended");
    }
    appender.close().expect("closed");
    MessageStore::open(root, &OpenOptions::default()).expect("opened")
}

fn tagged(tag: &str) -> ScanRequest {
    let tags = rmqfast_store::filter::TagExpression::parse(tag).expect("a tag");
    ScanRequest { topic: Some("T".into()), tags, ..ScanRequest::default() }
}

fn exported(store: &MessageStore, request: &ScanRequest, out: &Path) -> rmqfast_store::Result<ExportReport> {
    export(store, request, out, sizes(), &mut |_, _| Ok(()))
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("read");
    entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect()
}

struct Failing {
    left: Mutex<u64>,
}

impl Watcher for Failing {
    fn before(&self, _: Call, _: &Path) -> io::Result<()> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        // not that of a full disk, where fewer bytes are tried
        if *left == 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn whatever_call_fails_nothing_is_left_and_the_next_export_is_whole() {
    let dir = tempfile::tempdir().expect("dir");
    let store = store_below(&dir.path().join("store"));
    let out = dir.path().join("out");
    let mut failed = 0;
    for n in 1.. {
        let failing = Arc::new(Failing { left: Mutex::new(n) });
        let watch = disk::watch(dir.path(), failing.clone());
        let done = exported(&store, &tagged("a"), &out);
        drop(watch);
        let has_failed = *failing.left.lock().expect("not poisoned") == 0;
        match done {
            Err(Error::Io { source, .. }) => {
                assert!(has_failed && source.raw_os_error() == Some(5), "call {n}: {source}");
                failed += 1;
                if names(dir.path()).contains("out") {
                    // all was on the disk but the name, which another could not have taken: it may be there
                    fs::remove_dir_all(&out).expect("removed");
                }
                assert_eq!(names(dir.path()), ["store".to_owned()].into());
            }
            other => {
                assert_eq!((other.expect("exported").rows, has_failed), (20, false), "call {n}");
                break;
            }
        }
    }
    assert!(failed > 20, "{failed}");
    let copy = MessageStore::open(&out, &OpenOptions::default()).expect("opened");
    assert!(copy.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
}

#[test]
fn an_export_that_is_ended_leaves_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let store = store_below(&dir.path().join("store"));
    let mut stop = |_, _| Err(Error::Interrupted);
    let ended = export(&store, &ScanRequest::default(), &dir.path().join("out"), sizes(), &mut stop);
    assert!(matches!(ended, Err(Error::Interrupted)));
    assert_eq!(names(dir.path()), ["store".to_owned()].into());
}

#[test]
fn messages_that_are_left_out_have_units_that_lead_nowhere() {
    let dir = tempfile::tempdir().expect("dir");
    let store = store_below(&dir.path().join("store"));
    let out = dir.path().join("out");
    let report = exported(&store, &tagged("b"), &out).expect("exported");
    assert_eq!((report.rows, report.unlisted, report.index_entries), (20, 0, 20));
    let copy = MessageStore::open(&out, &OpenOptions::default()).expect("opened");
    assert_eq!(copy.log().min_offset(), 4096);
    let queues = copy.queues("T").expect("listed");
    let mut reader = UnitReader::new(&queues[0]);
    for offset in 0..58 {
        let unit = reader.unit(offset).expect("read").expect("there");
        let log_file = 4096 * (unit.physical_offset / 4096);
        match offset {
            0 => assert_eq!(unit, Unit::PRE_BLANK),
            _ if offset % 3 == 1 => assert!(unit.is_message()),
            _ if offset % 10 == 9 => assert_eq!((unit, log_file > 0), (Unit::left_out(log_file), true)),
            _ => assert_eq!(unit, Unit::left_out(0)),
        }
    }
    let listed = QueueCounts::of(&copy, &ScanRequest { topic: Some("T".into()), ..ScanRequest::default() }, u64::MAX);
    let expected = QueueCounts { messages: 20, min_offset: Some(1), max_offset: Some(58) };
    assert_eq!(listed.expect("read"), Some(expected));
    let bounds = [12, 13, 14].map(|end| {
        let request = ScanRequest {
            topic: Some("T".into()),
            start_offset: Some(OffsetBound::Every(5)),
            end_offset: Some(OffsetBound::Every(end)),
            ..ScanRequest::default()
        };
        let listed = QueueCounts::of(&copy, &request, u64::MAX).expect("read").expect("told by the queues");
        (listed.messages, listed.min_offset, listed.max_offset)
    });
    assert_eq!(bounds, [(2, Some(7), Some(10)), (2, Some(7), Some(10)), (3, Some(7), Some(13))]);
    // what is put there later goes on behind
    let appender = Appender::open(&out, sizes()).expect("opened");
    assert!(appender.recovery().is_none());
    let message = OwnedMessage { topic: "T".into(), body: b"more".to_vec(), ..OwnedMessage::default() };
    let last = appender.append(&Messages::new(vec![message]), None, 0).expect("appended").last;
    assert_eq!(last.expect("one").queue_offset, 59);
}
