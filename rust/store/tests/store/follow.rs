//! Following a log that is written meanwhile, in whatever order its bytes show up: each message comes once, whole, in order.
use crate::chance::Chance;
use crate::directory;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use rmqfast_store::format::consume_queue::{UNIT_SIZE, Unit};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::java::tags_code;
use rmqfast_store::format::message::{NewMessage, TRANSACTION_PREPARED, encode_blank};
use rmqfast_store::scan::plan::start_of_last;
use rmqfast_store::scan::{ScanRequest, Start, Tail};
use rmqfast_store::store::follow::{RemovedRange, Waits};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const FILE_SIZE: u64 = 4096;
const QUEUE_FILE_SIZE: u64 = 10 * UNIT_SIZE as u64;
const BLANK: usize = 8;
const TOPICS: [&str; 2] = ["orders", "clicks"];
/// Nothing is taken or called damaged because time has passed.
const FOR_EVER: Waits = Waits { settle: Duration::from_secs(3600), patience: Duration::from_secs(3600) };
const NO_TIME: Waits = Waits { settle: Duration::ZERO, patience: Duration::ZERO };

/// What a row tells: physical offset, born time, body, tags, keys.
type Row = (i64, i64, Vec<u8>, Option<String>, Option<String>);

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let column = |name| batch.column_by_name(name).expect("the column");
    let text = |name, row| {
        let texts = column(name).as_string::<i32>();
        (!texts.is_null(row)).then(|| texts.value(row).to_owned())
    };
    let row = |row| {
        (
            column("physical_offset").as_primitive::<Int64Type>().value(row),
            column("born_timestamp").as_primitive::<TimestampMillisecondType>().value(row),
            column("body").as_binary::<i32>().value(row).to_vec(),
            text("tags", row),
            text("keys", row),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

/// A record to be written, its row, and where its unit goes.
struct PlannedRow {
    bytes: Vec<u8>,
    offset: u64,
    row: Option<Row>,
    unit: Option<(PathBuf, u64, [u8; UNIT_SIZE])>,
}

/// A log of `count` messages, blanks at the ends of its files included; every ninth record is a prepared one.
fn planned(count: usize, random: &mut Chance) -> Vec<PlannedRow> {
    let mut all = Vec::new();
    let mut offset = 0;
    let mut queue_offsets = BTreeMap::new();
    for n in 0..count {
        let (topic, queue_id) = (TOPICS[random.index(2)], random.index(3) as i32);
        let prepared = n % 9 == 4;
        let next = queue_offsets.entry((topic, queue_id)).or_insert(0_i64);
        let body = (0..random.index(400)).map(|_| random.next() as u8).collect::<Vec<_>>();
        let nul = if n % 13 == 5 { "\0" } else { "" };
        let tag = format!("t{}", n % 4);
        let properties = format!("KEYS\u{1}k{n}{nul}\u{2}TAGS\u{1}{tag}\u{2}");
        let host = Host::from("10.0.0.1:10911".parse::<SocketAddr>().expect("a host"));
        let mut message = NewMessage {
            queue_id,
            flag: 0,
            queue_offset: if prepared { 0 } else { *next },
            physical_offset: offset as i64,
            sys_flag: if prepared { TRANSACTION_PREPARED } else { 0 },
            born_timestamp: 1_700_000_000_000 + n as i64,
            born_host: host,
            store_timestamp: 1_700_000_000_000 + n as i64,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: &body,
            topic,
            properties: properties.as_bytes(),
        };
        let room = FILE_SIZE - offset % FILE_SIZE;
        if (message.encoded_len() + BLANK) as u64 > room {
            all.push(PlannedRow { bytes: encode_blank(room as u32).to_vec(), offset, row: None, unit: None });
            offset += room;
            message.physical_offset = offset as i64;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect("a message");
        let unit = (!prepared).then(|| {
            let at = *next as u64 * UNIT_SIZE as u64;
            let unit =
                Unit { physical_offset: offset as i64, size: bytes.len() as i32, tags_code: tags_code(Some(&tag)) };
            let file = format!("consumequeue/{topic}/{queue_id}/{:020}", at / QUEUE_FILE_SIZE * QUEUE_FILE_SIZE);
            *next += 1;
            (PathBuf::from(file), at % QUEUE_FILE_SIZE, unit.encode())
        });
        let row = Some((offset as i64, message.born_timestamp, body.clone(), Some(tag), Some(format!("k{n}{nul}"))));
        let len = bytes.len() as u64;
        all.push(PlannedRow { bytes, offset, row, unit });
        offset += len;
    }
    all
}

/// A store in the making.
struct Writer {
    dir: TempDir,
}

impl Writer {
    fn new() -> Self {
        let dir = directory();
        fs::create_dir(dir.path().join("commitlog")).expect("made");
        Self { dir }
    }

    fn store(&self) -> MessageStore {
        MessageStore::open(self.dir.path(), &OpenOptions::default()).expect("opens")
    }

    fn log_file(&self, offset: u64) -> PathBuf {
        self.dir.path().join(format!("commitlog/{:020}", offset / FILE_SIZE * FILE_SIZE))
    }

    fn write(&self, path: &Path, size: u64, at: u64, bytes: &[u8]) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        let file = File::options().create(true).truncate(false).write(true).open(path).expect("opens");
        if file.metadata().expect("there").len() < size {
            file.set_len(size).expect("grown");
        }
        file.write_all_at(bytes, at).expect("written");
    }

    fn write_log(&self, offset: u64, bytes: &[u8]) {
        self.write(&self.log_file(offset), FILE_SIZE, offset % FILE_SIZE, bytes);
    }

    fn put(&self, record: &PlannedRow) {
        self.write_log(record.offset, &record.bytes);
    }

    fn list(&self, record: &PlannedRow) {
        if let Some((path, at, unit)) = &record.unit {
            self.write(&self.dir.path().join(path), QUEUE_FILE_SIZE, *at, unit);
        }
    }
}

/// The order in which bytes show up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Forwards,
    Backwards,
    /// Stretches that end at multiples of so many bytes, in any order.
    Granules(u64),
}

/// Offsets and bytes of what shows up at once, one after the other.
fn pieces(from: u64, bytes: &[u8], order: Order, random: &mut Chance) -> Vec<(u64, Vec<u8>)> {
    let granule = |granule: u64| {
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        for (i, byte) in bytes.iter().enumerate() {
            let at = from + i as u64;
            match pieces.last_mut().filter(|_| !at.is_multiple_of(granule)) {
                Some((_, piece)) => piece.push(*byte),
                None => pieces.push((at, vec![*byte])),
            }
        }
        pieces
    };
    let mut pieces = granule(match order {
        Order::Granules(size) => size,
        _ => 1 + random.index(40) as u64,
    });
    match order {
        Order::Forwards => {}
        Order::Backwards => pieces.reverse(),
        Order::Granules(_) => random.shuffle(&mut pieces),
    }
    pieces
}

/// A reader that starts anew now and then, where it was.
struct Reader {
    store: MessageStore,
    request: ScanRequest,
    tail: Tail,
    waits: Waits,
    seen: Vec<Row>,
    damages: usize,
}

impl Reader {
    fn new(writer: &Writer, waits: Waits, random: &mut Chance) -> Self {
        let store = writer.store();
        let request = ScanRequest { batch_rows: 1 + random.index(20), ..ScanRequest::default() };
        let tail = Tail::new(&store, &request, Start::Begin).expect("a tail").with_waits(waits);
        Self { store, request, tail, waits, seen: Vec::new(), damages: 0 }
    }

    fn poll(&mut self) {
        while let Some(batch) = self.tail.poll(&mut || Ok(())).expect("polls") {
            self.seen.extend(rows(&batch));
        }
    }

    fn start_anew(&mut self) {
        self.damages += self.tail.damage().entries().len();
        let position = Start::Position(self.tail.position());
        self.tail = Tail::new(&self.store, &self.request, position).expect("a tail").with_waits(self.waits);
    }

    /// All that is there, however little vouches for it.
    fn finish(mut self) -> (Vec<Row>, usize) {
        self.poll();
        self.waits.settle = Duration::ZERO;
        self.start_anew();
        (0..3).for_each(|_| self.poll());
        (self.seen, self.damages + self.tail.damage().entries().len())
    }
}

fn seeds() -> u64 {
    std::env::var("RMQFAST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60)
}

/// Writes up to five records at once, their bytes in `order`, and lists them in queues some time later.
fn write_torn(
    writer: &Writer,
    log: &[PlannedRow],
    order: Order,
    listed: bool,
    reader: &mut Reader,
    random: &mut Chance,
) {
    let mut unlisted = 0;
    let mut next = 0;
    while next < log.len() {
        let behind = log.len().min(next + 1 + random.index(5));
        let file_end = (log[next].offset / FILE_SIZE + 1) * FILE_SIZE;
        let count = log[next..behind].iter().take_while(|record| record.offset < file_end).count();
        let bytes: Vec<u8> = log[next..next + count].iter().flat_map(|record| record.bytes.clone()).collect();
        if random.index(3) == 0 {
            File::create(writer.log_file(file_end)).expect("an empty file");
        }
        for (at, piece) in pieces(log[next].offset, &bytes, order, random) {
            writer.write_log(at, &piece);
            if random.index(3) == 0 {
                reader.poll();
            }
        }
        next += count;
        if random.index(10) == 0 {
            reader.start_anew();
        }
        while listed && unlisted < next && random.index(4) > 0 {
            writer.list(&log[unlisted]);
            unlisted += 1;
            if random.index(4) == 0 {
                reader.poll();
            }
        }
    }
    log[unlisted..].iter().filter(|_| listed).for_each(|record| writer.list(record));
}

fn expected(log: &[PlannedRow]) -> Vec<Row> {
    log.iter().filter_map(|record| record.row.clone()).collect()
}

#[test]
fn a_log_that_its_queues_list_is_followed_however_torn_it_shows_up() {
    for seed in 0..seeds() {
        let random = &mut Chance(seed);
        let log = planned(60, random);
        let order = [Order::Forwards, Order::Backwards, Order::Granules(3), Order::Granules(64)][random.index(4)];
        let writer = Writer::new();
        fs::create_dir_all(writer.dir.path().join("consumequeue/other/0")).expect("made");
        let mut reader = Reader::new(&writer, FOR_EVER, random);
        write_torn(&writer, &log, order, true, &mut reader, random);
        let (seen, damages) = reader.finish();
        assert_eq!((seen, damages), (expected(&log), 0), "seed {seed}, {order:?}");
    }
}

#[test]
fn a_log_without_queues_is_followed_by_two_reads() {
    for seed in 0..seeds() {
        let random = &mut Chance(1_000_000 + seed);
        let order = [Order::Forwards, Order::Backwards, Order::Granules(512)][random.index(3)];
        let writer = Writer::new();
        let mut reader = Reader::new(&writer, Waits { settle: Duration::ZERO, ..FOR_EVER }, random);
        let log: Vec<_> = planned(60, random);
        write_torn(&writer, &log, order, false, &mut reader, random);
        reader.waits = NO_TIME;
        let (seen, damages) = reader.finish();
        assert_eq!((seen, damages), (expected(&log), 0), "seed {seed}, {order:?}");
    }
}

#[test]
fn a_broken_record_is_damage_only_when_the_queues_have_passed_it() {
    let random = &mut Chance(7);
    let log = planned(40, random);
    let has_body = |record: &PlannedRow| record.row.as_ref().is_some_and(|row| row.2.len() > 50);
    let broken = 10 + log[10..].iter().position(has_body).expect("a body");
    let writer = Writer::new();
    log[..broken].iter().for_each(|record| writer.list(record));
    log.iter().for_each(|record| writer.put(record));
    let mut reader = Reader::new(&writer, NO_TIME, random);
    let harmed = &log[broken];
    writer.write_log(harmed.offset + 90, &[harmed.bytes[90] ^ 1]);
    (0..5).for_each(|_| reader.poll());
    assert_eq!(reader.seen, expected(&log[..broken]));
    assert!(reader.tail.damage().is_empty());
    assert_eq!(reader.tail.position(), harmed.offset);
    log.iter().for_each(|record| writer.list(record));
    (0..3).for_each(|_| reader.poll());
    let damage = reader.tail.damage().entries();
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].offset, damage[0].length), (harmed.offset, harmed.bytes.len() as u64));
    assert_eq!(damage[0].file, writer.log_file(harmed.offset));
    assert!(damage[0].reason.starts_with("body crc"), "{}", damage[0].reason);
    let mut whole = expected(&log);
    whole.retain(|row| row.0 != harmed.offset as i64);
    assert_eq!(reader.finish().0, whole);
}

#[test]
fn zeroes_within_what_is_listed_are_damage_and_zeroes_behind_it_are_not() {
    let random = &mut Chance(8);
    let log = planned(30, random);
    let writer = Writer::new();
    for record in &log {
        writer.put(record);
        writer.list(record);
    }
    let lost = log[12..].iter().find(|record| record.row.is_some()).expect("a message");
    writer.write_log(lost.offset, &vec![0; lost.bytes.len()]);
    let mut reader = Reader::new(&writer, NO_TIME, random);
    (0..5).for_each(|_| reader.poll());
    let damage = reader.tail.damage().entries();
    assert_eq!(
        damage.iter().map(|d| (d.offset, d.length)).collect::<Vec<_>>(),
        [(lost.offset, lost.bytes.len() as u64)]
    );
    let mut whole = expected(&log);
    whole.retain(|row| row.0 != lost.offset as i64);
    assert_eq!(reader.seen, whole);
}

#[test]
fn what_retention_removes_before_it_was_read_is_told() {
    let random = &mut Chance(9);
    let log = planned(80, random);
    let writer = Writer::new();
    let (old, new) = log.split_at(60);
    for record in old {
        writer.put(record);
        writer.list(record);
    }
    let first = expected(&log)[0].clone();
    let mut reader = Reader::new(&writer, FOR_EVER, random);
    reader.request.batch_rows = 1;
    reader.start_anew();
    assert_eq!(rows(&reader.tail.poll(&mut || Ok(())).expect("polls").expect("a batch")), std::slice::from_ref(&first));
    reader.start_anew();
    let kept = 2 * FILE_SIZE;
    [0, FILE_SIZE].iter().for_each(|base| fs::remove_file(writer.log_file(*base)).expect("removed"));
    for record in new {
        writer.put(record);
        writer.list(record);
    }
    reader.poll();
    let begin = old[1].offset;
    assert_eq!(reader.tail.removed_ranges(), [RemovedRange { offset: begin, length: kept - begin }]);
    let mut whole = expected(&log);
    whole.retain(|row| row.0 >= kept as i64);
    let (seen, damages) = reader.finish();
    assert_eq!((seen, damages), (whole, 0));
}

#[test]
fn a_file_that_is_removed_while_it_is_read_is_read_to_its_end() {
    let random = &mut Chance(10);
    let log = planned(80, random);
    let writer = Writer::new();
    for record in &log {
        writer.put(record);
        writer.list(record);
    }
    let mut reader = Reader::new(&writer, FOR_EVER, random);
    reader.request.batch_rows = 1;
    reader.start_anew();
    let batch = reader.tail.poll(&mut || Ok(())).expect("polls").expect("a batch");
    reader.seen.extend(rows(&batch));
    fs::remove_file(writer.log_file(0)).expect("removed");
    reader.poll();
    assert_eq!((reader.seen, reader.tail.removed_ranges()), (expected(&log), &[][..]));
}

#[test]
fn a_blank_that_is_written_over_while_there_is_no_next_file_is_no_end() {
    let random = &mut Chance(11);
    let log = planned(30, random);
    let at = log.iter().position(|record| record.row.is_none()).expect("a blank");
    let writer = Writer::new();
    for record in &log[..=at] {
        writer.put(record);
        writer.list(record);
    }
    let mut reader = Reader::new(&writer, NO_TIME, random);
    reader.poll();
    assert_eq!(reader.tail.position(), log[at].offset);
    let size = (FILE_SIZE - log[at].offset % FILE_SIZE) as usize;
    let host = Host::from("10.0.0.1:10911".parse::<SocketAddr>().expect("a host"));
    let small = NewMessage {
        queue_id: 0,
        flag: 0,
        queue_offset: 0,
        physical_offset: log[at].offset as i64,
        sys_flag: 0,
        born_timestamp: 5,
        born_host: host,
        store_timestamp: 1_800_000_000_000,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"",
        topic: "t",
        properties: b"",
    };
    assert!(small.encoded_len() + BLANK <= size, "take another seed: {size}");
    let mut bytes = Vec::new();
    small.encode(&mut bytes).expect("a message");
    writer.write_log(log[at].offset, &bytes);
    let (seen, damages) = reader.finish();
    assert_eq!((seen.last().map(|row| row.1), damages), (Some(5), 0));
    assert_eq!(seen.len(), expected(&log[..at]).len() + 1);
}

#[test]
fn a_file_that_takes_the_place_of_the_open_one_is_followed() {
    let random = &mut Chance(12);
    let log = planned(30, random);
    let writer = Writer::new();
    let half = 4;
    for record in &log[..half] {
        writer.put(record);
        writer.list(record);
    }
    let mut reader = Reader::new(&writer, NO_TIME, random);
    reader.poll();
    assert_eq!(reader.seen, expected(&log[..half]));
    let copy = writer.dir.path().join("copy");
    fs::copy(writer.log_file(0), &copy).expect("copied");
    fs::rename(&copy, writer.log_file(0)).expect("replaced");
    for record in &log {
        writer.put(record);
        writer.list(record);
    }
    (0..3).for_each(|_| reader.poll());
    assert_eq!(reader.seen, expected(&log));
    assert_eq!(reader.finish(), (expected(&log), 0));
}

#[test]
fn a_record_that_no_queue_lists_is_taken_when_those_behind_it_are_listed() {
    let random = &mut Chance(12);
    let mut log = planned(30, random);
    let last = log.iter().position(|record| record.row.is_none()).expect("a blank") - 1;
    assert!(log[last].unit.is_none(), "take another seed: a prepared record at the end of a file is wanted");
    // Its time runs back, as that of old bytes would: only queues can tell.
    log[last].bytes[56..64].copy_from_slice(&1_600_000_000_000_i64.to_be_bytes());
    let writer = Writer::new();
    fs::create_dir_all(writer.dir.path().join("consumequeue/other/0")).expect("made");
    let mut reader = Reader::new(&writer, NO_TIME, random);
    for record in &log[..=last + 1] {
        writer.put(record);
        writer.list(record);
        reader.poll();
    }
    (0..3).for_each(|_| reader.poll());
    assert_eq!(reader.seen, expected(&log[..last]));
    for record in &log[last + 2..] {
        writer.put(record);
        writer.list(record);
    }
    (0..3).for_each(|_| reader.poll());
    assert_eq!(reader.seen, expected(&log));
}

#[test]
fn from_one_position_to_another_there_are_always_the_same_rows() {
    let random = &mut Chance(13);
    let log = planned(90, random);
    let writer = Writer::new();
    let (old, new) = log.split_at(70);
    for record in old {
        writer.put(record);
        writer.list(record);
    }
    let store = writer.store();
    let between = |from: u64, end: u64, batch_rows: usize| {
        let request = ScanRequest { batch_rows, topic: Some("orders".into()), ..ScanRequest::default() };
        let mut tail = Tail::new(&store, &request, Start::Position(from)).expect("a tail").until(end);
        let mut records = Vec::new();
        while let Some(batch) = tail.poll(&mut || Ok(())).expect("polls") {
            records.extend(rows(&batch));
        }
        assert!(tail.is_over());
        records
    };
    let end = Tail::new(&store, &ScanRequest::default(), Start::End).expect("a tail").position();
    assert_eq!(end, new[0].offset);
    let cuts = [0, old[20].offset, old[55].offset, end];
    let whole = between(0, end, 1000);
    for record in new {
        writer.put(record);
        writer.list(record);
    }
    let parts: Vec<Row> = cuts.windows(2).flat_map(|cut| between(cut[0], cut[1], 3)).collect();
    assert_eq!(parts, whole);
    assert!(whole.len() > 20 && whole.len() < expected(old).len());
}

#[test]
fn a_start_by_time_gives_what_was_stored_from_then_on() {
    let random = &mut Chance(14);
    let log = planned(60, random);
    let writer = Writer::new();
    for record in &log {
        writer.put(record);
        writer.list(record);
    }
    let when = 1_700_000_000_000 + 33;
    let mut tail = Tail::new(&writer.store(), &ScanRequest::default(), Start::Time(when)).expect("a tail");
    let batch = tail.poll(&mut || Ok(())).expect("polls").expect("a batch");
    let mut whole = expected(&log);
    whole.retain(|row| row.1 >= when);
    assert_eq!(rows(&batch), whole);
}

#[test]
fn the_last_messages_of_a_topic_are_found_backwards() {
    let random = &mut Chance(15);
    let log = planned(120, random);
    let writer = Writer::new();
    for record in &log {
        writer.put(record);
        writer.list(record);
    }
    let store = writer.store();
    let end = Tail::new(&store, &ScanRequest::default(), Start::End).expect("a tail").position();
    let tags = |text| rmqfast_store::filter::TagExpression::parse(text).expect("tags");
    for topic in [None, Some("clicks".to_owned())] {
        for expression in ["*", "t1", "none"] {
            let request = ScanRequest { topic: topic.clone(), tags: tags(expression), ..ScanRequest::default() };
            let all = |from: u64| {
                let mut tail = Tail::new(&store, &request, Start::Position(from)).expect("a tail").until(end);
                tail.poll(&mut || Ok(())).expect("polls").map_or(0, |batch| batch.num_rows())
            };
            for count in [0, 1, 7, 1000] {
                let from = start_of_last(&store, &request, (count, end), &mut || Ok(())).expect("found");
                assert_eq!(all(from), count.min(all(0)), "{topic:?} {expression} {count}");
            }
        }
    }
}
