//! The report of the check of a store.
use crate::store::commit_log::{Damage, DamageLog};

#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub messages: u64,
    pub log_bytes: u64,
    pub queues: u64,
    /// Number of entries that point to their record.
    pub units: u64,
    /// Number of records at the end of the log that are not listed yet. A broker lists them when it starts.
    pub unlisted: u64,
    /// Number of records that are no longer listed, because their topic was deleted, or created again.
    pub forgotten: u64,
    pub index_files: u64,
    /// Number of index entries that point to a message with their key.
    pub index_entries: u64,
    pub config_files: u64,
    pub aborted: bool,
    pub damage: DamageLog,
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Returns whether there is no damage. A store with the file `abort` may be without damage, because a recovery
    /// lists the remaining records.
    pub fn is_ok(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Returns whether an earlier damage covers `offset`. Entries that point there are not reported again.
pub(super) fn is_known(damage: &DamageLog, offset: i64) -> bool {
    let covers = |d: &Damage| (d.offset..d.offset + d.length).contains(&(offset as u64));
    damage.entries().iter().rev().any(covers)
}
