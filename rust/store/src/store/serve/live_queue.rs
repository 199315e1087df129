//! Reads entries of a consume queue while this process appends to it. Only entries that the appender has published
//! are visible.
//!
//! Source: `ConsumeQueue.getIndexBuffer`, `getMinOffsetInQueue`, `getMaxOffsetInQueue`, `correctMinOffset`,
//! `DefaultMessageStore.consumeQueueTable`, `findConsumeQueue`.
use super::map_cache::{FileMap, MapCache, MapCount};
use crate::Result;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::store::consume_queue::ConsumeQueue;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const UNIT: u64 = UNIT_SIZE as u64;

/// A consume queue of a store that this process appends to. The handle is valid until the queue is
/// [removed](Self::is_removed).
#[derive(Debug)]
pub struct LiveQueue {
    topic: Box<str>,
    queue_id: i32,
    files: MapCache,
    min_offset: AtomicI64,
    max_offset: AtomicI64,
    is_removed: AtomicBool,
}

impl LiveQueue {
    pub fn new(
        topic: &str,
        queue_id: i32,
        directory: PathBuf,
        file_size: u64,
        max_offset: i64,
        count: Arc<MapCount>,
    ) -> Self {
        Self {
            topic: topic.into(),
            queue_id,
            files: MapCache::new(directory, file_size, count),
            min_offset: AtomicI64::new(0),
            max_offset: AtomicI64::new(max_offset),
            is_removed: AtomicBool::new(false),
        }
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }

    /// Returns the offset of the first entry whose record is still in the log. If there is none, returns the max
    /// offset.
    #[inline]
    pub fn min_offset(&self) -> i64 {
        self.min_offset.load(Ordering::Acquire)
    }

    #[inline]
    pub fn max_offset(&self) -> i64 {
        self.max_offset.load(Ordering::Acquire)
    }

    /// Returns min and max offset, as they were at the same moment. Both are 0 after a removal.
    #[inline]
    pub fn bounds(&self) -> (i64, i64) {
        // The min offset is read first, because a removal sets the max offset to 0 before the min offset.
        let min_offset = self.min_offset();
        let max_offset = self.max_offset();
        (min_offset.min(max_offset), max_offset)
    }

    /// Tells whether the queue was removed. A new queue of the same name may exist.
    #[inline]
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    #[inline]
    pub fn units_per_file(&self) -> i64 {
        (self.files.file_size() / UNIT) as i64
    }

    /// Returns the entry at a queue offset, or `None` outside of the queue and in a hole.
    pub fn unit(&self, offset: i64) -> Result<Option<Unit>> {
        let (min, max) = self.bounds();
        if !(min..max).contains(&offset) {
            return Ok(None);
        }
        let file = self.file_of(offset)?;
        Ok(file.and_then(|file| unit_in(&file, offset)))
    }

    /// Returns the file with the consume-queue entry at a queue offset, which must not be negative; `None` if the
    /// file is removed.
    #[inline]
    pub fn file_of(&self, offset: i64) -> Result<Option<Arc<FileMap>>> {
        self.files.file_of(offset as u64 * UNIT)
    }

    /// Marks the file that begins at byte `base`, so that its last reader unmaps it. Called before the file is removed,
    /// and does not wait for readers.
    pub fn release_file(&self, base: u64) {
        self.files.forget_before(base + self.files.file_size());
    }

    /// Returns whether retention has removed the queue file that contained `offset`.
    pub fn has_let_go(&self, offset: i64) -> bool {
        (offset as u64) * UNIT < self.files.first()
    }

    pub fn list_files(&self) -> Result<ConsumeQueue> {
        ConsumeQueue::list(&self.topic, self.queue_id, self.files.directory())
    }

    /// Makes the entries before `max_offset` visible to readers. Returns whether these are the first entries of the
    /// queue.
    #[inline]
    pub fn publish(&self, max_offset: i64) -> bool {
        // Relaxed is enough, because there is only one writer.
        let is_first = self.max_offset.load(Ordering::Relaxed) == 0;
        self.max_offset.store(max_offset, Ordering::Release);
        is_first && max_offset > 0
    }

    /// Moves the min offset to the first consume-queue entry whose record is at or behind `log_start`, and releases
    /// removed files.
    pub fn begin_at(&self, log_start: u64) -> Result<()> {
        self.begin_in(&self.list_files()?, log_start)
    }

    /// Moves the min offset as [`begin_at`](Self::begin_at) does, with an existing listing of the files.
    pub fn begin_in(&self, files: &ConsumeQueue, log_start: u64) -> Result<()> {
        let max_offset = self.max_offset();
        let first = files.lower_bound(log_start, max_offset)?;
        // The queue may have been removed meanwhile.
        if !self.is_removed() {
            // The min offset never decreases, even if two runs overlap.
            self.min_offset.fetch_max(first.min(max_offset), Ordering::AcqRel);
            self.files.forget_before(files.segments().start());
        }
        Ok(())
    }

    /// Empties the queue and marks it as removed.
    pub fn remove(&self) {
        // Marked first, so that a concurrent `begin_in` does not raise the min offset of a removed queue.
        self.is_removed.store(true, Ordering::Release);
        self.max_offset.store(0, Ordering::Release);
        self.min_offset.store(0, Ordering::Release);
        self.files.forget_before(u64::MAX);
    }
}

/// Returns the consume-queue entry at a queue offset; `None` if `file` does not contain it.
#[inline]
pub fn unit_in(file: &FileMap, offset: i64) -> Option<Unit> {
    file.slice(offset as u64 * UNIT, UNIT_SIZE).and_then(Unit::decode)
}

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
    use crate::file::name;
    use std::fs;
    use std::path::Path;

    /// Creates a queue of seven units, three per file, with records of ten bytes.
    fn queue(dir: &Path) -> LiveQueue {
        for (n, units) in (0..7).collect::<Vec<i64>>().chunks(3).enumerate() {
            let unit = |n: &i64| Unit { physical_offset: 10 * n, size: 10, tags_code: *n }.encode();
            let mut bytes: Vec<u8> = units.iter().flat_map(unit).collect();
            bytes.resize(3 * UNIT_SIZE, 0);
            fs::write(dir.join(name::of_offset((n * 3 * UNIT_SIZE) as u64)), bytes).expect("written");
        }
        LiveQueue::new("T", 0, dir.to_path_buf(), 3 * UNIT, 0, Arc::default())
    }

    fn codes(queue: &LiveQueue) -> Vec<Option<i64>> {
        (-1..8).map(|offset| queue.unit(offset).expect("read").map(|unit| unit.tags_code)).collect()
    }

    #[test]
    fn units_are_there_once_they_are_published() {
        let dir = tempfile::tempdir().expect("dir");
        let queue = queue(dir.path());
        assert_eq!((queue.bounds(), codes(&queue)), ((0, 0), vec![None; 9]));
        assert_eq!([4, 7, 7].map(|max| queue.publish(max)), [true, false, false]);
        let expected = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), None];
        assert_eq!((queue.bounds(), queue.units_per_file(), codes(&queue)), ((0, 7), 3, expected.to_vec()));
    }

    #[test]
    fn the_min_offset_follows_the_log_and_never_goes_back() {
        let dir = tempfile::tempdir().expect("dir");
        let queue = queue(dir.path());
        queue.publish(7);
        let begin = |log_start| {
            queue.begin_at(log_start).expect("read");
            queue.bounds()
        };
        assert_eq!([0, 35, 20].map(begin), [(0, 7), (4, 7), (4, 7)]);
        fs::remove_file(dir.path().join(name::of_offset(0))).expect("removed");
        assert_eq!([40, 100].map(begin), [(4, 7), (7, 7)], "where no message is left the next one is the first");
        queue.publish(8);
        assert_eq!(queue.bounds(), (7, 8));
    }

    #[test]
    fn a_removed_queue_never_shows_the_files_of_one_that_begins_anew() {
        let dir = tempfile::tempdir().expect("dir");
        let queue = queue(dir.path());
        queue.publish(7);
        assert!(queue.file_of(0).expect("read").is_some());
        queue.remove();
        assert!(queue.is_removed() && queue.file_of(0).expect("read").is_none());
        queue.begin_at(0).expect("read");
        assert_eq!((queue.bounds(), codes(&queue)), ((0, 0), vec![None; 9]));
    }

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
