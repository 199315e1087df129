//! Finds the queue offset for a time, by the rule of 5.x or of 4.9.
//!
//! Source: `ConsumeQueueStore.getOffsetInQueueByTime` (5.x), `ConsumeQueue.getOffsetInQueueByTime` and
//! `MappedFileQueue.getMappedFileByTime` (4.9.4).
use super::commit_log::{DamageLog, RecordReader};
use super::log_walk::LogWalk;
use super::message_store::MessageStore;
use super::pull::GetLimits;
use super::queue_view::{QueueView, ViewReader};
use crate::file::{Place, SegmentFile};
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::{Error, Result};
use std::path::Path;
use std::time::UNIX_EPOCH;

const UNIT: i64 = UNIT_SIZE as i64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeRule {
    /// The rule of 5.x. Finds the first message with the time or a later time; without such a message, the max
    /// offset.
    #[default]
    V5,
    /// The rule of 4.9. Finds the message nearest to the time, in the file chosen by modification time.
    V4,
}

impl MessageStore {
    /// Returns the offset in a queue for a store time in milliseconds. The search assumes that store times never
    /// decrease.
    pub fn offset_for_time(&self, topic: &str, queue_id: i32, when: i64, rule: TimeRule) -> Result<i64> {
        let view = self.queue_view(topic, queue_id)?;
        let units = view.reader();
        let mut search = Search { view: &view, units, log: RecordReader::new(self.log()) };
        match rule {
            TimeRule::V5 => search.first_not_before(when.max(0)),
            TimeRule::V4 => nearest(&mut search, when, self.log().min_offset() as i64),
        }
    }

    /// Returns the store time in milliseconds of the first readable message of a queue, or `None`.
    pub fn earliest_in_queue(&self, topic: &str, queue_id: i32) -> Result<Option<i64>> {
        let view = self.queue_view(topic, queue_id)?;
        let mut search = Search { view: &view, units: view.reader(), log: RecordReader::new(self.log()) };
        Ok(search.readable(view.min_offset(), view.max_offset())?.map(|(_, time)| time))
    }

    /// Returns the store time in milliseconds of the first readable message of a topic, or of the whole log if `topic`
    /// is `None`.
    ///
    /// A 4.9.4 broker returns no time for a log of less than 8 MiB (`DefaultMessageStore.getEarliestMessageTime`); 5.x returns
    /// the time.
    pub fn earliest_time(&self, topic: Option<&str>) -> Result<Option<i64>> {
        let Some(topic) = topic else { return self.earliest_in_log() };
        self.check_topic(topic)?;
        let mut earliest = None;
        for queue_id in self.topics()?.remove(topic).into_iter().flatten().map(|(queue_id, _)| queue_id) {
            earliest = earliest.into_iter().chain(self.earliest_in_queue(topic, queue_id)?).min();
        }
        Ok(earliest)
    }

    fn earliest_in_log(&self) -> Result<Option<i64>> {
        let mut walk = LogWalk::new(self.log().clone(), self.log().min_offset(), u64::MAX, 0).without_waiting();
        if !walk.advance(&mut DamageLog::default())? {
            return Ok(None);
        }
        let block = walk.block();
        let first = block.records.first();
        let message = first.and_then(|r| Message::new(block.bytes.get(r.at as usize..)?, r.layout));
        Ok(message.map(|message| message.store_timestamp()))
    }

    /// Returns whether the message at a queue offset is so far behind the log's end that a broker expects it on the
    /// disk, not in memory; `false` if there is no message. Source: `DefaultMessageStore.checkInDiskByConsumeOffset`.
    pub fn check_in_disk(&self, topic: &str, queue_id: i32, offset: i64, limits: &GetLimits) -> Result<bool> {
        let view = self.queue_view(topic, queue_id)?;
        if !(view.min_offset()..view.max_offset()).contains(&offset) {
            return Ok(false);
        }
        let unit = view.reader().unit(offset)?;
        let log_end = self.unlisted()?.log_end();
        Ok(unit.is_some_and(|unit| limits.is_in_disk(unit.physical_offset, log_end)))
    }
}

struct Search<'a> {
    view: &'a QueueView,
    units: ViewReader<'a>,
    log: RecordReader<'a>,
}

/// A queue that can be searched by store time.
pub trait TimedQueue {
    fn bounds(&self) -> (i64, i64);
    /// Returns the entry at a queue offset, or `None` in a hole.
    fn unit(&mut self, offset: i64) -> Result<Option<Unit>>;
    /// Returns the store time of the message of an entry in milliseconds; `None` if the message cannot be read
    /// (`CommitLog.pickupStoreTimestamp`).
    fn store_time(&mut self, unit: Unit) -> Result<Option<i64>>;
    /// Returns the first and the end offset of the queue file for a time, chosen as [`file_by_time`] does.
    fn file_by_time(&self, when: i64) -> Result<Option<(i64, i64)>>;
}

impl TimedQueue for Search<'_> {
    fn bounds(&self) -> (i64, i64) {
        (self.view.min_offset(), self.view.max_offset())
    }

    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        self.units.unit(offset)
    }

    fn store_time(&mut self, unit: Unit) -> Result<Option<i64>> {
        if !unit.is_message() {
            return Ok(None);
        }
        let record = self.log.try_record(unit.physical_offset as u64)?.ok();
        Ok(record.and_then(|record| Message::decode(&record).map(|m| m.store_timestamp())))
    }

    /// Returns the offsets of the file for a time. Entries that are only in memory count as one more file, written
    /// just now.
    fn file_by_time(&self, when: i64) -> Result<Option<(i64, i64)>> {
        let files = self.view.disk().map_or(&[][..], |queue| queue.segments().files());
        let unlisted = |end| self.view.next_offset(end).map(|first| (first, self.view.max_offset()));
        file_by_time(files, when, unlisted)
    }
}

impl Search<'_> {
    /// Returns the first offset with a time of `when` or later. An unreadable message counts as a match, so that a
    /// reader of the message reports the damage.
    fn first_not_before(&mut self, when: i64) -> Result<i64> {
        let (mut low, mut high) = (self.view.min_offset(), self.view.max_offset());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.readable(middle, high)? {
                Some((offset, time)) if time < when => low = offset + 1,
                _ => high = middle,
            }
        }
        let end = self.view.max_offset();
        while let Some(offset) = self.view.next_offset(low).filter(|offset| *offset < end) {
            if self.units.unit(offset)?.is_some_and(|unit| unit.is_message()) {
                return Ok(offset);
            }
            low = offset + 1;
        }
        Ok(end)
    }

    /// Returns offset and store time of the first readable message in `[from, end)`.
    fn readable(&mut self, from: i64, end: i64) -> Result<Option<(i64, i64)>> {
        let mut at = from;
        while let Some(offset) = self.view.next_offset(at).filter(|offset| *offset < end) {
            if let Some(unit) = self.units.unit(offset)?.filter(Unit::is_message)
                && let Ok(record) = self.log.try_record(unit.physical_offset as u64)?
                // A damaged unit may point to any message.
                && self.view.find_mismatch(&record, offset, unit.size).is_none()
                && let Some(message) = Message::decode(&record)
            {
                return Ok(Some((offset, message.store_timestamp())));
            }
            at = offset + 1;
        }
        Ok(None)
    }
}

/// Returns the offset that Java finds for the time `when`, including Java's oddities: without a match, the offset
/// before the file; at damage, 0.
pub fn nearest(queue: &mut impl TimedQueue, when: i64, log_start: i64) -> Result<i64> {
    let Some((first, end)) = queue.file_by_time(when)? else { return Ok(0) };
    let (min_offset, max_offset) = queue.bounds();
    let mut low = first.max(min_offset);
    let mut high = max_offset.min(end) - 1;
    let (mut before, mut after) = (None, None);
    let mut time_before = None;
    while low <= high {
        // Java bisects positions relative to the file, which rounds in this way.
        let middle = first + (low - first + high - first) / 2;
        let Some(unit) = queue.unit(middle)? else { return Ok(0) };
        // Retention has removed the record, so its time cannot be read.
        if unit.physical_offset < log_start {
            (before, low) = (Some(middle), middle + 1);
            continue;
        }
        let Some(time) = queue.store_time(unit)? else { return Ok(0) };
        if time == when {
            return Ok(middle);
        }
        if time > when {
            (after, high) = (Some((middle, time)), middle - 1);
        } else {
            (before, time_before, low) = (Some(middle), Some(time), middle + 1);
        }
    }
    // Java starts with the byte position -1 and divides it by 20, the size of a unit.
    let nothing = (first * UNIT - 1).max(0) / UNIT;
    Ok(match (time_before, after) {
        (None, after) => after.map_or(nothing, |(offset, _)| offset),
        (Some(_), None) => before.unwrap_or(nothing),
        // At equal distance the earlier message wins, as in Java.
        (Some(earlier), Some((offset, later))) if when.abs_diff(earlier) > later.abs_diff(when) => offset,
        _ => before.unwrap_or(nothing),
    })
}

/// Returns the offsets of the first file written at `when` or later. If there is no such file, returns `unlisted`,
/// the range behind the files, or else the last file.
pub fn file_by_time(
    files: &[SegmentFile],
    when: i64,
    unlisted: impl FnOnce(i64) -> Option<(i64, i64)>,
) -> Result<Option<(i64, i64)>> {
    let mut last = None;
    for file in files {
        last = Some((file.base as i64 / UNIT, file.end() as i64 / UNIT));
        // 4.9 compares modification times, so a copy of a store must keep them.
        if modification_time(&file.path)? >= when {
            return Ok(last);
        }
    }
    Ok(unlisted(last.map_or(0, |(_, end)| end)).or(last))
}

/// Returns the modification time in milliseconds since 1970; 0 for a file that retention has removed since the
/// listing.
fn modification_time(path: &Path) -> Result<i64> {
    let Some(meta) = Place::metadata(path)? else { return Ok(0) };
    let time = meta.modified().map_err(|e| Error::io(path, e))?;
    Ok(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64))
}
