//! Retention of stores that are open: what remains is whole, wherever a run ends, and whoever reads or appends meanwhile.
use crate::chance::Chance;
use crate::directory;
use rmqfast_store::Error;
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::format::index::IndexHeader;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{AppendOptions, Appender, Flush, Messages, OwnedMessage, repair};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::queue_view::Topics;
use rmqfast_store::store::retain::{CleanReport, Clock, DeleteWhen, RetainOptions, Situation, preview};
use rmqfast_store::store::{GetMessageStatus, LogWalk, MessageStore, OpenOptions};
use rmqfast_waiting::{deadline, until};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

const STORED_AT: i64 = 1_700_000_000_000;
const LOG_FILE: u64 = 4096;
const QUEUE_FILE: u64 = 200;
const HOUR_MS: i64 = 3_600_000;
/// Nothing is forced, so that how full the machine's disk is does not matter.
fn retain() -> RetainOptions {
    RetainOptions { clean_forcibly: false, warning_percent: 100, ..RetainOptions::default() }
}

fn options() -> AppendOptions {
    AppendOptions {
        file_size: LOG_FILE,
        queue_file_size: QUEUE_FILE,
        index_slots: 16,
        index_entries: 40,
        retain: Some(retain()),
        ..AppendOptions::default()
    }
}

/// A message as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    topic: String,
    queue_id: i32,
    queue_offset: i64,
    physical_offset: u64,
    body: Vec<u8>,
}

/// Message `n` of a store: some topics have messages at its beginning only.
fn message(n: u64, chance: &mut Chance) -> OwnedMessage {
    let topic = match chance.below(10) {
        0..=3 => "orders",
        4..=6 => "clicks",
        7 if n < 60 => "early",
        _ => "%RETRY%g",
    };
    OwnedMessage {
        topic: topic.into(),
        body: vec![b'a' + (n % 26) as u8; 20 + chance.below(200) as usize],
        tags: Some(format!("t{}", n % 3)),
        keys: (!n.is_multiple_of(3)).then(|| format!("k{n}")),
        properties: if n % 17 == 5 { vec![("DELAY".into(), "3".into())] } else { Vec::new() },
        queue_id: chance.below(2) as i64,
        ..OwnedMessage::default()
    }
}

fn append(appender: &Appender, n: u64, chance: &mut Chance) -> rmqfast_store::Result<Stored> {
    let message = message(n, chance);
    let is_delayed = !message.properties.is_empty();
    let topic = if is_delayed { "SCHEDULE_TOPIC_XXXX".to_owned() } else { message.topic.clone() };
    let body = message.body.clone();
    let done = appender.append(&Messages::new(vec![message]), Some(STORED_AT + n as i64), 0)?;
    let place = done.last.expect("one message");
    Ok(Stored {
        topic,
        queue_id: place.queue_id,
        queue_offset: place.queue_offset,
        physical_offset: place.physical_offset as u64,
        body,
    })
}

fn append_all(appender: &Appender, numbers: std::ops::Range<u64>, chance: &mut Chance) -> Vec<Stored> {
    numbers.map(|n| append(appender, n, chance).expect("appended")).collect()
}

/// The files of one directory of a store, oldest first.
fn files(root: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(name)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn base(path: &Path) -> u64 {
    path.file_name().expect("a name").to_string_lossy().parse().expect("an offset")
}

/// Makes the oldest files of the log look as if they had been written so many hours ago.
fn age(root: &Path, count: usize, hours: u64) {
    let when = SystemTime::now() - Duration::from_secs(hours * 3600);
    for path in files(root, "commitlog").iter().take(count) {
        File::options().write(true).open(path).and_then(|file| file.set_modified(when)).expect("a time");
    }
}

fn open(root: &Path) -> MessageStore {
    MessageStore::open(root, &OpenOptions::default()).expect("opened")
}

fn scanned(store: &MessageStore) -> Vec<Stored> {
    let mut walk = LogWalk::new(store.log().clone(), 0, u64::MAX, 0).without_waiting();
    let (mut records, mut damage) = (Vec::new(), DamageLog::default());
    while walk.advance(&mut damage).expect("read") {
        let block = walk.block();
        records.extend(block.records.iter().map(|record| {
            let message = Message::new(&block.bytes[record.at as usize..], record.layout).expect("whole");
            Stored {
                topic: String::from_utf8_lossy(message.topic()).into_owned(),
                queue_id: message.queue_id(),
                queue_offset: message.queue_offset(),
                physical_offset: message.physical_offset() as u64,
                body: message.body().to_vec(),
            }
        }));
    }
    assert_eq!(damage.entries(), []);
    records
}

/// What `topics` has to say of a store of these messages whose log begins at `min_offset`.
fn bounds(all: &[Stored], min_offset: u64) -> Topics {
    let mut topics = Topics::new();
    for stored in all {
        let queue = topics.entry(stored.topic.clone()).or_default().entry(stored.queue_id).or_insert((i64::MAX, 0));
        queue.1 = stored.queue_offset + 1;
        if stored.physical_offset >= min_offset {
            queue.0 = queue.0.min(stored.queue_offset);
        }
    }
    // a queue whose messages are all gone keeps its offset
    topics.values_mut().flat_map(BTreeMap::values_mut).for_each(|queue| queue.0 = queue.0.min(queue.1));
    topics
}

/// Scan, bounds, look-ups and a check of everything: the store is one of these messages from `min_offset` on.
fn assert_retained(root: &Path, all: &[Stored], min_offset: u64) {
    let store = open(root);
    let left: Vec<Stored> = all.iter().filter(|stored| stored.physical_offset >= min_offset).cloned().collect();
    assert_eq!(store.log().min_offset(), min_offset);
    assert!(scanned(&store) == left, "the log is another");
    assert_eq!(store.topics().expect("read"), bounds(all, min_offset));
    for (topic, queues) in bounds(all, min_offset) {
        for (queue_id, (min, max)) in queues {
            assert_pulls(&store, &left, (&topic, queue_id), (min, max));
        }
    }
    let report = store.verify(true, &mut |_, _| Ok(())).expect("read");
    assert_eq!((report.damage.entries(), report.unlisted, report.forgotten), (&[][..], 0, 0));
    assert_eq!(report.messages, left.len() as u64);
}

/// From min to max a queue gives exactly its messages; before min a pull is sent to min.
fn assert_pulls(store: &MessageStore, left: &[Stored], queue: (&str, i32), (min, max): (i64, i64)) {
    let all = TagExpression::parse("*").expect("tags");
    let get = |offset| store.get(queue.0, queue.1, offset, 32, &all).expect("read");
    if min > 0 {
        let early = get(min - 1);
        assert_eq!((early.status, early.next_begin_offset), (GetMessageStatus::OffsetTooSmall, min), "{queue:?}");
    }
    let (mut at, mut bodies) = (min, Vec::new());
    while at < max {
        let got = get(at);
        assert_eq!((got.status, &got.damage[..]), (GetMessageStatus::Found, &[][..]), "{queue:?} {at}");
        bodies.extend(got.records.iter().map(|r| Message::decode(r).expect("whole").body().to_vec()));
        at = got.next_begin_offset;
    }
    assert_eq!(get(max).status, GetMessageStatus::OffsetOverflowOne);
    let is_ours = |stored: &&Stored| (stored.topic.as_str(), stored.queue_id) == queue;
    assert!(left.iter().filter(is_ours).map(|stored| &stored.body).eq(&bodies), "{queue:?} gives other messages");
}

/// No leading file is left of a queue or of the index that lists only what is gone, and none more was removed.
fn assert_lists(root: &Path, all: &[Stored], min_offset: u64, index_before: &[PathBuf]) {
    for (topic, queues) in bounds(all, 0) {
        for (queue_id, _) in queues {
            let units: Vec<u64> = all
                .iter()
                .filter(|stored| stored.topic == topic && stored.queue_id == queue_id)
                .map(|stored| stored.physical_offset)
                .collect();
            let per_file = (QUEUE_FILE / 20) as usize;
            let last = (units.len() - 1) / per_file;
            let gone = (0..last).take_while(|n| units[(n + 1) * per_file - 1] < min_offset).count();
            let offsets: Vec<u64> =
                files(root, &format!("consumequeue/{topic}/{queue_id}")).iter().map(|p| base(p)).collect();
            let expected: Vec<u64> = (gone..=last).map(|n| n as u64 * QUEUE_FILE).collect();
            assert_eq!(offsets, expected, "{topic} {queue_id}");
        }
    }
    let left = files(root, "index");
    assert!(index_before.ends_with(&left));
    let end = |path: &PathBuf| IndexHeader::decode(&fs::read(path).expect("read")).expect("a header").end_phy_offset;
    assert!(left.len() == 1 || end(&left[0]) >= min_offset as i64);
}

/// Runs until nothing more goes.
fn clean(appender: &Appender) -> Vec<CleanReport> {
    let mut runs = Vec::new();
    loop {
        let cleaned = appender.clean(None, true).expect("cleaned");
        let is_over = cleaned.log_files == 0;
        runs.push(cleaned);
        if is_over {
            return runs;
        }
    }
}

#[test]
fn what_remains_of_random_stores_is_whole_and_they_go_on() {
    for seed in 0..40 {
        println!("seed {seed}");
        let (dir, mut chance) = (directory(), Chance(seed));
        let appender = Appender::open(dir.path(), options()).expect("new");
        let count = 20 + chance.below(400);
        let mut all = append_all(&appender, 0..count, &mut chance);
        let log = files(dir.path(), "commitlog");
        let written = log.iter().filter(|path| base(path) <= all[all.len() - 1].physical_offset).count();
        let old = chance.below(written as u64 + 1) as usize;
        age(dir.path(), old, 73);
        let index = files(dir.path(), "index");
        let planned = preview(dir.path(), &retain(), Clock::now().wall_ms).expect("planned");
        let runs = clean(&appender);
        let gone = old.min(written - 1);
        assert_eq!(runs.iter().map(|run| run.log_files).sum::<usize>(), gone);
        assert!(runs.iter().all(|run| run.log_files <= 10 && run.is_writable && run.clock_jump_ms == 0));
        let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
        assert_eq!(planned.files().map(|file| file.bytes).sum::<u64>(), bytes);
        assert!(planned.files().all(|file| !file.path.exists()));
        let min_offset = base(&log[gone]);
        assert_eq!((runs[runs.len() - 1].min_offset, planned.min_offset), (min_offset, min_offset));
        assert_retained(dir.path(), &all, min_offset);
        assert_lists(dir.path(), &all, min_offset, &index);
        all.extend(append_all(&appender, count..count + 30, &mut chance));
        let is_closed = chance.below(2) == 0;
        if is_closed {
            appender.close().expect("closed");
        }
        drop(appender);
        assert_retained(dir.path(), &all, min_offset);
        let appender = Appender::open(dir.path(), options()).expect("opened");
        assert_eq!(appender.recovery().is_none(), is_closed);
        all.extend(append_all(&appender, count + 30..count + 60, &mut chance));
        appender.close().expect("closed");
        assert_retained(dir.path(), &all, min_offset);
        repair(dir.path(), options(), None, &mut |_, _| Ok(())).expect("repaired");
        assert_retained(dir.path(), &all, min_offset);
    }
}

#[test]
fn without_options_nothing_goes() {
    let dir = directory();
    let appender = Appender::open(dir.path(), AppendOptions { retain: None, ..options() }).expect("new");
    append_all(&appender, 0..100, &mut Chance(1));
    age(dir.path(), 3, 1000);
    let error = appender.clean(None, true).expect_err("refused");
    assert!(matches!(error, Error::Invalid { what: "retention", .. }), "{error}");
    assert_eq!(base(&files(dir.path(), "commitlog")[0]), 0);
}

#[test]
fn a_closed_store_is_not_cleaned() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append_all(&appender, 0..100, &mut Chance(1));
    age(dir.path(), 3, 1000);
    appender.close().expect("closed");
    assert!(appender.clean(None, true).expect_err("closed").to_string().contains("closed"));
    assert!(appender.clean_expired_queues().expect_err("closed").to_string().contains("closed"));
    assert_eq!(base(&files(dir.path(), "commitlog")[0]), 0);
}

fn situation(used_percent: u8, manual: bool) -> Situation {
    Situation { clock: Clock::now(), used_percent: Some(used_percent), manual }
}

fn options_for(retain: RetainOptions) -> AppendOptions {
    AppendOptions { retain: Some(retain), ..options() }
}

/// An hour of the day that is neither this one nor the next.
fn other_hour() -> DeleteWhen {
    let hour = (Clock::now().wall_ms / HOUR_MS + 12) % 24;
    DeleteWhen::parse(&format!("{hour:02}")).expect("an hour")
}

#[test]
fn a_full_disk_refuses_messages_gives_up_old_files_and_heals() {
    let dir = directory();
    // the real disk has no say
    let retain = RetainOptions { delete_when: other_hour(), first_look_ms: i64::MAX, ..RetainOptions::default() };
    let appender = Appender::open(dir.path(), options_for(retain)).expect("new");
    let mut chance = Chance(3);
    let mut all = append_all(&appender, 0..300, &mut chance);
    age(dir.path(), 2, 73);
    let run = |used| appender.clean_in(situation(used, false)).expect("a run");
    assert_eq!(run(75).log_files, 0, "not its hour");
    assert_eq!(run(76).log_files, 2, "those that are old");
    assert_eq!(run(85).log_files, 0);
    let forced = run(86);
    assert_eq!((forced.log_files, forced.is_writable), (10, true), "the oldest, however young");
    all.push(append(&appender, 300, &mut chance).expect("taken"));
    let full = run(91);
    assert!(!full.is_writable);
    let error = append(&appender, 301, &mut Chance(9)).expect_err("refused");
    assert!(matches!(error, Error::NotWritable { .. }), "{error}");
    for part in ["SERVICE_NOT_AVAILABLE", "91 %", "90 %", "diskSpaceWarningLevelRatio"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_retained(dir.path(), &all, full.min_offset);
    appender.flush().expect("what was taken is flushed");
    let healed = run(50);
    assert!(healed.is_writable);
    all.push(append(&appender, 302, &mut chance).expect("taken again"));
    appender.close().expect("closed");
    assert_retained(dir.path(), &all, healed.min_offset);
}

#[test]
fn a_clock_that_jumps_removes_nothing_until_it_is_confirmed() {
    let dir = directory();
    let everywhen: Vec<String> = (0..24).map(|hour| hour.to_string()).collect();
    let delete_when = DeleteWhen::parse(&everywhen.join(";")).expect("hours");
    let appender = Appender::open(dir.path(), options_for(RetainOptions { delete_when, ..retain() })).expect("new");
    append_all(&appender, 0..100, &mut Chance(1));
    let at = |hours: i64, off: i64| {
        let now = Clock::now();
        let clock =
            Clock { wall_ms: now.wall_ms + (hours + off) * HOUR_MS, steady_ms: now.steady_ms + hours * HOUR_MS };
        Situation { clock, used_percent: Some(1), manual: false }
    };
    let run = |situation| appender.clean_in(situation).expect("a run");
    let ten_years = 87_600;
    assert_eq!(run(at(0, 0)).log_files, 0);
    let jumped = run(at(0, ten_years));
    // the two clocks are not read in the same millisecond
    assert_eq!((jumped.log_files, (jumped.clock_jump_ms + HOUR_MS / 2) / HOUR_MS), (0, ten_years));
    assert_eq!(run(at(12, ten_years)).log_files, 0);
    assert_eq!(run(at(13, 0)).clock_jump_ms, 0, "right again");
    assert_eq!(run(at(14, ten_years)).log_files, 0, "the day begins anew");
    assert_eq!(run(at(37, ten_years)).log_files, 0);
    let left = files(dir.path(), "commitlog").len();
    let agreed = run(at(38, ten_years));
    assert_eq!((agreed.clock_jump_ms, files(dir.path(), "commitlog").len()), (0, left - agreed.log_files));
    assert!(agreed.log_files > 0);
}

#[test]
fn a_file_of_the_future_is_not_old() {
    let dir = directory();
    let young = RetainOptions { file_reserved_hours: 0, ..retain() };
    let appender = Appender::open(dir.path(), options_for(young)).expect("new");
    append_all(&appender, 0..100, &mut Chance(1));
    let second = files(dir.path(), "commitlog")[1].clone();
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    File::options().write(true).open(second).and_then(|file| file.set_modified(tomorrow)).expect("a time");
    assert_eq!(clean(&appender).iter().map(|run| run.log_files).sum::<usize>(), 1);
}

#[test]
fn the_owners_thread_cleans_and_looks_at_the_disk_by_itself() {
    let dir = directory();
    let mine = RetainOptions { disk_max_used_percent: 10, first_run_ms: 0, interval_ms: 100, ..retain() };
    let delete_when =
        DeleteWhen::parse("0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23").expect("hours");
    let appender = Appender::open(dir.path(), options_for(RetainOptions { delete_when, ..mine })).expect("new");
    let mut chance = Chance(5);
    let mut all = append_all(&appender, 0..300, &mut chance);
    age(dir.path(), 13, 73);
    until("its thread runs", || base(&files(dir.path(), "commitlog")[0]) >= 13 * LOG_FILE);
    assert!(appender.clean_runs() > 0);
    all.extend(append_all(&appender, 300..330, &mut chance));
    appender.close().expect("closed");
    assert_eq!(appender.last_clean().map(|cleaned| cleaned.min_offset), Some(13 * LOG_FILE));
    assert_retained(dir.path(), &all, 13 * LOG_FILE);
}

#[test]
fn others_append_and_read_while_files_go() {
    let dir = directory();
    let young = RetainOptions { file_reserved_hours: 0, ..retain() };
    let appender = Appender::open(dir.path(), options_for(young)).expect("new");
    let mut all = append_all(&appender, 0..50, &mut Chance(99));
    let (is_over, read) = (AtomicBool::new(false), AtomicU64::new(0));
    let removed = thread::scope(|scope| {
        let appending = [0, 1].map(|thread| {
            let appender = &appender;
            scope.spawn(move || {
                let mut chance = Chance(thread);
                (100..1100).map(|n| append(appender, 2 * n + thread, &mut chance)).collect::<Result<Vec<_>, _>>()
            })
        });
        let reading = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                read.fetch_add(read_all(dir.path()), Ordering::SeqCst);
            }
        });
        let mut removed: rmqfast_store::Result<usize> = Ok(0);
        while removed.is_ok() && !appending.iter().all(thread::ScopedJoinHandle::is_finished) {
            removed = removed.and_then(|removed| Ok(removed + appender.clean(None, true)?.log_files));
        }
        appending.into_iter().for_each(|t| all.extend(t.join().expect("no panic").expect("appended")));
        // on a busy machine, the appends may end before the first read does
        until("it reads", || reading.is_finished() || read.load(Ordering::SeqCst) > 0);
        is_over.store(true, Ordering::SeqCst);
        reading.join().expect("what retention removed is no damage");
        removed.expect("cleaned")
    });
    all.sort_by_key(|stored| stored.physical_offset);
    assert!(removed > 0 && read.load(Ordering::SeqCst) > 0, "{removed} {read:?}");
    let min_offset = open(dir.path()).log().min_offset();
    assert_eq!(min_offset, removed as u64 * LOG_FILE);
    appender.close().expect("closed");
    assert_retained(dir.path(), &all, min_offset);
}

/// Reads each queue from its min offset as a consumer would; how many messages it was given.
fn read_all(root: &Path) -> u64 {
    let (store, all) = (open(root), TagExpression::parse("*").expect("tags"));
    let mut read = 0;
    for (topic, queues) in store.topics().expect("listed") {
        for (queue_id, (min, max)) in queues {
            assert!(min <= max);
            let got = store.get(&topic, queue_id, min, 32, &all).expect("read");
            assert_eq!(got.damage, []);
            read += got.records.len() as u64;
        }
    }
    read
}

#[test]
fn a_reader_from_before_is_told_of_retention() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append_all(&appender, 0..100, &mut Chance(1));
    let store = open(dir.path());
    let mut walk = LogWalk::new(store.log().clone(), 0, u64::MAX, 0);
    age(dir.path(), 2, 73);
    clean(&appender);
    let mut damage = DamageLog::default();
    assert!(walk.advance(&mut damage).expect("read"));
    let reported: Vec<_> =
        damage.entries().iter().map(|damage| (damage.offset, damage.length, &*damage.reason)).collect();
    let reason = "retention removed the file since the store was opened: the log begins at 8192 now";
    assert_eq!(reported, [(0, LOG_FILE, reason), (LOG_FILE, LOG_FILE, reason)]);
    // a pull is only sent to the first message that is left
    let pulled = store.get("orders", 0, 0, 32, &TagExpression::parse("*").expect("tags")).expect("read");
    assert_eq!((pulled.damage, pulled.next_begin_offset > 0), (Vec::new(), true));
}

#[test]
fn a_check_passes_over_units_of_files_that_came_since_the_store_was_opened() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    append_all(&appender, 0..20, &mut Chance(1));
    let store = open(dir.path());
    append_all(&appender, 20..100, &mut Chance(2));
    let damage = || store.verify(true, &mut |_, _| Ok(())).expect("read").damage.entries().len();
    assert_eq!(damage(), 0);
    // a unit that leads behind all files of the log is damage, whoever owns the store
    let end = store.as_of_now().expect("opened").topics().expect("read")["orders"][&0].1;
    let path = dir.path().join(format!("consumequeue/orders/0/{:020}", end as u64 * 20 / QUEUE_FILE * QUEUE_FILE));
    let file = File::options().read(true).write(true).open(path).expect("opened");
    let at = end as u64 * 20 % QUEUE_FILE;
    file.write_all_at(&[&(1_u64 << 40).to_be_bytes()[..], &100_u32.to_be_bytes(), &[0; 8]].concat(), at)
        .expect("written");
    assert!(damage() > 0);
}

/// Lets the n-th call of one thread fail, and with `for_good` all after it, too.
struct Failing {
    thread: ThreadId,
    calls: AtomicU64,
    fails_at: u64,
    for_good: bool,
}

impl Watcher for Failing {
    fn before(&self, _: Call, _: &Path) -> io::Result<()> {
        if self.thread != thread::current().id() {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call == self.fails_at || self.for_good && call > self.fails_at {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }
    fn after(&self, _: Call, _: &Path) {}
}

/// A store of which some files are old, with what was appended to it.
fn aged() -> (TempDir, Appender, Vec<Stored>) {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    let all = append_all(&appender, 0..220, &mut Chance(7));
    age(dir.path(), 9, 73);
    (dir, appender, all)
}

#[test]
fn whatever_call_fails_nothing_that_is_retained_is_lost() {
    for for_good in [false, true] {
        for n in 1.. {
            let (dir, appender, mut all) = aged();
            let (thread, calls) = (thread::current().id(), AtomicU64::new(0));
            let failing = Arc::new(Failing { thread, calls, fails_at: n, for_good });
            let watch = disk::watch(dir.path(), failing.clone());
            let cleaned = appender.clean(None, true);
            let has_failed = failing.calls.load(Ordering::SeqCst) >= n;
            drop(appender); // as a process that dies then
            drop(watch);
            assert_eq!(cleaned.is_err(), has_failed, "call {n}");
            let appender = Appender::open(dir.path(), options()).expect("recovered");
            let min_offset = open(dir.path()).log().min_offset();
            assert!(min_offset <= 9 * LOG_FILE && min_offset.is_multiple_of(LOG_FILE));
            assert_retained(dir.path(), &all, min_offset);
            all.extend(append_all(&appender, 220..240, &mut Chance(n)));
            clean(&appender);
            appender.close().expect("closed");
            assert_retained(dir.path(), &all, 9 * LOG_FILE);
            if !has_failed {
                assert!(n > 30, "{n} calls are not a run");
                break;
            }
        }
    }
}

#[test]
fn a_file_that_cannot_be_removed_stops_a_run_and_not_the_store() {
    struct NoRemove;
    impl Watcher for NoRemove {
        fn before(&self, call: Call, _: &Path) -> io::Result<()> {
            if call == Call::Remove { Err(io::Error::from_raw_os_error(1)) } else { Ok(()) }
        }
        fn after(&self, _: Call, _: &Path) {}
    }
    let (dir, appender, mut all) = aged();
    let third = files(dir.path(), "commitlog")[2].clone();
    let watch = disk::watch(&third, Arc::new(NoRemove));
    let error = appender.clean(None, true).expect_err("refused").to_string();
    assert!(error.contains(&*third.to_string_lossy()), "{error}");
    assert_eq!(files(dir.path(), "commitlog")[0], third);
    drop(watch);
    all.extend(append_all(&appender, 220..240, &mut Chance(8)));
    let runs = clean(&appender);
    assert_eq!(runs[0].log_files, 7);
    appender.close().expect("closed");
    assert_retained(dir.path(), &all, 9 * LOG_FILE);
}

#[test]
fn expired_queues_and_unused_topics_go_as_a_whole_and_begin_again() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("new");
    let mut all = append_all(&appender, 0..220, &mut Chance(7));
    assert_eq!(appender.clean_expired_queues().expect("cleaned"), [], "all messages are there");
    age(dir.path(), 9, 73);
    clean(&appender);
    let gone = appender.clean_expired_queues().expect("cleaned");
    assert_eq!(gone, [("early".to_owned(), 0), ("early".to_owned(), 1)]);
    assert!(!dir.path().join("consumequeue/early").exists());
    all.retain(|stored| stored.topic != "early");
    assert_retained(dir.path(), &all, 9 * LOG_FILE);
    let again = |topic: &str| {
        let message = OwnedMessage { topic: topic.into(), body: b"again".to_vec(), ..OwnedMessage::default() };
        let done = appender.append(&Messages::new(vec![message]), Some(STORED_AT + 1000), 0).expect("appended");
        done.last.expect("one").queue_offset
    };
    assert_eq!((again("early"), again("early")), (0, 1));
    let configured = BTreeSet::from(["orders".to_owned(), "%RETRY%g".to_owned(), "early".to_owned()]);
    let unused = appender.clean_unused_topics(&configured).expect("cleaned");
    assert_eq!(unused, [("clicks".to_owned(), 0), ("clicks".to_owned(), 1)]);
    let topics: Vec<String> = open(dir.path()).queue_topics().expect("listed");
    assert_eq!(topics, ["%RETRY%g", "SCHEDULE_TOPIC_XXXX", "early", "orders"]);
    assert_eq!((again("clicks"), again("early")), (0, 2));
    appender.close().expect("closed");
    let bounds = open(dir.path()).topics().expect("listed");
    assert_eq!((bounds["early"][&0], bounds["clicks"][&0]), ((0, 3), (0, 1)));
}

#[test]
fn queues_go_while_others_append_and_flush() {
    let dir = directory();
    let appender = Appender::open(dir.path(), AppendOptions { flush: Flush::Sync, ..options() }).expect("new");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (appender, is_over) = (&appender, &is_over);
            scope.spawn(move || {
                let mut chance = Chance(thread);
                (0..).take_while(|_| !is_over.load(Ordering::SeqCst)).for_each(|n| {
                    append(appender, n, &mut chance).expect("appended");
                });
            });
        }
        let (mut removed, end) = (0, deadline());
        while removed < 100 && Instant::now() < end {
            removed += appender.clean_unused_topics(&BTreeSet::from(["orders".to_owned()])).expect("cleaned").len();
            appender.flush().expect("nothing that was removed is waited for");
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(removed >= 100, "{removed}");
    });
    appender.close().expect("closed");
}

/// Its log has offsets twice, and some that its queue has not reached again.
#[test]
fn a_store_with_a_topic_that_was_removed_and_made_again_is_opened_again() {
    let dir = directory();
    let all = BTreeSet::from(["other".to_owned()]);
    let put = |appender: &Appender, topic: &str| {
        let message = OwnedMessage { topic: topic.into(), body: b"x".to_vec(), ..OwnedMessage::default() };
        let done = appender.append(&Messages::new(vec![message]), None, 0).expect("appended");
        done.last.expect("one").queue_offset
    };
    let appender = Appender::open(dir.path(), options()).expect("new");
    assert_eq!([(); 3].map(|()| put(&appender, "again")), [0, 1, 2]);
    assert_eq!(put(&appender, "other"), 0);
    assert_eq!(appender.clean_unused_topics(&all).expect("cleaned").len(), 1);
    assert_eq!([(); 2].map(|()| put(&appender, "again")), [0, 1]);
    appender.close().expect("closed");
    for is_killed in [false, true, false] {
        let appender = Appender::open(dir.path(), options()).expect("opened again");
        assert_eq!(appender.recovery().is_some(), dir.path().join("was-killed").exists());
        let bounds = ["again", "other"].map(|topic| appender.live().queue(topic, 0).expect("there").bounds());
        assert_eq!(bounds, [(0, 2), (0, 1)]);
        if !is_killed {
            appender.close().expect("closed");
        } else {
            fs::write(dir.path().join("was-killed"), b"").expect("written");
        }
    }
}

/// A broker of RocketMQ lists it again after a crash, or where its messages are the last of the log.
#[test]
fn a_topic_that_was_removed_stays_away_and_begins_anew() {
    let dir = directory();
    let put_at = |appender: &Appender, topic: &str, store_ms: Option<i64>| {
        let message = OwnedMessage { topic: topic.into(), body: b"x".to_vec(), ..OwnedMessage::default() };
        let done = appender.append(&Messages::new(vec![message]), store_ms, 0).expect("appended");
        done.last.expect("one").queue_offset
    };
    let put = |appender: &Appender, topic: &str| put_at(appender, topic, None);
    let bounds = |appender: &Appender, topic: &str| appender.live().queue(topic, 0).map(|queue| queue.bounds());
    let appender = Appender::open(dir.path(), options()).expect("new");
    assert_eq!([(); 2].map(|()| put(&appender, "other")), [0, 1]);
    assert_eq!([(); 3].map(|()| put(&appender, "gone")), [0, 1, 2]);
    assert_eq!(appender.clean_unused_topics(&BTreeSet::from(["other".to_owned()])).expect("cleaned").len(), 1);
    appender.close().expect("closed");

    let appender = Appender::open(dir.path(), options()).expect("opened again");
    assert_eq!((appender.recovery(), bounds(&appender, "gone")), (None, None));
    drop(appender); // as a kill

    let appender = Appender::open(dir.path(), options()).expect("recovered");
    assert_eq!(bounds(&appender, "gone"), None);
    assert_eq!([(); 2].map(|()| put(&appender, "gone")), [0, 1]);
    appender.close().expect("closed");

    fs::remove_dir_all(dir.path().join("consumequeue")).expect("removed");
    let appender = Appender::open(dir.path(), options()).expect("listed again");
    assert_eq!(appender.recovery().expect("recovered").units, 4);
    assert_eq!(["gone", "other"].map(|topic| bounds(&appender, topic)), [Some((0, 2)); 2]);
    appender.close().expect("closed");

    // the configuration stays, a new log begins: offsets are those of removed messages, times are not
    for directory in ["commitlog", "consumequeue", "index"].map(|name| dir.path().join(name)) {
        fs::remove_dir_all(&directory).expect("removed");
        fs::create_dir(&directory).expect("made");
    }
    fs::remove_file(dir.path().join("checkpoint")).expect("removed");
    let appender = Appender::open(dir.path(), options()).expect("new");
    assert_eq!(put_at(&appender, "gone", Some(i64::MAX >> 20)), 0);
    drop(appender);
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    assert_eq!(bounds(&appender, "gone"), Some((0, 1)));
}
