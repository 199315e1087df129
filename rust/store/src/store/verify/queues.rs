//! Checks consume queues and the log against each other in one pass. Each record must have its entry, and each entry
//! its record.
use super::report::{VerifyReport, is_known};
use crate::file::place;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::store::commit_log::{Damage, RecordReader};
use crate::store::consume_queue::{ConsumeQueue, LMQ, UnitReader};
use crate::store::delay::{DELAY_TOPIC, DelayLevels};
use crate::store::generation::RemovedTopics;
use crate::store::message_store::{MessageStore, QueueKind};
use crate::store::unlisted::code_of;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

pub(super) struct Queues<'a> {
    store: &'a MessageStore,
    cursors: HashMap<String, BTreeMap<i32, Cursor>>,
    /// Queues that have a missing file. They are not compared.
    unknown: BTreeSet<(String, i32)>,
    /// Records at or behind this log offset may be unlisted, because a broker lists them at its next start.
    listed_to: u64,
    /// Topics that were deleted, but whose records are still in the log.
    forgotten: BTreeSet<String>,
    removed: RemovedTopics,
}

impl<'a> Queues<'a> {
    /// Opens all queues. Reports queues with a dead link as damage.
    pub(super) fn new(store: &'a MessageStore, report: &mut VerifyReport) -> Result<Self> {
        let mut log = RecordReader::new(store.log());
        let mut unknown = BTreeSet::new();
        let mut cursors: HashMap<String, BTreeMap<i32, Cursor>> = HashMap::new();
        for topic in store.queue_topics()? {
            let queues = cursors.entry(topic.clone()).or_default();
            for queue in store.queues(&topic)? {
                if let Some(Error::Corrupt { path, reason, .. }) =
                    queue.segments().first_without_file().map(place::no_file)
                {
                    report.damage.push(Damage { offset: 0, length: 0, reason, file: path });
                    unknown.insert((topic.clone(), queue.queue_id()));
                    continue;
                }
                queues.insert(queue.queue_id(), Cursor::new(queue, store.log().min_offset(), &mut log)?);
            }
        }
        cursors.retain(|_, queues| !queues.is_empty());
        // A broker may have listed records in files that it has made since the store was opened.
        let since = store.log().segments().end()..store.log_now()?.segments().end();
        // The check of the configuration reports an unreadable list of removed topics.
        let removed = RemovedTopics::load(store.root()).unwrap_or_default();
        for cursor in cursors.values_mut().flat_map(BTreeMap::values_mut) {
            cursor.since = since.clone();
        }
        Ok(Self { store, cursors, unknown, listed_to: store.dispatched_to()?, forgotten: BTreeSet::new(), removed })
    }

    /// Compares a record of the log with its queue.
    pub(super) fn meet(&mut self, message: &Message<'_>, report: &mut VerifyReport) -> Result<()> {
        let topic = String::from_utf8_lossy(message.topic());
        let offset = message.physical_offset() as u64;
        if !self.unknown.is_empty() && self.unknown.contains(&(topic.clone().into_owned(), message.queue_id())) {
            return Ok(());
        }
        let outcome = match self.cursors.get_mut(topic.as_ref()) {
            _ if self.store.queue_kind() != QueueKind::Files => Outcome::Unlisted(String::new()),
            None => self.without_queues(&topic)?,
            Some(queues) => match queues.get_mut(&message.queue_id()) {
                Some(cursor) => cursor.meet(message, &topic, report)?,
                None => Outcome::Unlisted(format!("topic {topic} has no consume queue {}", message.queue_id())),
            },
        };
        match outcome {
            Outcome::Listed => report.units += 1,
            // The queues of a topic that was created again begin at 0.
            Outcome::Misled(_) | Outcome::Unlisted(_) if self.removed.has(&topic, message) => report.forgotten += 1,
            Outcome::Misled(_) | Outcome::Unlisted(_) if offset >= self.listed_to => report.unlisted += 1,
            Outcome::Misled(damage) => report.damage.push(damage),
            Outcome::Unlisted(reason) => report.damage.push(self.store.log().damage(offset, 0, reason)),
            Outcome::Forgotten => report.forgotten += 1,
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, report: &mut VerifyReport) -> Result<()> {
        let mut log = RecordReader::new(self.store.log());
        for (topic, queues) in &mut self.cursors {
            for cursor in queues.values_mut() {
                report.queues += 1;
                // The records of a light queue name it only in a property, so its units are checked one by one.
                if topic.starts_with(LMQ) { cursor.follow(&mut log, report)? } else { cursor.pass(i64::MAX, report)? }
            }
        }
        let note = |topic: &String| format!("topic {topic}: its records have no consume queue, as after its deletion");
        report.notes.extend(self.forgotten.iter().map(note));
        Ok(())
    }

    /// Returns the outcome for a record of a topic without queues. If the topic is missing in an existing
    /// configuration, it was deleted. A topic with batch queues is treated like a deleted topic.
    fn without_queues(&mut self, topic: &str) -> Result<Outcome> {
        let config = self.store.topics_config();
        let is_configured = config.is_missing() || config.topics().any(|name| name == topic);
        let is_batch = place::is_directory(&self.store.root().join("batchconsumequeue").join(topic))?;
        if is_configured && !is_batch {
            return Ok(Outcome::Unlisted(format!("topic {topic} has no consume queue")));
        }
        self.forgotten.insert(topic.to_owned());
        Ok(Outcome::Forgotten)
    }
}

/// Number of entries read at a time. The number is small, because ten thousand queues may have a buffer each.
const UNITS: usize = 256;
/// The smallest tag hash. Smaller values are addresses in `consumequeue_ext` (`ConsumeQueueExt.MAX_ADDR`).
const SMALLEST_HASH: i64 = i32::MIN as i64;

/// The result of comparing a record with its consume queue.
pub(super) enum Outcome {
    Listed,
    Misled(Damage),
    /// The record has no entry. Holds the reason.
    Unlisted(String),
    Forgotten,
}

pub(super) struct Cursor {
    queue: ConsumeQueue,
    log_start: u64,
    /// The part of the log that was appended since the store was opened, and is not checked.
    since: Range<u64>,
    next: i64,
    max: i64,
    /// Queue offset and physical offset of the first entry, if the entry is valid. Records before it belong to an
    /// earlier generation of the topic.
    first: Option<(i64, i64)>,
    buffer: Vec<u8>,
    buffer_at: i64,
}

impl Cursor {
    /// Starts at the first entry whose record is still in the log.
    pub(super) fn new(queue: ConsumeQueue, log_start: u64, log: &mut RecordReader<'_>) -> Result<Self> {
        let max = queue.max_offset()?;
        let next = queue.lower_bound(log_start, max)?;
        let mut cursor =
            Self { queue, log_start, since: 0..0, next, max, first: None, buffer: Vec::new(), buffer_at: 0 };
        if let Some(unit) = cursor.unit(next)?.filter(Unit::is_message)
            && let Ok(record) = log.try_record(unit.physical_offset as u64)?
            && Message::decode(&record).is_some_and(|m| cursor.is_own(&m, next))
        {
            cursor.first = Some((next, unit.physical_offset));
        }
        Ok(cursor)
    }

    fn is_own(&self, message: &Message<'_>, queue_offset: i64) -> bool {
        message.topic() == self.queue.topic().as_bytes()
            && message.queue_id() == self.queue.queue_id()
            && message.queue_offset() == queue_offset
    }

    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        if offset >= self.max || offset < 0 {
            return Ok(None);
        }
        let at = |cursor: &Self| usize::try_from(offset - cursor.buffer_at).ok().map(|n| n * UNIT_SIZE);
        if at(self).is_none_or(|at| at >= self.buffer.len()) {
            // The file is not kept open, because there may be more queues than a process may open files.
            self.buffer = UnitReader::new(&self.queue).units(offset, UNITS)?.to_vec();
            self.buffer_at = offset;
        }
        Ok(at(self).and_then(|at| self.buffer.get(at..)).and_then(Unit::decode))
    }

    /// Returns the outcome of comparing a record of this queue with its entry. Records must come in the order of the
    /// log.
    pub(super) fn meet(&mut self, message: &Message<'_>, topic: &str, report: &mut VerifyReport) -> Result<Outcome> {
        let (number, offset) = (message.queue_offset(), message.physical_offset());
        // The topic was deleted and created again, so the unit with this offset belongs to a later message.
        if self.first.is_some_and(|(first, at)| offset < at && number >= first) {
            return Ok(Outcome::Forgotten);
        }
        let leads_here = |unit: Option<Unit>| unit.is_some_and(|u| u.is_message() && u.physical_offset == offset);
        // The record's own offset is tried first, because behind damage the queue continues there.
        if leads_here(self.unit(number)?) {
            self.pass(number, report)?;
            self.next = self.next.max(number + 1);
            let unit = self.unit(number)?.unwrap_or_default();
            return Ok(self.compare(number, unit, message, topic));
        }
        let next = self.next;
        // The queue lists the record, but not at the queue offset in the record.
        if leads_here(self.unit(next)?) {
            self.next += 1;
            let reason = format!("expected the record of queue offset {next}, got that of {number}");
            return Ok(Outcome::Misled(self.damage(next, reason)));
        }
        let unit = self.unit(next)?;
        if unit.is_none() && next < self.max {
            self.pass_gap(next, report);
        }
        let Some(unit) = unit.filter(|_| number == next) else {
            let (topic, id) = (self.queue.topic(), self.queue.queue_id());
            return Ok(Outcome::Unlisted(format!("consume queue {topic} {id} does not list it at {number}")));
        };
        self.next += 1;
        Ok(Outcome::Misled(self.damage(next, format!("expected physical offset {offset}, got {}", describe(unit)))))
    }

    fn compare(&self, number: i64, unit: Unit, message: &Message<'_>, topic: &str) -> Outcome {
        let (size, code) = (message.layout().total as i32, code_of(message, topic, &DelayLevels::default()));
        if unit.size != size {
            return Outcome::Misled(self.damage(number, format!("size: expected {size}, got {}", unit.size)));
        }
        // The delays of the levels depend on the broker's configuration, so times of delivery are not compared.
        if topic != DELAY_TOPIC && unit.tags_code >= SMALLEST_HASH && unit.tags_code != code {
            return Outcome::Misled(self.damage(number, format!("tags code: expected {code}, got {}", unit.tags_code)));
        }
        Outcome::Listed
    }

    /// Skips the entries before `end`, whose records were not found in the log.
    pub(super) fn pass(&mut self, end: i64, report: &mut VerifyReport) -> Result<()> {
        while self.next < end.min(self.max) {
            let (at, unit) = (self.next, self.unit(self.next)?);
            self.next += 1;
            let Some(unit) = unit else {
                self.pass_gap(at, report);
                continue;
            };
            if unit.is_left_out() {
                continue;
            }
            // Retention has removed the record, or it came since, or the damage of the log is already reported.
            let is_gone = |at: i64| {
                (at as u64) < self.log_start || self.since.contains(&(at as u64)) || is_known(&report.damage, at)
            };
            if !unit.is_message() || !is_gone(unit.physical_offset) {
                let reason = format!("expected a unit that leads to a message of the queue, got {}", describe(unit));
                report.damage.push(self.damage(at, reason));
            }
        }
        Ok(())
    }

    fn pass_gap(&mut self, at: i64, report: &mut VerifyReport) {
        let unit = UNIT_SIZE as u64;
        let behind = self.queue.segments().files().iter().map(|f| (f.base / unit) as i64).find(|base| *base > at);
        self.next = behind.unwrap_or(self.max);
        let gap = Damage { length: (self.next - at) as u64 * unit, ..self.damage(at, "expected a file, got none") };
        report.damage.push(gap);
    }

    /// Checks a queue that lists records of other topics, so that the records cannot be compared with it. Each entry
    /// must point to a record of its size.
    pub(super) fn follow(&mut self, log: &mut RecordReader<'_>, report: &mut VerifyReport) -> Result<()> {
        while self.next < self.max {
            let unit = self.unit(self.next)?.unwrap_or_default();
            let record = match unit.is_message() {
                true => log.try_record(unit.physical_offset as u64)?.ok(),
                false => None,
            };
            if record.is_some_and(|record| record.len() == unit.size as usize) {
                report.units += 1;
            } else if !is_known(&report.damage, unit.physical_offset)
                && !self.since.contains(&(unit.physical_offset as u64))
            {
                let reason = format!("expected a unit that leads to a message, got {}", describe(unit));
                report.damage.push(self.damage(self.next, reason));
            }
            self.next += 1;
        }
        Ok(())
    }

    fn damage(&self, number: i64, reason: impl Into<String>) -> Damage {
        let offset = number as u64 * UNIT_SIZE as u64;
        let files = self.queue.segments().files();
        let index = files.partition_point(|f| f.base <= offset).saturating_sub(1);
        let file = files.get(index).map_or_else(|| self.queue.directory().to_owned(), |f| f.path.clone());
        Damage { offset, length: UNIT_SIZE as u64, reason: reason.into(), file }
    }
}

fn describe(unit: Unit) -> String {
    match unit {
        _ if unit == Unit::default() => "one that was never written".to_owned(),
        _ if unit.is_blank() => "a pre-blank one".to_owned(),
        Unit { physical_offset, size, .. } => format!("{physical_offset} of {size} bytes"),
    }
}
