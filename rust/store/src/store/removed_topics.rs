//! Removed topics, in `config/removedTopics.json`. Their messages stay in the log until retention removes them, but are not
//! listed again.
//!
//! ```json
//! {"removedTopics": {"orders": {"at": 1795000000000, "before": 81920}}}
//! ```
//!
//! A message of the topic counts as removed if it is before the offset `before` of the log and was stored until the time `at`.
//! If somebody deletes the log but keeps `config/`, offsets begin at 0 again; then the time tells the new messages from the
//! old.
//!
//! RocketMQ ignores the file. A RocketMQ broker lists messages of a deleted topic again after a crash, or if they are at the
//! log's end (`CommitLog.recoverAbnormally`, `ReputMessageService`).
use super::config_files::ConfigFile;
use super::config_save;
use crate::Result;
use crate::format::message::Message;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

const FILE: &str = "removedTopics.json";
const TABLE: &str = "removedTopics";

#[derive(Clone, Debug, Default)]
pub struct RemovedTopics {
    topics: HashMap<String, Removal>,
}

/// The moment of a removal. A message is later if it is at or behind `before`, or was stored later than `at_ms`.
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
        config_save::save(root, FILE, json!({ TABLE: Map::from_iter(entries) }))
    }

    /// Tells whether a message belongs to a topic that was removed after the message was stored.
    pub fn has(&self, topic: &str, message: &Message<'_>) -> bool {
        // Most stores have no removed topics.
        !self.topics.is_empty()
            && self.topics.get(topic).is_some_and(|removal| {
                (message.physical_offset() as u64) < removal.before && message.store_timestamp() <= removal.at_ms
            })
    }

    /// Returns the log offset from which on no message of the topic counts as removed; 0 for a topic that was never
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
