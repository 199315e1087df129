//! Finds out whether a message is older than its topic. A topic that was deleted and created again counts queue
//! offsets from 0. The log keeps the earlier messages until retention removes them, although they no longer belong to
//! the topic. They are called an earlier generation of the topic.
use super::commit_log::CommitLog;
use super::consume_queue::{ConsumeQueue, UnitReader};
use super::removed_topics::RemovedTopics;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use std::path::Path;

/// The first message of a queue in the present generation. A message before it in the log belongs to an earlier
/// generation if its queue offset is the same or higher.
#[derive(Clone, Copy, Debug)]
pub struct QueueBegin {
    queue_id: i32,
    offset: i64,
    physical_offset: u64,
}

/// The first messages of the queues of some topics, in their present generation.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// The first message of each queue by topic, sorted by queue id.
    topics: Vec<(String, Vec<QueueBegin>)>,
    removed: RemovedTopics,
    /// Physical offset from which on no message belongs to an earlier generation.
    newest: u64,
}

impl QueueBegin {
    /// Returns `None` if the first consume-queue entry does not point to a message of this queue.
    pub fn of(queue: &ConsumeQueue, log: &CommitLog) -> Result<Option<Self>> {
        let offset = queue.first_live(log.min_offset(), queue.max_offset()?)?;
        let Some(unit) = UnitReader::new(queue).unit(offset)?.filter(Unit::is_message) else { return Ok(None) };
        let physical_offset = unit.physical_offset as u64;
        let begin = Self { queue_id: queue.queue_id(), offset, physical_offset };
        Ok(queue.is_own(log, offset, unit)?.then_some(begin))
    }

    /// Returns whether a record of the queue is older than the last deletion of its topic.
    pub fn is_behind(&self, offset: i64, physical_offset: u64) -> bool {
        physical_offset < self.physical_offset && offset >= self.offset
    }
}

impl Generations {
    pub fn of<'a>(
        root: &Path,
        log: &CommitLog,
        topics: impl IntoIterator<Item = (&'a str, &'a [ConsumeQueue])>,
    ) -> Result<Self> {
        let mut all = Self { removed: RemovedTopics::load(root)?, ..Self::default() };
        for (name, queues) in topics {
            let mut begins: Vec<QueueBegin> = Vec::with_capacity(queues.len());
            for queue in queues {
                begins.extend(QueueBegin::of(queue, log)?);
            }
            // Sorted for the binary search in `stands_before`.
            begins.sort_unstable_by_key(|begin| begin.queue_id);
            // Behind the first messages of all queues, no message is of an earlier generation.
            let newest = begins.iter().map(|begin| begin.physical_offset).max().unwrap_or_default();
            all.newest = all.newest.max(newest).max(all.removed.end_of(name));
            all.topics.push((name.to_owned(), begins));
        }
        Ok(all)
    }

    /// Returns whether a message of these topics is older than the last deletion of its topic.
    #[inline]
    pub fn is_earlier(&self, message: &Message<'_>) -> bool {
        // This comparison is enough for all but the first messages of most queues.
        (message.physical_offset() as u64) < self.newest && self.stands_before(message)
    }

    fn stands_before(&self, message: &Message<'_>) -> bool {
        let Some((name, begins)) = self.topics.iter().find(|(name, _)| name.as_bytes() == message.topic()) else {
            return false;
        };
        let begin = begins.binary_search_by_key(&message.queue_id(), |begin| begin.queue_id);
        let (offset, place) = (message.queue_offset(), message.physical_offset() as u64);
        begin.is_ok_and(|index| begins[index].is_behind(offset, place)) || self.removed.has(name, message)
    }
}
