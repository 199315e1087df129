//! Checks the files in `config/`: whether they are readable, and whether topics and offsets agree with the queues.
//!
//! A fault that RocketMQ or a consumer corrects by itself is a note. A fault that makes a consumer skip messages silently is
//! damage.
//!
//! Source: `ConfigManager.load`, `ConsumerOffsetManager`, `ScheduleMessageService.correctDelayOffset`.
use super::report::VerifyReport;
use crate::file::place;
use crate::store::commit_log::Damage;
use crate::store::config_files::{ConfigFile, Fault, MISSING, TOPICS, read};
use crate::store::delay::DELAY_TOPIC;
use crate::store::message_store::{MessageStore, QueueKind};
use crate::store::queue_view::Topics;
use crate::{Error, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const OFFSETS: &str = "consumerOffset.json";
const DELAYS: &str = "delayOffset.json";
/// Prefixes of topics that have queues but no configuration.
const UNCONFIGURED: [&str; 2] = ["%LMQ%", "RMQ_SYS_TRANS_OP_HALF_TOPIC"];
const LISTED: usize = 10;

pub(super) fn verify(store: &MessageStore, report: &mut VerifyReport) -> Result<()> {
    let mut files = BTreeMap::new();
    for name in config_names(store)? {
        let file = ConfigFile::load(store.root(), &name);
        verify_readable(&file, &name, report);
        files.insert(name, file);
    }
    // Without queue files there is nothing to compare offsets with.
    if store.queue_kind() == QueueKind::RocksDb {
        return Ok(());
    }
    let queues = match store.topics() {
        // A queue with a dead link was reported as damage before.
        Err(Error::Corrupt { path, .. }) if path.starts_with(store.consume_queue_dir()) => return Ok(()),
        Err(Error::Corrupt { path, offset, reason }) => {
            report.damage.push(Damage { offset, length: 0, reason, file: path });
            return Ok(());
        }
        queues => queues?,
    };
    if let Some(topics) = files.get(TOPICS).and_then(|file| Some((file, table(file, "topicConfigTable")?))) {
        verify_topics(topics, &queues, report);
    }
    if let Some((file, offsets)) = files.get(OFFSETS).and_then(|file| Some((file, table(file, "offsetTable")?))) {
        let is_known = |topic: &str| queues.contains_key(topic) || store.topics_config().topics().any(|t| t == topic);
        verify_offsets((file, offsets), &queues, &is_known, report);
    }
    if let Some(delays) = files.get(DELAYS).and_then(|file| Some((file, table(file, "offsetTable")?))) {
        verify_delays(delays, &queues, report);
    }
    Ok(())
}

type Table<'a> = (&'a ConfigFile, &'a Map<String, Value>);

fn table<'a>(file: &'a ConfigFile, member: &str) -> Option<&'a Map<String, Value>> {
    file.value.as_ref()?.get(member)?.as_object()
}

fn verify_readable(file: &ConfigFile, name: &str, report: &mut VerifyReport) {
    report.config_files += u64::from(file.value.is_some());
    // The store's notes already include the note about the topics.
    report.notes.extend(file.note.clone().filter(|_| name != TOPICS));
    let backup = file.path.with_file_name(format!("{name}.bak"));
    match (&file.fault, &file.backup_fault) {
        (None, _) => {
            if let Err(fault @ (Fault::Unreadable(_) | Fault::Io(_))) = read(&backup, name) {
                report.notes.push(format!("{}: {fault}; there is nothing to fall back on", backup.display()));
            }
        }
        (Some(fault), Some(other)) => {
            report.damage.push(damage(file, format!("{fault}; {name}.bak: {other}; a broker starts without it")));
        }
        // A missing file is not damage. A broker killed while saving leaves only the backup, and reads it at the next start.
        (Some(fault), None) if fault != MISSING => {
            report.damage.push(damage(file, format!("{fault}; {name}.bak was read instead")));
        }
        (Some(_), None) => {}
    }
}

fn verify_topics((file, configured): Table<'_>, queues: &Topics, report: &mut VerifyReport) {
    let (mut unknown, mut unseen) = (Vec::new(), Vec::new());
    let is_configured = |topic: &str| !UNCONFIGURED.iter().any(|name| topic.starts_with(name));
    for (topic, ids) in queues.iter().filter(|(topic, _)| is_configured(topic)) {
        let Some(config) = configured.get(topic) else {
            unknown.push(topic.clone());
            continue;
        };
        // Java's class has 16 queues by default.
        let nums = |field| config.get(field).and_then(Value::as_i64).unwrap_or(16);
        let (readable, writable) = (nums("readQueueNums"), nums("writeQueueNums"));
        let hidden = ids.iter().filter(|(id, (min, max))| i64::from(**id) >= readable && min < max);
        unseen.extend(hidden.map(|(id, _)| format!("{topic} {id} (read {readable}, write {writable})")));
    }
    let path = file.path.display();
    note(report, &unknown, &format!("{path}: expected all topics that have queues, got none of this name"));
    note(
        report,
        &unseen,
        &format!("{path}: expected queue numbers below readQueueNums: no consumer reads these queues"),
    );
}

fn verify_offsets(
    (file, offsets): Table<'_>,
    queues: &Topics,
    is_known: &dyn Fn(&str) -> bool,
    report: &mut VerifyReport,
) {
    let (mut odd, mut unknown) = (Vec::new(), Vec::new());
    for (key, by_queue) in offsets {
        let parts: Vec<&str> = key.split('@').collect();
        // RocketMQ accepts only keys with exactly one `@`.
        let [topic, group] = parts[..] else {
            odd.push(key.clone());
            continue;
        };
        if topic.is_empty() || group.is_empty() {
            odd.push(key.clone());
        } else if !is_known(topic) {
            unknown.push(key.clone());
        } else {
            verify_group(file, key, by_queue, queues.get(topic), report);
        }
    }
    let path = file.path.display();
    note(report, &odd, &format!("{path}: expected keys topic@group; a broker passes over others"));
    note(report, &unknown, &format!("{path}: expected a topic of the store, got offsets of one that is not known"));
}

fn verify_group(
    file: &ConfigFile,
    key: &str,
    by_queue: &Value,
    queues: Option<&BTreeMap<i32, (i64, i64)>>,
    report: &mut VerifyReport,
) {
    for (id, offset) in by_queue.as_object().into_iter().flatten() {
        let Some(offset) = offset.as_i64() else { continue };
        let queue = id.parse().ok().and_then(|id: i32| queues?.get(&id));
        let max = queue.map_or(0, |(_, max)| *max);
        if (0..=max).contains(&offset) {
            continue;
        }
        let reason = format!("offsetTable {key} queue {id}: expected 0 to {max}, the queue's max offset, got {offset}");
        // A running broker continues during the check. After a crash, queues may be shorter than the consumed offsets.
        if report.aborted && offset > max {
            report.notes.push(format!("{}: {reason}", file.path.display()));
        } else {
            report.damage.push(damage(file, reason));
        }
    }
}

/// Compares offsets of delay levels with their queues. A broker corrects wrong offsets, so they are reported as notes
/// and not as damage.
fn verify_delays((file, offsets): Table<'_>, queues: &Topics, report: &mut VerifyReport) {
    let mut astray = Vec::new();
    for (level, offset) in offsets {
        let (Ok(number), Some(offset)) = (level.parse::<i32>(), offset.as_i64()) else { continue };
        let queue = queues.get(DELAY_TOPIC).and_then(|queues| queues.get(&number.wrapping_sub(1)));
        let max = queue.map_or(0, |(_, max)| *max);
        if number < 1 || !(0..=max).contains(&offset) {
            astray.push(format!("level {level}: expected 0 to {max}, got {offset}"));
        }
    }
    note(report, &astray, &format!("{}: a broker moves these offsets into their queues", file.path.display()));
}

fn damage(file: &ConfigFile, reason: String) -> Damage {
    Damage { offset: 0, length: 0, reason, file: file.path.clone() }
}

fn note(report: &mut VerifyReport, names: &[String], words: &str) {
    if let Some(more) = names.len().checked_sub(LISTED + 1) {
        report.notes.push(format!("{words}: {}, and {} more", names[..LISTED].join(", "), more + 1));
    } else if !names.is_empty() {
        report.notes.push(format!("{words}: {}", names.join(", ")));
    }
}

/// Returns the names of the `.json` files, including files with only a `.bak`.
fn config_names(store: &MessageStore) -> Result<Vec<String>> {
    let names = place::names(&store.root().join("config"))?;
    let mut names: Vec<String> = names.into_iter().map(|name| name.trim_end_matches(".bak").to_owned()).collect();
    names.retain(|name| name.ends_with(".json"));
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
