//! Messages lost with the end of the log, in `config/lostMessages.json`. No queue assigns their offsets again.
//!
//! ```json
//! {"lostMessages": {"orders": {"0": [{"at": 1795000000000, "begin": 414, "end": 450}]}}}
//! ```
//!
//! The queue skips the offsets from `begin` to `end`, and its next message gets offset `end`. If the topic is removed
//! later, its queues begin at 0.
//!
//! RocketMQ ignores the file. It skips the offsets because the queue has blank entries there.
use super::config_files::ConfigFile;
use super::config_save;
use super::removed_topics::RemovedTopics;
use crate::Result;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILE: &str = "lostMessages.json";
const TABLE: &str = "lostMessages";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostMessages {
    queues: BTreeMap<String, BTreeMap<i32, Vec<Loss>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub begin: i64,
    /// Offset behind the last lost message (exclusive).
    pub end: i64,
    /// Time of the repair, in milliseconds since 1970.
    pub at_ms: i64,
}

impl LostMessages {
    pub fn load(root: &Path) -> Result<Self> {
        let mut all = Self::default();
        for (topic, losses) in ConfigFile::load(root, FILE).parse_entries(TABLE, losses_of)? {
            losses.into_iter().for_each(|(queue_id, loss)| all.add(&topic, queue_id, loss));
        }
        Ok(all)
    }

    pub fn path(root: &Path) -> PathBuf {
        root.join("config").join(FILE)
    }

    pub fn exist(root: &Path) -> bool {
        ConfigFile::exists(root, FILE)
    }

    pub fn add(&mut self, topic: &str, queue_id: i32, loss: Loss) {
        if loss.begin >= loss.end {
            return;
        }
        let losses = self.queues.entry(topic.to_owned()).or_default().entry(queue_id).or_default();
        // A known loss that ends there or later already covers the end of this loss.
        if losses.iter().all(|known| known.end < loss.end) {
            losses.push(loss);
        }
    }

    pub fn save(&self, root: &Path) -> Result<()> {
        let mut table = Map::new();
        for (topic, queues) in &self.queues {
            let queues = queues.iter().map(|(queue_id, losses)| {
                (queue_id.to_string(), losses.iter().map(|loss| loss.to_json()).collect::<Value>())
            });
            table.insert(topic.clone(), Value::Object(queues.collect()));
        }
        config_save::save(root, FILE, json!({ TABLE: table }))
    }

    /// Returns, for each queue with losses, the end of its last loss. Topics that were removed after the loss are
    /// left out.
    pub fn ends<'a>(&'a self, removed: &'a RemovedTopics) -> impl Iterator<Item = (&'a str, i32, i64)> {
        self.queues.iter().flat_map(move |(topic, queues)| {
            queues.iter().filter_map(move |(queue_id, losses)| {
                // A topic that was created again begins at offset 0, whatever was lost before.
                let losses = losses.iter().filter(|loss| !removed.was_removed_after(topic, loss.at_ms));
                Some((topic.as_str(), *queue_id, losses.map(|loss| loss.end).max()?))
            })
        })
    }
}

fn losses_of(topic: &str, queues: &Value) -> Option<(String, Vec<(i32, Loss)>)> {
    let mut losses = Vec::new();
    for (queue_id, of_queue) in queues.as_object()? {
        let queue_id = queue_id.parse().ok()?;
        for loss in of_queue.as_array()? {
            losses.push((queue_id, Loss::from_json(loss)?));
        }
    }
    Some((topic.to_owned(), losses))
}

impl Loss {
    fn from_json(value: &Value) -> Option<Self> {
        let number = |name| value.get(name)?.as_i64();
        // Somebody may have edited the file, so a negative offset is possible.
        Some(Self { begin: number("begin")?.max(0), end: number("end")?, at_ms: number("at")? })
    }

    fn to_json(self) -> Value {
        json!({"at": self.at_ms, "begin": self.begin, "end": self.end})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_none_is_an_error() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("config")).expect("made");
        for table in
            [r#""x""#, r#"{"orders": 5}"#, r#"{"orders": {"q": []}}"#, r#"{"orders": {"0": [{"at": 1, "begin": 4}]}}"#]
        {
            let text = format!(r#"{{"lostMessages": {table}}}"#);
            std::fs::write(dir.path().join("config").join(FILE), text).expect("written");
            assert!(LostMessages::load(dir.path()).is_err(), "{table}");
        }
    }

    #[test]
    fn losses_are_there_again_after_a_save_and_count_once() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(!LostMessages::exist(dir.path()));
        assert_eq!(LostMessages::load(dir.path()).expect("none"), LostMessages::default());
        let mut lost = LostMessages::default();
        for (queue_id, begin, end) in [(0, 4, 9), (0, 4, 9), (0, 20, 22), (3, 0, 1), (4, 7, 7)] {
            lost.add("orders", queue_id, Loss { begin, end, at_ms: 5 });
        }
        lost.save(dir.path()).expect("saved");
        assert!(LostMessages::exist(dir.path()));
        let read = LostMessages::load(dir.path()).expect("read");
        assert_eq!(read, lost);
        let removed = RemovedTopics::default();
        assert_eq!(read.ends(&removed).collect::<Vec<_>>(), [("orders", 0, 22), ("orders", 3, 1)]);
    }
}
