//! Retention of an open store: runs while others append, and queues that go as a whole.
//!
//! Source: `DefaultMessageStore.cleanFilesPeriodically`, `cleanExpiredConsumerQueue`, `cleanUnusedTopic`.
use super::owned_store::{Open, OwnedStore};
use crate::Result;
use crate::store::consume_queue::ConsumeQueue;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::removed_topics::{Removal, RemovedTopics};
use crate::store::retain::clean_plan::InUse;
use crate::store::retain::clock::now_ms;
use crate::store::retain::retention::Owner;
use crate::store::retain::{QueueName, whole_queues};
use std::path::Path;

impl OwnedStore {
    /// Removes the queues of which no message is left, each while nobody appends.
    pub(super) fn remove_expired_queues(&self) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        let mut removed = Vec::new();
        let store = MessageStore::open(&self.root, &OpenOptions::default())?;
        for queue in store.all_queues()? {
            let name = (queue.topic().to_owned(), queue.queue_id());
            let is_gone = self.flusher.alone(|| {
                self.with(|open| {
                    // listed again: messages may have come since the look without the lock
                    let now = ConsumeQueue::list(queue.topic(), queue.queue_id(), queue.directory())?;
                    if !whole_queues::is_expired(&now, store.log().min_offset())? {
                        return Ok(false);
                    }
                    remove_queue(open, &now).map(|()| true)
                })
            })?;
            removed.extend(is_gone.then_some(name));
        }
        Ok(removed)
    }

    /// Removes the queues of all topics that are asked for at one moment, while nobody appends: messages before it are removed, later
    /// ones are not. The moment is on the disk before the first queue goes, or a start after a crash would list its messages again.
    pub(super) fn remove_topics(&self, is_asked: &dyn Fn(&str) -> bool) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let names = open.writers.queues.names_where(is_asked);
                let directory = self.root.join("consumequeue");
                let listed = names.iter().map(|(topic, queue_id)| {
                    ConsumeQueue::list(topic, *queue_id, &directory.join(topic).join(queue_id.to_string()))
                });
                let mut queues = listed.collect::<Result<Vec<_>>>()?;
                queues.retain(|queue| !queue.segments().files().is_empty());
                if !queues.is_empty() {
                    let removal = Removal {
                        before: open.writers.log.position(),
                        // the clock may have gone back since the newest message was stored
                        at_ms: now_ms().max(open.writers.last_store_ms),
                    };
                    let topics = queues.iter().map(ConsumeQueue::topic);
                    RemovedTopics::add(&self.root, topics, removal, open.writers.log.live().min_offset())?;
                }
                queues.iter().try_for_each(|queue| remove_queue(open, queue))?;
                Ok(queues.iter().map(|queue| (queue.topic().to_owned(), queue.queue_id())).collect())
            })
        })
    }
}

impl OwnedStore {
    /// Removes queues that their master has no more, those that still end where it is said: their topics were deleted and made again,
    /// so what stands before in the log is of nobody.
    pub(super) fn remove_ended(&self, ended: &[(QueueName, i64)]) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let mut queues = Vec::new();
                for ((topic, queue_id), next) in ended {
                    if !open.writers.queues.has(topic, *queue_id) {
                        continue;
                    }
                    let number = open.writers.queues.find(topic, *queue_id);
                    // a message that came since may have begun it anew
                    if open.writers.queues.queue(number).next_offset() == *next {
                        let directory = self.root.join("consumequeue").join(topic).join(queue_id.to_string());
                        queues.push(ConsumeQueue::list(topic, *queue_id, &directory)?);
                    }
                }
                let at_ms = now_ms().max(open.writers.last_store_ms);
                for queue in &queues {
                    // what stands before its own end: of the topic that was made again nothing does
                    let removal = Removal { before: queue.max_physical_offset()?, at_ms };
                    RemovedTopics::add(&self.root, [queue.topic()], removal, open.writers.log.live().min_offset())?;
                }
                queues.iter().try_for_each(|queue| remove_queue(open, queue))?;
                Ok(queues.iter().map(|queue| (queue.topic().to_owned(), queue.queue_id())).collect())
            })
        })
    }
}

fn remove_queue(open: &mut Open, queue: &ConsumeQueue) -> Result<()> {
    whole_queues::remove_files(queue)?;
    open.writers.queues.remove(queue.topic(), queue.queue_id());
    whole_queues::remove_directory(queue)
}

impl Owner for OwnedStore {
    fn in_use(&self) -> Result<InUse> {
        self.harm.check()?;
        self.with(|open| {
            let (position, index_file) = (open.writers.log.position(), open.writers.index.in_use());
            Ok(InUse { position, index_file })
        })
    }

    fn flush(&self) -> Result<()> {
        Self::flush(self)
    }

    fn removing(&self, path: &Path) {
        self.live.removing(path);
    }

    fn cleaned(&self) -> Result<()> {
        self.live.correct_min_offsets()
    }
}

/// The owner as its thread sees it, whose work must not wait for a long run.
pub(super) struct InThread<'a>(pub(super) &'a OwnedStore);

impl Owner for InThread<'_> {
    fn in_use(&self) -> Result<InUse> {
        self.0.in_use()
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn removing(&self, path: &Path) {
        Owner::removing(self.0, path);
    }

    fn cleaned(&self) -> Result<()> {
        self.0.cleaned()
    }

    fn pause(&self) {
        // a failure shows at the next append
        let _ = self.0.create_ahead();
        let _ = self.0.flush_log();
    }
}
