//! What a check of a store counts, and what it finds wrong.
use crate::store::damage::{Damage, DamageLog};

/// What was counted, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub messages: u64,
    /// Bytes of the log up to its end.
    pub log_bytes: u64,
    pub queues: u64,
    /// Units that lead to their record.
    pub units: u64,
    /// Records at the end of the log that no queue lists yet: a broker lists them when it starts.
    pub unlisted: u64,
    /// Records of a topic that was deleted, or deleted and made again: no queue lists them any more.
    pub forgotten: u64,
    pub index_files: u64,
    /// Index entries that lead to a message with their key.
    pub index_entries: u64,
    /// Configuration files that can be read.
    pub config_files: u64,
    /// Whether `abort` is there.
    pub aborted: bool,
    pub damage: DamageLog,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is wrong. An aborted store can be: recovery will do the rest.
    pub fn is_ok(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Whether damage of the log that was met already covers `offset`, so that what leads there is not reported again.
pub(super) fn is_known(damage: &DamageLog, offset: i64) -> bool {
    let covers = |d: &Damage| (d.offset..d.offset + d.length).contains(&(offset as u64));
    damage.entries().iter().rev().any(covers)
}
