//! Adds records that are already in the log to queues and index. Used for records copied from a master.
//!
//! Records are parsed without the append lock. Only the writes to queues and index are under the lock.
//!
//! Source: `DefaultMessageStore.doDispatch`, `ConsumeQueue.putMessagePositionInfo`, `IndexService.buildIndex`.
use super::index_writer::key_hash;
use super::queue_table::QueueTable;
use super::writers::Writers;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::{Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::properties::KnownProperties;
use crate::format::tag::java_hash;
use crate::store::consume_queue::is_directory_name;
use crate::store::delay_levels::DelayLevels;
use crate::store::log_walk::Block;
use crate::store::multi_dispatch::extra_queues;
use crate::store::unlisted::code_of_properties;
use std::collections::HashMap;

/// The parsed records of a block. Its memory and its list of topics are reused for the next block.
#[derive(Debug, Default)]
pub struct Dispatch {
    topics: Vec<Topic>,
    names: HashMap<Box<[u8]>, usize>,
    records: Vec<Record>,
    entries: Vec<Entry>,
    /// Index hashes of the keys of all records.
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

    /// Prepares a queue for a record that does not continue it.
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
