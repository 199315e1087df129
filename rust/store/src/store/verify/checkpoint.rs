//! Checks that the checkpoint is not ahead of the log and the index.
//!
//! Recovery starts at the older of the checkpoint's first two times (`min_timestamp`). If that time is too late, some records
//! are never listed. A single time that is too late does no harm.
//!
//! Source: `StoreCheckpoint`, `CommitLog.isMappedFileMatchedRecover`, `IndexService.load`.
use super::report::VerifyReport;
use crate::file::place;
use crate::format::checkpoint::{Checkpoint, FILE_SIZE};
use crate::store::append::flusher::NAME;
use crate::store::commit_log::Damage;
use crate::store::index_files::IndexFile;
use crate::store::message_store::MessageStore;
use crate::{Error, Result};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The checkpoint, or a description of its fault; `None` if the file does not exist.
pub(super) type Content = Option<Result<Checkpoint, String>>;

/// Reads the checkpoint. Called before the log is read, because a running broker may meanwhile advance the checkpoint
/// beyond the log that was read.
pub(super) fn read(store: &MessageStore) -> Result<Content> {
    match place::read(&store.root().join(NAME), FILE_SIZE as u64) {
        Ok(page) => Ok(page.map(|page| Checkpoint::decode(&page).map_err(|malformed| malformed.to_string()))),
        Err(Error::Corrupt { reason, .. }) => Ok(Some(Err(reason))),
        Err(error) => Err(error),
    }
}

/// Checks the checkpoint. `last_time` is the greatest store timestamp in the log, or `None` if it is unknown.
pub(super) fn verify(
    store: &MessageStore,
    content: Content,
    index: &[IndexFile],
    last_time: Option<i64>,
    report: &mut VerifyReport,
) {
    let path = store.root().join(NAME);
    let reason = match content {
        None => {
            report.notes.push(format!("{}: no such file; a broker starts a new one", path.display()));
            return;
        }
        Some(Err(reason)) => reason,
        Some(Ok(checkpoint)) => {
            let limit = match last_time {
                Some(last) => (last, format!("{last}, the last message's")),
                // If the last store time is unknown, only a time in the future is surely wrong.
                None => (now(), "the present time".to_owned()),
            };
            if checkpoint.min_timestamp() <= limit.0 {
                report.notes.extend(notes(&path, checkpoint, &limit, index));
                return;
            }
            format!("timestamps: expected at most {}, got {}", limit.1, checkpoint.min_timestamp())
        }
    };
    report.damage.push(Damage { offset: 0, length: 0, reason, file: path });
}

/// Returns notes about wrong times that do not harm recovery.
fn notes(path: &Path, checkpoint: Checkpoint, (limit, words): &(i64, String), index: &[IndexFile]) -> Vec<String> {
    let times = [
        ("physicMsgTimestamp", checkpoint.physic_msg_timestamp),
        ("logicsMsgTimestamp", checkpoint.logics_msg_timestamp),
        ("indexMsgTimestamp", checkpoint.index_msg_timestamp),
    ];
    let is_wrong = |(_, time): &&(_, i64)| time > limit || *time < 0;
    let wrong = times
        .iter()
        .filter(is_wrong)
        .map(|(name, time)| format!("{}: {name}: expected 0 to {words}, got {time}", path.display()));
    let mut notes: Vec<String> = wrong.collect();
    let (indexed, newest) = (checkpoint.index_msg_timestamp, index.iter().map(|file| file.header.end_timestamp).max());
    if indexed <= *limit && indexed > newest.unwrap_or(0) {
        let newest = newest.map_or("no index file".to_owned(), |end| format!("the newest index file ends at {end}"));
        let effect = "an index file is missing, so that keys are looked for in the log; `repair` builds the index";
        notes.push(format!("{}: indexMsgTimestamp: {indexed}, but {newest}: {effect}", path.display()));
    }
    notes
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
