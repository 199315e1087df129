//! The units of some queues that pass the tag hash, stretch by stretch of the log and in its order.
//!
//! Source: `DefaultMessageStore.getMessage`, `DefaultMessageFilter.isMatchedByConsumeQueue`.
use super::request::ScanRequest;
use crate::Result;
use crate::format::consume_queue::{PRE_BLANK_SIZE, UNIT_SIZE, Unit, is_ext_address, is_no_message};
use crate::format::cursor::{i32_at, i64_at};
use crate::store::commit_log::CommitLog;
use crate::store::consume_queue::{ConsumeQueue, UnitReader};
use crate::store::damage::{Damage, DamageLog};
use crate::store::unlisted::DELAY_TOPIC;
use std::sync::Arc;

/// Stretch of the log whose units are collected and sorted at a time.
const STRETCH: u64 = 64 << 20;
/// Units read at a time.
const UNITS: usize = 4096;

/// A unit that passed the hash filter.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Where its record should be.
    pub physical_offset: u64,
    /// Bytes that its record should have.
    pub size: u32,
    /// Index of its queue.
    pub queue: u32,
    pub queue_offset: i64,
}

/// Collects hits; [`next_stretch`](Self::next_stretch) until it says `false`.
#[derive(Debug)]
pub struct HitCollector {
    queues: Arc<Vec<ConsumeQueue>>,
    request: Arc<ScanRequest>,
    by_hash: bool,
    cursors: Vec<Cursor>,
    from: u64,
    end: u64,
    log_end: u64,
    position: u64,
    /// The least physical offset that waits for its stretch.
    waiting: u64,
}

/// How far a queue was read: all units from the first to the end belong to the walk, whatever they say.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: i64,
    end: i64,
    /// Units before the first of these lead to records that the log has lost already.
    is_live: bool,
}

impl HitCollector {
    /// Collects from the units of `queues` whose records start in `[from, end)` of the log.
    pub fn new(
        queues: Arc<Vec<ConsumeQueue>>,
        request: Arc<ScanRequest>,
        (from, end): (u64, u64),
        log: &CommitLog,
    ) -> Result<Self> {
        let from = from.max(log.min_offset());
        let cursors = queues.iter().map(|q| Cursor::of(q, &request, (from, end), log)).collect::<Result<_>>()?;
        // Units of the delay topic hold a time where others hold a tag hash (`ScheduleMessageService`).
        let by_hash = !request.tags.is_all() && request.topic.as_deref() != Some(DELAY_TOPIC);
        let log_end = log.segments().end();
        Ok(Self { queues, request, by_hash, cursors, from, end, log_end, position: from, waiting: u64::MAX })
    }

    /// Replaces `hits` with those of the next stretch, in the order of the log; `false` behind the last.
    pub fn next_stretch(&mut self, hits: &mut Vec<Hit>, damage: &mut DamageLog) -> Result<bool> {
        hits.clear();
        if self.position >= self.end || self.cursors.iter().all(|c| c.next >= c.end) {
            return Ok(false);
        }
        self.waiting = u64::MAX;
        let end = self.end.min(self.position.saturating_add(STRETCH));
        let queues = self.queues.clone();
        for (index, queue) in queues.iter().enumerate() {
            self.collect(index, &mut UnitReader::new(queue), end, hits, damage)?;
        }
        // each queue is in the order of the log, but not all of them together
        hits.sort_unstable_by_key(|hit| hit.physical_offset);
        // A stretch without units is passed at once: a damaged name of a file may make the log seem endless.
        self.position = if hits.is_empty() { end.max(self.waiting) } else { end };
        Ok(true)
    }

    /// Collects the hits of one queue up to `end` of the log.
    fn collect(
        &mut self,
        index: usize,
        reader: &mut UnitReader<'_>,
        end: u64,
        hits: &mut Vec<Hit>,
        damage: &mut DamageLog,
    ) -> Result<()> {
        while self.cursors[index].next < self.cursors[index].end {
            let Cursor { next, end: last, .. } = self.cursors[index];
            let units = reader.units(next, UNITS.min((last - next) as usize))?;
            let read = units.len() / UNIT_SIZE;
            if read == 0 {
                let after = next_file(&self.queues[index], next).min(last);
                let reason = format!("queue offset {next}: expected a file of the consume queue, got none");
                damage.push(unit_damage(&self.queues[index], next, after - next, reason));
                self.cursors[index].next = after;
                continue;
            }
            let within = self.units_below(units, end);
            let units = &units[..within * UNIT_SIZE];
            let range = (self.from, self.end, self.log_end);
            let mut is_live = self.cursors[index].is_live;
            let mut take = |n: usize, unit: Unit| {
                // `pick` leaves units out: the one before this, whatever its tag, may be the first live one
                is_live |= n > 0 && leads_to(units, n - 1, range.0);
                let place = Place { queue: &self.queues[index], index, queue_offset: next + n as i64 };
                is_live |= take_unit(range, is_live, &place, unit, hits, damage);
            };
            match self.request.tags.codes() {
                _ if !self.by_hash => pick(units, |_| true, &mut take),
                [code] => pick(units, |tags| tags == i64::from(*code) || is_ext_address(tags), &mut take),
                _ => pick(units, |tags| is_ext_address(tags) || self.request.tags.codes_match(tags), &mut take),
            }
            let is_live = is_live || (within > 0 && leads_to(units, within - 1, self.from));
            self.cursors[index] = Cursor { next: next + within as i64, end: last, is_live };
            if within < read {
                return Ok(());
            }
        }
        Ok(())
    }

    /// How many of the units come before the first whose record lies behind this stretch: those of a queue are in the order
    /// of the log, so a bisection tells. A unit that says nonsense counts as before, to be looked at.
    fn units_below(&mut self, units: &[u8], end: u64) -> usize {
        let (units, _) = units.as_chunks::<UNIT_SIZE>();
        let physical_offset = |bytes: &[u8; UNIT_SIZE]| i64_at(bytes, 0).unwrap_or(0) as u64;
        let size = |bytes: &[u8; UNIT_SIZE]| i32_at(bytes, 8).unwrap_or(0);
        let is_blank = |bytes: &&[u8; UNIT_SIZE]| is_no_message(size(bytes), i64_at(*bytes, 12).unwrap_or(0));
        let is_below = |bytes: &[u8; UNIT_SIZE]| {
            let offset = physical_offset(bytes);
            offset < end || offset >= self.end || size(bytes) <= 0
        };
        let (mut below, mut behind) = (0, units.len());
        while below < behind {
            let middle = usize::midpoint(below, behind);
            // blank units stand where the next message stands
            let blanks = units[middle..behind].iter().take_while(is_blank).count();
            match units[middle + blanks..behind].first() {
                Some(bytes) if is_below(bytes) => below = middle + blanks + 1,
                _ => behind = middle,
            }
        }
        // nothing waits for those at the end
        let blanks = units[below..].iter().take_while(is_blank).count();
        let below = below + blanks;
        if let Some(first) = units.get(below) {
            self.waiting = self.waiting.min(physical_offset(first));
        }
        below
    }
}

/// Where a unit stands.
struct Place<'a> {
    queue: &'a ConsumeQueue,
    index: usize,
    queue_offset: i64,
}

/// Makes a hit or a damage of a unit; tells whether the queue has reached records that the log still holds.
fn take_unit(
    (from, end, log_end): (u64, u64, u64),
    is_live: bool,
    place: &Place<'_>,
    unit: Unit,
    hits: &mut Vec<Hit>,
    damage: &mut DamageLog,
) -> bool {
    let (physical_offset, queue_offset) = (unit.physical_offset as u64, place.queue_offset);
    let expected = if !unit.is_message() || physical_offset.saturating_add(unit.size as u64) > log_end {
        // Pre-blank units come before all others.
        if unit.is_left_out() || (unit == Unit::PRE_BLANK && !is_live) {
            return is_live;
        }
        format!("a record below {log_end}")
    } else if physical_offset >= end || (physical_offset < from && is_live) {
        format!("a record from {from} to {end}")
    } else {
        let expired = physical_offset < from;
        if !expired {
            hits.push(Hit { physical_offset, size: unit.size as u32, queue: place.index as u32, queue_offset });
        }
        return !expired;
    };
    let reason = format!("queue offset {queue_offset}: expected {expected}, got {unit:?}");
    damage.push(unit_damage(place.queue, queue_offset, 1, reason));
    is_live
}

/// Whether the unit at position `n` leads to a record from `from` on.
fn leads_to(units: &[u8], n: usize, from: u64) -> bool {
    let unit = units.get(n * UNIT_SIZE..).and_then(Unit::decode);
    unit.is_some_and(|unit| unit.is_message() && unit.physical_offset as u64 >= from)
}

/// Gives the units whose tags code is wanted, and those that list nothing, to `take`. The hot loop of a tag scan.
#[inline]
fn pick(units: &[u8], is_match: impl Fn(i64) -> bool, take: &mut impl FnMut(usize, Unit)) {
    let (units, _) = units.as_chunks::<UNIT_SIZE>();
    for (n, bytes) in units.iter().enumerate() {
        let (tags_code, size) = (i64_at(bytes, 12).unwrap_or(0), i32_at(bytes, 8).unwrap_or(0));
        if (is_match(tags_code) || size <= 0 || size == PRE_BLANK_SIZE)
            && let Some(unit) = Unit::decode(bytes)
        {
            take(n, unit);
        }
    }
}

impl Cursor {
    /// The units of a range of the log. At both ends of the log no bisection is trusted: units that were damaged mislead it.
    fn of(queue: &ConsumeQueue, request: &ScanRequest, (from, end): (u64, u64), log: &CommitLog) -> Result<Self> {
        let max = queue.max_offset()?;
        let first = if from > log.min_offset() { queue.lower_bound(from, max)? } else { queue.first_offset() };
        let reaches_on = end < log.segments().end() && queue.max_physical_offset()? > end;
        let last = if reaches_on { queue.lower_bound(end, max)? } else { max };
        let (next, last) = request.within_bounds(queue.queue_id(), (first, last));
        Ok(Self { next, end: last, is_live: from > log.min_offset() })
    }
}

/// Queue offset of the first unit in a file behind `offset`.
fn next_file(queue: &ConsumeQueue, offset: i64) -> i64 {
    let firsts = queue.segments().files().iter().map(|file| file.base.div_ceil(UNIT_SIZE as u64) as i64);
    firsts.filter(|first| *first > offset).min().unwrap_or(i64::MAX)
}

fn unit_damage(queue: &ConsumeQueue, queue_offset: i64, units: i64, reason: String) -> Damage {
    let unit = UNIT_SIZE as u64;
    let (offset, length, segments) = (queue_offset as u64 * unit, units as u64 * unit, queue.segments());
    let file = segments.find(offset).map_or(queue.directory(), |i| &segments.files()[i].path).to_path_buf();
    Damage { offset, length, reason, file }
}
