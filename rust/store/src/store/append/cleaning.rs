//! Retention of an open store while other threads append, and removal of whole queues.
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
    /// Removes queues whose messages are all removed. Nobody appends while a queue is removed.
    pub(super) fn remove_expired_queues(&self) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        let mut removed = Vec::new();
        let store = MessageStore::open(&self.root, &OpenOptions::default())?;
        for queue in store.all_queues()? {
            let name = (queue.topic().to_owned(), queue.queue_id());
            let is_gone = self.flusher.alone(|| {
                self.with(|open| {
                    // The files are listed again under the lock, because messages may have come.
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

    /// Removes the queues of all selected topics, while no thread appends. The time of the removal is saved before
    /// the first queue is removed. Otherwise a start after a crash would list the removed messages again.
    pub(super) fn remove_topics(&self, select: &dyn Fn(&str) -> bool) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let names = open.writers.queues.names_where(select);
                let directory = self.root.join("consumequeue");
                let queues = names.iter().map(|(topic, queue_id)| {
                    ConsumeQueue::list(topic, *queue_id, &directory.join(topic).join(queue_id.to_string()))
                });
                let mut queues = queues.collect::<Result<Vec<_>>>()?;
                // A queue without files has nothing to remove.
                queues.retain(|queue| !queue.segments().files().is_empty());
                if !queues.is_empty() {
                    let removal = Removal {
                        before: open.writers.log.position(),
                        // The clock may have gone back since the newest message was stored.
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

    /// Removes queues that the master no longer has, if they still end at the given offset. Their topics were deleted and
    /// created again, so their earlier messages no longer belong to a topic.
    pub(super) fn remove_queues(&self, ends: &[(QueueName, i64)]) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let mut queues = Vec::new();
                for ((topic, queue_id), next) in ends {
                    if !open.writers.queues.has(topic, *queue_id) {
                        continue;
                    }
                    let number = open.writers.queues.find(topic, *queue_id);
                    // A new message may have restarted the queue meanwhile.
                    if open.writers.queues.queue(number).next_offset() == *next {
                        let directory = self.root.join("consumequeue").join(topic).join(queue_id.to_string());
                        queues.push(ConsumeQueue::list(topic, *queue_id, &directory)?);
                    }
                }
                let at_ms = now_ms().max(open.writers.last_store_ms);
                for queue in &queues {
                    // Only records before the queue's own end are removed. None of these belongs to the new topic.
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

    fn before_removal(&self, path: &Path) {
        self.live.release_file(path);
    }

    fn after_removals(&self) -> Result<()> {
        self.live.correct_min_offsets()
    }
}

/// The store during a run of retention in the background thread. Between the removals of two files it does the
/// thread's other work.
pub(super) struct InThread<'a>(pub(super) &'a OwnedStore);

impl Owner for InThread<'_> {
    fn in_use(&self) -> Result<InUse> {
        self.0.in_use()
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn before_removal(&self, path: &Path) {
        self.0.before_removal(path);
    }

    fn after_removals(&self) -> Result<()> {
        self.0.after_removals()
    }

    fn pause(&self) {
        // A failure shows at the next append.
        let _ = self.0.create_ahead();
        let _ = self.0.flush_log();
    }
}
