//! Recovers the consume queues. Afterwards every record that the recovery has read has its consume-queue entry, and
//! there are no other entries.
//!
//! A missing unit at the end of its queue is appended. A wrong unit is cut off with all units behind it, because their records
//! come later in the walk. A queue that misses units before the start of the walk lags: it is listed again from the start of
//! the log.
//!
//! Source: `ConsumeQueue.recover`, `ConsumeQueue.truncateDirtyLogicFiles`, `ConsumeQueue.putMessagePositionInfo`.
use super::log_end;
use crate::Result;
use crate::file::disk;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::store::append::flusher::SyncList;
use crate::store::append::queue_table::QueueTable;
use crate::store::commit_log::{CommitLog, DamageLog, RecordReader};
use crate::store::consume_queue::{ConsumeQueue, UnitReader, extra_queues, is_directory_name};
use crate::store::delay::{DELAY_TOPIC, DelayLevels};
use crate::store::generation::RemovedTopics;
use crate::store::log_walk::LogWalk;
use crate::store::unlisted::code_of;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

const WINDOW: usize = 1024;
/// Bytes before an offset that are searched for a record.
const LOOK_BACK: u64 = 64 << 10;

pub type QueueName = (String, i32);

/// Recovers the queues while the recovery reads the log once.
#[derive(Debug)]
pub struct QueueRepair {
    log: Arc<CommitLog>,
    table: QueueTable,
    states: Vec<State>,
    /// The queues to rebuild from the start of the log, while all others stay unchanged; `None` if all queues continue
    /// where they end.
    only: Option<HashSet<QueueName>>,
    delay_levels: DelayLevels,
    removed: Arc<RemovedTopics>,
    written: u64,
    /// Number of records without an entry, because other records have the same queue offsets.
    unlisted: u64,
    /// Former ends of queues that may end earlier after the recovery.
    ends: Vec<(QueueName, i64)>,
}

#[derive(Debug, Default)]
struct State {
    queue: Option<ConsumeQueue>,
    /// The entries that were read last, with the queue offset of the first.
    window: (i64, Vec<u8>),
    written_from: Option<i64>,
    last: Option<Unit>,
    /// Queue offset behind the last record whose entry was found or written in this walk.
    matched_to: Option<i64>,
    /// Whether the queue lacks earlier entries, so that it must be listed again from the start of the log.
    lags: bool,
}

impl QueueRepair {
    /// Prepares the repair of all `queues`. `table` must be empty. A queue that has a file of another size than
    /// `file_size` is listed again.
    pub fn new(log: Arc<CommitLog>, mut table: QueueTable, queues: Vec<ConsumeQueue>, file_size: u64) -> Result<Self> {
        let mut states = Vec::with_capacity(queues.len());
        for queue in queues {
            let max = queue.max_offset()?;
            table.add(queue.topic(), queue.queue_id(), max);
            let last = UnitReader::new(&queue).unit(max - 1)?;
            let files = queue.segments().files();
            let is_odd = files.iter().any(|file| file.len != file_size);
            // A file is found by its name, which must be a multiple of its size.
            let is_misplaced = files.iter().any(|file| !file.base.is_multiple_of(file_size));
            let lags = is_misplaced || is_odd;
            states.push(State { queue: Some(queue), last, lags, ..State::default() });
        }
        let (delay_levels, removed) = (DelayLevels::default(), Arc::default());
        Ok(Self { log, table, states, only: None, delay_levels, removed, written: 0, unlisted: 0, ends: Vec::new() })
    }

    /// Removes the files of the queues in `lagging`, and lists only these queues again. The walk must start at the
    /// start of the log.
    pub fn list_again(
        log: Arc<CommitLog>,
        table: QueueTable,
        directory: &Path,
        lagging: HashSet<QueueName>,
    ) -> Result<Self> {
        for (topic, queue_id) in &lagging {
            let path = directory.join(topic).join(queue_id.to_string());
            crate::file::Segments::list(&[path])?.paths_to_remove().try_for_each(disk::remove_file)?;
        }
        let (delay_levels, removed) = (DelayLevels::default(), Arc::default());
        Ok(Self {
            log,
            table,
            states: Vec::new(),
            only: Some(lagging),
            delay_levels,
            removed,
            written: 0,
            unlisted: 0,
            ends: Vec::new(),
        })
    }

    pub fn with_delay_levels(self, delay_levels: DelayLevels) -> Self {
        Self { delay_levels, ..self }
    }

    pub fn without(self, removed: Arc<RemovedTopics>) -> Self {
        Self { removed, ..self }
    }

    pub fn units_written(&self) -> u64 {
        self.written
    }

    /// Returns the number of records without an entry, because other records have the same queue offsets.
    pub fn unlisted_records(&self) -> u64 {
        self.unlisted
    }

    /// Returns whether a record may belong to its queue. Its entry points to the record or does not exist yet.
    /// Returns true for half messages.
    pub fn has_place(&mut self, message: &Message<'_>) -> Result<bool> {
        if !message.layout().is_dispatched() {
            return Ok(true);
        }
        let Some(topic) = topic_with_place(message) else { return Ok(false) };
        let (number, offset) = (self.number(topic, message.queue_id()), message.queue_offset());
        if offset >= self.table.queue(number).next_offset() {
            return Ok(true);
        }
        let state = &mut self.states[number as usize];
        let is_written = state.written_from.is_some_and(|from| offset >= from);
        Ok(!is_written && state.unit(offset)?.physical_offset == message.physical_offset())
    }

    /// Compares the entry that a record should have with the entry on disk, or appends it if the queue ends there. Also
    /// adds the record to its additional queues.
    pub fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        let Some(topic) = topic_with_place(message) else {
            // One flipped bit makes a number negative, and no checksum covers these numbers.
            self.unlisted += u64::from(self.only.is_none() && message.layout().is_dispatched());
            return Ok(());
        };
        let unit = Unit {
            physical_offset: message.physical_offset(),
            size: message.layout().total as i32,
            tags_code: code_of(message, topic, &self.delay_levels),
        };
        let is_removed = self.removed.has(topic, message);
        if let Some(number) = self.number_to_repair(topic, message.queue_id()).filter(|_| !is_removed) {
            if message.queue_offset() < self.table.queue(number).next_offset() {
                self.compare(number, message, unit)?;
            } else {
                self.append(number, message.queue_offset(), unit)?;
            }
        }
        for (name, queue_id, offset) in extra_queues(message) {
            self.list_extra(name, queue_id, offset, unit)?;
        }
        Ok(())
    }

    /// Appends an entry to an additional queue. Keeps an existing entry with the same offset, because a 4.9.4 broker
    /// assigns offsets twice in such a queue.
    fn list_extra(&mut self, name: &str, queue_id: i32, offset: i64, unit: Unit) -> Result<()> {
        let name = Some(name).filter(|name| is_directory_name(name) && queue_id >= 0 && offset >= 0);
        let Some(number) = name.and_then(|name| self.number_to_repair(name, queue_id)) else { return Ok(()) };
        // An entry at this offset exists, and may belong to another message.
        if offset < self.table.queue(number).next_offset() { Ok(()) } else { self.append(number, offset, unit) }
    }

    /// Returns the number of a queue, or `None` if this walk does not repair the queue.
    fn number_to_repair(&mut self, topic: &str, queue_id: i32) -> Option<u32> {
        if self.only.as_ref().is_some_and(|only| !only.contains(&(topic.to_owned(), queue_id))) {
            return None;
        }
        let number = self.number(topic, queue_id);
        Some(number).filter(|number| !self.states[*number as usize].lags)
    }

    fn number(&mut self, topic: &str, queue_id: i32) -> u32 {
        let number = self.table.find(topic, queue_id);
        if number as usize == self.states.len() {
            self.states.push(State::default());
        }
        number
    }

    fn compare(&mut self, number: u32, message: &Message<'_>, unit: Unit) -> Result<()> {
        let offset = message.queue_offset();
        let state = &mut self.states[number as usize];
        // The queue lists the record at the next offset, so the offset in the record is damaged. No checksum covers it.
        if state.lists_next(unit)? && state.matched_to != Some(offset) {
            self.unlisted += 1;
            return Ok(());
        }
        if state.written_from.is_some_and(|from| offset >= from) {
            return self.restart(number, offset, unit);
        }
        let mut existing = state.unit(offset)?;
        // The broker may have other delay levels, so any delivery after the store time is accepted.
        if existing.tags_code >= message.store_timestamp() && message.topic() == DELAY_TOPIC.as_bytes() {
            existing.tags_code = unit.tags_code;
        }
        match existing.physical_offset.cmp(&unit.physical_offset) {
            _ if existing == unit => {
                state.matched_to = Some(offset + 1);
                Ok(())
            }
            // The record of the unit comes later, or the unit is stale. Only a walk from the start of the log can tell.
            Ordering::Greater if existing.is_message() => {
                state.lags = true;
                Ok(())
            }
            Ordering::Less if state.is_own(&self.log, offset, existing)? => self.restart(number, offset, unit),
            _ => self.replace(number, offset, unit),
        }
    }

    /// Handles a record whose queue offset an earlier record also has. Offset 0 means that the topic was created
    /// again, so the queue starts again. At any other offset the record stays without an entry.
    fn restart(&mut self, number: u32, offset: i64, unit: Unit) -> Result<()> {
        if offset == 0 {
            return self.replace(number, offset, unit);
        }
        self.unlisted += 1;
        Ok(())
    }

    fn replace(&mut self, number: u32, offset: i64, unit: Unit) -> Result<()> {
        if self.states[number as usize].is_hole_before(offset)? {
            self.states[number as usize].lags = true;
            return Ok(());
        }
        self.table.cut(number, offset)?;
        let state = &mut self.states[number as usize];
        state.last = None;
        state.written_from = Some(state.written_from.map_or(offset, |from| from.min(offset)));
        self.append(number, offset, unit)
    }

    fn append(&mut self, number: u32, offset: i64, unit: Unit) -> Result<()> {
        let next = self.table.queue(number).next_offset();
        let state = &mut self.states[number as usize];
        // Physical offsets must increase within a queue.
        if state.last.is_some_and(|last| last.is_message() && last.physical_offset >= unit.physical_offset) {
            state.lags = true;
            return Ok(());
        }
        if offset > next {
            // Units before this unit are missing. Only a walk from the start of the log has their messages.
            if self.only.is_none() {
                state.lags = true;
                return Ok(());
            }
            if !self.table.queue(number).can_fill(offset) {
                self.unlisted += 1;
                return Ok(());
            }
            let segments = self.log.segments();
            let log_file = segments.find(unit.physical_offset as u64).map_or(0, |index| segments.files()[index].base);
            // The log no longer has the messages in between. Blank units keep the offsets as consumers know them.
            self.table.fill(number, offset, log_file as i64)?;
        }
        let state = &mut self.states[number as usize];
        state.written_from = Some(state.written_from.map_or(offset, |from| from.min(offset)));
        (state.last, state.matched_to) = (Some(unit), Some(offset + 1));
        self.written += 1;
        self.table.append(number, unit)
    }

    /// Returns the queues that may end earlier than before, although their last offset was assigned, together with
    /// their former ends.
    pub fn ends(&self) -> &[(QueueName, i64)] {
        &self.ends
    }

    /// Records the former end of a queue that may end earlier from now on. Does so only if a message had the last
    /// offset.
    fn note_end(&mut self, number: u32, keep: i64, end: u64) -> Result<()> {
        let Some(queue) = &self.states[number as usize].queue else { return Ok(()) };
        if let Some((offset, unit)) =
            queue.last_message()?.filter(|(offset, unit)| *offset >= keep && unit.end() <= end)
            && was_assigned(&self.log, unit)?
        {
            self.ends.push(((queue.topic().to_owned(), queue.queue_id()), offset.saturating_add(1)));
        }
        Ok(())
    }

    /// Returns the queue offset behind the last valid entry before `next`. Skips wrong and unwritten entries.
    fn valid_end(&self, number: u32, first: i64, mut next: i64, end: u64) -> Result<i64> {
        let Some(queue) = &self.states[number as usize].queue else { return Ok(next) };
        let mut reader = UnitReader::new(queue);
        while next > first {
            // A missing file has no units.
            let unit = reader.unit(next - 1)?.unwrap_or_default();
            if unit.is_message() && !self.is_astray(queue, next - 1, unit, end)? {
                break;
            }
            next -= 1;
        }
        Ok(next)
    }

    /// Returns whether an entry points to a wrong place. An entry that points before the log's start is not wrong,
    /// since retention has removed its record.
    fn is_astray(&self, queue: &ConsumeQueue, offset: i64, unit: Unit, end: u64) -> Result<bool> {
        let reaches_over = unit.physical_offset.saturating_add(unit.size.into()) as u64 > end;
        let is_gone = unit.physical_offset < self.log.min_offset() as i64;
        Ok(!is_gone && (reaches_over || !queue.is_own(&self.log, offset, unit)?))
    }

    pub fn write(&mut self) -> Result<()> {
        self.table.write()
    }

    /// Removes entries that point behind `end` of the log, and flushes. Returns the queues that must be listed again
    /// from the start of the log.
    pub fn finish(&mut self, end: u64) -> Result<HashSet<QueueName>> {
        self.table.write()?;
        let mut lagging = HashSet::new();
        for number in 0..self.table.len() as u32 {
            let (topic, queue_id) = (self.table.topic(number).name.to_string(), self.table.queue(number).queue_id);
            if self.states[number as usize].lags {
                self.note_end(number, 0, end)?;
                lagging.insert((topic, queue_id));
                continue;
            }
            let state = &self.states[number as usize];
            if let Some(queue) = &state.queue {
                let next = self.table.queue(number).next_offset();
                let keep = match state.matched_to {
                    Some(matched_to) => matched_to,
                    None => end_before(&self.log, queue, next, end)?,
                };
                // A unit before the walk is wrong. Its message may be in the log, so the queue is listed again.
                if state.matched_to.is_none() && self.valid_end(number, queue.first_offset(), keep, end)? < keep {
                    self.note_end(number, 0, end)?;
                    lagging.insert((topic, queue_id));
                    continue;
                }
                let now = ConsumeQueue::list(queue.topic(), queue.queue_id(), queue.directory())?;
                // Stale units behind the end would count as messages once the queue grows up to them.
                let is_stale = now.written_behind(next)?.is_some();
                if keep < next || is_stale {
                    self.note_end(number, keep, end)?;
                    self.table.cut(number, keep)?;
                }
            }
        }
        let mut unsynced = SyncList::default();
        self.table.take_unsynced(&mut unsynced);
        // Flushed before the caller records that the recovery is complete.
        unsynced.sync()?;
        Ok(lagging)
    }
}

impl State {
    /// Returns whether the entry before `offset` is unwritten. If so, a reader would take it for the end of the
    /// queue.
    fn is_hole_before(&mut self, offset: i64) -> Result<bool> {
        let is_first = self.queue.as_ref().is_none_or(|queue| offset <= queue.first_offset());
        let is_written = self.written_from.is_some_and(|from| offset > from);
        Ok(!is_first && !is_written && !self.unit(offset - 1)?.is_message())
    }

    /// Returns whether the entry behind the last matched entry points to the same record as `unit`.
    fn lists_next(&mut self, unit: Unit) -> Result<bool> {
        let Some(next) = self.matched_to.filter(|next| self.written_from.is_none_or(|from| *next < from)) else {
            return Ok(false);
        };
        let existing = self.unit(next)?;
        Ok((existing.physical_offset, existing.size) == (unit.physical_offset, unit.size))
    }

    fn is_own(&self, log: &CommitLog, offset: i64, unit: Unit) -> Result<bool> {
        self.queue.as_ref().map_or(Ok(false), |queue| queue.is_own(log, offset, unit))
    }

    /// Returns the entry on disk at `offset`, or an entry of zeroes.
    fn unit(&mut self, offset: i64) -> Result<Unit> {
        let Some(queue) = &self.queue else { return Ok(Unit::default()) };
        let (first, units) = &mut self.window;
        if offset < *first || offset >= *first + (units.len() / UNIT_SIZE) as i64 {
            *units = UnitReader::new(queue).units(offset, WINDOW)?.to_vec();
            *first = offset;
        }
        let at = (offset - *first) as usize * UNIT_SIZE;
        Ok(units.get(at..).and_then(Unit::decode).unwrap_or_default())
    }
}

/// Returns whether a message had the queue offset of an entry. This is so if the entry points to a complete record,
/// to damage, or to a removed record.
fn was_assigned(log: &Arc<CommitLog>, unit: Unit) -> Result<bool> {
    let Ok(at) = u64::try_from(unit.physical_offset) else { return Ok(false) };
    if unit.end() <= log.min_offset() {
        return Ok(true);
    }
    if let Ok(record) = RecordReader::new(log).try_record(at)? {
        return Ok(Message::decode(&record).is_some_and(|message| message.layout().total.cast_signed() == unit.size));
    }
    // If the unit points into the middle of a record, the unit itself is damaged.
    let from = log_end::last_records(log, at.saturating_add(1), LOOK_BACK)?;
    let (mut walk, mut damage) =
        (LogWalk::new(log.clone(), from, at.saturating_add(1), 0).without_waiting(), DamageLog::default());
    while walk.advance(&mut damage)? {}
    Ok(damage.entries().iter().any(|damage| (damage.offset..damage.offset.saturating_add(damage.length)).contains(&at)))
}

/// Returns the queue offset behind the last entry that points to a record before `end`. Called for a queue to which
/// no entries were appended.
fn end_before(log: &CommitLog, queue: &ConsumeQueue, next: i64, end: u64) -> Result<i64> {
    let bound = queue.lower_bound(end, next)?;
    let last = UnitReader::new(queue).unit(bound - 1)?.filter(Unit::is_message);
    let Some(last) = last.filter(|last| last.end() > end) else { return Ok(bound) };
    // The record was cut in two. If the record is complete, only the size in the unit is damaged.
    let is_cut = RecordReader::new(log).try_record(last.physical_offset as u64)?.is_err();
    Ok(if is_cut { bound - 1 } else { bound })
}

/// Returns the topic of a message, or `None` if no queue can list the message. Topic, queue id and offset may be
/// invalid, since no checksum covers them.
fn topic_with_place<'a>(message: &Message<'a>) -> Option<&'a str> {
    let has_place = message.layout().is_dispatched() && message.queue_id() >= 0 && message.queue_offset() >= 0;
    std::str::from_utf8(message.topic()).ok().filter(|name| has_place && is_directory_name(name))
}
