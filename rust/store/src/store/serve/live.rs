//! Reads a store for a server while this process appends to it.
//!
//! Source: `DefaultMessageStore`: what a broker asks it beside appending.
use super::arrival::Arrivals;
use super::get_message::{Pulled, get_message};
use super::key_query::{KeyFound, LiveIndex};
use super::live_log::{LiveLog, LiveRecord};
use super::live_queue::LiveQueue;
use super::live_queues::LiveQueues;
use super::log_growth::LogGrowth;
use super::map_cache::FileMap;
use super::places::Records;
use super::pull_filter::PullFilter;
use super::time;
use crate::Result;
use crate::store::get_limits::GetLimits;
use std::path::Path;
use std::sync::Arc;

/// The live side of a store; clones are the same. It may outlive its appender, and then shows what that left.
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

    /// The queue of that name, if it has messages or had some. A handle may be kept until the queue
    /// [is removed](LiveQueue::is_removed).
    pub fn queue(&self, topic: &str, queue_id: i32) -> Option<Arc<LiveQueue>> {
        self.parts.queues.get(topic, queue_id)
    }

    /// The queues of a topic that have messages or had some, in their order.
    pub fn queues_of(&self, topic: &str) -> Vec<Arc<LiveQueue>> {
        self.parts.queues.of_topic(topic)
    }

    /// All queues that have messages or had some.
    pub fn queues(&self) -> Vec<Arc<LiveQueue>> {
        self.parts.queues.all()
    }

    /// Messages of a queue from `offset` on, as a broker gives them: whole records, which go to `out` one after the other.
    /// A queue that was removed is an empty one.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; then `out` may have grown.
    pub fn get_message<F: PullFilter + ?Sized>(
        &self,
        queue: &LiveQueue,
        offset: i64,
        max_messages: usize,
        filter: &F,
        limits: GetLimits,
        out: &mut impl Records,
    ) -> Result<Pulled> {
        get_message((&self.parts.log, queue), offset, max_messages, filter, limits, out)
    }

    /// The record at an offset of the log, or `None` where none stands there.
    pub fn record(&self, physical_offset: u64) -> Result<Option<LiveRecord>> {
        self.parts.log.record(physical_offset)
    }

    /// Offset of the first byte of the log that is still there, and that behind its last record.
    pub fn log_bounds(&self) -> (u64, u64) {
        let min_offset = self.parts.log.min_offset();
        (min_offset, self.parts.log.end().max(min_offset))
    }

    /// The file that holds the log's byte at `offset`, for who sends its bytes as they are; `None` where it is gone.
    pub fn log_file(&self, offset: u64) -> Result<Option<Arc<FileMap>>> {
        self.parts.log.file_of(offset)
    }

    /// Who waits for the log to grow.
    pub fn growth(&self) -> &LogGrowth {
        &self.parts.growth
    }

    /// Bytes of a file of the log.
    pub fn log_file_size(&self) -> u64 {
        self.parts.log.file_size()
    }

    /// Store time of a message in milliseconds; -1 where there is none.
    pub fn store_time(&self, queue: &LiveQueue, offset: i64) -> Result<i64> {
        time::store_time(&self.parts.log, queue, offset)
    }

    /// Store time of the message at the min offset of a queue, in milliseconds; -1 where there is none.
    pub fn earliest_in_queue(&self, queue: &LiveQueue) -> Result<i64> {
        self.store_time(queue, queue.min_offset())
    }

    /// Store time of the earliest of these messages over all queues of a topic, in milliseconds; -1 without one.
    pub fn earliest_in_topic(&self, topic: &str) -> Result<i64> {
        let times =
            self.queues_of(topic).iter().map(|queue| self.earliest_in_queue(queue)).collect::<Result<Vec<_>>>()?;
        Ok(times.into_iter().filter(|time| *time >= 0).min().unwrap_or(-1))
    }

    /// The offset in a queue for a store time in milliseconds, by the rule of 4.9.4.
    pub fn offset_for_time(&self, queue: &LiveQueue, when: i64) -> Result<i64> {
        time::offset_for_time(&self.parts.log, queue, when)
    }

    /// Store time of the first message of the log that is still there, in milliseconds; -1 without one.
    ///
    /// 4.9.4 finds none unless 8 MiB stand behind it; 5.x does.
    pub fn earliest_store_time(&self) -> Result<i64> {
        time::earliest_in_log(&self.parts.log)
    }

    /// Messages of a topic under the hash of a key, the newest, stored from `begin` to `end` in milliseconds: 64 at most.
    pub fn query(&self, topic: &str, key: &str, max_messages: usize, begin: i64, end: i64) -> Result<KeyFound> {
        self.parts.index.query(&self.parts.log, (topic, key), max_messages, begin, end)
    }

    /// Has pulls compare the body of each message with its CRC when it is given for the first time since the store was opened, or not.
    pub fn check_bodies(&self, is_asked: bool) {
        self.parts.log.check_bodies(is_asked);
    }

    /// The listener of new messages.
    pub fn arrivals(&self) -> &Arrivals {
        &self.parts.arrivals
    }

    /// Lets go a file that is about to be removed.
    pub(crate) fn removing(&self, path: &Path) {
        let log = &self.parts.log;
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(base) = name.and_then(crate::file::name::offset) else { return };
        if path.parent() == Some(log.directory()) {
            // before the file goes: nobody opens it again from here on
            log.begin_at(base + log.file_size());
        } else if let Some(queue) = self.queue_at(path.parent()) {
            queue.removing(base);
        }
    }

    /// The queue whose files are in a directory.
    fn queue_at(&self, directory: Option<&Path>) -> Option<Arc<LiveQueue>> {
        let name = |directory: Option<&Path>| directory?.file_name()?.to_str().map(str::to_owned);
        let queue_id = name(directory)?.parse().ok()?;
        self.queue(&name(directory?.parent())?, queue_id)
    }

    /// Moves the min offsets of all queues on to where the log begins.
    pub(crate) fn correct_min_offsets(&self) -> Result<()> {
        let log_start = self.parts.log.min_offset();
        self.parts.queues.all().iter().try_for_each(|queue| queue.begin_at(log_start))
    }
}
