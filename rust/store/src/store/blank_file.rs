//! A file of the commit log that is one blank record, which a reader of the log skips.
//!
//! A repair leaves such a file where all records were lost, and removes their units from the queues. If queues still list messages in
//! it, it has replaced another file.
use super::commit_log::CommitLog;
use super::consume_queue::UnitReader;
use super::damage::Damage;
use super::message_store::{MessageStore, OpenOptions, QueueKind};
use crate::Result;

/// The damage of a blank file in which a queue lists a message; `None` if no queue does.
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
