//! The requests of a scan to the files of a store: how many, of how many bytes, and to which files.
use crate::directory;
use crate::looks::{READINGS, store_below};
use proptest::prelude::*;
use rmqfast_store::file::memory::Requests;
use rmqfast_store::file::{MemoryFiles, Mount, Reads};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::{OffsetBound, Plan, RowSource, ScanRequest, Way};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const QUEUES: usize = 8;
/// Topics with 1.4 % of the messages each. One topic more has the rest.
const SMALL: usize = 49;
const MESSAGES: usize = 60_000;

/// A closed store in which the messages of fifty topics alternate.
fn store_of_many_topics(messages: usize) -> TempDir {
    let dir = directory();
    let options = AppendOptions { file_size: 64 << 20, ..AppendOptions::default() };
    let appender = Appender::open(dir.path(), options).expect("new");
    let message = |n: usize| {
        let small = n * 7919 % 70;
        OwnedMessage {
            topic: if small < SMALL { format!("t{small}") } else { "T".into() },
            queue_id: (n / 70 % QUEUES) as i64,
            tags: Some(format!("tag{}", n % 10)),
            body: vec![b'x'; 690],
            ..OwnedMessage::default()
        }
    };
    for first in (0..messages).step_by(1000) {
        appender.append(&Messages::new((first..first + 1000).map(message).collect()), None, 0).expect("appended");
    }
    appender.close().expect("closed");
    dir
}

/// Rows of a scan and the bytes of their records.
fn scan(root: &Path, topic: &str) -> (usize, u64) {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let request = ScanRequest { topic: Some(topic.to_owned()), ..ScanRequest::default() };
    let plan = Plan::new(&store, &request, None).expect("planned");
    let mut source = RowSource::new(plan.sources.clone(), Arc::new(request), plan.pieces);
    let (mut rows, mut bytes) = (0, 0);
    while source.advance(&mut || Ok(())).expect("read") {
        rows += source.rows().len();
        let messages = source.rows().iter().filter_map(|row| row.message(source.bytes()));
        bytes += messages.map(|message| u64::from(message.layout().total)).sum::<u64>();
    }
    assert!(source.damage().is_empty());
    (rows, bytes)
}

fn requests_below(counts: &BTreeMap<PathBuf, Requests>, path: &Path) -> Requests {
    counts.iter().filter(|(file, _)| file.starts_with(path)).map(|(_, requests)| *requests).sum()
}

/// Requests of the scans before readers went by the notes of the last close, read entries in blocks, and handed over many
/// ranges a request: of a topic with 1.4 % of the messages, and of one with 30 %.
const BEFORE: [(&str, u64); 2] = [("t7", 20_696), ("T", 10_871)];

#[test]
fn a_scan_of_one_topic_asks_for_little_else() {
    let dir = store_of_many_topics(MESSAGES);
    let path = Path::new("/elsewhere/many-topics");
    for gap in [4 << 10, 1 << 20] {
        let files = Arc::new(MemoryFiles::read(dir.path(), path, gap).expect("read"));
        let _mount = Mount::new(path, files.clone());
        for (topic, before) in BEFORE {
            let read = scan(path, topic);
            assert_eq!(read, scan(dir.path(), topic));
            let counts = files.take_counts();
            let (all, queues) = (requests_below(&counts, path), path.join("consumequeue"));
            println!("{topic}, gap {gap}: {read:?} {} {all:?}", all.total());
            for part in ["commitlog", "consumequeue", "config"] {
                println!("  {part}: {:?}", requests_below(&counts, &path.join(part)));
            }
            assert!(all.total() <= before / 20, "{topic}: {all:?}");
            // The names of the topics are listed, and no queue of another topic is looked at.
            let others =
                counts.keys().filter(|file| file.starts_with(&queues) && !file.starts_with(queues.join(topic)));
            assert_eq!(others.collect::<Vec<_>>(), [&queues, &queues.join("CURRENT")]);
            // The end of each queue is searched for in one block of it, and that of the log is known.
            let (log, own) = (requests_below(&counts, &path.join("commitlog")), requests_below(&counts, &queues));
            // A block behind it is looked at, and a page by each walk that comes there: of the check and of the scan.
            assert!(log.unwritten <= (64 << 10) + 2 * (4 << 10), "{topic}: {log:?}");
            assert!(own.unwritten <= QUEUES as u64 * (80 << 10), "{topic}: {own:?}");
        }
    }
}

/// Reads that the explanation of a scan allows, and those of the scan itself: of the log, and of the queues.
fn reads_of(
    files: &MemoryFiles,
    path: &Path,
    request: &Arc<ScanRequest>,
    way: Option<Way>,
    cut: u64,
) -> [[Reads; 2]; 2] {
    let store = MessageStore::open(path, &OpenOptions::default()).expect("opened");
    let mut plan = Plan::new(&store, request, way).expect("planned");
    plan.cut(cut, 1).expect("cut");
    let explanation = plan.explain(&store, request).expect("explained");
    let told = [
        explanation.pieces.iter().map(|piece| piece.log).sum(),
        explanation.pieces.iter().map(|piece| piece.queues).sum(),
    ];
    files.take_counts();
    for piece in &plan.pieces {
        let mut source = RowSource::new(plan.sources.clone(), request.clone(), [*piece]);
        while source.advance(&mut || Ok(())).expect("read") {}
        assert!(source.damage().is_empty());
    }
    let counts = files.take_counts();
    let read = ["commitlog", "consumequeue"].map(|part| {
        let Requests { ranges, bytes, .. } = requests_below(&counts, &path.join(part));
        Reads { ranges, bytes }
    });
    [told, read]
}

fn is_within(read: Reads, told: Reads) -> bool {
    read.ranges <= told.ranges && read.bytes <= told.bytes
}

#[test]
fn an_explanation_bounds_what_a_scan_of_many_topics_reads() {
    let dir = store_of_many_topics(20_000);
    let path = Path::new("/elsewhere/explained");
    for gap in [4 << 10, 1 << 20] {
        let files = Arc::new(MemoryFiles::read(dir.path(), path, gap).expect("read"));
        let _mount = Mount::new(path, files.clone());
        let tags = TagExpression::parse("tag3").expect("tags");
        for (topic, way) in
            [(None, None), (Some("T"), Some(Way::Log)), (Some("T"), Some(Way::Queue)), (Some("t7"), None)]
        {
            for (cut, tags) in
                [(u64::MAX, TagExpression::all()), (4 << 20, TagExpression::all()), (1 << 40, tags.clone())]
            {
                let request = ScanRequest { topic: topic.map(str::to_owned), tags, ..ScanRequest::default() };
                let [told, read] = reads_of(&files, path, &Arc::new(request), way, cut);
                println!("{topic:?} {way:?} {gap} {cut}: {told:?} {read:?}");
                assert!(
                    is_within(read[0], told[0]) && is_within(read[1], told[1]),
                    "{topic:?} {way:?}: {told:?} {read:?}"
                );
                let is_straight = topic.is_none() || way == Some(Way::Log);
                // Each byte is read once, so the bound of a straight read is nearly what is read.
                assert!(!is_straight || told[0].bytes <= read[0].bytes + read[0].bytes / 50, "{told:?} {read:?}");
                assert!(!is_straight || told[0].ranges <= read[0].ranges + 8, "{told:?} {read:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_scan_reads_more_than_its_explanation_says(
        bodies in prop::collection::vec((0..3_usize, 0..3_i64, prop_oneof![8 => 0..3000_usize, 1 => 200_000..700_000_usize]), 1..200),
        is_closed: bool, gap in prop_oneof![Just(4_u64 << 10), Just(1 << 20)],
        requests in prop::collection::vec((prop::option::of(0..3_usize), 0..3_usize, 0..2_usize, 10..22_u32, 0..40_i64), 6)
    ) {
        let dir = directory();
        let options =
            AppendOptions { file_size: 2 << 20, index_slots: 16, index_entries: 9000, ..AppendOptions::default() };
        let appender = Appender::open(dir.path(), options).expect("new");
        for (topic, queue_id, body) in bodies {
            let tags = Some(format!("tag{}", body % 3));
            let message = OwnedMessage { topic: format!("t{topic}"), queue_id, tags, body: vec![1; body], ..OwnedMessage::default() };
            appender.append(&Messages::new(vec![message]), None, 0).expect("appended");
        }
        if is_closed {
            appender.close().expect("closed");
        }
        // A live writer replaces files while they are copied.
        drop(appender);
        let path = dir.path().join("elsewhere");
        let files = Arc::new(MemoryFiles::read(dir.path(), &path, gap).expect("read"));
        let _mount = Mount::new(&path, files.clone());
        for (topic, tags, way, cut, start) in requests {
            // A topic that has no message is unknown.
            let topic = topic.map(|topic| format!("t{topic}")).filter(|topic| dir.path().join("consumequeue").join(topic).exists());
            let request = ScanRequest {
                topic,
                tags: TagExpression::parse(["*", "tag1", "tag0 || tag2"][tags]).expect("tags"),
                start_offset: (start > 20).then_some(OffsetBound::Every(start - 20)),
                ..ScanRequest::default()
            };
            let way = [Way::Log, Way::Queue][way];
            let [told, read] = reads_of(&files, &path, &Arc::new(request.clone()), Some(way), 1 << cut);
            prop_assert!(is_within(read[0], told[0]) && is_within(read[1], told[1]), "{:?} {:?}: {:?} {:?}", request, way, told, read);
        }
    }
}

#[test]
fn every_reader_takes_a_store_that_is_elsewhere() {
    let (dir, out) = (directory(), directory());
    for is_closed in [true, false] {
        let root = dir.path().join(if is_closed { "closed" } else { "open" });
        store_below(&root, is_closed);
        // An export writes beside the store, so its directory exists; nothing else of the store does.
        let path = out.path().join(root.file_name().expect("a name"));
        let files = Arc::new(MemoryFiles::read(&root, &path, 0).expect("read"));
        let _mount = Mount::new(&path, files.clone());
        for (name, reading) in READINGS.into_iter().filter(|(name, _)| *name != "newest copy") {
            let (there, here) = (reading(&path).expect(name), reading(&root).expect(name));
            assert_eq!(there.replace(&*path.to_string_lossy(), &root.to_string_lossy()), here, "{name}");
            assert!(!files.take_counts().is_empty(), "{name}");
        }
    }
}
