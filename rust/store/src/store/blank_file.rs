//! A file of the commit log that consists of one blank record, which readers of the log skip.
//!
//! A repair leaves a blank file where all records were lost, and removes their units from the queues. If a queue
//! still has an entry for a message in the file, the blank file has replaced another file by mistake.
use super::commit_log::CommitLog;
use super::consume_queue::UnitReader;
use super::damage::Damage;
use super::message_store::{MessageStore, OpenOptions, QueueKind};
use crate::Result;

/// Returns the damage of a blank file in which a queue lists a message; `None` if no queue lists a message there.
pub fn damage_of_blank(log: &CommitLog, index: usize) -> Result<Option<Damage>> {
    let store = MessageStore::open(log.root(), &OpenOptions::default())?;
    if store.queue_kind() != QueueKind::Files {
        return Ok(None);
    }
    let file = &log.segments().files()[index];
    for queue in store.all_queues()? {
        let max = queue.max_offset()?;
        let first = queue.lower_bound(file.base, max)?;
        let unit = if first < max { UnitReader::new(&queue).unit(first)? } else { None };
        if unit.is_some_and(|unit| unit.is_message() && (unit.physical_offset as u64) < file.end()) {
            let (topic, id) = (queue.topic(), queue.queue_id());
            let reason =
                format!("expected message {first} of queue {id} of topic {topic}, got a blank as long as the file");
            return Ok(Some(log.damage(file.base, file.len, reason)));
        }
    }
    Ok(None)
}
