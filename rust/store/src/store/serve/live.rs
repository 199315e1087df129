//! Reads a store while this process appends to it: messages, store times, and the offset for a time by the rule of
//! 4.9.4.
//!
//! Source: `DefaultMessageStore`, `ConsumeQueue.getOffsetInQueueByTime`.
use super::arrival::Arrivals;
use super::get_message::{PullFilter, PullResult, get_message};
use super::key_query::{KeyQueryResult, LiveIndex};
use super::live_log::{LiveLog, LiveRecord, LogGrowth};
use super::live_queue::{LiveQueue, LiveQueues};
use super::map_cache::FileMap;
use super::places::Records;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::store::pull::GetLimits;
use crate::store::time_search::{TimedQueue, file_by_time, nearest};
use std::path::Path;
use std::sync::Arc;

/// A store for reading. Clones share the store. If a clone outlives the appender, it shows the last state of the
/// appender.
#[derive(Clone, Debug)]
pub struct Live {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    log: Arc<LiveLog>,
    queues: Arc<LiveQueues>,
    index: LiveIndex,
    arrivals: Arrivals,
    growth: LogGrowth,
}

impl Live {
    pub(crate) fn new(log: Arc<LiveLog>, queues: Arc<LiveQueues>, index: LiveIndex) -> Self {
        let (arrivals, growth) = (Arrivals::default(), LogGrowth::default());
        Self { parts: Arc::new(Parts { log, queues, index, arrivals, growth }) }
    }

    /// Returns a queue that has or had messages, otherwise `None`. The handle is valid until the queue is
    /// [removed](LiveQueue::is_removed).
    pub fn queue(&self, topic: &str, queue_id: i32) -> Option<Arc<LiveQueue>> {
        self.parts.queues.get(topic, queue_id)
    }

    /// Returns the queues of a topic that have or had messages, sorted by id.
    pub fn queues_of(&self, topic: &str) -> Vec<Arc<LiveQueue>> {
        self.parts.queues.of_topic(topic)
    }

    /// Returns all queues that have or had messages.
    pub fn queues(&self) -> Vec<Arc<LiveQueue>> {
        self.parts.queues.all()
    }

    /// Pulls messages of a queue from `offset` on by a broker's rules, and passes whole records to `out`. A removed queue
    /// counts as empty. After an error `out` may have received records.
    pub fn get_message<F: PullFilter + ?Sized>(
        &self,
        queue: &LiveQueue,
        offset: i64,
        max_messages: usize,
        filter: &F,
        limits: GetLimits,
        out: &mut impl Records,
    ) -> Result<PullResult> {
        get_message((&self.parts.log, queue), offset, max_messages, filter, limits, out)
    }

    pub fn record(&self, physical_offset: u64) -> Result<Option<LiveRecord>> {
        self.parts.log.record(physical_offset)
    }

    /// Returns the offset of the first byte of the log, and the offset behind its last record.
    pub fn log_bounds(&self) -> (u64, u64) {
        let min_offset = self.parts.log.min_offset();
        // Retention may move the start between the two reads, so the end is kept at or behind it.
        (min_offset, self.parts.log.end().max(min_offset))
    }

    /// Returns the file that contains the byte at `offset` of the log, or `None` if the file is removed.
    pub fn log_file(&self, offset: u64) -> Result<Option<Arc<FileMap>>> {
        self.parts.log.file_of(offset)
    }

    /// Returns the signal for threads that wait for the log to grow.
    pub fn growth(&self) -> &LogGrowth {
        &self.parts.growth
    }

    pub fn log_file_size(&self) -> u64 {
        self.parts.log.file_size()
    }

    /// Returns the store time of a message in milliseconds; -1 if there is no message.
    pub fn store_time(&self, queue: &LiveQueue, offset: i64) -> Result<i64> {
        match queue.unit(offset)?.filter(Unit::is_message) {
            Some(unit) => self.parts.log.store_time(unit.physical_offset, unit.size),
            None => Ok(-1),
        }
    }

    /// Returns the store time of the message at the min offset of a queue, in milliseconds; -1 if there is no message.
    pub fn earliest_in_queue(&self, queue: &LiveQueue) -> Result<i64> {
        self.store_time(queue, queue.min_offset())
    }

    /// Returns the least store time of the messages at the min offsets of a topic's queues, in milliseconds; -1
    /// without messages.
    pub fn earliest_in_topic(&self, topic: &str) -> Result<i64> {
        let times =
            self.queues_of(topic).iter().map(|queue| self.earliest_in_queue(queue)).collect::<Result<Vec<_>>>()?;
        // A queue without messages has the time -1, which must not be the minimum.
        Ok(times.into_iter().filter(|time| *time >= 0).min().unwrap_or(-1))
    }

    /// Returns the offset of the message nearest to a store time in milliseconds, in the file chosen by modification time, as
    /// 4.9.4 does.
    pub fn offset_for_time(&self, queue: &LiveQueue, when: i64) -> Result<i64> {
        let log = &self.parts.log;
        nearest(&mut Search { log, queue, bounds: queue.bounds() }, when, log.min_offset() as i64)
    }

    /// Returns the store time of the first message in the log, in milliseconds; -1 without messages. A 4.9.4 broker returns -1
    /// for a log of less than 8 MiB, too; 5.x does not.
    pub fn earliest_store_time(&self) -> Result<i64> {
        let record = self.record(self.parts.log.min_offset())?;
        Ok(record.as_ref().and_then(|record| record.message()).map_or(-1, |message| message.store_timestamp()))
    }

    /// Returns the newest messages of a topic that the index lists under the hash of a key. Returns at most 64
    /// messages, with a store time from `begin` to `end` in milliseconds.
    pub fn query(&self, topic: &str, key: &str, max_messages: usize, begin: i64, end: i64) -> Result<KeyQueryResult> {
        self.parts.index.query(&self.parts.log, (topic, key), max_messages, begin, end)
    }

    /// Sets whether a pull checks the body of a message against its CRC. Each body is checked once while the store is open.
    pub fn check_bodies(&self, is_asked: bool) {
        self.parts.log.check_bodies(is_asked);
    }

    pub fn arrivals(&self) -> &Arrivals {
        &self.parts.arrivals
    }

    pub(crate) fn release_file(&self, path: &Path) {
        let log = &self.parts.log;
        let name = path.file_name().and_then(|name| name.to_str());
        // Index files have other names and are not mapped by readers.
        let Some(base) = name.and_then(crate::file::name::offset) else { return };
        if path.parent() == Some(log.directory()) {
            // Released before the removal, so that no reader opens the file again.
            log.begin_at(base + log.file_size());
        } else if let Some(queue) = self.queue_at(path.parent()) {
            queue.release_file(base);
        }
    }

    fn queue_at(&self, directory: Option<&Path>) -> Option<Arc<LiveQueue>> {
        let name = |directory: Option<&Path>| directory?.file_name()?.to_str().map(str::to_owned);
        // The path of a queue file is `consumequeue/TOPIC/QUEUE_ID/FILE`.
        let queue_id = name(directory)?.parse().ok()?;
        self.queue(&name(directory?.parent())?, queue_id)
    }

    /// Moves the min offset of each queue to its first message that is still in the log.
    pub(crate) fn correct_min_offsets(&self) -> Result<()> {
        let log_start = self.parts.log.min_offset();
        self.parts.queues.all().iter().try_for_each(|queue| queue.begin_at(log_start))
    }
}

struct Search<'a> {
    log: &'a LiveLog,
    queue: &'a LiveQueue,
    bounds: (i64, i64),
}

impl TimedQueue for Search<'_> {
    fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        self.queue.unit(offset)
    }

    fn store_time(&mut self, unit: Unit) -> Result<Option<i64>> {
        let time = self.log.store_time(unit.physical_offset, unit.size)?;
        Ok(Some(time).filter(|time| *time >= 0))
    }

    fn file_by_time(&self, when: i64) -> Result<Option<(i64, i64)>> {
        // The files are listed again, because their present modification times count.
        let files = self.queue.list_files()?;
        file_by_time(files.segments().files(), when, |_| None)
    }
}
