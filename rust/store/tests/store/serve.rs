//! The live side of a store: who reads while others append gets every message once, whole and in order.
use crate::chance::Chance;
use crate::directory;
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::filter::sql92::Sql92;
use rmqfast_store::format::java::tags_code;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{AppendOptions, Appender, Flush, Messages, OwnedMessage, Place};
use rmqfast_store::store::retain::RetainOptions;
use rmqfast_store::store::serve::{Arrival, ArrivalListener, Every, Live, LiveQueue, PullFilter, TagCodes};
use rmqfast_store::store::time_search::TimeRule;
use rmqfast_store::store::{GetLimits, GetMessageStatus, MessageStore, OpenOptions};
use rmqfast_waiting::{PATIENCE, deadline};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

const STORED_AT: i64 = 1_700_000_000_000;
const YEAR_MS: i64 = 365 * 24 * 3_600_000;
const QUEUES: [(&str, i32); 4] = [("orders", 0), ("orders", 1), ("clicks", 0), ("%RETRY%g", 0)];

/// Small files, so that they roll; nothing is forced, so that how full the machine's disk is does not matter.
fn options() -> AppendOptions {
    let retain = RetainOptions { clean_forcibly: false, warning_percent: 100, ..RetainOptions::default() };
    AppendOptions {
        file_size: 32 << 10,
        queue_file_size: 2_000,
        index_slots: 16,
        index_entries: 400,
        multi_dispatch: true,
        retain: Some(retain),
        ..AppendOptions::default()
    }
}

/// Message `n` of a queue says that it is.
fn message((topic, queue_id): (&str, i32), n: u64) -> OwnedMessage {
    let mut body = n.to_be_bytes().to_vec();
    body.resize(8 + (n * 37 % 400) as usize, b'a' + (n % 26) as u8);
    OwnedMessage {
        topic: topic.into(),
        body,
        tags: Some(format!("t{}", n % 3)),
        keys: Some(format!("k{n}")),
        properties: vec![("n".into(), n.to_string())],
        queue_id: queue_id.into(),
        ..OwnedMessage::default()
    }
}

fn number_of(message: &Message<'_>) -> u64 {
    u64::from_be_bytes(*message.body().first_chunk().expect("a number"))
}

/// The records in `out`, each proved by its CRC.
fn records(mut out: &[u8]) -> Vec<Message<'_>> {
    let mut records = Vec::new();
    while !out.is_empty() {
        let message = Message::decode(out).expect("a whole record");
        assert!(message.body_crc_matches(), "a torn record");
        out = &out[message.record().len()..];
        records.push(message);
    }
    records
}

fn limits() -> GetLimits {
    GetLimits::of_broker(8 << 30)
}

/// Somebody who pulls one queue as long as there is one.
struct Consumer<'a> {
    live: &'a Live,
    name: (&'a str, i32),
    queue: Option<Arc<LiveQueue>>,
    next: i64,
    bounds: (i64, i64),
    seen: Vec<u64>,
    out: Vec<u8>,
}

impl<'a> Consumer<'a> {
    fn new(live: &'a Live, name: (&'a str, i32)) -> Self {
        Self { live, name, queue: None, next: 0, bounds: (0, 0), seen: Vec::new(), out: Vec::new() }
    }

    /// Pulls once; the status, if there is a queue.
    fn pull(&mut self) -> Option<GetMessageStatus> {
        if self.queue.as_ref().is_none_or(|queue| queue.is_removed()) {
            self.queue = self.live.queue(self.name.0, self.name.1);
            (self.next, self.bounds) = (0, (0, 0));
        }
        let queue = self.queue.clone()?;
        self.out.clear();
        let pulled = self.live.get_message(&queue, self.next, 32, &Every, limits(), &mut self.out).expect("read");
        if queue.is_removed() {
            return None;
        }
        let bounds = (pulled.min_offset, pulled.max_offset);
        assert!(bounds.0 >= self.bounds.0 && bounds.1 >= self.bounds.1, "{bounds:?} after {:?}", self.bounds);
        self.bounds = bounds;
        let records = records(&self.out);
        assert_eq!((pulled.messages, pulled.bytes as usize), (records.len(), self.out.len()));
        for message in records {
            assert_eq!((message.topic(), message.queue_id()), (self.name.0.as_bytes(), self.name.1));
            assert!(message.queue_offset() >= self.next, "{} again", message.queue_offset());
            let begin = self.live.log_bounds().0;
            for left_out in self.next..message.queue_offset() {
                let unit = queue.unit(left_out).expect("read");
                assert!(unit.is_none_or(|unit| (unit.physical_offset as u64) < begin), "{left_out} is left out");
            }
            self.next = message.queue_offset() + 1;
            self.seen.push(number_of(&message));
        }
        self.next = pulled.next_begin_offset;
        Some(pulled.status)
    }

    fn is_ascending(&self) -> bool {
        self.seen.windows(2).all(|pair| pair[0] < pair[1])
    }
}

fn append_one(appender: &Appender, queue: (&str, i32), n: u64) -> Place {
    let done = appender.append(&Messages::new(vec![message(queue, n)]), Some(STORED_AT + n as i64), 0);
    done.expect("appended").last.expect("one message")
}

#[test]
fn readers_get_every_message_once_and_in_order_while_others_append() {
    const EACH: u64 = 4_000;
    for flush in [Flush::Async, Flush::Sync] {
        let dir = directory();
        let appender = Appender::open(dir.path(), AppendOptions { flush, ..options() }).expect("opened");
        let live = appender.live();
        let each = if flush == Flush::Sync { EACH / 10 } else { EACH };
        thread::scope(|scope| {
            for half in QUEUES.chunks(2) {
                let appender = &appender;
                scope.spawn(move || {
                    for n in 0..each {
                        half.iter().for_each(|queue| _ = append_one(appender, *queue, n));
                    }
                });
            }
            for _ in 0..2 {
                let live = &live;
                scope.spawn(move || {
                    let mut consumers = QUEUES.map(|queue| Consumer::new(live, queue));
                    let until = deadline();
                    while consumers.iter().any(|consumer| consumer.seen.len() < each as usize) {
                        assert!(Instant::now() < until, "messages are missing");
                        consumers.iter_mut().for_each(|consumer| _ = consumer.pull());
                    }
                    for consumer in &consumers {
                        assert!(consumer.seen.iter().copied().eq(0..each));
                    }
                });
            }
        });
        appender.close().expect("closed");
    }
}

#[test]
fn readers_are_told_of_what_retention_removes_and_of_queues_that_go() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    let (live, is_over) = (appender.live(), AtomicBool::new(false));
    let configured = BTreeSet::from(["orders".to_owned(), "%RETRY%g".to_owned()]);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut consumers = QUEUES.map(|queue| Consumer::new(&live, queue));
                    let mut statuses = BTreeSet::new();
                    let mut last_begin = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        statuses.extend(consumers.iter_mut().filter_map(|c| c.pull().map(GetMessageStatus::name)));
                        let (begin, end) = live.log_bounds();
                        assert!(begin >= last_begin && begin <= end);
                        last_begin = begin;
                    }
                    for consumer in &mut consumers {
                        while let Some(status) = consumer.pull() {
                            statuses.insert(status.name());
                            if status == GetMessageStatus::OffsetOverflowOne {
                                break;
                            }
                        }
                        assert!(consumer.is_ascending(), "{:?}", consumer.name);
                    }
                    assert!(statuses.contains("FOUND"), "{statuses:?}");
                    // what is configured never began anew: all that is there was read to its end
                    consumers.map(|consumer| (consumer.name, consumer.seen.last().copied(), consumer.next))
                })
            })
            .collect();
        for n in 0..3_000 {
            QUEUES.iter().for_each(|queue| _ = append_one(&appender, *queue, n));
            if n % 250 == 249 {
                appender.clean(Some(STORED_AT + 100 * YEAR_MS), true).expect("cleaned");
            }
            if n % 700 == 699 {
                let removed = appender.clean_unused_topics(&configured).expect("removed");
                assert_eq!(removed, [("clicks".to_owned(), 0)]);
            }
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            for (name, last, next) in reader.join().expect("no panic") {
                let expected = if name.0 == "clicks" { 3_000 - 2_800 } else { 3_000 };
                assert_eq!((last, next), (Some(2_999), expected), "{name:?}");
            }
        }
    });
    assert!(live.log_bounds().0 > 0);
    same_as_the_files(&live, dir.path());
}

/// Bounds, pulls and searches are those of a reader that opens the store anew.
fn same_as_the_files(live: &Live, root: &Path) {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let topics = store.topics().expect("listed");
    let mut chance = Chance(7);
    assert_eq!(live.log_bounds().0, store.log().min_offset());
    assert_eq!(Some(live.earliest_store_time().expect("read")), store.earliest_time(None).expect("read"));
    let named: BTreeMap<_, _> =
        topics.iter().flat_map(|(t, queues)| queues.iter().map(move |(id, b)| ((t, *id), *b))).collect();
    let shown = live.queues();
    assert_eq!(shown.len(), named.values().filter(|bounds| bounds.1 > 0).count());
    for queue in shown {
        let (topic, id) = (queue.topic(), queue.queue_id());
        let (min, max) = named[&(&topic.to_owned(), id)];
        assert_eq!(queue.bounds(), (min, max), "{topic} {id}");
        for _ in 0..200 {
            let offset = min + chance.below((max - min + 6) as u64) as i64 - 3;
            let count = 1 + chance.below(1_500) as usize;
            let tags = ["*", "t1", "t0||t2", "nothing", "t2"][chance.below(5) as usize];
            same_pull((&store, live, &queue), offset, count, tags, random_limits(&mut chance));
        }
        for _ in 0..50 {
            let when = STORED_AT + chance.below(3_100) as i64 - 50;
            let expected = store.offset_for_time(topic, id, when, TimeRule::V4).expect("found");
            assert_eq!(live.offset_for_time(&queue, when).expect("found"), expected, "{topic} {id} {when}");
        }
    }
}

fn random_limits(chance: &mut Chance) -> GetLimits {
    GetLimits {
        count_in_memory: 1 + chance.below(40) as usize,
        bytes_in_memory: 300 + chance.below(10_000) as i32,
        count_in_disk: 1 + chance.below(8) as usize,
        bytes_in_disk: 300 + chance.below(3_000) as i32,
        memory: chance.below(200 << 10),
    }
}

fn same_pull(
    (store, live, queue): (&MessageStore, &Live, &LiveQueue),
    offset: i64,
    count: usize,
    tags: &str,
    limits: GetLimits,
) {
    let tags = TagExpression::parse(tags).expect("tags");
    let name = (queue.topic(), queue.queue_id(), offset);
    let expected = store.get_within(name, count, &tags, limits).expect("read");
    let mut out = b"before".to_vec();
    let got = live.get_message(queue, offset, count, &tags, limits, &mut out).expect("read");
    assert_eq!(out, [&b"before"[..], &expected.records.concat()].concat(), "{name:?} {count} {limits:?}");
    let got_fields =
        (got.status, got.next_begin_offset, got.min_offset, got.max_offset, got.suggest_pulling_from_slave);
    let suggest = expected.suggest_pulling_from_slave;
    let expected = (expected.status, expected.next_begin_offset, expected.min_offset, expected.max_offset, suggest);
    assert_eq!(got_fields, expected, "{name:?} {count} {limits:?}");
}

#[test]
fn a_pull_is_that_of_a_reader_of_the_files() {
    let dir = directory();
    let mut chance = Chance(3);
    {
        let appender = Appender::open(dir.path(), options()).expect("opened");
        for n in 0..1_000 {
            append_one(&appender, QUEUES[chance.below(4) as usize], n);
        }
        same_as_the_files(&appender.live(), dir.path());
        for _ in 0..2 {
            appender.clean(Some(STORED_AT + 100 * YEAR_MS), true).expect("cleaned");
        }
        same_as_the_files(&appender.live(), dir.path());
        appender.close().expect("closed");
    }
    // what was there before is shown, too
    let appender = Appender::open(dir.path(), options()).expect("opened again");
    assert_eq!(appender.live().queues().len(), QUEUES.len());
    same_as_the_files(&appender.live(), dir.path());
    for n in 1_000..1_500 {
        append_one(&appender, QUEUES[chance.below(4) as usize], n);
    }
    same_as_the_files(&appender.live(), dir.path());
}

#[test]
fn a_file_that_is_missing_is_passed_as_a_whole() {
    const LOG_FILE: i64 = 24 << 10;
    let dir = directory();
    let options = AppendOptions { file_size: LOG_FILE as u64, ..options() };
    let appender = Appender::open(dir.path(), options).expect("opened");
    let places: Vec<Place> = (0..500).map(|n| append_one(&appender, QUEUES[0], n)).collect();
    // an open store writes back what is removed under it
    appender.close().expect("closed");
    let missing = LOG_FILE..2 * LOG_FILE;
    std::fs::remove_file(dir.path().join(format!("commitlog/{:020}", missing.start))).expect("removed");
    std::fs::remove_file(dir.path().join(format!("consumequeue/orders/0/{:020}", 6_000))).expect("removed");
    let appender = Appender::open(dir.path(), options).expect("opened again");
    let live = appender.live();
    let queue = live.queue("orders", 0).expect("a queue");
    let mut out = Vec::new();
    let mut pull = |offset, count| {
        out.clear();
        let pulled =
            live.get_message(&queue, offset, count, &Every, GetLimits::of_count(count), &mut out).expect("read");
        (pulled.status, pulled.next_begin_offset, records(&out).iter().map(|m| m.queue_offset()).collect::<Vec<_>>())
    };
    let is_left = |n: &i64| !missing.contains(&places[*n as usize].physical_offset);
    let gone: Vec<i64> = (0..500).filter(|n| !is_left(n)).collect();
    let (first, last) = (gone[0], gone[gone.len() - 1]);
    assert!(first < 100 && (101..200).contains(&last), "{gone:?}");
    let status = GetMessageStatus::Found;
    assert_eq!(pull(0, 100), (status, 100, (0..first).collect()));
    assert_eq!(pull(first, 100), (GetMessageStatus::MessageWasRemoving, 100, vec![]));
    assert_eq!(pull(100, 100), (status, 200, (last + 1..200).collect()));
    assert_eq!(pull(299, 100), (status, 300, vec![299]));
    assert_eq!(pull(310, 100), (GetMessageStatus::OffsetFoundNull, 400, vec![]));
}

#[test]
fn filters_ask_for_codes_and_for_what_messages_hold() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    (0..90).for_each(|n| _ = append_one(&appender, QUEUES[0], n));
    let live = appender.live();
    let queue = live.queue("orders", 0).expect("a queue");
    let pull = |filter: &dyn PullFilter| {
        let mut out = Vec::new();
        let pulled = live.get_message(&queue, 0, 32, filter, limits(), &mut out).expect("read");
        (pulled.status, pulled.next_begin_offset, records(&out).iter().map(number_of).collect::<Vec<_>>())
    };
    let code = |tag| tags_code(Some(tag)) as i32;
    let status = GetMessageStatus::Found;
    assert_eq!(pull(&TagCodes::new([code("t1")])), (status, 90, (0..30).map(|n| 3 * n + 1).collect()));
    assert_eq!(pull(&TagCodes::new([code("t0"), code("t1")])).2.len(), 32);
    assert_eq!(pull(&TagCodes::default()), (GetMessageStatus::NoMatchedMessage, 90, vec![]));
    let sql = |text| Sql92::parse(text).expect("an expression");
    assert_eq!(pull(&sql("n > 40 AND n < 44")), (status, 90, vec![41, 42, 43]));
    assert_eq!(pull(&sql("nowhere = 1")), (GetMessageStatus::NoMatchedMessage, 90, vec![]));
}

#[test]
fn records_are_found_by_place_time_and_key() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    let places: Vec<Place> = (0..600).map(|n| append_one(&appender, QUEUES[n as usize % 4], n)).collect();
    let live = appender.live();
    for (n, place) in places.iter().enumerate() {
        let at = place.physical_offset as u64;
        let record = live.record(at).expect("read").expect("a record");
        let message = record.message().expect("a message");
        assert_eq!((number_of(&message), message.body_crc_matches()), (n as u64, true));
        assert!([1, 4, 8].iter().all(|off| live.record(at + off).expect("read").is_none()), "inside a record");
        let (topic, queue_id) = QUEUES[n % 4];
        let queue = live.queue(topic, queue_id).expect("a queue");
        assert_eq!(live.store_time(&queue, place.queue_offset).expect("read"), STORED_AT + n as i64);
        let unit = queue.unit(place.queue_offset).expect("read").expect("a unit");
        assert_eq!((unit.physical_offset, unit.size as usize), (place.physical_offset, record.len()));
    }
    let (begin, end) = live.log_bounds();
    assert_eq!((begin, live.earliest_store_time().expect("read")), (0, STORED_AT));
    assert!(
        [end, end + 1, end - 10, u64::MAX, u64::MAX - 90].iter().all(|at| live.record(*at).expect("read").is_none())
    );
    let queue = live.queue("clicks", 0).expect("a queue");
    assert!([-1, 150, i64::MAX].iter().all(|at| live.store_time(&queue, *at).expect("read") == -1));
    for n in [0, 1, 57, 399, 598, 599_u64] {
        let topic = QUEUES[n as usize % 4].0;
        let answer = live.query(topic, &format!("k{n}"), 32, 0, i64::MAX).expect("asked");
        let numbers: Vec<u64> = answer.records.iter().filter_map(|r| r.message().map(|m| number_of(&m))).collect();
        assert!(numbers.contains(&n), "{n} of {numbers:?}");
        let last = (STORED_AT + 599, places[599].physical_offset);
        assert_eq!((answer.index_last_update_timestamp, answer.index_last_update_phy_offset), last);
    }
    assert!(live.query("orders", "nothing", 32, 0, i64::MAX).expect("asked").records.is_empty());
    let early = live.query("orders", "k0", 32, STORED_AT + 5_000, i64::MAX).expect("asked");
    assert!(early.records.is_empty());
}

/// What arrived: topic, queue, max offset, tags code, store time and the property `n`.
type Arrivals = Vec<(String, i32, i64, i64, i64, String)>;

#[derive(Default)]
struct Listener {
    is_waiting: AtomicBool,
    asked: AtomicU64,
    arrived: Mutex<Arrivals>,
    /// What it looks at when it is told.
    live: Mutex<Option<Live>>,
}

impl ArrivalListener for Listener {
    fn is_waiting(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.is_waiting.load(Ordering::SeqCst)
    }

    fn on_arrival(&self, arrival: &Arrival<'_>) {
        let live = self.live.lock().expect("no panic");
        let queue = live.as_ref().and_then(|live| live.queue(arrival.topic, arrival.queue_id)).expect("a queue");
        assert!(queue.max_offset() >= arrival.max_offset, "it can be read already");
        let n = rmqfast_store::format::properties::get(arrival.properties, "n").unwrap_or_default();
        self.arrived.lock().expect("no panic").push((
            arrival.topic.into(),
            arrival.queue_id,
            arrival.max_offset,
            arrival.tags_code,
            arrival.store_timestamp,
            String::from_utf8_lossy(n).into_owned(),
        ));
    }
}

#[test]
fn who_waits_is_told_of_each_message_in_each_queue() {
    let dir = directory();
    let appender = Appender::open(dir.path(), options()).expect("opened");
    let listener = Arc::new(Listener::default());
    *listener.live.lock().expect("no panic") = Some(appender.live());
    append_one(&appender, QUEUES[1], 0);
    appender.set_arrival_listener(Some(listener.clone()));
    append_one(&appender, QUEUES[1], 1);
    assert_eq!(listener.asked.load(Ordering::SeqCst), 1);
    assert!(listener.arrived.lock().expect("no panic").is_empty(), "nobody waits");
    listener.is_waiting.store(true, Ordering::SeqCst);
    let mut further = message(QUEUES[1], 3);
    further.properties.push(("INNER_MULTI_DISPATCH".into(), "%LMQ%a,%LMQ%b".into()));
    let prepared = OwnedMessage { sys_flag: 0x4, ..message(QUEUES[1], 4) };
    let rows = Messages::new(vec![message(QUEUES[1], 2), further, prepared]);
    appender.append(&rows, Some(STORED_AT), 0).expect("appended");
    assert_eq!(listener.asked.load(Ordering::SeqCst), 2, "once a batch");
    appender.set_arrival_listener(None);
    append_one(&appender, QUEUES[1], 5);
    let code = |tag| tags_code(Some(tag));
    let arrival = |topic: &str, queue_id, max, tag, n: &str| {
        (topic.to_owned(), queue_id, max, code(tag), STORED_AT, n.to_owned())
    };
    let expected = [
        arrival("orders", 1, 3, "t2", "2"),
        arrival("orders", 1, 4, "t0", "3"),
        arrival("%LMQ%a", 0, 1, "t0", "3"),
        arrival("%LMQ%b", 0, 1, "t0", "3"),
    ];
    assert_eq!(*listener.arrived.lock().expect("no panic"), expected);
}

/// Counts how often files are waited for.
struct Syncs {
    count: AtomicU64,
}

impl Watcher for Syncs {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        if call == Call::Sync {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn one_wait_for_the_disk_serves_many_appends() {
    let dir = directory();
    let options = AppendOptions { flush: Flush::Sync, ..options() };
    let appender = Appender::open(dir.path(), options).expect("opened");
    let syncs = Arc::new(Syncs { count: AtomicU64::new(0) });
    let watch = disk::watch(&dir.path().join("commitlog"), syncs.clone());
    let mut places = Vec::new();
    let mut position = 0;
    for n in 0..50 {
        let rows = Messages::new(vec![message(QUEUES[0], n)]);
        let behind =
            appender.append_unsynced(&rows, Some(STORED_AT), false, |place| places.push(place)).expect("appended");
        assert!(behind > position);
        position = behind;
    }
    let pair = Messages::new(vec![message(QUEUES[0], 50), message(QUEUES[0], 51)]);
    position = appender.append_unsynced(&pair, None, true, |place| places.push(place)).expect("appended").max(position);
    assert_eq!(places.iter().map(|place| place.queue_offset).collect::<Vec<_>>(), (0..52).collect::<Vec<_>>());
    assert!(appender.live().queue("orders", 0).is_some_and(|queue| queue.max_offset() == 52), "readable at once");
    let before = syncs.count.load(Ordering::SeqCst);
    // the thread that flushes may have come once
    assert!(before <= 2, "{before}");
    appender.wait_flushed(position, Some(PATIENCE)).expect("flushed");
    assert!(appender.flushed_offset() >= position);
    let after = syncs.count.load(Ordering::SeqCst);
    appender.wait_flushed(position, None).expect("flushed before");
    drop(watch);
    assert!(after - before <= 1 && after > 0, "{before} {after}");
    appender.close().expect("closed");
    assert!(appender.append_unsynced(&pair, None, false, |_| {}).expect_err("closed").to_string().contains("closed"));
}
