//! What a store has noted when it was last closed: the end of its log and the ends of its queues. As long as nobody has
//! opened it since, nothing follows behind these ends, and a reader need not search there.
//!
//! Only stores that this project has closed have such notes.
use super::consume_queue::ConsumeQueue;
use super::generation::RemovedTopics;
use super::message_store::MessageStore;
use super::queue_ends::QueueEnds;
use crate::Result;

#[derive(Debug)]
pub struct LastClose {
    /// The end of the log. `None` if the store was not closed, or by RocketMQ.
    log_end: Option<u64>,
    ends: QueueEnds,
    removed: RemovedTopics,
}

impl LastClose {
    /// Reads the notes of a store. [`check_end`](MessageStore::check_end) comes before.
    pub fn of(store: &MessageStore) -> Result<Self> {
        let (ends, removed) = (QueueEnds::load(store.root())?, RemovedTopics::load(store.root())?);
        // Without its end the log is not as it was at the close.
        let has_end = store.log().lost_end().flatten().is_none();
        Ok(Self { log_end: store.closed_end()?.filter(|_| has_end), ends, removed })
    }

    /// Returns whether the end of the log and the ends of the queues are of the same close.
    pub fn is_known(&self) -> bool {
        self.log_end == Some(self.ends.log_end)
    }

    pub fn ends(&self) -> &QueueEnds {
        &self.ends
    }

    pub fn removed(&self) -> &RemovedTopics {
        &self.removed
    }

    /// Returns the end of the log if the queues of `topic` list all of its messages before it. `queues` are those on
    /// disk of the queues that `is_selected` selects.
    pub fn listed_to(
        &self,
        topic: &str,
        queues: &[ConsumeQueue],
        is_selected: impl Fn(i32) -> bool,
    ) -> Result<Option<u64>> {
        let Some(end) = self.log_end.filter(|_| self.is_known()) else { return Ok(None) };
        for queue in queues {
            if !self.ends_at(queue)? {
                return Ok(None);
            }
        }
        let noted = self.ends.of_topic(topic, &self.removed).filter(|(id, next)| is_selected(*id) && *next > 0);
        let mut ids: Vec<_> = noted.map(|(id, _)| id).collect();
        ids.retain(|id| queues.iter().all(|queue| queue.queue_id() != *id));
        // A queue that is not on the disk has lost its files.
        Ok(Some(end).filter(|_| ids.is_empty()))
    }

    /// Returns whether a queue ends where it did at the close.
    pub fn ends_at(&self, queue: &ConsumeQueue) -> Result<bool> {
        let mut noted = self.ends.of_topic(queue.topic(), &self.removed);
        let next = noted.find(|(id, _)| *id == queue.queue_id()).map(|(_, next)| next);
        Ok(self.is_known() && next == Some(queue.max_offset()?))
    }
}
