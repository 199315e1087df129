//! All consume queues of a store, by topic and number.
//!
//! Source: `DefaultMessageStore.consumeQueueTable`, `CommitLog.topicQueueTable`.
use super::queue_writer::QueueWriter;
use super::unsynced::{HeldFile, Unsynced};
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::tag::java_hash;
use crate::store::multi_dispatch::LMQ;
use crate::store::serve::{LiveQueue, LiveQueues};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Queue files that stay open.
const MAX_OPEN: usize = 256;
/// Queue numbers below this are found without hashing.
const SMALL: usize = 1024;
const NONE: u32 = u32::MAX;

/// The queues; each is known by its number in the table.
#[derive(Debug)]
pub struct QueueTable {
    directory: PathBuf,
    file_size: u64,
    names: HashMap<Box<str>, usize>,
    topics: Vec<Topic>,
    queues: Vec<QueueWriter>,
    live: Arc<LiveQueues>,
    /// What those who read see of each of `queues`.
    shown: Vec<Arc<LiveQueue>>,
    last: usize,
    lmq_count: usize,
    planned: Vec<u32>,
    pending: Vec<u32>,
    unsynced: Vec<u32>,
}

/// A topic and its queues.
#[derive(Debug)]
pub struct Topic {
    pub name: Box<str>,
    /// Java's hash of the name and `#`, with which the index hash of each of its keys begins.
    pub key_hash: i32,
    small: Vec<u32>,
    large: HashMap<i32, u32>,
}

impl QueueTable {
    /// An empty table for the queues below `directory`; new ones have files of `file_size` bytes.
    pub fn new(directory: PathBuf, file_size: u64) -> Self {
        Self {
            live: Arc::new(LiveQueues::new(directory.clone(), file_size)),
            shown: Vec::new(),
            directory,
            file_size,
            names: HashMap::new(),
            topics: Vec::new(),
            queues: Vec::new(),
            last: 0,
            lmq_count: 0,
            planned: Vec::new(),
            pending: Vec::new(),
            unsynced: Vec::new(),
        }
    }

    /// Adds a queue whose next message gets `next_offset`.
    pub fn add(&mut self, topic: &str, queue_id: i32, next_offset: i64) -> u32 {
        let topic_number = self.topic_number(topic);
        let number = self.queues.len() as u32;
        let directory = self.directory.join(topic).join(queue_id.to_string());
        let stays_open = self.queues.len() < MAX_OPEN;
        let queue = QueueWriter::new(topic_number, queue_id, directory, self.file_size, next_offset, stays_open);
        self.queues.push(queue);
        self.shown.push(self.live.make(topic, queue_id, next_offset));
        self.lmq_count += usize::from(topic.starts_with(LMQ));
        self.topics[topic_number].insert(queue_id, number);
        number
    }

    /// The queues for those who read them meanwhile.
    pub fn live(&self) -> &Arc<LiveQueues> {
        &self.live
    }

    /// What those who read see of the queue of that number.
    pub fn shown(&self, number: u32) -> &Arc<LiveQueue> {
        &self.shown[number as usize]
    }

    /// Whether the table has a queue.
    pub fn has(&self, topic: &str, queue_id: i32) -> bool {
        self.names.get(topic).is_some_and(|topic| self.topics[*topic].get(queue_id) != NONE)
    }

    /// The queue's number in the table; a new queue if there is none.
    #[inline]
    pub fn find(&mut self, topic: &str, queue_id: i32) -> u32 {
        let topic_number = self.topic_number(topic);
        match self.topics[topic_number].get(queue_id) {
            NONE => self.add(topic, queue_id, 0),
            number => number,
        }
    }

    #[inline]
    fn topic_number(&mut self, topic: &str) -> usize {
        // messages come in runs of one topic: mostly no name is hashed
        if self.topics.get(self.last).is_none_or(|last| *last.name != *topic) {
            self.last = self.names.get(topic).copied().unwrap_or_else(|| self.add_topic(topic));
        }
        self.last
    }

    fn add_topic(&mut self, topic: &str) -> usize {
        let number = self.topics.len();
        let key_hash = java_hash(&format!("{topic}#"));
        self.topics.push(Topic { name: topic.into(), key_hash, small: Vec::new(), large: HashMap::new() });
        self.names.insert(topic.into(), number);
        number
    }

    /// The queue of that number.
    #[inline]
    pub fn queue(&self, number: u32) -> &QueueWriter {
        &self.queues[number as usize]
    }

    /// How many queues there are: their numbers are below.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The topic of the queue of that number.
    #[inline]
    pub fn topic(&self, number: u32) -> &Topic {
        &self.topics[self.queues[number as usize].topic]
    }

    /// The queues of the topics that are asked for, by topic and number.
    pub fn names_where(&self, is_asked: &dyn Fn(&str) -> bool) -> Vec<(String, i32)> {
        let named = self.queues.iter().map(|queue| (&*self.topics[queue.topic].name, queue.queue_id));
        let mut names: Vec<_> =
            named.filter(|(topic, _)| is_asked(topic)).map(|(topic, id)| (topic.to_owned(), id)).collect();
        names.sort_unstable();
        names
    }

    /// Forgets a queue whose files were removed: its next message gets offset 0, in new files.
    pub fn remove(&mut self, topic: &str, queue_id: i32) {
        let Some(topic_number) = self.names.get(topic).copied() else { return };
        let number = self.topics[topic_number].get(queue_id);
        if number != NONE {
            let directory = self.directory.join(topic).join(queue_id.to_string());
            let stays_open = (number as usize) < MAX_OPEN;
            let queue = QueueWriter::new(topic_number, queue_id, directory, self.file_size, 0, stays_open);
            self.queues[number as usize] = queue;
            let new = self.live.make(topic, queue_id, 0);
            let removed = std::mem::replace(&mut self.shown[number as usize], new);
            self.live.remove(&removed);
        }
    }

    /// Counts a message for the queue of that number. Returns the offset that it will have.
    #[inline]
    pub fn plan(&mut self, number: u32) -> i64 {
        let queue = &mut self.queues[number as usize];
        let offset = queue.plan();
        // the first of a batch: a queue is noted once
        if offset == queue.next_offset() {
            self.planned.push(number);
        }
        offset
    }

    /// How many light message queues there are.
    pub fn lmq_count(&self) -> usize {
        self.lmq_count
    }

    /// Forgets what was planned.
    #[inline]
    pub fn forget(&mut self) {
        for number in self.planned.drain(..) {
            self.queues[number as usize].forget();
        }
    }

    /// Creates the files for what was planned.
    pub fn reserve(&mut self) -> Result<()> {
        let planned = std::mem::take(&mut self.planned);
        let reserved = planned.iter().try_for_each(|number| self.queues[*number as usize].reserve());
        self.planned = planned;
        self.forget();
        reserved
    }

    /// Adds the unit of the next message of the queue of that number.
    #[inline]
    pub fn push(&mut self, number: u32, unit: Unit) {
        if self.queues[number as usize].push(unit) {
            self.pending.push(number);
        }
    }

    /// Adds the unit of the next message of the queue of that number, whose file need not be there.
    pub fn append(&mut self, number: u32, unit: Unit) -> Result<()> {
        self.queues[number as usize].plan();
        self.queues[number as usize].reserve()?;
        self.push(number, unit);
        Ok(())
    }

    /// Begins a queue anew, as that of a topic that was deleted and made again: its next message gets offset 0.
    pub fn restart(&mut self, number: u32) -> Result<()> {
        self.cut(number, 0)?;
        let (topic, queue_id) =
            (&self.topics[self.queues[number as usize].topic].name, self.queues[number as usize].queue_id);
        let removed = std::mem::replace(&mut self.shown[number as usize], self.live.make(topic, queue_id, 0));
        self.live.remove(&removed);
        Ok(())
    }

    /// Forgets the units of a queue from `offset` on.
    pub fn cut(&mut self, number: u32, offset: i64) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].cut(offset)
    }

    /// Goes to `offset` in a queue, over messages that are gone, as [`QueueWriter::fill`] does.
    pub fn fill(&mut self, number: u32, offset: i64, log_file: i64) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].fill(offset, log_file)
    }

    /// Goes to `offset` in a queue, over messages that are gone and were its last ones, as [`QueueWriter::leave_out`] does.
    pub fn leave_out(&mut self, number: u32, offset: i64, log_file: i64, tail: Unit) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].leave_out(offset, log_file, tail)
    }

    /// Hands all units to the operating system, and shows them to those who read.
    pub fn write(&mut self) -> Result<()> {
        for number in self.pending.drain(..) {
            let queue = &mut self.queues[number as usize];
            queue.write()?;
            // after the log's end: who takes a queue's end first finds all that its units lead to
            self.live.publish(&self.shown[number as usize], queue.next_offset());
            self.unsynced.push(number);
        }
        // a queue is noted at each write, and nobody may flush for long
        if self.unsynced.len() > 4 * self.queues.len() {
            self.unsynced.sort_unstable();
            self.unsynced.dedup();
        }
        Ok(())
    }

    /// All files that are held open.
    pub fn held(&self) -> impl Iterator<Item = HeldFile> {
        // the others open their file for each write
        self.queues.iter().take(MAX_OPEN).filter_map(QueueWriter::held)
    }

    /// Hands over what was written since the last call.
    pub fn unsynced(&mut self, out: &mut Unsynced) {
        self.unsynced.sort_unstable();
        self.unsynced.dedup();
        self.unsynced.drain(..).for_each(|number| self.queues[number as usize].unsynced(out));
    }
}

impl Topic {
    #[inline]
    fn get(&self, queue_id: i32) -> u32 {
        match self.small.get(queue_id as usize) {
            Some(number) => *number,
            None => self.large.get(&queue_id).copied().unwrap_or(NONE),
        }
    }

    fn insert(&mut self, queue_id: i32, number: u32) {
        let at = queue_id as usize;
        if at >= SMALL {
            self.large.insert(queue_id, number);
            return;
        }
        if self.small.len() <= at {
            self.small.resize(at + 1, NONE);
        }
        self.small[at] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_number() {
        let mut table = QueueTable::new("nowhere".into(), 100);
        let numbers = [("A", 0), ("B", 0), ("A", 3), ("A", 5000)].map(|(topic, id)| table.find(topic, id));
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!([("A", 5000), ("B", 0), ("A", 0)].map(|(topic, id)| table.find(topic, id)), [3, 1, 0]);
        assert_eq!(table.find("A", 1), 4);
        assert_eq!((&*table.topic(1).name, table.queue(3).queue_id), ("B", 5000));
    }
}
