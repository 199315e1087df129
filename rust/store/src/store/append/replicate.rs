//! The appender of a copy. It copies a master's log, then adds the copied records to queues and index.
//!
//! Records keep their physical offsets, queue offsets and times, so that log, queues and index equal those of the master.
//!
//! Source: `DefaultMessageStore.appendToCommitLog`, `ReputMessageService.doReput`, `DefaultMessageStore.doDispatch`,
//! `ConsumeQueue.putMessagePositionInfo`, `IndexService.buildIndex`.
use super::appender::Appender;
use super::index_writer::key_hash;
use super::owned_store::Open;
use super::queue_table::QueueTable;
use super::writers::Writers;
use crate::file::Io;
use crate::format::consume_queue::Unit;
use crate::format::java::java_hash;
use crate::format::message::{MIN_BLANK_LEN, Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::properties::KnownProperties;
use crate::store::CommitLog;
use crate::store::consume_queue::{extra_queues, is_directory_name};
use crate::store::delay::DelayLevels;
use crate::store::log_walk::{Block, RecordAt, Stop, parse};
use crate::store::recover::log_end::{last_records, record_end};
use crate::store::retain::QueueName;
use crate::store::retain::clock::now_ms;
use crate::store::unlisted::code_of_properties;
use crate::{Error, Result};
use std::collections::HashMap;

impl Appender {
    /// Returns the end of the copy, as an offset of the master's log.
    pub fn log_end(&self) -> Result<u64> {
        self.store.with(|open| Ok(open.writers.log.position()))
    }

    /// Returns the offset from which to compare the copy with the master's log up to `end`. A record begins at this
    /// offset. If the logs differ earlier, they also differ in the position of this record. At most `most` bytes are
    /// compared, or one longer record.
    pub fn compare_from(&self, end: u64, most: u64) -> Result<u64> {
        let log = CommitLog::list(&self.store.root, &[self.store.root.join("commitlog")], Io::Pread)?;
        last_records(&log, end, most).map(|from| from.max(log.min_offset().min(end)))
    }

    /// Returns the end of the copy's last record, without the blank record at the end of the file.
    pub fn last_record_end(&self) -> Result<u64> {
        let (end, file_size) =
            self.store.with(|open| Ok((open.writers.log.position(), open.writers.log.file_size())))?;
        // A record leaves room for a blank, so it never ends at the end of a file.
        if !end.is_multiple_of(file_size) {
            return Ok(end);
        }
        let log = CommitLog::list(&self.store.root, &[self.store.root.join("commitlog")], Io::Pread)?;
        let is_empty = log.segments().files().first().is_none_or(|first| end <= first.base);
        if is_empty { Ok(end) } else { record_end(&log.into(), end - 1) }
    }

    pub fn delay_levels(&self) -> DelayLevels {
        self.store.options.delay_levels
    }

    /// Appends complete records at `start` of the master's log, within one file. `last` is the offset of the last
    /// record. A complete blank record at the end of the file may follow. Does not add the records to queues and
    /// index. Fails with [`Error::Invalid`] if the copy does not end at `start`.
    pub fn copy_log(&self, start: u64, bytes: &[u8], last: Option<u64>) -> Result<()> {
        let store = &self.store;
        store.retention.check_writable()?;
        let needs_file = store.with_log(|open| {
            open.check_place(start, bytes.len() as u64)?;
            let log = &mut open.writers.log;
            // Files are allocated first, so that a full disk leaves the copy unchanged.
            log.reserve_copy(bytes.len() as u64)?;
            log.copy(bytes, last).inspect_err(|error| store.on_write_error(error))?;
            Ok(log.next_needed().is_some())
        })?;
        store.live.growth().notify();
        if needs_file {
            store.work.create();
        }
        Ok(())
    }

    /// Adds to queues and index the records that `dispatch` has parsed. Blocks must come in the order of the log. After
    /// an error all later writes fail.
    pub fn list(&self, dispatch: &mut Dispatch) -> Result<()> {
        let store = &self.store;
        let local_ms = now_ms() + store.options.zone_offset_ms;
        store.with_log(|open| open.writers.list_all(dispatch, local_ms, |error| store.on_write_error(error)))
    }

    /// Removes queues that the master no longer has, and forgets their next offsets. A queue with messages behind its
    /// end in `ends` stays. Returns the removed queues.
    pub fn remove_queues(&self, ends: &[(QueueName, i64)]) -> Result<Vec<QueueName>> {
        self.store.remove_queues(ends)
    }
}

impl Open {
    fn check_place(&self, start: u64, len: u64) -> Result<()> {
        let (position, file_size) = (self.writers.log.position(), self.writers.log.file_size());
        if start != position {
            return Err(Error::invalid("start", format!("{position}, where the copy ends"), start));
        }
        let room = file_size - start % file_size;
        // The bytes of one call must be in one file of the log.
        if len > room {
            return Err(Error::invalid("bytes", format!("at most {room} bytes, to the end of the file"), len));
        }
        Ok(())
    }
}

/// The reason why [`whole_records`] stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Reached the end of the bytes or of the file.
    Nothing,
    /// Found an incomplete item. Holds the number of bytes that the whole item needs.
    Needs(usize),
    /// Found an item that is not a valid record. Holds the reason.
    Broken(String),
}

/// Collects the complete, valid records at the start of `bytes`. `start` is their offset in a log with files of
/// `file_size` bytes. Returns the length of these records, including a blank at the end of the file, and the reason
/// of the stop.
///
/// A sound record contains its own offset, consistent lengths, and the right CRC of its body.
pub fn whole_records(bytes: &[u8], start: u64, file_size: u64, records: &mut Vec<RecordAt>) -> (usize, Rest) {
    let file_end = (start / file_size + 1) * file_size;
    let bytes = &bytes[..bytes.len().min((file_end - start) as usize)];
    let (at, stop) = parse(bytes, (start, file_end), 0, false, records);
    let room = (file_end - start) as usize - at;
    let to_the_end =
        |what, got| Rest::Broken(format!("{what} at +0: expected {room}, to the end of the file, got {got}"));
    match stop {
        Stop::Consumed => (at, Rest::Nothing),
        Stop::Needs(_, needed) if needed > room => (at, to_the_end("total size, at most", needed)),
        Stop::Needs(_, needed) => (at, Rest::Needs(needed)),
        Stop::Blank(size) if size != room => (at, to_the_end("blank size", size)),
        Stop::Blank(size) if bytes.len() - at < size => (at, Rest::Needs(size)),
        Stop::Blank(size) => (at + size, Rest::Nothing),
        // The first bytes of a size are zero, so a record may begin here.
        Stop::Unwritten if bytes.len() - at < MIN_BLANK_LEN => (at, Rest::Needs(MIN_BLANK_LEN)),
        Stop::Unwritten => (at, Rest::Broken("expected a record, got bytes that were never written".to_owned())),
        Stop::Broken(reason) => (at, Rest::Broken(reason)),
    }
}

/// The parsed records of a block, to be listed in queues and index. Records are parsed without the append lock; only the
/// writes to queues and index are under the lock. The memory and the topics are reused from block to block.
#[derive(Debug, Default)]
pub struct Dispatch {
    topics: Vec<Topic>,
    names: HashMap<Box<[u8]>, usize>,
    records: Vec<Record>,
    entries: Vec<Entry>,
    keys: Vec<i32>,
    /// Consume-queue entries that continue their queues, each with the number of its queue.
    planned: Vec<(u32, Unit)>,
}

#[derive(Debug)]
struct Topic {
    name: Box<[u8]>,
    /// The name of the queue's topic as a string; `None` if the topic cannot be the name of a directory.
    directory: Option<Box<str>>,
    key_hash: i32,
}

/// A record. `entries` and `keys` are the ends of its parts in the lists of the same names. The parts begin at the
/// ends of the record before it.
#[derive(Clone, Copy, Debug)]
struct Record {
    unit: Unit,
    store_ms: i64,
    entries_end: usize,
    keys_end: usize,
    is_indexed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    topic: usize,
    queue_id: i32,
    offset: i64,
    /// Whether the queue is the record's own queue, and not an additional queue of multi-dispatch.
    is_own: bool,
}

/// The reason why the next record of the log does not continue its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// Messages before `offset` are missing. The copy began later than the master's log, or the master has lost the messages.
    Gap { number: u32, offset: i64, at: i64 },
    /// The record has queue offset 0, although the queue has messages. So its topic was deleted and created again.
    Restart { number: u32 },
}

impl Dispatch {
    pub fn read(&mut self, block: Block<'_>, levels: &DelayLevels) {
        self.records.clear();
        self.entries.clear();
        self.keys.clear();
        let mut topic = usize::MAX;
        for record in block.records {
            let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
            let Some(message) = Message::new(bytes, record.layout) else { continue };
            // Messages come in runs of one topic, so comparing with the last topic saves most hash lookups.
            if self.topics.get(topic).is_none_or(|last| *last.name != *message.topic()) {
                topic = self.topic(message.topic());
            }
            self.read_message(&message, topic, levels);
        }
    }

    fn read_message(&mut self, message: &Message<'_>, topic: usize, levels: &DelayLevels) {
        let layout = message.layout();
        let properties = KnownProperties::of(message.properties());
        let store_ms = message.store_timestamp();
        let own_topic = &self.topics[topic];
        let name = own_topic.directory.as_deref().unwrap_or_default();
        let unit = Unit {
            physical_offset: message.physical_offset(),
            size: layout.total as i32,
            tags_code: code_of_properties(&properties, store_ms, name, levels),
        };
        // As in a broker, half messages are indexed, but rolled back messages are not.
        let is_indexed = layout.sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK;
        if is_indexed {
            self.keys.extend(properties.index_keys().map(|key| key_hash(own_topic.key_hash, key)));
        }
        if own_topic.directory.is_some() && layout.is_dispatched() {
            let (queue_id, offset) = (message.queue_id(), message.queue_offset());
            self.entries.push(Entry { topic, queue_id, offset, is_own: true });
            if properties.multi_dispatch.is_some() {
                for (name, queue_id, offset) in extra_queues(message) {
                    let topic = self.topic(name.as_bytes());
                    self.entries.push(Entry { topic, queue_id, offset, is_own: false });
                }
            }
        }
        let (entries_end, keys_end) = (self.entries.len(), self.keys.len());
        self.records.push(Record { unit, store_ms, entries_end, keys_end, is_indexed });
    }

    fn topic(&mut self, name: &[u8]) -> usize {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let text = String::from_utf8_lossy(name);
        let is_directory = std::str::from_utf8(name).is_ok_and(is_directory_name);
        let directory = is_directory.then(|| text.clone().into_owned().into_boxed_str());
        // The index hash of a key is Java's hash of `topic#key`, so its first part is computed once per topic.
        let key_hash = java_hash(&format!("{text}#"));
        self.topics.push(Topic { name: name.into(), directory, key_hash });
        self.names.insert(name.into(), self.topics.len() - 1);
        self.topics.len() - 1
    }

    /// Plans the consume-queue entries of the records from index `from` on. Stops at a record whose queue must be
    /// prepared first, see [`Break`]. Returns the index of that record, or the number of records if all are planned.
    fn plan(&mut self, from: usize, queues: &mut QueueTable) -> (usize, Option<Break>) {
        self.planned.clear();
        let mut start = from.checked_sub(1).map_or(0, |before| self.records[before].entries_end);
        for (number, record) in self.records.iter().enumerate().skip(from) {
            let planned = self.planned.len();
            for entry in &self.entries[start..record.entries_end] {
                match place(entry, &self.topics, record.unit, queues) {
                    Ok(Some(queue)) => self.planned.push((queue, record.unit)),
                    Ok(None) => {}
                    Err(Break::Restart { number: queue })
                        if self.continues(record, entry, queues.queue(queue).next_planned()) => {}
                    Err(broken) => {
                        // The record is planned again after its queue is fixed.
                        self.planned.truncate(planned);
                        return (number, Some(broken));
                    }
                }
            }
            start = record.entries_end;
        }
        (self.records.len(), None)
    }

    /// Returns whether the queue's next record in this block continues behind `next`. If so, a record with offset 0
    /// is not the first message of a new topic. Its offset is damaged, because no checksum covers offsets.
    fn continues(&self, record: &Record, first: &Entry, next: i64) -> bool {
        let later = self.entries[record.entries_end..].iter();
        let mut of_queue = later.filter(|entry| (entry.topic, entry.queue_id) == (first.topic, first.queue_id));
        of_queue.next().is_some_and(|entry| entry.is_own && entry.offset > next)
    }

    fn keys_before(&self, record: usize) -> usize {
        record.checked_sub(1).map_or(0, |before| self.records[before].keys_end)
    }
}

/// Returns the number of the queue for an entry. `None` if the entry cannot be listed, for example because an earlier
/// record has its offset.
#[inline]
fn place(
    entry: &Entry,
    topics: &[Topic],
    unit: Unit,
    queues: &mut QueueTable,
) -> std::result::Result<Option<u32>, Break> {
    let name = topics[entry.topic].directory.as_deref();
    // Without a checksum, a damaged record may have negative numbers, which no queue lists.
    let Some(name) = name.filter(|_| entry.queue_id >= 0 && entry.offset >= 0) else { return Ok(None) };
    let number = queues.find(name, entry.queue_id);
    let next = queues.queue(number).next_planned();
    if entry.offset == next {
        queues.plan(number);
        Ok(Some(number))
    } else if entry.offset > next && queues.queue(number).can_fill(entry.offset) {
        Err(Break::Gap { number, offset: entry.offset, at: unit.physical_offset })
    } else if entry.offset == 0 && entry.is_own {
        Err(Break::Restart { number })
    } else {
        // A broker skips the entry, too.
        Ok(None)
    }
}

impl Writers {
    /// Lists the parsed records. Calls `on_error` with an error, after which some of the records may be listed.
    pub fn list_all(&mut self, dispatch: &mut Dispatch, local_ms: i64, on_error: impl Fn(&crate::Error)) -> Result<()> {
        let mut from = 0;
        loop {
            // The plan of an interrupted run must not count for the next run.
            self.queues.forget();
            let (to, broken) = dispatch.plan(from, &mut self.queues);
            let keys = dispatch.keys_before(to) - dispatch.keys_before(from);
            let room = self.queues.reserve().and_then(|()| self.index.reserve(keys, local_ms));
            room.inspect_err(|_| self.index.release()).inspect_err(&on_error)?;
            let run = self.list_run(dispatch, from..to, local_ms);
            run.and_then(|()| broken.map_or(Ok(()), |broken| self.fix_queue(broken))).inspect_err(&on_error)?;
            from = to;
            if broken.is_none() {
                return Ok(());
            }
        }
    }

    fn list_run(&mut self, dispatch: &Dispatch, run: std::ops::Range<usize>, local_ms: i64) -> Result<()> {
        dispatch.planned.iter().for_each(|(number, unit)| self.queues.push(*number, *unit));
        self.queues.write()?;
        let (mut keys_from, mut store_ms) = (dispatch.keys_before(run.start), None);
        for record in &dispatch.records[run] {
            // Entries are written with one store time at a time.
            if let Some(before) = store_ms.filter(|before| *before != record.store_ms) {
                self.index.write(before, local_ms)?;
            }
            store_ms = Some(record.store_ms);
            self.last_store_ms = self.last_store_ms.max(record.store_ms);
            let keys = &dispatch.keys[std::mem::replace(&mut keys_from, record.keys_end)..record.keys_end];
            keys.iter().for_each(|hash| self.index.push(*hash, record.unit.physical_offset));
            if keys.is_empty() && record.is_indexed {
                self.index.push_none();
            }
        }
        store_ms.map_or(Ok(()), |store_ms| self.index.write(store_ms, local_ms))
    }

    fn fix_queue(&mut self, broken: Break) -> Result<()> {
        match broken {
            Break::Gap { number, offset, at } => {
                let file_size = self.log.file_size() as i64;
                self.queues.fill(number, offset, at / file_size * file_size)
            }
            Break::Restart { number } => self.queues.restart(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::message::{NewMessage, encode_blank};
    use crate::store::append::AppendOptions;

    const FILE: u64 = 1000;

    fn record(at: u64, body: &[u8]) -> Vec<u8> {
        let host = AppendOptions::default().store_host;
        let mut bytes = Vec::new();
        let message = NewMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            physical_offset: at as i64,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic: "T",
            properties: b"",
        };
        message.encode(&mut bytes).expect("short");
        bytes
    }

    /// Returns the length of the whole records, their number, and the reason of the stop.
    fn parsed(bytes: &[u8], start: u64) -> (usize, usize, Rest) {
        let mut records = Vec::new();
        let (taken, rest) = whole_records(bytes, start, FILE, &mut records);
        (taken, records.len(), rest)
    }

    fn broken(bytes: &[u8], start: u64) -> String {
        match parsed(bytes, start) {
            (0, 0, Rest::Broken(reason)) => reason,
            other => format!("not broken: {other:?}"),
        }
    }

    #[test]
    fn a_record_that_came_in_part_says_how_many_bytes_it_needs() {
        let mut bytes = record(2000, b"first");
        let first = bytes.len();
        bytes.extend(record(2000 + first as u64, b"second"));
        let second = bytes.len() - first;
        assert_eq!(parsed(&bytes, 2000), (bytes.len(), 2, Rest::Nothing));
        for cut in 1..second {
            let (taken, count, rest) = parsed(&bytes[..first + cut], 2000);
            // The first bytes of a size are zero, like unwritten bytes, so eight bytes are needed to decide.
            let needed = if cut < 8 { 8 } else { second };
            assert_eq!((taken, count, rest), (first, 1, Rest::Needs(needed)), "{cut}");
        }
        assert_eq!(parsed(&[], 2000), (0, 0, Rest::Nothing));
    }

    #[test]
    fn a_blank_is_whole_with_all_bytes_to_the_end_of_its_file() {
        let mut bytes = encode_blank(20).to_vec();
        bytes.extend([7; 12]);
        assert_eq!(parsed(&bytes[..19], 2980), (0, 0, Rest::Needs(20)));
        // Records of the next file are left to the next call.
        bytes.extend(record(3000, b"x"));
        assert_eq!(parsed(&bytes, 2980), (20, 0, Rest::Nothing));
        assert!(broken(&bytes, 2970).contains("expected 30, to the end of the file, got 20"));
    }

    #[test]
    fn what_does_not_prove_itself_is_broken() {
        let whole = record(2000, b"body");
        let mut flipped = whole.clone();
        let body = flipped.windows(4).position(|bytes| bytes == b"body").expect("there");
        flipped[body] ^= 1;
        assert!(broken(&flipped, 2000).contains("body crc"));
        assert!(broken(&whole, 2001).contains("physical offset at +28: expected 2001, got 2000"));
        assert!(broken(&[0; 8], 2000).contains("never written"));
        assert!(broken(&[0xff; 40], 2000).contains("magic"));
        let over = record(2950, &[1; 100]);
        assert!(broken(&over, 2950).contains("to the end of the file"), "{}", broken(&over, 2950));
    }
}
