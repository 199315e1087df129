//! Finds out whether a message is older than its topic. A topic that was deleted and created again counts queue offsets
//! from 0. The log keeps the earlier messages until retention removes them, although they no longer belong to the
//! topic. The earlier messages are called an earlier generation of the topic.
use super::commit_log::CommitLog;
use super::config_files::{self, ConfigFile};
use super::consume_queue::{ConsumeQueue, UnitReader};
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
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
    /// Physical offset behind all messages that belong to an earlier generation.
    newest: u64,
}

impl QueueBegin {
    /// Returns the first message of `queue`, or `None` if the first consume-queue entry does not point to a message of
    /// this queue.
    pub fn of(queue: &ConsumeQueue, log: &CommitLog) -> Result<Option<Self>> {
        let offset = queue.first_live(log.min_offset(), queue.max_offset()?)?;
        let Some(unit) = UnitReader::new(queue).unit(offset)?.filter(Unit::is_message) else { return Ok(None) };
        let physical_offset = unit.physical_offset as u64;
        let begin = Self { queue_id: queue.queue_id(), offset, physical_offset };
        Ok(queue.is_own(log, offset, unit)?.then_some(begin))
    }

    /// Returns whether a record of the queue belongs to an earlier generation of its topic.
    pub fn is_behind(&self, offset: i64, physical_offset: u64) -> bool {
        physical_offset < self.physical_offset && offset >= self.offset
    }
}

impl Generations {
    pub fn of<'a>(
        removed: RemovedTopics,
        log: &CommitLog,
        topics: impl IntoIterator<Item = (&'a str, &'a [ConsumeQueue])>,
    ) -> Result<Self> {
        let mut all = Self { removed, ..Self::default() };
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

const FILE: &str = "removedTopics.json";
const TABLE: &str = "removedTopics";

/// Removed topics, in `config/removedTopics.json`. Their messages stay in the log until retention removes them, but are not
/// listed again.
///
/// ```json
/// {"removedTopics": {"orders": {"at": 1795000000000, "before": 81920}}}
/// ```
///
/// A message of the topic counts as removed if it is before the offset `before` of the log and was stored until the time `at`.
/// If somebody deletes the log but keeps `config/`, offsets begin at 0 again; then the time tells the new messages from the
/// old.
///
/// RocketMQ ignores the file. A RocketMQ broker lists messages of a deleted topic again after a crash, or if they are at the
/// log's end (`CommitLog.recoverAbnormally`, `ReputMessageService`).
#[derive(Clone, Debug, Default)]
pub struct RemovedTopics {
    topics: HashMap<String, Removal>,
}

/// The moment of a removal. A message was stored after it if its offset in the log is `before` or higher, or its store
/// time is later than `at_ms`.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The end of the log when the topic was removed.
    pub before: u64,
    /// Time of the removal, in milliseconds since 1970.
    pub at_ms: i64,
}

impl RemovedTopics {
    pub fn load(root: &Path) -> Result<Self> {
        let entry = |name: &str, value: &Value| Some((name.to_owned(), Removal::from_json(value)?));
        let topics = ConfigFile::load(root, FILE).parse_entries(TABLE, entry)?;
        Ok(Self { topics: topics.into_iter().collect() })
    }

    /// Adds topics to the file and flushes the file. Drops old removals, which are before `log_begin`.
    pub fn add<'a>(
        root: &Path,
        names: impl IntoIterator<Item = &'a str>,
        removal: Removal,
        log_begin: u64,
    ) -> Result<()> {
        let mut all = Self::load(root)?;
        // Retention has removed the messages of these topics, so no recovery can list them again.
        all.topics.retain(|_, removal| removal.before > log_begin);
        for name in names {
            // Messages removed earlier stay removed.
            let later = all.topics.get(name).copied().filter(|other| other.before > removal.before);
            all.topics.insert(name.to_owned(), later.unwrap_or(removal));
        }
        let mut entries: Vec<_> = all.topics.into_iter().map(|(name, removal)| (name, removal.to_json())).collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        config_files::save(root, FILE, json!({ TABLE: Map::from_iter(entries) }))
    }

    /// Tells whether a message belongs to a topic that was removed after the message was stored.
    pub fn has(&self, topic: &str, message: &Message<'_>) -> bool {
        // Most stores have no removed topics.
        !self.topics.is_empty()
            && self.topics.get(topic).is_some_and(|removal| {
                (message.physical_offset() as u64) < removal.before && message.store_timestamp() <= removal.at_ms
            })
    }

    /// Returns the log offset behind all messages of the topic that count as removed; 0 for a topic that was never
    /// removed.
    pub fn end_of(&self, topic: &str) -> u64 {
        self.topics.get(topic).map_or(0, |removal| removal.before)
    }

    pub fn was_removed_after(&self, topic: &str, at_ms: i64) -> bool {
        self.topics.get(topic).is_some_and(|removal| removal.at_ms > at_ms)
    }
}

impl Removal {
    fn from_json(value: &Value) -> Option<Self> {
        let before = value.get("before")?.as_i64()?;
        Some(Self { before: u64::try_from(before).ok()?, at_ms: value.get("at")?.as_i64()? })
    }

    fn to_json(self) -> Value {
        json!({"at": self.at_ms, "before": self.before as i64})
    }
}
