//! Stores whose notes of the last close do not fit their files: readers lose nothing by them, here and elsewhere.
use crate::directory;
use rmqfast_store::file::{MemoryFiles, Mount};
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::{Plan, QueueCounts, RowSource, ScanRequest, Way};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::consume_queue::list_queues;
use rmqfast_store::store::log_walk::{Block, LogWalk};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const QUEUE: &str = "consumequeue/T/0/00000000000000000000";
const LOG: &str = "commitlog/00000000000000000000";
const UNIT: usize = 20;

/// Appends messages of two topics in turn. `queue_of` tells the queue of the n-th.
fn append(root: &Path, range: Range<usize>, sizes: (u64, u64), queue_of: impl Fn(usize) -> i64) {
    let (file_size, queue_file_size) = sizes;
    let options =
        AppendOptions { file_size, queue_file_size, index_slots: 16, index_entries: 4000, ..AppendOptions::default() };
    let appender = Appender::open(root, options).expect("opened");
    for n in range {
        let message = OwnedMessage {
            topic: ["T", "U"][n % 2].into(),
            queue_id: queue_of(n),
            body: vec![b'x'; 500],
            ..OwnedMessage::default()
        };
        let time = 1_700_000_000_000 + n as i64;
        appender.append(&Messages::new(vec![message]), Some(time), 0).expect("appended");
    }
    appender.close().expect("closed");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("listed") {
        let (source, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("an entry");
        if source.is_dir() {
            copy(&source, &target);
        } else {
            fs::copy(source, target).expect("copied");
        }
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("read");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

fn open(root: &Path) -> MessageStore {
    MessageStore::open(root, &OpenOptions::default()).expect("opened")
}

fn noted_end(root: &Path) -> usize {
    open(root).flushed_end().expect("read").expect("noted").offset as usize
}

/// A store of 400 messages whose notes are of its first 200. Returns the end of the log that they tell.
fn store_with_older_notes(root: &Path, sizes: (u64, u64)) -> usize {
    let old = directory();
    append(root, 0..200, sizes, |_| 0);
    copy(root, old.path());
    append(root, 200..400, sizes, |_| 0);
    for name in ["checkpoint", "queue.ends"] {
        fs::copy(old.path().join(name), root.join(name)).expect("copied");
    }
    noted_end(root)
}

/// Offsets of rows, and offset and length of damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    rows: BTreeSet<i64>,
    damage: BTreeSet<(u64, u64)>,
}

impl Content {
    fn add_damage(&mut self, damage: &DamageLog) {
        self.damage.extend(damage.entries().iter().map(|damage| (damage.offset, damage.length)));
    }

    /// Returns what `other` lacks of this.
    fn beyond(&self, other: &Self) -> Self {
        Self { rows: &self.rows - &other.rows, damage: &self.damage - &other.damage }
    }
}

fn offsets_of(block: Block<'_>, topic: Option<&str>) -> Vec<i64> {
    let messages = block.records.iter().filter_map(|at| Message::new(&block.bytes[at.at as usize..], at.layout));
    let of_topic = messages.filter(|message| topic.is_none_or(|topic| message.topic() == topic.as_bytes()));
    of_topic.map(|message| message.physical_offset()).collect()
}

/// A plain read of the whole log, which goes by no note.
fn read_log(root: &Path, topic: Option<&str>) -> Content {
    let store = open(root);
    let (mut walk, mut damage) = (LogWalk::new(store.log().clone(), 0, u64::MAX, 0), DamageLog::default());
    let mut content = Content::default();
    while walk.advance(&mut damage).expect("read") {
        content.rows.extend(offsets_of(walk.block(), topic));
    }
    content.add_damage(&damage);
    content
}

fn scan(store: &MessageStore, topic: Option<&str>, way: Option<Way>) -> Content {
    let request = ScanRequest { topic: topic.map(str::to_owned), ..ScanRequest::default() };
    let plan = Plan::new(store, &request, way).expect("planned");
    let mut source = RowSource::new(plan.sources.clone(), Arc::new(request), plan.pieces);
    let mut content = Content::default();
    while source.advance(&mut || Ok(())).expect("read") {
        let messages = source.rows().iter().filter_map(|row| row.message(source.bytes()));
        content.rows.extend(messages.map(|message| message.physical_offset()));
    }
    content.add_damage(source.damage());
    content
}

fn count(store: &MessageStore) -> Option<i64> {
    let request = ScanRequest { topic: Some("T".into()), ..ScanRequest::default() };
    QueueCounts::of(store, &request, u64::MAX).expect("counted").map(|counts| counts.messages)
}

const SCANS: [(Option<&str>, Option<Way>); 3] = [(None, None), (Some("T"), None), (Some("T"), Some(Way::Queue))];

/// The scans of a store and of a snapshot of it, and the number of messages as queues tell it. All are held against a
/// plain read of the log.
fn check(name: &str, root: &Path) -> (Vec<Content>, Option<i64>) {
    let mut contents = Vec::new();
    for (topic, way) in SCANS {
        let plain = read_log(root, topic);
        for store in [open(root), open(root).snapshot().expect("restricted")] {
            let content = scan(&store, topic, way);
            assert_eq!(plain.beyond(&content), Content::default(), "{name}, {topic:?} {way:?}");
            contents.push(content);
        }
    }
    let counted = count(&open(root));
    let rows = read_log(root, Some("T")).rows.len() as i64;
    assert!(counted.is_none_or(|counted| counted == rows), "{name}: {counted:?} of {rows}");
    (contents, counted)
}

/// Checks a store here and in memory, where files have no holes and readers go by its notes. Returns the rows of topic T
/// by queue, the number of damaged places there, and the count.
fn check_everywhere(name: &str, root: &Path) -> (usize, usize, Option<i64>) {
    let here = check(name, root);
    let path = Path::new("/elsewhere/closed").join(name);
    let _mount = Mount::new(&path, Arc::new(MemoryFiles::read(root, &path, 4 << 10).expect("read")));
    let there = check(name, &path);
    for (there, here) in there.0.iter().zip(&here.0) {
        assert_eq!((there.beyond(here), here.beyond(there)), Default::default(), "{name}");
    }
    assert_eq!(there.1, here.1, "{name}");
    let by_queue = here.0.last().expect("scans");
    (by_queue.rows.len(), by_queue.damage.len(), here.1)
}

#[test]
fn a_sound_store_is_counted_by_its_queues() {
    let dir = directory();
    append(dir.path(), 0..400, (1 << 16, 2000), |_| 0);
    assert_eq!(check_everywhere("sound", dir.path()), (200, 0, Some(200)));
}

#[test]
fn a_log_that_goes_on_behind_its_noted_end_is_read_on() {
    let dir = directory();
    let root = |name: &str| dir.path().join(name);
    let end = store_with_older_notes(&root("plain"), (1 << 18, 2000));
    // The queues list all messages, so they may be counted.
    assert_eq!(check_everywhere("plain", &root("plain")), (200, 0, Some(200)));
    // As a hole that a crash of the system has left.
    for (name, len) in [("start", 100), ("records", 60_000)] {
        copy(&root("plain"), &root(name));
        edit(&root(name).join(LOG), |bytes| bytes[end..end + len].fill(0));
        let (rows, damage, counted) = check_everywhere(name, &root(name));
        assert!((100..200).contains(&rows) && damage == 1 && counted.is_none(), "{name}: {rows} {damage} {counted:?}");
    }
}

#[test]
fn files_behind_the_noted_end_of_a_log_are_read() {
    let dir = directory();
    let end = store_with_older_notes(dir.path(), (1 << 16, 2000));
    let (base, behind) = (end as u64 >> 16 << 16, end % (1 << 16));
    edit(&dir.path().join(format!("commitlog/{base:020}")), |bytes| bytes[behind..].fill(0));
    let (rows, damage, counted) = check_everywhere("files", dir.path());
    assert!((101..200).contains(&rows) && damage == 1 && counted.is_none(), "{rows} {damage} {counted:?}");
}

#[test]
fn garbage_behind_the_noted_end_is_told() {
    let dir = directory();
    append(dir.path(), 0..200, (1 << 18, 2000), |_| 0);
    let at = noted_end(dir.path()) + 9000;
    edit(&dir.path().join(LOG), |bytes| bytes[at..at + 9].fill(7));
    assert_eq!(check_everywhere("garbage", dir.path()), (100, 1, None));
    let notes = |store: MessageStore| store.info().expect("read").notes.join("\n");
    for store in [open(dir.path()), open(dir.path()).snapshot().expect("restricted")] {
        assert!(notes(store).contains("damaged places"));
    }
}

#[test]
fn holes_in_queues_lead_to_the_log() {
    let dir = directory();
    let (sound, root) = (dir.path().join("sound"), |name: &str| dir.path().join(name));
    append(&sound, 0..400, (1 << 16, 2000), |_| 0);
    for (name, units) in [("first units", 0..10), ("first file", 0..100), ("only the first", 0..1)] {
        copy(&sound, &root(name));
        edit(&root(name).join(QUEUE), |bytes| bytes[units.start * UNIT..units.end * UNIT].fill(0));
        assert_eq!(check_everywhere(name, &root(name)), (200, 0, None), "{name}");
    }
}

/// The queue with one early message makes the search begin behind it, by a bisection that the hole misleads.
#[test]
fn a_hole_where_a_bisection_looks_leads_to_the_log() {
    let dir = directory();
    append(dir.path(), 0..400, (1 << 16, 20_000), |n| i64::from(n == 4));
    fs::create_dir_all(dir.path().join("config")).expect("a directory");
    let config = r#"{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":2,"writeQueueNums":2}}}"#;
    fs::write(dir.path().join("config/topics.json"), config).expect("written");
    assert_eq!(check_everywhere("two queues", dir.path()), (200, 0, Some(200)));
    edit(&dir.path().join(QUEUE), |bytes| bytes[95 * UNIT..106 * UNIT].fill(0));
    assert_eq!(check_everywhere("two queues with a hole", dir.path()), (200, 0, None));
}

/// A store object outlives the next close, after which the queues are of the close before.
#[test]
fn an_open_store_does_not_go_by_an_older_close() {
    let (dir, old) = (directory(), directory());
    let count_after = |root: &Path, change: &dyn Fn()| {
        let store = open(root);
        assert_eq!(count(&store), Some(100));
        change();
        let plan = Plan::new(&store, &ScanRequest::default(), None).expect("planned");
        (count(&store), plan.sources.closed_end)
    };
    let grow = || {
        append(dir.path(), 200..400, (1 << 18, 2000), |_| 0);
        fs::remove_dir_all(dir.path().join("consumequeue")).expect("removed");
        copy(&old.path().join("consumequeue"), &dir.path().join("consumequeue"));
    };
    append(dir.path(), 0..200, (1 << 18, 2000), |_| 0);
    copy(dir.path(), old.path());
    let path = PathBuf::from("/elsewhere/grown");
    let mount = |root: &Path| Mount::new(&path, Arc::new(MemoryFiles::read(root, &path, 0).expect("read")));
    assert_eq!(count_after(dir.path(), &grow), (None, None));
    // Now `dir` is the store after the second close.
    let _first = mount(old.path());
    let later = std::cell::OnceCell::new();
    assert_eq!(count_after(&path, &|| drop(later.set(mount(dir.path())))), (None, None));
}

/// As in the middle of a copy: the log is newer than it was when the store was opened, and its notes are not.
#[test]
fn a_log_that_grows_under_an_open_store_is_seen() {
    let (dir, old) = (directory(), directory());
    append(dir.path(), 0..200, (1 << 18, 2000), |_| 0);
    copy(dir.path(), old.path());
    append(dir.path(), 200..400, (1 << 18, 2000), |_| 0);
    let path = Path::new("/elsewhere/growing");
    let mount = || Mount::new(path, Arc::new(MemoryFiles::read(old.path(), path, 0).expect("read")));
    let _old = mount();
    let store = open(path);
    assert_eq!(count(&store), Some(100));
    fs::copy(dir.path().join(LOG), old.path().join(LOG)).expect("copied");
    let _newer = mount();
    assert_eq!(count(&store), None);
    for (topic, way) in SCANS {
        assert_eq!(
            read_log(dir.path(), topic).beyond(&scan(&store, topic, way)),
            Content::default(),
            "{topic:?} {way:?}"
        );
    }
}

#[test]
fn a_store_in_recovery_is_searched_to_its_end() {
    let dir = directory();
    let end = store_with_older_notes(dir.path(), (1 << 18, 2000));
    // Longer than what is looked at behind a noted end.
    edit(&dir.path().join(LOG), |bytes| bytes[end..end + (70 << 10)].fill(0));
    let path = Path::new("/elsewhere/old-notes");
    let mount = Mount::new(path, Arc::new(MemoryFiles::read(dir.path(), path, 0).expect("read")));
    // The topic's queue goes on, so the notes are too old.
    for way in [None, Some(Way::Queue)] {
        let content = scan(&open(path), Some("T"), way);
        assert_eq!(read_log(path, Some("T")).beyond(&content), Content::default());
    }
    drop(mount);
    fs::write(dir.path().join("recovery.begun"), "").expect("written");
    let (rows, damage, counted) = check_everywhere("recovery", dir.path());
    assert!((101..200).contains(&rows) && damage == 1 && counted.is_none(), "{rows} {damage} {counted:?}");
}

#[test]
fn a_walk_reads_a_record_that_begins_just_before_its_end() {
    let dir = directory();
    append(dir.path(), 0..20, (1 << 16, 2000), |_| 0);
    let all: Vec<i64> = read_log(dir.path(), None).rows.into_iter().collect();
    for behind in 1..12 {
        let end = all[10] as u64 + behind;
        let mut walk = LogWalk::new(open(dir.path()).log().clone(), 0, end, 0);
        let (mut damage, mut rows) = (DamageLog::default(), Vec::new());
        while walk.advance(&mut damage).expect("read") {
            rows.extend(offsets_of(walk.block(), None));
        }
        assert_eq!((rows, damage.entries().len()), (all[..=10].to_vec(), 0), "{behind}");
    }
}

/// Opens below a path.
fn opens_below(files: &MemoryFiles, path: &Path) -> u64 {
    files.take_counts().iter().filter(|(file, _)| file.starts_with(path)).map(|(_, requests)| requests.opens).sum()
}

#[test]
fn a_topic_without_queues_costs_no_look_at_others() {
    let dir = directory();
    append(dir.path(), 0..200, (1 << 18, 2000), |_| 0);
    fs::write(dir.path().join("queue.ends"), "").expect("written");
    fs::create_dir_all(dir.path().join("config")).expect("a directory");
    let config = r#"{"topicConfigTable":{"new":{"topicName":"new","readQueueNums":2,"writeQueueNums":2}}}"#;
    fs::write(dir.path().join("config/topics.json"), config).expect("written");
    let path = Path::new("/elsewhere/no-topic");
    let files = Arc::new(MemoryFiles::read(dir.path(), path, 0).expect("read"));
    let _mount = Mount::new(path, files.clone());
    let store = open(path);
    store.check_end().expect("whole");
    files.take_counts();
    let opens = |topic: &str| {
        let request = ScanRequest { topic: Some(topic.into()), ..ScanRequest::default() };
        Plan::new(&store, &request, None).expect("planned");
        opens_below(&files, &path.join("consumequeue"))
    };
    assert_eq!(opens("new"), 0);
    assert!(opens("T") > 0);
}

#[test]
fn a_bisection_over_two_files_does_not_alternate() {
    let dir = directory();
    append(dir.path(), 0..260, (1 << 18, 2000), |_| 0);
    let path = Path::new("/elsewhere/two-files");
    let files = Arc::new(MemoryFiles::read(dir.path(), path, 0).expect("read"));
    let _mount = Mount::new(path, files.clone());
    let queue = list_queues(&path.join("consumequeue"), "T").expect("listed").remove(0);
    assert_eq!(queue.segments().files().len(), 2);
    for offset in read_log(dir.path(), Some("T")).rows {
        files.take_counts();
        queue.lower_bound(offset as u64, 130).expect("found");
        let opens = opens_below(&files, path);
        assert!(opens <= 4, "{offset}: {opens}");
    }
}
