//! Consume queues that have lost units: a store tells of the same messages as before.
use crate::directory;
use proptest::prelude::*;
use rmqfast_store::format::consume_queue::UNIT_SIZE;
use rmqfast_store::scan::{Plan, RowSource, ScanRequest, Way};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TOPICS: [&str; 3] = ["orders", "clicks", "idle"];
/// Units of a queue's file.
const UNITS: usize = 16;

fn options() -> AppendOptions {
    AppendOptions {
        file_size: 8 << 10,
        queue_file_size: (UNITS * UNIT_SIZE) as u64,
        index_slots: 16,
        index_entries: 4_000,
        ..AppendOptions::default()
    }
}

fn append(root: &Path, messages: &[(usize, i64, usize)]) {
    let appender = Appender::open(root, options()).expect("opened");
    for (topic, queue_id, len) in messages {
        let topic = TOPICS[*topic].to_owned();
        let message = OwnedMessage { topic, queue_id: *queue_id, body: vec![b'b'; *len], ..OwnedMessage::default() };
        appender.append(&Messages::new(vec![message]), None, 0).expect("appended");
    }
    appender.close().expect("closed");
}

fn opened(root: &Path) -> MessageStore {
    MessageStore::open(root, &OpenOptions::default()).expect("opened")
}

/// Physical offsets of a topic's messages, by a way, in pieces of so many bytes.
fn scanned(store: &MessageStore, topic: &str, way: Way, cut: u64) -> Vec<i64> {
    let request = ScanRequest { topic: Some(topic.into()), columns: Vec::new(), ..ScanRequest::default() };
    let mut plan = Plan::new(store, &request, Some(way)).expect("planned");
    plan.cut(cut, 1).expect("cut");
    let mut source = RowSource::new(plan.sources.clone(), Arc::new(request), plan.pieces);
    let mut offsets = Vec::new();
    while source.advance(&mut || Ok(())).expect("read") {
        let bytes = source.bytes();
        offsets.extend(source.rows().iter().filter_map(|row| row.message(bytes)).map(|m| m.physical_offset()));
    }
    assert_eq!(source.damage().entries(), [], "{topic} {way:?}");
    offsets
}

/// What becomes of a queue.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Gone,
    FileGone(usize),
    FileEmpty(usize),
    /// So many units at its end.
    Zeroed(usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Gone),
        (0..4_usize).prop_map(Harm::FileGone),
        (0..4_usize).prop_map(Harm::FileEmpty),
        (1..40_usize).prop_map(Harm::Zeroed),
    ]
}

fn files_of(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).expect("listed").map(|file| file.expect("read").path()).collect();
    files.sort();
    files
}

fn apply(harm: Harm, directory: &Path) {
    let files = files_of(directory);
    match harm {
        Harm::Gone => fs::remove_dir_all(directory).expect("removed"),
        Harm::FileGone(n) => fs::remove_file(&files[n % files.len()]).expect("removed"),
        Harm::FileEmpty(n) => fs::write(&files[n % files.len()], "").expect("emptied"),
        Harm::Zeroed(mut units) => {
            for path in files.iter().rev() {
                let mut bytes = fs::read(path).expect("read");
                for unit in bytes.chunks_exact_mut(UNIT_SIZE).rev() {
                    if units > 0 && unit.iter().any(|byte| *byte != 0) {
                        unit.fill(0);
                        units -= 1;
                    }
                }
                fs::write(path, bytes).expect("written");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_store_tells_the_same_whatever_its_queues_have_lost(
        idle in prop::collection::vec((Just(2_usize), 0..2_i64, 0..100_usize), 0..20),
        busy in prop::collection::vec((0..2_usize, 0..3_i64, 0..600_usize), 1..200),
        harms in prop::collection::vec((0..9_usize, harm()), 1..4),
        cut in 500..60_000_u64,
    ) {
        let dir = directory();
        let root = dir.path().join("store");
        append(&root, &[idle, busy].concat());
        let sound = opened(&root);
        let (topics, missing) = (sound.topics().expect("read"), sound.missing().expect("read"));
        prop_assert_eq!(missing.topics().count(), 0);
        let names: Vec<_> = topics.keys().cloned().collect();
        let rows: BTreeMap<_, _> =
            names.iter().map(|topic| (topic.clone(), scanned(&sound, topic, Way::Log, u64::MAX))).collect();
        for (n, harm) in harms {
            let queues = sound.all_queues().expect("listed");
            let queue = queues.get(n % queues.len().max(1));
            if let Some(queue) = queue.filter(|queue| !queue.segments().files().is_empty()) {
                apply(harm, queue.directory());
            }
        }
        let harmed = opened(&root);
        for topic in &names {
            // each alone, so that none finds what another has looked up
            prop_assert_eq!(&scanned(&opened(&root), topic, Way::Queue, cut), &rows[topic], "{}", topic);
            prop_assert_eq!(&scanned(&harmed, topic, Way::Queue, u64::MAX), &rows[topic], "{}", topic);
        }
        prop_assert_eq!(opened(&root).topics().expect("read"), topics.clone());
        prop_assert_eq!(harmed.topics().expect("read"), topics.clone());
        for (topic, queues) in topics {
            for (queue_id, bounds) in queues {
                let view = opened(&root).queue_view(&topic, queue_id).expect("read");
                prop_assert_eq!((view.min_offset(), view.max_offset()), bounds);
                let mut reader = view.reader();
                for offset in bounds.0..bounds.1 {
                    prop_assert!(reader.unit(offset).expect("read").is_some_and(|unit| unit.is_message()));
                }
            }
        }
    }
}

#[test]
fn what_queues_vouch_for_is_not_walked() {
    let dir = directory();
    let root = dir.path().join("store");
    let messages: Vec<_> = (0..400).map(|n: usize| (n % 2, (n % 3) as i64, 300)).collect();
    append(&root, &messages);
    // a log that nobody can read proves that nobody did
    let store = opened(&root);
    let begin = store.log().min_offset();
    let listed = store.dispatched_to().expect("read");
    assert!(listed - begin > 100_000);
    for file in &store.log().segments().files()[1..4] {
        let log = fs::OpenOptions::new().write(true).open(&file.path).expect("opened");
        log.write_all_at(&[0xff; 4000], 0).expect("harmed");
    }
    let missing = opened(&root).missing().expect("read");
    assert_eq!((missing.topics().count(), missing.damage().entries().len()), (0, 0));
}
