//! Shows a queue as a recovery would leave it. Consists of its valid entries on disk, the entries that it has lost,
//! and the entries of records at the log's end that no queue lists yet.
//!
//! Source: `ConsumeQueue.correctMinOffset` (5.x: a queue without messages keeps its offset),
//! `ConsumeQueue.truncateDirtyLogicFiles`.
use super::append::queue_writer::can_follow;
use super::consume_queue::{ConsumeQueue, LMQ, UnitReader};
use super::message_store::MessageStore;
use super::unlisted::UnlistedRecords;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Bounds of queues as `{topic: {queue id: (min offset, max offset)}}`.
pub type Topics = BTreeMap<String, BTreeMap<i32, (i64, i64)>>;

type Units = Vec<(i64, Unit)>;

/// A queue of a topic. As in RocketMQ, a queue that does not exist counts as an empty queue.
#[derive(Debug)]
pub struct QueueView {
    topic: String,
    queue_id: i32,
    disk: Option<ConsumeQueue>,
    /// Queue offset before which all entries on disk are valid.
    disk_end: i64,
    /// Entries of unlisted records, built in memory and sorted by queue offset.
    tail: Units,
    /// Entries whose queue offsets cannot follow in the queue.
    astray: Units,
    min_offset: i64,
    max_offset: i64,
}

impl QueueView {
    fn new(
        store: &MessageStore,
        disk: Option<ConsumeQueue>,
        (missing, tail): (&UnlistedRecords, &UnlistedRecords),
        topic: &str,
        queue_id: i32,
    ) -> Result<Self> {
        let log_start = store.log().min_offset();
        let least = |units: &[(i64, Unit)]| units.iter().map(|(offset, _)| *offset).filter(|offset| *offset >= 0).min();
        let (first_missing, first_unlisted) =
            (least(missing.units(topic, queue_id)), least(tail.units(topic, queue_id)));
        let (mut written_end, mut disk_end, mut first) = (0, 0, None);
        if let Some(queue) = &disk {
            written_end = queue.max_offset()?;
            // A broker that crashed wrote the later units. The tail has units for the records that really exist.
            disk_end = queue.listed_before(store.dispatched_to()?, written_end)?;
            first = Some(queue.first_live(log_start, disk_end)?).filter(|offset| *offset < disk_end);
        }
        // Lost records come first, because they are before the end of the log.
        let units = missing.units(topic, queue_id).iter().chain(tail.units(topic, queue_id));
        let (tail, astray) = split_by_follow(written_end, units);
        let tail = in_order(tail);
        let max_offset = tail.last().map_or(disk_end, |(offset, _)| disk_end.max(offset.saturating_add(1)));
        // A queue without messages keeps its offset, so that the next message continues there.
        let min_offset = first_missing.into_iter().chain(first.or(first_unlisted)).min().unwrap_or(max_offset);
        Ok(Self { topic: topic.to_owned(), queue_id, disk, disk_end, tail, astray, min_offset, max_offset })
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }
    /// Returns the offset of the first entry whose record is still in the log. If there is none, returns the max
    /// offset.
    pub fn min_offset(&self) -> i64 {
        self.min_offset
    }
    pub fn max_offset(&self) -> i64 {
        self.max_offset
    }
    /// Returns the first queue offset at or behind `from` whose entry is not on disk but in memory, or `None`.
    pub fn next_unlisted(&self, from: i64) -> Option<i64> {
        let behind = self.tail.partition_point(|(offset, _)| *offset < from);
        self.tail.get(behind).map(|(offset, _)| *offset)
    }

    /// Returns the entries of records whose queue offset is impossible in the queue. The offset may be damaged, since
    /// no checksum covers it.
    pub fn astray(&self) -> &[(i64, Unit)] {
        &self.astray
    }

    /// Compares a record with the entry at `queue_offset`. Returns the difference in words, or `None` if they agree.
    pub fn find_mismatch(&self, record: &[u8], queue_offset: i64, size: i32) -> Option<String> {
        let message = Message::decode(record)?;
        let (topic, queue_id) = (&self.topic, self.queue_id);
        // A light queue lists records of other topics, so these fields cannot be compared.
        let ours = topic.starts_with(LMQ)
            || (message.topic() == topic.as_bytes()
                && message.queue_id() == queue_id
                && message.queue_offset() == queue_offset);
        if ours && record.len() == size.max(0) as usize {
            return None;
        }
        let got = String::from_utf8_lossy(message.topic());
        Some(format!(
            "expected {topic} queue {queue_id} offset {queue_offset} of {size} bytes, got {got} queue {} offset {} of {} bytes",
            message.queue_id(),
            message.queue_offset(),
            record.len()
        ))
    }

    pub fn disk(&self) -> Option<&ConsumeQueue> {
        self.disk.as_ref()
    }
    /// Returns the offset behind the last valid consume-queue entry in the files.
    pub fn disk_end(&self) -> i64 {
        self.disk_end
    }
    /// Returns the number of entries in a queue file, or `None` if the queue has no files.
    pub fn units_per_file(&self) -> Option<i64> {
        let size = self.disk.as_ref()?.segments().file_size()?;
        Some((size / UNIT_SIZE as u64) as i64).filter(|units| *units > 0)
    }

    pub fn reader(&self) -> ViewReader<'_> {
        ViewReader { view: self, disk: self.disk.as_ref().map(UnitReader::new) }
    }

    /// Returns the first queue offset at or behind `from` that has an entry, or `None`. All offsets before it are a
    /// hole.
    pub fn next_offset(&self, from: i64) -> Option<i64> {
        let in_files = self.disk.as_ref().and_then(|queue| next_in_files(queue, from.max(0)));
        // Units at or behind `disk_end` are remains of a crash.
        in_files.filter(|offset| *offset < self.disk_end).into_iter().chain(self.next_unlisted(from)).min()
    }
}

fn next_in_files(queue: &ConsumeQueue, from: i64) -> Option<i64> {
    let unit = UNIT_SIZE as u64;
    let at = (from as u64).saturating_mul(unit);
    queue.segments().files().iter().find(|file| file.end() > at).map(|file| from.max((file.base / unit) as i64))
}

/// Separates entries that can follow in a queue that ends at `next` from entries that cannot. A recovery makes the
/// same decision.
fn split_by_follow<'a>(mut next: i64, units: impl Iterator<Item = &'a (i64, Unit)>) -> (Units, Units) {
    units.copied().partition(|(offset, _)| {
        let follows = can_follow(next, *offset);
        next = if follows { next.max(offset.saturating_add(1)) } else { next };
        follows
    })
}

/// Sorts entries by queue offset. If two entries have the same offset, keeps the later one in the log, as a broker
/// does.
fn in_order(units: Units) -> Units {
    let by_offset: BTreeMap<i64, Unit> = units.into_iter().collect();
    by_offset.into_iter().collect()
}

#[derive(Debug)]
pub struct ViewReader<'a> {
    view: &'a QueueView,
    disk: Option<UnitReader<'a>>,
}

impl ViewReader<'_> {
    /// Returns the entry at a queue offset, or `None` in a hole and outside of the queue.
    pub fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        let tail = &self.view.tail;
        if let Ok(at) = tail.binary_search_by_key(&offset, |(offset, _)| *offset) {
            return Ok(Some(tail[at].1));
        }
        match &mut self.disk {
            Some(reader) if offset < self.view.disk_end => reader.unit(offset),
            _ => Ok(None),
        }
    }
}

impl MessageStore {
    /// Returns the bounds of all queues that have files or unlisted records.
    pub fn topics(&self) -> Result<Topics> {
        let (missing, tail) = (self.missing()?, self.unlisted()?);
        let mut topics = Topics::new();
        for topic in self.queue_topics()? {
            for queue in self.queues(&topic)? {
                let id = queue.queue_id();
                let view = QueueView::new(self, Some(queue), (&missing, &tail), &topic, id)?;
                topics.entry(topic.clone()).or_default().insert(id, (view.min_offset, view.max_offset));
            }
        }
        for unlisted in [&missing, &tail] {
            for topic in unlisted.topics() {
                let queues = topics.entry(topic.to_owned()).or_default();
                // A negative id is damaged, because no checksum covers it.
                for id in unlisted.queue_ids(topic).filter(|id| *id >= 0) {
                    if let std::collections::btree_map::Entry::Vacant(entry) = queues.entry(id) {
                        let view = QueueView::new(self, None, (&missing, &tail), topic, id)?;
                        entry.insert((view.min_offset, view.max_offset));
                    }
                }
            }
        }
        Ok(topics)
    }

    /// Returns the queue with this id. An existing topic has a queue for any id, which may be empty.
    pub fn queue_view(&self, topic: &str, queue_id: i32) -> Result<QueueView> {
        let mut queues = self.queues(topic)?;
        // Without any queue the topic may not exist, which is an error.
        if queues.is_empty() {
            self.check_topic(topic)?;
        }
        let index = queues.iter().position(|queue| queue.queue_id() == queue_id);
        let disk = index.map(|index| queues.swap_remove(index));
        let missing = self.missing_of(topic, Some(&[queue_id]))?;
        QueueView::new(self, disk, (&missing, &*self.unlisted()?), topic, queue_id)
    }

    /// Returns whether a topic has a queue, a configuration or an unlisted record.
    pub fn has_topic(&self, topic: &str) -> Result<bool> {
        match self.check_topic(topic) {
            Ok(()) => Ok(true),
            Err(Error::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Fails with [`Error::Unknown`] if a topic has no queue, no configuration and no unlisted record.
    pub fn check_topic(&self, topic: &str) -> Result<()> {
        let mut names = self.topic_names()?;
        if names.iter().any(|name| name == topic) {
            return Ok(());
        }
        // This search comes last, because it may read the log.
        for unlisted in [self.unlisted()?, self.missing()?] {
            names.extend(unlisted.topics().map(str::to_owned));
            if names.iter().any(|name| name == topic) {
                return Ok(());
            }
        }
        names.sort_unstable();
        names.dedup();
        Err(Error::unknown("topic", topic, names.iter().map(String::as_str)))
    }
}
