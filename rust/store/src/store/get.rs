//! Gets messages of a queue. Like a broker's answer to a pull, the result has a status, messages and the next offset.
//!
//! Source: `DefaultMessageStore.getMessage`, `isTheBatchFull`; the tag string is compared as `PullAPIWrapper` does.
use super::commit_log::{Damage, RecordReader, listed_there};
use super::consume_queue::ConsumeQueue;
use super::message_store::MessageStore;
pub use super::pull::GetMessageStatus;
use super::pull::{GetLimits, Pull, PullSource, PullStop, behind_file};
use super::queue_view::{QueueView, ViewReader};
use crate::Result;
use crate::filter::TagExpression;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use crate::format::properties;

/// Number of entries to search before a hole, for the last message before the hole.
const LOOK_BACK: usize = 1024;

#[derive(Clone, Debug)]
pub struct GetMessage {
    /// The broker's status. It is found before the tag strings are compared.
    pub status: GetMessageStatus,
    pub next_begin_offset: i64,
    pub min_offset: i64,
    pub max_offset: i64,
    /// The records. Records whose tag has only the same hash are left out.
    pub records: Vec<Vec<u8>>,
    /// Whether a broker would send the next pull to a slave, because the last message is far behind the log's end.
    pub suggest_pulling_from_slave: bool,
    /// A report for each consume-queue entry whose record is missing or invalid.
    pub damage: Vec<Damage>,
}

impl MessageStore {
    /// Returns up to `max_messages` messages of a queue from `offset` on.
    pub fn get(
        &self,
        topic: &str,
        queue_id: i32,
        offset: i64,
        max_messages: usize,
        tags: &TagExpression,
    ) -> Result<GetMessage> {
        self.get_within((topic, queue_id, offset), max_messages, tags, GetLimits::of_count(max_messages))
    }

    /// Returns the messages of [`get`](Self::get) that fit into the limits of a broker.
    pub fn get_within(
        &self,
        (topic, queue_id, offset): (&str, i32, i64),
        max_messages: usize,
        tags: &TagExpression,
        limits: GetLimits,
    ) -> Result<GetMessage> {
        let view = self.queue_view(topic, queue_id)?;
        let mut source = Source::new(self, &view, tags);
        let log_end = self.unlisted()?.log_end();
        let pull = Pull { max_messages, limits, log_end };
        let pulled = pull.run(&mut source, offset)?;
        let mut records = std::mem::take(&mut source.records);
        // As in RocketMQ, the store compares hashes of tags, and the client compares the tags themselves.
        records.retain(|r| Message::decode(r).is_some_and(|m| tags.matches(m.property(properties::TAGS))));
        let own_damage = source.damage.len();
        // The start of a queue is uncertain if the log is damaged.
        if source.hole.is_some() || pulled.status == GetMessageStatus::OffsetTooSmall {
            // A message without a unit may have been in the hole.
            let missing = self.missing_of(topic, Some(&[queue_id]))?;
            for unlisted in [&missing, &self.unlisted()?] {
                // As in `fetch`, what retention removed meanwhile is not damage.
                let damage = unlisted.damage().entries().iter().filter(|d| source.retained_from(d.offset).is_none());
                let damage: Vec<_> = damage.cloned().collect();
                source.damage.extend(damage);
            }
        }
        // At the end of the queue, messages that cannot follow and a lost end of the log are reported.
        if pulled.next_begin_offset >= pulled.max_offset {
            source.note_astray();
            source.damage.extend(self.lost_behind_end(log_end)?);
        }
        // A hole that no other damage explains is reported as damage itself.
        if source.damage.len() == own_damage {
            source.note_hole()?;
        }
        Ok(GetMessage {
            status: pulled.status,
            next_begin_offset: pulled.next_begin_offset,
            min_offset: pulled.min_offset,
            max_offset: pulled.max_offset,
            records,
            suggest_pulling_from_slave: pulled.suggest_pulling_from_slave,
            damage: source.damage,
        })
    }
}

/// Reads from the files of a store. Another process may own the store, so every record is checked.
struct Source<'a> {
    view: &'a QueueView,
    units: ViewReader<'a>,
    tags: &'a TagExpression,
    log: RecordReader<'a>,
    store: &'a MessageStore,
    records: Vec<Vec<u8>>,
    damage: Vec<Damage>,
    /// The first hole that was found: its first offset, and the offset behind its last.
    hole: Option<(i64, i64)>,
}

impl PullSource for Source<'_> {
    fn bounds(&self) -> (i64, i64) {
        (self.view.min_offset(), self.view.max_offset())
    }

    fn units_per_file(&self) -> Option<i64> {
        self.view.units_per_file()
    }

    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        self.units.unit(offset)
    }

    /// Returns the queue offset at which a broker continues behind a hole. This is the start of the next file, or the
    /// next entry if there is no next file.
    fn behind_hole(&mut self, offset: i64) -> i64 {
        let next = match self.view.units_per_file() {
            Some(units) if offset < self.view.disk_end() => {
                let next_file = offset + units - offset % units;
                // A message whose unit is in memory must not be skipped.
                self.view.next_unlisted(offset).map_or(next_file, |next| next.min(next_file))
            }
            _ => self.view.next_offset(offset).unwrap_or(self.view.max_offset()),
        };
        self.hole = Some((offset, next));
        next
    }

    fn matches_code(&self, tags_code: i64) -> bool {
        self.tags.codes_match(tags_code)
    }

    fn fetch(&mut self, queue_offset: i64, unit: Unit) -> Result<PullStop> {
        let physical_offset = u64::try_from(unit.physical_offset).unwrap_or(u64::MAX);
        let (reason, gone) = match self.log.try_record(physical_offset)? {
            Ok(record) => match self.view.find_mismatch(&record, queue_offset, unit.size) {
                None => {
                    let len = record.len();
                    self.records.push(record);
                    return Ok(PullStop::Record(len));
                }
                Some(reason) => (reason, PullStop::Gone(None)),
            },
            Err(reason) => match self.retained_from(physical_offset) {
                Some(from) => return Ok(PullStop::Gone(Some(from))),
                None => (reason, PullStop::Gone(self.behind_file_of(physical_offset))),
            },
        };
        let length = match gone {
            // The other messages of the missing file are skipped, too.
            PullStop::Gone(Some(behind)) => behind.cast_unsigned() - physical_offset,
            _ => unit.size.max(0) as u64,
        };
        let reason = listed_there(&reason, self.view.topic(), self.view.queue_id(), queue_offset);
        self.damage.push(self.store.log().damage(physical_offset, length, reason));
        Ok(gone)
    }
}

impl<'a> Source<'a> {
    fn new(store: &'a MessageStore, view: &'a QueueView, tags: &'a TagExpression) -> Self {
        let log = RecordReader::new(store.log());
        Self { view, units: view.reader(), tags, log, store, records: Vec::new(), damage: Vec::new(), hole: None }
    }

    /// Returns the present start of the log if retention has removed the record since the store was opened, otherwise
    /// `None`. A removed record is not damage. All messages before the returned offset are skipped.
    fn retained_from(&self, physical_offset: u64) -> Option<i64> {
        let log = self.store.log();
        let from = log.segments().find(physical_offset).and_then(|index| log.retained_from(index));
        from.map(|from| from as i64)
    }

    /// Returns the end of the missing log file that contained the offset; `None` if no file is missing there. The other
    /// messages of that file are skipped, too.
    fn behind_file_of(&self, physical_offset: u64) -> Option<i64> {
        let segments = self.store.log().segments();
        if segments.find(physical_offset).is_some() {
            return None;
        }
        segments.file_size().map(|size| behind_file(physical_offset, size))
    }

    /// Reports messages whose offsets cannot follow in the queue as damage.
    fn note_astray(&mut self) {
        let (topic, queue_id, end) = (self.view.topic(), self.view.queue_id(), self.view.max_offset());
        for (offset, unit) in self.view.astray() {
            let reason = format!(
                "expected an offset that can follow in queue {queue_id} of topic {topic}, which ends at {end}, got {offset}"
            );
            let (at, length) = (unit.physical_offset as u64, unit.size.max(0) as u64);
            self.damage.push(self.store.log().damage(at, length, reason));
        }
    }

    /// Reports missing entries as damage, unless other damage explains them. The damage begins behind the last
    /// message before the hole.
    fn note_hole(&mut self) -> Result<()> {
        let Some((from, next)) = self.hole else { return Ok(()) };
        let (topic, queue_id) = (self.view.topic(), self.view.queue_id());
        // Units that were listed when the queue was, and that retention has removed since, are not damage.
        if let Some(disk) = self.view.disk().filter(|disk| disk.first_offset() <= from)
            && ConsumeQueue::list(topic, queue_id, disk.directory())?.first_offset() > from
        {
            return Ok(());
        }
        let mut start = self.store.log().min_offset();
        for offset in (self.view.min_offset()..from).rev().take(LOOK_BACK) {
            let unit = self.units.unit(offset)?.filter(Unit::is_message);
            let Some(unit) = unit.filter(|unit| unit.end() > start) else { continue };
            if let Ok(record) = self.log.try_record(unit.physical_offset as u64)?
                && self.view.find_mismatch(&record, offset, unit.size).is_none()
            {
                start = unit.end();
                break;
            }
        }
        let end = self.units.unit(next)?.filter(Unit::is_message).map_or(0, |unit| unit.physical_offset as u64);
        let length = end.min(self.store.log().segments().end()).saturating_sub(start);
        let reason =
            format!("expected units of messages {from} to {next} of queue {queue_id} of topic {topic}, got none");
        self.damage.push(self.store.log().damage(start, length, reason));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::AppendOptions;
    use crate::store::made_store::store_of;
    use std::fs;

    #[test]
    fn units_that_retention_removes_behind_the_listing_are_no_damage() {
        let (dir, store) = store_of(35, 0, AppendOptions { queue_file_size: 200, ..AppendOptions::default() });
        let all = TagExpression::all();
        let remove = |number| fs::remove_file(dir.path().join(format!("consumequeue/T/0/{number:020}")));
        let damage_of = |view: &QueueView, hole| {
            let mut source = Source { hole: Some(hole), ..Source::new(&store, view, &all) };
            source.note_hole().expect("looked");
            source.damage.len()
        };
        let view = store.queue_view("T", 0).expect("listed");
        remove(200).expect("removed");
        assert_eq!(damage_of(&view, (10, 20)), 1);
        remove(0).expect("removed");
        assert_eq!(damage_of(&view, (10, 20)), 0);
        // a queue that had lost its first files when it was listed
        let later = store.queue_view("T", 0).expect("listed");
        assert_eq!(damage_of(&later, (10, 20)), 1);
    }
}
