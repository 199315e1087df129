//! The consume queues of a store that this process appends to, by name. A queue is visible here from its first
//! message on.
//!
//! Source: `DefaultMessageStore.consumeQueueTable`, `findConsumeQueue`.
use super::live_queue::LiveQueue;
use super::map_cache::MapCount;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type OfTopic = BTreeMap<i32, Arc<LiveQueue>>;

#[derive(Debug)]
pub struct LiveQueues {
    directory: PathBuf,
    file_size: u64,
    count: Arc<MapCount>,
    topics: RwLock<HashMap<Box<str>, OfTopic>>,
}

impl LiveQueues {
    pub fn new(directory: PathBuf, file_size: u64) -> Self {
        Self { directory, file_size, count: Arc::default(), topics: RwLock::default() }
    }

    /// Creates a queue. The queue becomes visible if it has messages.
    pub fn make(&self, topic: &str, queue_id: i32, max_offset: i64) -> Arc<LiveQueue> {
        let directory = self.directory.join(topic).join(queue_id.to_string());
        let queue = LiveQueue::new(topic, queue_id, directory, self.file_size, max_offset, self.count.clone());
        let queue = Arc::new(queue);
        if max_offset > 0 {
            self.show(&queue);
        }
        queue
    }

    /// Makes the entries of a queue before `max_offset` visible to readers.
    #[inline]
    pub fn publish(&self, queue: &Arc<LiveQueue>, max_offset: i64) {
        // An empty queue is not visible, so the first publication adds it.
        if queue.publish(max_offset) {
            self.show(queue);
        }
    }

    fn show(&self, queue: &Arc<LiveQueue>) {
        let mut topics = self.write();
        topics.entry(queue.topic().into()).or_default().insert(queue.queue_id(), queue.clone());
    }

    /// Removes a queue from the list and empties it.
    pub fn remove(&self, queue: &LiveQueue) {
        {
            let mut topics = self.write();
            if let Some(of_topic) = topics.get_mut(queue.topic()) {
                of_topic.remove(&queue.queue_id());
                if of_topic.is_empty() {
                    topics.remove(queue.topic());
                }
            }
        }
        // The queue is emptied without the lock, when no reader can find it any more.
        queue.remove();
    }

    pub fn get(&self, topic: &str, queue_id: i32) -> Option<Arc<LiveQueue>> {
        self.read().get(topic)?.get(&queue_id).cloned()
    }

    /// Returns the queues of a topic, by id.
    pub fn of_topic(&self, topic: &str) -> Vec<Arc<LiveQueue>> {
        self.read().get(topic).into_iter().flat_map(|queues| queues.values().cloned()).collect()
    }

    pub fn all(&self) -> Vec<Arc<LiveQueue>> {
        self.read().values().flat_map(|queues| queues.values().cloned()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Box<str>, OfTopic>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Box<str>, OfTopic>> {
        self.topics.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_found_from_its_first_message_until_it_is_removed() {
        let queues = LiveQueues::new("nowhere".into(), 100);
        let queue = queues.make("T", 3, 0);
        assert!(queues.get("T", 3).is_none());
        queues.publish(&queue, 2);
        assert_eq!(queues.get("T", 3).map(|queue| queue.bounds()), Some((0, 2)));
        queues.make("T", 1, 7);
        assert_eq!(queues.of_topic("T").iter().map(|queue| queue.queue_id()).collect::<Vec<_>>(), [1, 3]);
        queues.remove(&queue);
        assert!(queue.is_removed() && queues.get("T", 3).is_none());
        assert_eq!((queue.bounds(), queue.unit(0).expect("read")), ((0, 0), None));
        assert_eq!(queues.all().len(), 1);
    }
}
