//! Records that no consume queue lists. These are records at the log's end that are not dispatched yet, and records
//! that a queue has lost. Their consume-queue entries are built in memory, as a broker would write them.
//!
//! Source: `ReputMessageService.doReput`, `CommitLog.recoverAbnormally`.
use super::commit_log::{CommitLog, DamageLog};
use super::consume_queue::extra_queues;
use super::delay::{DELAY_TOPIC, DelayLevels};
use super::generation::RemovedTopics;
use super::log_walk::LogWalk;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::java::tags_code;
use crate::format::message::Message;
use crate::format::properties::KnownProperties;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct UnlistedRecords {
    queues: BTreeMap<String, BTreeMap<i32, Vec<(i64, Unit)>>>,
    log_end: u64,
    damage: DamageLog,
}

impl UnlistedRecords {
    /// Lists the records that start in `[dispatched_to, end)` of the log. Leaves out messages of topics that were
    /// `removed` after they were stored.
    pub fn read(log: &Arc<CommitLog>, dispatched_to: u64, end: u64, removed: &RemovedTopics) -> Result<Self> {
        let mut unlisted = Self { log_end: dispatched_to, ..Self::default() };
        let mut walk = LogWalk::new(log.clone(), dispatched_to, end, 0);
        while walk.advance(&mut unlisted.damage)? {
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                if let Some(message) = Message::new(bytes, record.layout) {
                    // Records that no queue lists, such as half messages, also move the end of the log.
                    unlisted.log_end = (message.physical_offset() as u64) + u64::from(record.layout.total);
                    let topic = std::str::from_utf8(message.topic()).unwrap_or_default();
                    if record.layout.is_dispatched() && !removed.has(topic, &message) {
                        unlisted.push(&message);
                    }
                }
            }
        }
        Ok(unlisted)
    }

    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    pub fn queue_ids(&self, topic: &str) -> impl Iterator<Item = i32> {
        self.queues.get(topic).into_iter().flat_map(|queues| queues.keys().copied())
    }

    /// Returns the queue offset and the consume-queue entry of each unlisted record of a queue, in the order of the
    /// log.
    pub fn units(&self, topic: &str, queue_id: i32) -> &[(i64, Unit)] {
        self.queues.get(topic).and_then(|queues| queues.get(&queue_id)).map_or(&[], Vec::as_slice)
    }

    pub fn log_end(&self) -> u64 {
        self.log_end
    }

    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// Returns the range of the log that contains the unlisted records of the selected queues and all damage. Returns
    /// `None` if there are neither records nor damage.
    pub fn stretch(&self, topic: &str, select: impl Fn(i32) -> bool) -> Option<(u64, u64)> {
        let queues = self.queues.get(topic).into_iter().flatten().filter(|(id, _)| select(**id));
        let units =
            queues.flat_map(|(_, units)| units).map(|(_, unit)| (unit.physical_offset as u64, unit.size as u64));
        let damage = self.damage.entries().iter().map(|damage| (damage.offset, damage.length));
        // Damage counts for every queue, because the lost bytes may have been its messages.
        let stretches = units.chain(damage).map(|(offset, length)| (offset, offset.saturating_add(length)));
        stretches.reduce(|(from, end), (start, behind)| (from.min(start), end.max(behind)))
    }

    pub(super) fn push(&mut self, message: &Message<'_>) {
        let topic = String::from_utf8_lossy(message.topic()).into_owned();
        let unit = Unit {
            physical_offset: message.physical_offset(),
            size: message.layout().total as i32,
            // The store does not contain the delay levels of its broker, so the defaults count.
            tags_code: code_of(message, &topic, &DelayLevels::default()),
        };
        self.add(&topic, message.queue_id(), message.queue_offset(), unit);
        // A message of multi-dispatch has a unit in each additional queue, too.
        for (name, queue_id, offset) in extra_queues(message) {
            self.add(name, queue_id, offset, unit);
        }
    }

    pub(super) fn note(&mut self, damage: DamageLog) {
        self.damage.append(damage);
    }

    /// Adds the records of `behind`, which are later in the log.
    pub(super) fn append(&mut self, behind: &Self) {
        for (topic, queues) in &behind.queues {
            for (queue_id, units) in queues {
                units.iter().for_each(|(offset, unit)| self.add(topic, *queue_id, *offset, *unit));
            }
        }
        self.damage.append(behind.damage.clone());
    }

    fn add(&mut self, topic: &str, queue_id: i32, offset: i64, unit: Unit) {
        let queues = match self.queues.get_mut(topic) {
            Some(queues) => queues,
            None => self.queues.entry(topic.to_owned()).or_default(),
        };
        queues.entry(queue_id).or_default().push((offset, unit));
    }
}

/// Returns the tag hash of a record, or the time of delivery, which takes its place in the delay topic. Source:
/// `CommitLog.checkMessageAndReturnSize`.
pub fn code_of(message: &Message<'_>, topic: &str, levels: &DelayLevels) -> i64 {
    code_of_properties(&KnownProperties::of(message.properties()), message.store_timestamp(), topic, levels)
}

/// Returns the same as [`code_of`], from parsed properties.
#[inline]
pub fn code_of_properties(known: &KnownProperties<'_>, store_timestamp: i64, topic: &str, levels: &DelayLevels) -> i64 {
    let text = |value: Option<_>| value.map(String::from_utf8_lossy);
    if topic == DELAY_TOPIC {
        let level = text(known.delay).and_then(|level| level.parse::<i64>().ok()).unwrap_or(0);
        if level > 0 {
            // Wraps around in place of a panic, because no checksum covers the time.
            return store_timestamp.wrapping_add(levels.millis(level));
        }
    }
    tags_code(text(known.tags).as_deref())
}
