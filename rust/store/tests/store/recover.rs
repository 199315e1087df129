//! Stores that were torn, mutated or left behind: recovery gives every whole record up to the first that is none, and files
//! that are those of a store that nothing happened to.
use crate::directory;
use crate::figures::{Figures, Found};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rmqfast_store::Error;
use rmqfast_store::format::message::{Item, Layout, Message, NewMessage};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::consume_queue::UnitReader;
use rmqfast_store::store::recover::{Extent, recover};
use rmqfast_store::store::{LogWalk, MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

mod missing_end;
mod numbers;
mod small_files;

const TOPICS: [&str; 3] = ["orders", "clicks", "%RETRY%g"];
const STORED_AT: i64 = 1_700_000_000_000;

pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn options() -> AppendOptions {
    AppendOptions {
        file_size: 4096,
        queue_file_size: 200,
        index_slots: 16,
        index_entries: 40,
        ..AppendOptions::default()
    }
}

pub(crate) fn message(n: usize) -> OwnedMessage {
    let delay = if n % 11 == 3 { vec![("DELAY".to_owned(), "5".to_owned())] } else { Vec::new() };
    OwnedMessage {
        topic: TOPICS[n % 3].into(),
        body: vec![b'a' + (n % 26) as u8; 20 + n * 7 % 90],
        tags: (!n.is_multiple_of(4)).then(|| format!("t{}", n % 4)),
        keys: (!n.is_multiple_of(3)).then(|| format!("k{n} all")),
        properties: delay,
        queue_id: (n / 3 % 2) as i64,
        ..OwnedMessage::default()
    }
}

/// Messages `from..to`, a millisecond apart.
pub(crate) fn append(appender: &Appender, from: usize, to: usize) {
    for n in from..to {
        appender.append(&Messages::new(vec![message(n)]), Some(STORED_AT + n as i64), 0).expect("appended");
    }
}

/// A store of `count` messages that was not closed; the first half of them was flushed.
fn killed(count: usize) -> TempDir {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append(&appender, 0, count / 2);
    appender.flush().expect("flushed");
    append(&appender, count / 2, count);
    dir
}

fn copy(from: &Path) -> TempDir {
    let dir = directory();
    restore(dir.path(), &files(from));
    dir
}

fn restore(root: &Path, files: &Files) {
    for (path, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}

/// All files below `root`, by relative path.
pub(crate) fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(root).expect("below").to_path_buf();
                // a link that leads nowhere has no bytes
                let bytes = if entry.path().exists() { fs::read(entry.path()).expect("read") } else { Vec::new() };
                files.insert(name, bytes);
            }
        }
    }
    files
}

/// The files below one directory of a store, those that hold nothing left out.
pub(crate) fn part(files: &Files, name: &str) -> Files {
    let is_part = |(path, bytes): &(&PathBuf, &Vec<u8>)| path.starts_with(name) && bytes.iter().any(|byte| *byte != 0);
    files.iter().filter(is_part).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

/// The files that are not the same.
pub(crate) fn differing(a: &Files, b: &Files) -> Vec<PathBuf> {
    a.keys().chain(b.keys()).filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
}

/// The index without the names of its files, which are times.
pub(crate) fn index(files: &Files) -> Vec<Vec<u8>> {
    part(files, "index").into_values().collect()
}

/// Offsets of the records and of the log's end.
fn records(root: &Path) -> Vec<u64> {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let mut walk = LogWalk::new(store.log().clone(), 0, u64::MAX, 0);
    let mut places = Vec::new();
    while walk.advance(&mut DamageLog::default()).expect("read") {
        places.extend(walk.block().records.iter().map(|record| {
            let bytes = &walk.block().bytes[record.at as usize..];
            Message::new(bytes, record.layout).expect("whole").physical_offset() as u64
        }));
    }
    places.push(walk.position());
    places
}

/// Everything in the store agrees, and it has so many messages.
fn assert_sound(root: &Path, messages: usize) {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let report = store.verify(true, &mut |_, _| Ok(())).expect("read");
    let (bad, count) = (report.damage.entries(), report.messages as usize);
    assert_eq!((bad, report.unlisted, report.forgotten, count), (&[][..], 0, 0, messages));
}

fn recovered(root: &Path, extent: Extent) -> rmqfast_store::Result<()> {
    recover(root, &options(), extent, None, &mut |_, _| Ok(())).map(|_| ())
}

#[test]
fn a_killed_store_opens_goes_on_and_closes() {
    let dir = killed(200);
    let whole = files(dir.path());
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    let done = appender.recovery().expect("it was killed").clone();
    assert_eq!((done.cut_bytes, done.units, done.unlisted), (0, 0, 0), "{done:?}");
    let opened = files(dir.path());
    assert_eq!(differing(&part(&opened, "consumequeue"), &part(&whole, "consumequeue")), Vec::<PathBuf>::new());
    append(&appender, 200, 230);
    appender.close().expect("closed");
    assert_sound(dir.path(), 230);
    assert!(!dir.path().join("abort").exists());
    let again = Appender::open(dir.path(), options()).expect("sound");
    assert!(again.recovery().is_none());
}

#[test]
fn a_tail_torn_at_any_byte_ends_behind_the_last_whole_record() {
    let dir = killed(60);
    let (whole, places) = (files(dir.path()), records(dir.path()));
    let name = part(&whole, "commitlog").into_keys().last().expect("a file");
    let base: u64 = name.file_name().and_then(|n| n.to_str()).expect("a name").parse().expect("a number");
    let end = places[places.len() - 1];
    let old = &whole[whole.keys().find(|path| path.starts_with("commitlog")).expect("a file")];
    let log = &whole[&name];
    let mut figures = Figures::new("a tail torn at a byte");
    let case = |cut: u64, fill: &[u8]| {
        let last = places.iter().rposition(|place| *place <= cut).expect("one");
        let record = Layout::decode(&log[(places[last] - base) as usize..]);
        // what no checksum guards may be torn unseen, unless zeroes took its place
        let unguarded = matches!(record, Ok(Item::Message(l)) if cut > places[last] + u64::from(l.body + l.body_len));
        let dir = directory();
        restore(dir.path(), &whole);
        let (mut log, at) = (log.clone(), (cut - base) as usize);
        let len = fill.len().min(log.len() - at);
        log[at..].fill(0);
        log[at..at + len].copy_from_slice(&fill[..len]);
        fs::write(dir.path().join(&name), log).expect("written");
        let appender = Appender::open(dir.path(), options()).expect("recovered");
        let log_end = appender.recovery().expect("it was killed").log_end;
        let is_zero = fill.iter().all(|byte| *byte == 0);
        let allowed = log_end == places[last] || unguarded && !is_zero && log_end == places[last + 1];
        assert!(allowed, "cut at {cut}, filled with {:?}: {log_end}", &fill[..8]);
        if cut.is_multiple_of(16) && log_end == places[last] {
            append(&appender, last, last + 3);
            appender.close().expect("closed");
            assert_sound(dir.path(), last + 3);
        }
        Found::default()
    };
    for cut in places[places.len() - 4]..end {
        for fill in [&[0_u8; 300][..], &[0xA7; 300], &old[..300]] {
            figures.run(cut, || case(cut, fill));
        }
    }
    figures.tell();
}

#[test]
fn units_of_records_that_are_gone_do_not_come_back() {
    let dir = killed(60);
    let (whole, places) = (files(dir.path()), records(dir.path()));
    let name = part(&whole, "commitlog").into_keys().last().expect("a file");
    let mut log = whole[&name].clone();
    let at = places[50] as usize % 4096;
    log[at..].fill(0);
    fs::write(dir.path().join(&name), log).expect("written");
    for later in whole.keys().filter(|path| path.starts_with("commitlog") && **path > name) {
        fs::remove_file(dir.path().join(later)).expect("removed");
    }
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    append(&appender, 50, 60);
    appender.close().expect("closed");
    let repaired = files(dir.path());
    for name in ["consumequeue", "commitlog"] {
        assert_eq!(differing(&part(&repaired, name), &part(&whole, name)), Vec::<PathBuf>::new());
    }
    assert!(index(&repaired) == index(&whole), "the index differs");
}

#[test]
fn damage_of_what_was_flushed_is_refused_and_nothing_is_cut() {
    let dir = killed(120);
    let places = records(dir.path());
    fs::remove_file(dir.path().join("abort")).expect("was there");
    let name = dir.path().join(format!("commitlog/{:020}", places[40] / 4096 * 4096));
    let mut log = fs::read(&name).expect("read");
    log[places[40] as usize % 4096 + 90] ^= 1;
    fs::write(&name, &log).expect("written");
    let before = files(dir.path());
    match recovered(dir.path(), Extent::Whole) {
        Err(Error::Corrupt { path, reason, .. }) => assert!(path == name && reason.contains("goes on"), "{reason}"),
        other => panic!("{other:?}"),
    }
    for name in ["commitlog", "consumequeue"] {
        assert_eq!(part(&files(dir.path()), name), part(&before, name));
    }
}

#[test]
fn a_log_that_is_gone_does_not_empty_the_queues() {
    let dir = killed(60);
    fs::remove_dir_all(dir.path().join("commitlog")).expect("removed");
    assert!(dir.path().join("checkpoint").exists(), "half of it was flushed");
    let before = files(dir.path());
    let error = Appender::open(dir.path(), options()).expect_err("refused").to_string();
    assert!(error.contains("expected the commit log to end at") && error.contains("no file"), "{error}");
    assert_eq!(part(&files(dir.path()), "consumequeue"), part(&before, "consumequeue"));
}

#[test]
fn a_queue_that_lost_its_end_is_listed_again_after_a_clean_stop() {
    let dir = killed(120);
    Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("closed");
    let whole = files(dir.path());
    let queue: Vec<_> = whole.keys().filter(|path| path.starts_with("consumequeue/orders/0")).collect();
    for lost in [&queue[..1], &queue[queue.len() - 1..], &queue[..]] {
        let dir = directory();
        restore(dir.path(), &whole);
        lost.iter().for_each(|path| fs::remove_file(dir.path().join(path)).expect("removed"));
        recovered(dir.path(), Extent::Whole).expect("recovered");
        assert_eq!(
            differing(&part(&files(dir.path()), "consumequeue"), &part(&whole, "consumequeue")),
            Vec::<PathBuf>::new()
        );
    }
}

#[test]
fn a_log_whose_beginning_expired_gives_queues_that_begin_later() {
    let dir = killed(120);
    fs::remove_file(dir.path().join("commitlog/00000000000000000000")).expect("removed");
    fs::remove_dir_all(dir.path().join("consumequeue")).expect("removed");
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    appender.close().expect("closed");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    let report = store.verify(true, &mut |_, _| Ok(())).expect("read");
    assert_eq!((report.damage.entries(), report.unlisted), (&[][..], 0));
    assert!(store.queues("orders").expect("listed").iter().all(|queue| queue.max_offset().expect("read") > 10));
}

#[test]
fn a_topic_that_was_made_again_lists_its_new_messages_only() {
    let dir = directory();
    fs::create_dir_all(dir.path().join("commitlog")).expect("made");
    let host = AppendOptions::default().store_host;
    let mut log = Vec::new();
    for queue_offset in [0, 1, 2, 3, 0, 1] {
        let message = NewMessage {
            queue_id: 0,
            flag: 0,
            queue_offset,
            physical_offset: log.len() as i64,
            sys_flag: 0,
            born_timestamp: STORED_AT,
            born_host: host,
            store_timestamp: STORED_AT,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: b"body",
            topic: "orders",
            properties: b"",
        };
        message.encode(&mut log).expect("encoded");
    }
    let second = (4 * log.len() / 6) as i64;
    log.resize(4096, 0);
    fs::write(dir.path().join("commitlog/00000000000000000000"), log).expect("written");
    recovered(dir.path(), Extent::Whole).expect("recovered");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    let queues = store.queues("orders").expect("listed");
    assert_eq!(queues[0].max_offset().expect("read"), 2);
    assert_eq!(UnitReader::new(&queues[0]).unit(0).expect("read").map(|unit| unit.physical_offset), Some(second));
}

/// A change of a file: of one byte, of its length, of a stretch, or its removal.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(prop::sample::Index, u8),
    Zero(prop::sample::Index, usize),
    Cut(prop::sample::Index),
    Longer(usize),
    Remove,
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), 1..=255_u8).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        2 => (at(), 1..100_usize).prop_map(|(at, len)| Mutation::Zero(at, len)),
        1 => at().prop_map(Mutation::Cut),
        1 => (1..300_usize).prop_map(Mutation::Longer),
        1 => Just(Mutation::Remove),
    ]
}

fn mutate(path: &Path, mutation: &Mutation) {
    let mut bytes = fs::read(path).expect("read");
    match mutation {
        Mutation::Remove => return fs::remove_file(path).expect("removed"),
        Mutation::Longer(more) => bytes.resize(bytes.len() + more, 0x5A),
        _ if bytes.is_empty() => {}
        Mutation::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Mutation::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Mutation::Zero(at, len) => {
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + len);
            bytes[at..end].fill(0);
        }
    }
    fs::write(path, bytes).expect("written");
}

#[test]
fn queues_and_index_are_built_again_byte_for_byte() {
    let sample = sample();
    let mut figures = Figures::new("queues and index mutated");
    for seed in mutation_seeds() {
        figures.run(seed, || {
            let changes = chosen(seed, &prop::collection::vec((any::<prop::sample::Index>(), mutations()), 1..4));
            let dir = copy(sample.path());
            let whole = files(dir.path());
            // of a unit of the delay topic the time is taken as it is, as a broker may have other levels
            let delay_topic = Path::new("consumequeue/SCHEDULE_TOPIC_XXXX");
            let is_rebuilt = |path: &&PathBuf| {
                path.starts_with("index") || path.starts_with("consumequeue") && !path.starts_with(delay_topic)
            };
            let others: Vec<_> = whole.keys().filter(is_rebuilt).collect();
            for (which, mutation) in &changes {
                let path = dir.path().join(others[which.index(others.len())]);
                if path.exists() {
                    mutate(&path, mutation);
                }
            }
            recovered(dir.path(), Extent::Whole).expect("recovered");
            let repaired = files(dir.path());
            for name in ["consumequeue", "commitlog"] {
                assert_eq!(differing(&part(&repaired, name), &part(&whole, name)), Vec::<PathBuf>::new());
            }
            assert!(index(&repaired) == index(&whole), "the index differs");
            assert_sound(dir.path(), 120);
            Found::default()
        });
    }
    figures.tell();
}

#[test]
fn a_queue_whose_files_are_all_too_long_is_built_again() {
    let sample = sample();
    let dir = copy(sample.path());
    let whole = files(dir.path());
    // the second file begins inside the first one now, so it is no file of the queue by its place
    for path in whole.keys().filter(|path| path.starts_with("consumequeue/clicks/1")) {
        mutate(&dir.path().join(path), &Mutation::Longer(191));
    }
    recovered(dir.path(), Extent::Whole).expect("recovered");
    let queues = |files: &_| part(files, "consumequeue");
    assert_eq!(differing(&queues(&files(dir.path())), &queues(&whole)), Vec::<PathBuf>::new());
}

/// How many mutations are tried: 50,000 by hand.
fn mutation_seeds() -> Vec<u64> {
    crate::figures::seeds("RMQFAST_MUTATIONS", 300)
}

/// What the strategy gives for a seed; it is shown where one seed is run alone.
fn chosen<T: std::fmt::Debug>(seed: u64, strategy: &impl Strategy<Value = T>) -> T {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let value = strategy.new_tree(&mut TestRunner::new_with_rng(Config::default(), rng)).expect("chosen").current();
    if mutation_seeds().len() == 1 {
        println!("{value:?}");
    }
    value
}

/// A store that was closed, made once a thread.
fn sample() -> std::rc::Rc<TempDir> {
    thread_local!(static SAMPLE: std::rc::Rc<TempDir> = {
        let dir = killed(120);
        Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("closed");
        std::rc::Rc::new(dir)
    });
    SAMPLE.with(std::rc::Rc::clone)
}
