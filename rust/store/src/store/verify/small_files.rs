//! The checkpoint and the configuration.
use super::VerifyReport;
use crate::format::checkpoint::Checkpoint;
use crate::store::MessageStore;
use crate::store::config_files::{ConfigFile, TOPICS};
use crate::store::damage::Damage;
use std::path::PathBuf;

/// Checks them; `last_time` is the greatest store timestamp of the log.
pub(super) fn verify(store: &MessageStore, last_time: Option<i64>, report: &mut VerifyReport) {
    verify_checkpoint(store.root().join("checkpoint"), last_time, report);
    for name in config_names(store) {
        let file = ConfigFile::load(store.root(), &name);
        report.config_files += u64::from(file.value.is_some());
        // The store's notes have that of the topics already.
        report.notes.extend(file.note.clone().filter(|_| name != TOPICS));
        if let Some(fault) = file.fault.filter(|_| file.path.exists()) {
            report.damage.push(Damage { offset: 0, length: 0, reason: fault, file: file.path });
        }
    }
}

fn verify_checkpoint(path: PathBuf, last_time: Option<i64>, report: &mut VerifyReport) {
    let reason = match std::fs::read(&path).map(|bytes| Checkpoint::decode(&bytes)) {
        Err(error) => {
            report.notes.push(format!("{}: {error}; a broker starts a new one", path.display()));
            return;
        }
        Ok(Err(malformed)) => malformed.to_string(),
        Ok(Ok(checkpoint)) => match last_time {
            Some(last) if checkpoint.min_timestamp() > last => {
                format!("timestamps: expected at most {last}, the last message's, got {}", checkpoint.min_timestamp())
            }
            _ => return,
        },
    };
    report.damage.push(Damage { offset: 0, length: 0, reason, file: path });
}

/// Names of the `.json` files, those included of which only a `.bak` is left.
fn config_names(store: &MessageStore) -> Vec<String> {
    let entries = std::fs::read_dir(store.root().join("config")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.map(|name| name.trim_end_matches(".bak").to_owned()).collect();
    names.retain(|name| name.ends_with(".json"));
    names.sort_unstable();
    names.dedup();
    names
}
