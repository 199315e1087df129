//! Topics that were removed, in `config/removedTopics.json`: their messages stay in the log until they are old, and nothing
//! lists them again.
//!
//! ```json
//! {"removedTopics": {"orders": {"at": 1795000000000, "before": 81920}}}
//! ```
//!
//! A message of the topic counts as removed if it stands before that offset of the log and was stored by that time: where
//! somebody removes the log and keeps `config/`, offsets begin anew, and the time tells the new messages from the old ones.
//!
//! RocketMQ has no such file and passes over it. After a crash, or where they stand at the log's end, its broker lists the
//! messages of a deleted topic once more (`CommitLog.recoverAbnormally`, `ReputMessageService`).
use super::config_files::ConfigFile;
use super::config_save;
use crate::Result;
use crate::format::message::Message;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

const FILE: &str = "removedTopics.json";
const TABLE: &str = "removedTopics";

/// When topics were removed, by name.
#[derive(Clone, Debug, Default)]
pub struct RemovedTopics {
    topics: HashMap<String, Removal>,
}

/// When a topic was removed.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// Messages that stand from here on came later: the log's end at that time.
    pub before: u64,
    /// So did those that were stored later, in milliseconds since 1970.
    pub at_ms: i64,
}

impl RemovedTopics {
    /// Those of the store below `root`.
    pub fn load(root: &Path) -> Result<Self> {
        let entry = |name: &str, value: &Value| Some((name.to_owned(), Removal::from_json(value)?));
        let topics = ConfigFile::load(root, FILE).required_entries(TABLE, entry)?;
        Ok(Self { topics: topics.into_iter().collect() })
    }

    /// Adds topics to those of the store below `root`, which begins at `log_begin`; what stands before is forgotten. It is on the
    /// disk when this returns.
    pub fn add<'a>(
        root: &Path,
        names: impl IntoIterator<Item = &'a str>,
        removal: Removal,
        log_begin: u64,
    ) -> Result<()> {
        let mut all = Self::load(root)?;
        // retention has removed their messages: nobody can list them again
        all.topics.retain(|_, removal| removal.before > log_begin);
        for name in names {
            // what was removed before stays so
            let known = all.topics.get(name).copied().filter(|known| known.before > removal.before);
            all.topics.insert(name.to_owned(), known.unwrap_or(removal));
        }
        let mut entries: Vec<_> = all.topics.into_iter().map(|(name, removal)| (name, removal.to_json())).collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        config_save::save(root, FILE, json!({ TABLE: Map::from_iter(entries) }))
    }

    /// Whether a message is of a topic that was removed after it was stored.
    pub fn has(&self, topic: &str, message: &Message<'_>) -> bool {
        // most stores have none
        !self.topics.is_empty()
            && self.topics.get(topic).is_some_and(|removal| {
                (message.physical_offset() as u64) < removal.before && message.store_timestamp() <= removal.at_ms
            })
    }
}

impl RemovedTopics {
    /// Behind this offset of the log no message of a topic was removed with it; 0 of a topic that never was.
    pub fn end_of(&self, topic: &str) -> u64 {
        self.topics.get(topic).map_or(0, |removal| removal.before)
    }

    /// Whether a topic was removed after a time, in milliseconds since 1970.
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
