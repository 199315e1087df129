//! All consume queues of a store, by topic and queue id.
//!
//! Source: `DefaultMessageStore.consumeQueueTable`, `CommitLog.topicQueueTable`.
use super::flusher::{OpenFile, SyncList};
use super::queue_writer::QueueWriter;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::java::java_hash;
use crate::store::consume_queue::LMQ;
use crate::store::serve::{LiveQueue, LiveQueues};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

const MAX_OPEN: usize = 256;
/// Queues with an id below this number are found in an array, without hashing.
const SMALL: usize = 1024;
const NONE: u32 = u32::MAX;

/// The queues of a store. A queue is identified by its number in the table.
#[derive(Debug)]
pub struct QueueTable {
    directory: PathBuf,
    file_size: u64,
    names: HashMap<Box<str>, usize>,
    topics: Vec<Topic>,
    queues: Vec<QueueWriter>,
    live: Arc<LiveQueues>,
    /// For each queue in `queues`, the object that concurrent readers use.
    live_queues: Vec<Arc<LiveQueue>>,
    /// Number of the topic that [`find`](Self::find) returned last.
    last: usize,
    lmq_count: usize,
    planned: Vec<u32>,
    pending: Vec<u32>,
    /// Numbers of the queues that were written since the last flush. A queue may occur several times.
    unsynced: Vec<u32>,
}

#[derive(Debug)]
pub struct Topic {
    pub name: Box<str>,
    /// Java's hash of the topic's name and `#`, with which the index hash of each key begins.
    pub key_hash: i32,
    small: Vec<u32>,
    large: HashMap<i32, u32>,
}

impl QueueTable {
    /// Returns an empty table. Queues have files of `file_size` bytes below `directory`.
    pub fn new(directory: PathBuf, file_size: u64) -> Self {
        Self {
            live: Arc::new(LiveQueues::new(directory.clone(), file_size)),
            live_queues: Vec::new(),
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

    pub fn add(&mut self, topic: &str, queue_id: i32, next_offset: i64) -> u32 {
        let topic_number = self.topic_number(topic);
        let number = self.queues.len() as u32;
        let directory = self.directory.join(topic).join(queue_id.to_string());
        let stays_open = self.queues.len() < MAX_OPEN;
        let queue = QueueWriter::new(topic_number, queue_id, directory, self.file_size, next_offset, stays_open);
        self.queues.push(queue);
        self.live_queues.push(self.live.make(topic, queue_id, next_offset));
        self.lmq_count += usize::from(topic.starts_with(LMQ));
        self.topics[topic_number].insert(queue_id, number);
        number
    }

    pub fn live(&self) -> &Arc<LiveQueues> {
        &self.live
    }

    /// Returns the object through which concurrent readers see a queue.
    pub fn live_queue(&self, number: u32) -> &Arc<LiveQueue> {
        &self.live_queues[number as usize]
    }

    pub fn has(&self, topic: &str, queue_id: i32) -> bool {
        self.names.get(topic).is_some_and(|topic| self.topics[*topic].get(queue_id) != NONE)
    }

    /// Returns the number of a queue. Adds the queue if it does not exist.
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
        // Messages come in runs of one topic, so comparing with the last topic saves most hash lookups.
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

    #[inline]
    pub fn queue(&self, number: u32) -> &QueueWriter {
        &self.queues[number as usize]
    }

    pub fn len(&self) -> usize {
        self.queues.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    #[inline]
    pub fn topic(&self, number: u32) -> &Topic {
        &self.topics[self.queues[number as usize].topic]
    }

    /// Returns topic and id of each queue whose topic `select` accepts, sorted.
    pub fn names_where(&self, select: &dyn Fn(&str) -> bool) -> Vec<(String, i32)> {
        let all = self.queues.iter().map(|queue| (&*self.topics[queue.topic].name, queue.queue_id));
        let selected = all.filter(|(topic, _)| select(topic));
        let mut names: Vec<_> = selected.map(|(topic, id)| (topic.to_owned(), id)).collect();
        names.sort_unstable();
        names
    }

    /// Resets a queue whose files were removed. Its next message gets offset 0, in new files.
    pub fn remove(&mut self, topic: &str, queue_id: i32) {
        let Some(topic_number) = self.names.get(topic).copied() else { return };
        let number = self.topics[topic_number].get(queue_id);
        if number != NONE {
            let directory = self.directory.join(topic).join(queue_id.to_string());
            let stays_open = (number as usize) < MAX_OPEN;
            let queue = QueueWriter::new(topic_number, queue_id, directory, self.file_size, 0, stays_open);
            self.queues[number as usize] = queue;
            let new = self.live.make(topic, queue_id, 0);
            // Readers may hold the old queue, so it is replaced and then marked as removed.
            let removed = std::mem::replace(&mut self.live_queues[number as usize], new);
            self.live.remove(&removed);
        }
    }

    /// Plans a message in a queue. Returns the queue offset of the message.
    #[inline]
    pub fn plan(&mut self, number: u32) -> i64 {
        let queue = &mut self.queues[number as usize];
        let offset = queue.plan();
        // True only for the first message of a batch, so a queue is in the list once.
        if offset == queue.next_offset() {
            self.planned.push(number);
        }
        offset
    }

    pub fn lmq_count(&self) -> usize {
        self.lmq_count
    }

    #[inline]
    pub fn forget(&mut self) {
        for number in self.planned.drain(..) {
            self.queues[number as usize].forget();
        }
    }

    pub fn reserve(&mut self) -> Result<()> {
        let planned = std::mem::take(&mut self.planned);
        let reserved = planned.iter().try_for_each(|number| self.queues[*number as usize].reserve());
        self.planned = planned;
        self.forget();
        reserved
    }

    /// Buffers the consume-queue entry of the queue's next message.
    #[inline]
    pub fn push(&mut self, number: u32, unit: Unit) {
        if self.queues[number as usize].push(unit) {
            self.pending.push(number);
        }
    }

    /// Buffers the consume-queue entry of the queue's next message. Creates the file of the queue if it does not
    /// exist.
    pub fn append(&mut self, number: u32, unit: Unit) -> Result<()> {
        self.queues[number as usize].plan();
        self.queues[number as usize].reserve()?;
        self.push(number, unit);
        Ok(())
    }

    /// Restarts a queue at offset 0. Called when its topic was deleted and created again.
    pub fn restart(&mut self, number: u32) -> Result<()> {
        self.cut(number, 0)?;
        let (topic, queue_id) =
            (&self.topics[self.queues[number as usize].topic].name, self.queues[number as usize].queue_id);
        let removed = std::mem::replace(&mut self.live_queues[number as usize], self.live.make(topic, queue_id, 0));
        self.live.remove(&removed);
        Ok(())
    }

    pub fn cut(&mut self, number: u32, offset: i64) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].cut(offset)
    }

    pub fn fill(&mut self, number: u32, offset: i64, log_file: i64) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].fill(offset, log_file)
    }

    pub fn leave_out(&mut self, number: u32, offset: i64, log_file: i64, tail: Unit) -> Result<()> {
        self.unsynced.push(number);
        self.queues[number as usize].leave_out(offset, log_file, tail)
    }

    /// Writes all buffered consume-queue entries and publishes them to readers.
    pub fn write(&mut self) -> Result<()> {
        for number in self.pending.drain(..) {
            let queue = &mut self.queues[number as usize];
            queue.write()?;
            // Published after the end of the log, so that a reader that reads a queue's end first finds all of its records.
            self.live.publish(&self.live_queues[number as usize], queue.next_offset());
            self.unsynced.push(number);
        }
        // Each write adds its queue again, and there may be no flush for a long time.
        if self.unsynced.len() > 4 * self.queues.len() {
            self.unsynced.sort_unstable();
            self.unsynced.dedup();
        }
        Ok(())
    }

    pub fn open_files(&self) -> impl Iterator<Item = OpenFile> {
        // The other queues open their file for each write.
        self.queues.iter().take(MAX_OPEN).filter_map(QueueWriter::open_file)
    }

    /// Adds to `out` the files that were written since the last call.
    pub fn take_unsynced(&mut self, out: &mut SyncList) {
        self.unsynced.sort_unstable();
        self.unsynced.dedup();
        self.unsynced.drain(..).for_each(|number| self.queues[number as usize].take_unsynced(out));
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
        // A negative id becomes a large number here, so it is in the map, too.
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
