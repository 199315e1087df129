//! Removes whole queues for an administrator. Their next offsets are forgotten. A later message gets offset 0, even
//! if an earlier message with offset 0 was acknowledged.
//!
//! Source: `DefaultMessageStore.cleanExpiredConsumerQueue`, `DefaultMessageStore.cleanUnusedTopic`.
use crate::Result;
use crate::file::disk::{self, sync_directory};
use crate::store::consume_queue::ConsumeQueue;
use crate::store::consume_queue::UnitReader;
use crate::store::multi_dispatch::LMQ;
use crate::store::unlisted::DELAY_TOPIC;
use std::collections::BTreeSet;
use std::fs;

pub type QueueName = (String, i32);

/// The topic of the operations on half messages (`TopicValidator.RMQ_SYS_TRANS_OP_HALF_TOPIC`).
const OPERATION_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";

/// Tells whether all messages of a queue are removed from a log that begins at `min_offset`. A queue without messages is new,
/// not expired.
pub fn is_expired(queue: &ConsumeQueue, min_offset: u64) -> Result<bool> {
    // The file `delayOffset.json` has offsets in these queues, so they must not restart at 0.
    if queue.topic() == DELAY_TOPIC {
        return Ok(false);
    }
    let last = UnitReader::new(queue).unit(queue.max_offset()? - 1)?.filter(|unit| unit.is_message());
    Ok(last.is_some_and(|last| last.physical_offset.saturating_add(last.size.into()) < min_offset as i64))
}

/// Returns whether a topic is neither in `configured` nor used by the broker itself.
pub fn is_unused(topic: &str, configured: &BTreeSet<String>) -> bool {
    !configured.contains(topic) && topic != DELAY_TOPIC && topic != OPERATION_TOPIC && !topic.starts_with(LMQ)
}

/// Removes the files of a queue. The last file is removed last, because it shows the next offset. So after an error
/// the queue continues.
pub fn remove_files(queue: &ConsumeQueue) -> Result<()> {
    queue.segments().files().iter().try_for_each(|file| disk::remove_file(&file.path))
}

/// Removes the directory of a queue without files. Also removes the directory of its topic if the topic has no other
/// queue.
pub fn remove_directory(queue: &ConsumeQueue) -> Result<()> {
    for directory in queue.directory().ancestors().take(2) {
        // A directory with a stray file stays.
        let is_gone = fs::remove_dir(directory).is_ok();
        let changed = if is_gone { directory.parent() } else { Some(directory) };
        changed.map_or(Ok(()), sync_directory)?;
        if !is_gone {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::consume_queue::{UNIT_SIZE, Unit};

    fn queue(topic: &str, units: &[Unit]) -> (tempfile::TempDir, ConsumeQueue) {
        let dir = tempfile::tempdir().expect("dir");
        let mut bytes: Vec<u8> = units.iter().flat_map(Unit::encode).collect();
        bytes.resize(5 * UNIT_SIZE, 0);
        fs::write(dir.path().join(crate::file::name::of_offset(0)), bytes).expect("written");
        let queue = ConsumeQueue::list(topic, 0, dir.path()).expect("listed");
        (dir, queue)
    }

    #[test]
    fn a_queue_is_expired_when_its_last_message_is_gone_and_never_that_of_delays() {
        let units = [0, 50].map(|physical_offset| Unit { physical_offset, size: 50, tags_code: 0 });
        for (topic, units, min_offset, expected) in [
            ("T", &units[..], 100, false),
            ("T", &units[..], 101, true),
            ("T", &units[..], 0, false),
            ("T", &[], 101, false),
            (DELAY_TOPIC, &units[..], 101, false),
        ] {
            let (_dir, queue) = queue(topic, units);
            assert_eq!(is_expired(&queue, min_offset).expect("read"), expected, "{topic} {min_offset}");
        }
    }

    #[test]
    fn a_topic_is_unused_unless_it_is_configured_or_the_brokers_own() {
        let configured = BTreeSet::from(["orders".to_owned()]);
        let topics = ["orders", "clicks", DELAY_TOPIC, OPERATION_TOPIC, "%LMQ%x", "RMQ_SYS_TRANS_HALF_TOPIC"];
        assert_eq!(topics.map(|topic| is_unused(topic, &configured)), [false, true, false, false, false, true]);
    }
}
