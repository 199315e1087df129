//! Where the queues of a topic begin in the log as it is now. A topic that was deleted and made anew counts from 0 again, and the log
//! keeps the messages of its earlier generation until retention removes them: they are none of the topic's.
use super::commit_log::CommitLog;
use super::consume_queue::{ConsumeQueue, UnitReader};
use super::removed_topics::RemovedTopics;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use std::path::Path;

/// The first message that a queue lists: what stands before it with the same offset or a higher one is of an earlier generation.
#[derive(Clone, Copy, Debug)]
pub struct QueueBegin {
    queue_id: i32,
    offset: i64,
    physical_offset: u64,
}

/// The begins of the queues of some topics.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// By name, and by the number of the queue.
    topics: Vec<(String, Vec<QueueBegin>)>,
    removed: RemovedTopics,
    /// All that stands from here on is of the present generation.
    newest: u64,
}

impl QueueBegin {
    /// That of a queue; `None` where it has no unit that surely is its own.
    pub fn of(queue: &ConsumeQueue, log: &CommitLog) -> Result<Option<Self>> {
        let offset = queue.first_live(log.min_offset(), queue.max_offset()?)?;
        let Some(unit) = UnitReader::new(queue).unit(offset)?.filter(Unit::is_message) else { return Ok(None) };
        let physical_offset = unit.physical_offset as u64;
        let begin = Self { queue_id: queue.queue_id(), offset, physical_offset };
        Ok(queue.is_own(log, offset, unit)?.then_some(begin))
    }

    /// Whether a record of the queue is of an earlier generation.
    pub fn is_behind(&self, offset: i64, physical_offset: u64) -> bool {
        physical_offset < self.physical_offset && offset >= self.offset
    }
}

impl Generations {
    /// Those of `topics`, whose queues are given, in the store below `root`.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; [`crate::Error::Corrupt`] for a list of removed topics that cannot be read.
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
            begins.sort_unstable_by_key(|begin| begin.queue_id);
            let newest = begins.iter().map(|begin| begin.physical_offset).max().unwrap_or_default();
            all.newest = all.newest.max(newest).max(all.removed.end_of(name));
            all.topics.push((name.to_owned(), begins));
        }
        Ok(all)
    }

    /// Whether a message of these topics is of an earlier generation.
    #[inline]
    pub fn is_earlier(&self, message: &Message<'_>) -> bool {
        // of most topics, all but the first messages of their queues
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
