//! One queue as a reader sees it: the units on disk that surely lead to records, those that it has lost, and those of the
//! unlisted end of the log, as recovery and re-put would leave them.
//!
//! Source: `ConsumeQueue.correctMinOffset` (5.x: a queue whose messages are all gone keeps its offset),
//! `ConsumeQueue.truncateDirtyLogicFiles`.
use super::append::queue_writer::can_follow;
use super::consume_queue::{ConsumeQueue, UnitReader};
use super::message_store::MessageStore;
use super::multi_dispatch::LMQ;
use super::unlisted::Unlisted;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// `{topic: {queue id: (min offset, max offset)}}`.
pub type Topics = BTreeMap<String, BTreeMap<i32, (i64, i64)>>;

/// Queue offsets, and where their messages are.
type Listed = Vec<(i64, Unit)>;

/// A queue of a topic; one that does not exist is an empty one, as in RocketMQ.
#[derive(Debug)]
pub struct QueueView {
    topic: String,
    queue_id: i32,
    disk: Option<ConsumeQueue>,
    disk_end: i64,
    tail: Listed,
    astray: Listed,
    min_offset: i64,
    max_offset: i64,
}

impl QueueView {
    fn new(
        store: &MessageStore,
        disk: Option<ConsumeQueue>,
        (missing, tail): (&Unlisted, &Unlisted),
        topic: &str,
        queue_id: i32,
    ) -> Result<Self> {
        let log_start = store.log().min_offset();
        let least = |units: &[(i64, Unit)]| units.iter().map(|(offset, _)| *offset).filter(|offset| *offset >= 0).min();
        let (lost, unlisted) = (least(missing.units(topic, queue_id)), least(tail.units(topic, queue_id)));
        let (mut written, mut disk_end, mut first) = (0, 0, None);
        if let Some(queue) = &disk {
            written = queue.max_offset()?;
            // What lies behind was listed by a broker that crashed; the tail has what is really there.
            disk_end = queue.listed_before(store.dispatched_to()?, written)?;
            first = Some(queue.first_live(log_start, disk_end)?).filter(|offset| *offset < disk_end);
        }
        // those of the log's end come later
        let units = missing.units(topic, queue_id).iter().chain(tail.units(topic, queue_id));
        let (tail, astray) = split_by_follow(written, units);
        let tail = in_order(tail);
        let max_offset = tail.last().map_or(disk_end, |(offset, _)| disk_end.max(offset.saturating_add(1)));
        // a queue whose messages are all gone keeps its offset: the next message goes on there
        let min_offset = lost.into_iter().chain(first.or(unlisted)).min().unwrap_or(max_offset);
        Ok(Self { topic: topic.to_owned(), queue_id, disk, disk_end, tail, astray, min_offset, max_offset })
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }
    /// Offset of the first unit whose record is still in the log; the max offset where there is none.
    pub fn min_offset(&self) -> i64 {
        self.min_offset
    }
    /// Offset behind the last unit.
    pub fn max_offset(&self) -> i64 {
        self.max_offset
    }
    /// The first offset from `from` on that is in none of its files, but in the log.
    pub fn next_unlisted(&self, from: i64) -> Option<i64> {
        let behind = self.tail.partition_point(|(offset, _)| *offset < from);
        self.tail.get(behind).map(|(offset, _)| *offset)
    }

    /// Records of the log's end that say to be in the queue, at offsets that cannot be: no checksum guards these.
    pub fn astray(&self) -> &[(i64, Unit)] {
        &self.astray
    }

    /// Words for a record that is not the one which the unit at an offset stands for.
    pub fn other_than(&self, record: &[u8], queue_offset: i64, size: i32) -> Option<String> {
        let message = Message::decode(record)?;
        let (topic, queue_id) = (&self.topic, self.queue_id);
        // a light queue lists records of other topics
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

    /// Its files, where it has some.
    pub fn disk(&self) -> Option<&ConsumeQueue> {
        self.disk.as_ref()
    }
    /// Offset behind the last unit that is taken from its files.
    pub fn disk_end(&self) -> i64 {
        self.disk_end
    }
    /// Units of a file, where there are files.
    pub fn units_per_file(&self) -> Option<i64> {
        let size = self.disk.as_ref()?.segments().file_size()?;
        Some((size / UNIT_SIZE as u64) as i64).filter(|units| *units > 0)
    }

    /// A reader of its units.
    pub fn reader(&self) -> ViewReader<'_> {
        ViewReader { view: self, disk: self.disk.as_ref().map(UnitReader::new) }
    }

    /// The first offset from `from` on that has a unit: what lies between is a hole.
    pub fn next_offset(&self, from: i64) -> Option<i64> {
        let in_files = self.disk.as_ref().and_then(|queue| next_in_files(queue, from.max(0)));
        // units behind `disk_end` are those of a crash
        in_files.filter(|offset| *offset < self.disk_end).into_iter().chain(self.next_unlisted(from)).min()
    }
}

fn next_in_files(queue: &ConsumeQueue, from: i64) -> Option<i64> {
    let unit = UNIT_SIZE as u64;
    let at = (from as u64).saturating_mul(unit);
    queue.segments().files().iter().find(|file| file.end() > at).map(|file| from.max((file.base / unit) as i64))
}

/// Those that recovery lists in a queue that ends at `next`, and the others.
fn split_by_follow<'a>(mut next: i64, units: impl Iterator<Item = &'a (i64, Unit)>) -> (Listed, Listed) {
    units.copied().partition(|(offset, _)| {
        let follows = can_follow(next, *offset);
        next = if follows { next.max(offset.saturating_add(1)) } else { next };
        follows
    })
}

/// By offset; of a topic that was deleted and made again the later generation wins, as it does in a broker.
fn in_order(units: Listed) -> Listed {
    let by_offset: BTreeMap<i64, Unit> = units.into_iter().collect();
    by_offset.into_iter().collect()
}

/// Reads units by queue offset.
#[derive(Debug)]
pub struct ViewReader<'a> {
    view: &'a QueueView,
    disk: Option<UnitReader<'a>>,
}

impl ViewReader<'_> {
    /// The unit at a queue offset, or `None` in a hole and outside.
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
    /// Every queue that exists on disk, or of which the log has records that no queue lists, with its bounds.
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

    /// One queue; of a known topic any number is a queue, maybe an empty one.
    pub fn queue_view(&self, topic: &str, queue_id: i32) -> Result<QueueView> {
        let mut queues = self.queues(topic)?;
        if queues.is_empty() {
            self.check_topic(topic)?;
        }
        let index = queues.iter().position(|queue| queue.queue_id() == queue_id);
        let disk = index.map(|index| queues.swap_remove(index));
        let missing = self.missing_of(topic, Some(&[queue_id]))?;
        QueueView::new(self, disk, (&missing, &*self.unlisted()?), topic, queue_id)
    }

    /// Refuses a topic that neither a queue, nor `config/topics.json`, nor a record that no queue lists knows.
    pub fn check_topic(&self, topic: &str) -> Result<()> {
        let mut names = self.topic_names()?;
        if names.iter().any(|name| name == topic) {
            return Ok(());
        }
        // only now: that costs more than a look at names
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
