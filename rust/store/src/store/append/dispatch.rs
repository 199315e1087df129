//! Lists records that have their places already, as those of a master's log do: units of queues, entries of the index.
//!
//! What each is listed under is read without the append lock; under it only queues and index are written.
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
use crate::store::multi_dispatch::listed_in;
use crate::store::unlisted::code_of_named;
use std::collections::HashMap;

/// What records are listed under. It is kept from block to block, with its memory and the topics that it met.
#[derive(Debug, Default)]
pub struct Dispatch {
    topics: Vec<Topic>,
    names: HashMap<Box<[u8]>, usize>,
    records: Vec<Record>,
    entries: Vec<Entry>,
    keys: Vec<i32>,
    planned: Vec<(u32, Unit)>,
}

#[derive(Debug)]
struct Topic {
    name: Box<[u8]>,
    /// The same, where it can name a directory.
    directory: Option<Box<str>>,
    key_hash: i32,
}

/// A record, and where what is its own ends in the lists; it begins where that of the record before ends.
#[derive(Clone, Copy, Debug)]
struct Record {
    unit: Unit,
    store_ms: i64,
    entries_end: usize,
    keys_end: usize,
    is_indexed: bool,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug)]
struct Entry {
    topic: usize,
    queue_id: i32,
    offset: i64,
    is_own: bool,
}

/// A queue that does not go on with the record that comes next in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// Messages before `offset` are missing: the log was followed from a later place, or its master lost them.
    Gap { number: u32, offset: i64, at: i64 },
    /// It has messages, and the record is its first: its topic was deleted and made again.
    Restart { number: u32 },
}

impl Dispatch {
    /// Reads what the records of a block are listed under.
    pub fn read(&mut self, block: Block<'_>, levels: &DelayLevels) {
        self.records.clear();
        self.entries.clear();
        self.keys.clear();
        let mut topic = usize::MAX;
        for record in block.records {
            let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
            let Some(message) = Message::new(bytes, record.layout) else { continue };
            // messages come in runs of one topic: mostly no name is hashed
            if self.topics.get(topic).is_none_or(|last| *last.name != *message.topic()) {
                topic = self.topic(message.topic());
            }
            self.read_message(&message, topic, levels);
        }
    }

    fn read_message(&mut self, message: &Message<'_>, topic: usize, levels: &DelayLevels) {
        let layout = message.layout();
        let named = KnownProperties::of(message.properties());
        let store_ms = message.store_timestamp();
        let known = &self.topics[topic];
        let name = known.directory.as_deref().unwrap_or_default();
        let unit = Unit {
            physical_offset: message.physical_offset(),
            size: layout.total as i32,
            tags_code: code_of_named(&named, store_ms, name, levels),
        };
        // a broker indexes half messages, but none that were rolled back
        let is_indexed = layout.sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK;
        if is_indexed {
            self.keys.extend(named.index_keys().map(|key| key_hash(known.key_hash, key)));
        }
        if known.directory.is_some() && layout.is_dispatched() {
            let (queue_id, offset) = (message.queue_id(), message.queue_offset());
            self.entries.push(Entry { topic, queue_id, offset, is_own: true });
            if named.multi_dispatch.is_some() {
                for (name, queue_id, offset) in listed_in(message) {
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
        let key_hash = java_hash(&format!("{text}#"));
        self.topics.push(Topic { name: name.into(), directory, key_hash });
        self.names.insert(name.into(), self.topics.len() - 1);
        self.topics.len() - 1
    }

    /// Plans the units of the records from `from` on, up to the first one before which a queue has to be mended. Returns the
    /// number of that record, or behind the last.
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
                        if self.continues(record, entry, queues.queue(queue).planned_offset()) => {}
                    Err(broken) => {
                        // of this record nothing: it comes again, once its queues are mended
                        self.planned.truncate(planned);
                        return (number, Some(broken));
                    }
                }
            }
            start = record.entries_end;
        }
        (self.records.len(), None)
    }

    /// Whether the next message that was read of a queue goes on behind `next`: then the record that says offset 0 is none of a queue made
    /// anew, and says a wrong one, which no checksum guards.
    fn continues(&self, record: &Record, first: &Entry, next: i64) -> bool {
        let later = self.entries[record.entries_end..].iter();
        let mut of_queue = later.filter(|entry| (entry.topic, entry.queue_id) == (first.topic, first.queue_id));
        of_queue.next().is_some_and(|entry| entry.is_own && entry.offset > next)
    }

    fn keys_before(&self, record: usize) -> usize {
        record.checked_sub(1).map_or(0, |before| self.records[before].keys_end)
    }
}

/// The number of the queue that lists the record there; `None` where an earlier one has its offset.
#[inline]
fn place(
    entry: &Entry,
    topics: &[Topic],
    unit: Unit,
    queues: &mut QueueTable,
) -> std::result::Result<Option<u32>, Break> {
    let name = topics[entry.topic].directory.as_deref();
    let Some(name) = name.filter(|_| entry.queue_id >= 0 && entry.offset >= 0) else { return Ok(None) };
    let number = queues.find(name, entry.queue_id);
    let next = queues.queue(number).planned_offset();
    if entry.offset == next {
        queues.plan(number);
        Ok(Some(number))
    } else if entry.offset > next && queues.queue(number).can_fill(entry.offset) {
        Err(Break::Gap { number, offset: entry.offset, at: unit.physical_offset })
    } else if entry.offset == 0 && entry.is_own {
        Err(Break::Restart { number })
    } else {
        // a broker passes over it, too
        Ok(None)
    }
}

impl Writers {
    /// Lists the records that were read, which stand in the log. `failed` is told of an error: part of them may be listed then.
    pub fn list_all(&mut self, dispatch: &mut Dispatch, local_ms: i64, failed: impl Fn(&crate::Error)) -> Result<()> {
        let mut from = 0;
        loop {
            // what an ended run has planned is not to count for the next one
            self.queues.forget();
            let (to, broken) = dispatch.plan(from, &mut self.queues);
            let keys = dispatch.keys_before(to) - dispatch.keys_before(from);
            let room = self.queues.reserve().and_then(|()| self.index.reserve(keys, local_ms));
            room.inspect_err(|_| self.index.release()).inspect_err(&failed)?;
            let listed = self.list_run(dispatch, from..to, local_ms);
            listed.and_then(|()| broken.map_or(Ok(()), |broken| self.mend(broken))).inspect_err(&failed)?;
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
            // entries are written with one store time at a time
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

    /// Has a queue go on with the next record of the log.
    fn mend(&mut self, broken: Break) -> Result<()> {
        match broken {
            Break::Gap { number, offset, at } => {
                let file_size = self.log.file_size() as i64;
                self.queues.fill(number, offset, at / file_size * file_size)
            }
            Break::Restart { number } => self.queues.restart(number),
        }
    }
}
