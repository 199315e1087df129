//! Writes the configuration files of an export.
use super::lists::Lists;
use crate::file::disk::{self, Call};
use crate::format::config::to_fastjson;
use crate::store::MessageStore;
use crate::store::config_files::{ConfigFile, TOPICS};
use crate::store::delay::DELAY_TOPIC;
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file with the offsets up to which a broker has delivered each queue of the delay topic.
const DELAY_OFFSETS: &str = "delayOffset.json";
/// Number of queues of the delay topic: one for each delay level in a broker's default configuration.
const DELAY_QUEUES: i32 = 18;

/// Writes `config/topics.json` with the topics in `asked`, or with all topics if `asked` is `None`. A topic keeps its
/// entry of the source store, if the source has one. Also copies `delayOffset.json`; without this file a broker would
/// deliver all delayed messages again. Returns the paths of the written files.
pub fn write(store: &MessageStore, lists: &Lists, asked: Option<&[String]>, root: &Path) -> Result<Vec<PathBuf>> {
    let directory = root.join("config");
    fs::create_dir_all(&directory).map_err(|e| Error::io(&directory, e))?;
    let topics = topics(store, lists, asked);
    let mut files = vec![save(&directory.join(TOPICS), &topics)?];
    if lists.topics().any(|topic| topic == DELAY_TOPIC)
        && let Some(offsets) = ConfigFile::load(store.root(), DELAY_OFFSETS).value
    {
        files.push(save(&directory.join(DELAY_OFFSETS), &offsets)?);
    }
    Ok(files)
}

fn save(path: &Path, value: &Value) -> Result<PathBuf> {
    disk::call(Call::Create, path, || fs::write(path, to_fastjson(value)))?;
    Ok(path.to_path_buf())
}

fn topics(store: &MessageStore, lists: &Lists, asked: Option<&[String]>) -> Value {
    let mut config = store.topics_config().value.clone().unwrap_or_else(|| json!({}));
    if !config.is_object() {
        config = json!({});
    }
    let configured = config.get("topicConfigTable").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_asked = |name: &str| asked.is_none_or(|asked| asked.iter().any(|topic| topic == name));
    let mut table: Map<String, Value> = configured.into_iter().filter(|(name, _)| is_asked(name)).collect();
    // Exported topics need an entry even if the source has none.
    for name in lists.topics().map(str::to_owned).chain(asked.into_iter().flatten().cloned()) {
        if !table.contains_key(&name) {
            let entry = entry(&name, lists);
            table.insert(name, entry);
        }
    }
    if config.get("dataVersion").is_none() {
        config["dataVersion"] = json!({"counter": 1, "timestamp": 0});
    }
    config["topicConfigTable"] = Value::Object(table);
    config
}

/// Creates a topic's entry in `topics.json`, like the entry of a topic that an operator creates, with as many queues
/// as the source has.
fn entry(name: &str, lists: &Lists) -> Value {
    let last = lists.bounds().get(name).and_then(|queues| queues.keys().max().copied()).unwrap_or(0);
    let least = if name == DELAY_TOPIC { DELAY_QUEUES } else { 1 };
    let queues = last.saturating_add(1).max(least);
    json!({
        "order": false,
        "perm": 6,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": queues,
    })
}
