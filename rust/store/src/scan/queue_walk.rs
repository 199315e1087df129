//! Reads the messages of some queues in the order of the log.
//!
//! For each stretch of the log the units of all queues are collected by tag hash and sorted by physical offset. Then their records are
//! read; neighbours share one read. A record that does not match its unit is damage.
//!
//! Source: `DefaultMessageStore.getMessage`, `DefaultMessageFilter.isMatchedByConsumeQueue`.
use super::request::ScanRequest;
use crate::file::mmap;
use crate::file::{Part, Reads, Segment};
use crate::format::consume_queue::{PRE_BLANK_SIZE, UNIT_SIZE, Unit, is_ext_address, is_no_message};
use crate::format::cursor::{i32_at, i64_at};
use crate::format::message::{Item, Layout, Message};
use crate::store::commit_log::{CommitLog, Damage, DamageLog, FIRST_READ, NO_FILE, find_fault, listed_there};
use crate::store::consume_queue::{ConsumeQueue, LMQ, UnitReader};
use crate::store::delay::DELAY_TOPIC;
use crate::store::log_walk::{BLOCK_LEN, Block, RecordAt};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the log in one step. The consume-queue entries of a step are collected and sorted together.
const STRETCH: u64 = 64 << 20;
const UNITS: usize = 4096;
/// Number of entries that are read to tell what a walk will read.
const FEW_UNITS: u64 = 16 << 10;

/// A consume-queue entry that passed the filter by tag hash. Its record may be missing or not match, which is checked
/// later.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Offset of the record according to the entry.
    pub physical_offset: u64,
    /// Size of the record according to the entry.
    pub size: u32,
    /// Index of the queue in `HitCollector::queues`.
    pub queue: u32,
    pub queue_offset: i64,
}

/// Collects the hits of a scan, for one part of the log per call. Call [`next_stretch`](Self::next_stretch) until it
/// returns `false`.
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
    /// Smallest physical offset of an entry behind the current step.
    next_offset: u64,
}

/// The position in a queue. All entries from `next` to `end` are examined, since a damaged entry may point to any
/// place.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: i64,
    end: i64,
    /// Whether an earlier entry has pointed to a record that exists. Entries before that point to records that
    /// retention has removed.
    is_live: bool,
}

impl HitCollector {
    /// Creates a collector of entries whose records start in `[from, end)` of the log.
    pub fn new(
        queues: Arc<Vec<ConsumeQueue>>,
        request: Arc<ScanRequest>,
        (from, end): (u64, u64),
        log: &CommitLog,
    ) -> Result<Self> {
        let from = from.max(log.min_offset());
        let cursors = queues.iter().map(|q| Cursor::of(q, &request, (from, end), log)).collect::<Result<_>>()?;
        // Units of the delay topic hold the time of delivery in place of a tag hash (`ScheduleMessageService`).
        let by_hash = !request.tags.is_all() && request.topic.as_deref() != Some(DELAY_TOPIC);
        let log_end = log.segments().end();
        Ok(Self { queues, request, by_hash, cursors, from, end, log_end, position: from, next_offset: u64::MAX })
    }

    /// Returns the number of entries that the collector will examine.
    fn units(&self) -> u64 {
        self.cursors.iter().map(Cursor::units).fold(0, u64::saturating_add)
    }

    /// Returns the most steps that the collector will take.
    fn most_stretches(&self) -> u64 {
        // A step without a hit leads to the next entry, so of two steps one takes an entry.
        let by_units = self.units().saturating_mul(2).saturating_add(1);
        self.end.saturating_sub(self.position).div_ceil(STRETCH).min(by_units)
    }

    /// Returns the most that the collector will read of the queues.
    fn most_reads(&self) -> Reads {
        let (size, block, stretches) = (UNIT_SIZE as u64, UNITS as u64, self.most_stretches());
        let of_queue = |(queue, cursor): (&ConsumeQueue, &Cursor)| {
            let units = cursor.units();
            // Entries that belong to the next step are read again there. The last step takes all.
            let again = if units == 0 { 0 } else { stretches.saturating_sub(1) };
            // A read ends with its file, where a second system call finds nothing.
            let in_files = 2 * queue.segments().files().len() as u64;
            let ranges = units.div_ceil(block).saturating_add(again).saturating_add(in_files);
            let bytes = units.saturating_add(again.saturating_mul(units.min(block))).saturating_mul(size);
            Reads { ranges: if units == 0 { 0 } else { ranges }, bytes }
        };
        self.queues.iter().zip(&self.cursors).map(of_queue).sum()
    }

    /// Replaces `hits` with the hits of the next step, in the order of the log. Returns `false` after the last step.
    pub fn next_stretch(&mut self, hits: &mut Vec<Hit>, damage: &mut DamageLog) -> Result<bool> {
        hits.clear();
        if self.position >= self.end || self.cursors.iter().all(|c| c.next >= c.end) {
            return Ok(false);
        }
        self.next_offset = u64::MAX;
        let end = self.end.min(self.position.saturating_add(STRETCH));
        let queues = self.queues.clone();
        for (index, queue) in queues.iter().enumerate() {
            self.collect(index, &mut UnitReader::new(queue), end, hits, damage)?;
        }
        // Each queue is in the order of the log, but the queues together are not.
        hits.sort_unstable_by_key(|hit| hit.physical_offset);
        // Skip stretches without units at once, since a damaged file name may make the log seem endless.
        self.position = if hits.is_empty() { end.max(self.next_offset) } else { end };
        Ok(true)
    }

    /// Collects the hits of one queue whose records are before offset `end` of the log.
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
                // A file of the queue is missing. Report its units and continue with the next file.
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
                // `pick` skips units with other tags, so the unit before this one may be the first live one.
                is_live |= n > 0 && points_behind(units, n - 1, range.0);
                let place = Place { queue: &self.queues[index], index, queue_offset: next + n as i64 };
                is_live |= take_unit(range, is_live, &place, unit, hits, damage);
            };
            // A separate loop for each kind of filter, so that the compiler optimizes each hot loop.
            match self.request.tags.codes() {
                _ if !self.by_hash => pick(units, |_| true, &mut take),
                [code] => pick(units, |tags| tags == i64::from(*code) || is_ext_address(tags), &mut take),
                _ => pick(units, |tags| is_ext_address(tags) || self.request.tags.codes_match(tags), &mut take),
            }
            let is_live = is_live || (within > 0 && points_behind(units, within - 1, self.from));
            self.cursors[index] = Cursor { next: next + within as i64, end: last, is_live };
            // The next unit belongs to a later stretch.
            if within < read {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the number of entries before the first entry whose record is behind this step. Bisects, since a queue is
    /// in the order of the log. Invalid entries are also counted, so that they are examined and reported.
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
            // Blank units have no offset of their own, so the next unit with a message decides.
            let blanks = units[middle..behind].iter().take_while(is_blank).count();
            match units[middle + blanks..behind].first() {
                Some(bytes) if is_below(bytes) => below = middle + blanks + 1,
                _ => behind = middle,
            }
        }
        // Blank units behind the last message of the stretch are consumed with it.
        let blanks = units[below..].iter().take_while(is_blank).count();
        let below = below + blanks;
        if let Some(first) = units.get(below) {
            self.next_offset = self.next_offset.min(physical_offset(first));
        }
        below
    }
}

struct Place<'a> {
    queue: &'a ConsumeQueue,
    index: usize,
    queue_offset: i64,
}

/// Appends a consume-queue entry to the hits or to the damage. Returns whether this or an earlier entry points to a
/// record that still exists.
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
        // Pre-blank units are valid only before all others.
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

/// Returns whether consume-queue entry `n` points to a record at or behind `from`.
fn points_behind(units: &[u8], n: usize, from: u64) -> bool {
    let unit = units.get(n * UNIT_SIZE..).and_then(Unit::decode);
    unit.is_some_and(|unit| unit.is_message() && unit.physical_offset as u64 >= from)
}

/// Calls `take` for each entry with a matching tag hash, and for each entry without a message. This is the hot loop
/// of a scan by tag.
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
    fn units(&self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.next)).unwrap_or(0)
    }

    /// Creates the cursor for the entries of a range of the log. If the range begins or ends where the log does, takes
    /// all entries on that side, since damaged entries could mislead a bisection.
    fn of(queue: &ConsumeQueue, request: &ScanRequest, (from, end): (u64, u64), log: &CommitLog) -> Result<Self> {
        let max = queue.max_offset()?;
        let first = if from > log.min_offset() { queue.lower_bound(from, max)? } else { queue.first_offset() };
        let reaches_on = end < log.segments().end() && queue.max_physical_offset()? > end;
        let last = if reaches_on { queue.lower_bound(end, max)? } else { max };
        let (next, last) = request.within_bounds(queue.queue_id(), (first, last));
        // A range behind the beginning of the log begins behind all units of removed records.
        Ok(Self { next, end: last, is_live: from > log.min_offset() })
    }
}

/// Returns the queue offset of the first consume-queue entry in the next file behind `offset`; `i64::MAX` if there is
/// no file.
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

/// Number of hits by which prefetching is ahead of reading, in a mapped file.
const AHEAD: usize = 16;

/// Neighbouring hits whose records are read as one range.
#[derive(Clone, Debug)]
struct Run {
    /// Indexes in `QueueWalk::hits`.
    hits: Range<usize>,
    /// Offset of the first record.
    from: u64,
    /// Length of the range; fewer bytes if the file has been truncated.
    len: usize,
    /// Position of the first byte in the block.
    start: usize,
}

/// Reads the records of hits. Call [`advance`](Self::advance), then [`block`](Self::block).
#[derive(Debug)]
pub struct QueueWalk {
    log: Arc<CommitLog>,
    queues: Arc<Vec<ConsumeQueue>>,
    collector: HitCollector,
    verify_crc: bool,
    hits: Vec<Hit>,
    next_hit: usize,
    runs: Vec<Run>,
    segment: Option<(usize, Segment)>,
    bytes: Vec<u8>,
    /// Whether the records are in the map of the file, not in `bytes`.
    is_in_map: bool,
    records: Vec<RecordAt>,
    block_len: usize,
}

impl QueueWalk {
    pub fn new(
        log: Arc<CommitLog>,
        queues: Arc<Vec<ConsumeQueue>>,
        request: Arc<ScanRequest>,
        range: (u64, u64),
        verify_crc: bool,
    ) -> Result<Self> {
        let collector = HitCollector::new(queues.clone(), request, range, &log)?;
        Ok(Self {
            log,
            queues,
            collector,
            verify_crc,
            hits: Vec::new(),
            next_hit: 0,
            runs: Vec::new(),
            segment: None,
            bytes: Vec::new(),
            is_in_map: false,
            records: Vec::new(),
            block_len: BLOCK_LEN,
        })
    }

    /// Sets the approximate number of record bytes that a block contains.
    #[must_use]
    pub fn with_block_len(mut self, bytes: usize) -> Self {
        self.block_len = bytes;
        self
    }

    /// Returns the most that the walk will read of the queues and of the log, if both are sound. If there are few
    /// entries, takes them all to tell which records they lead to. Then only the [counter](ConsumeQueue::with_counter) of
    /// the queues counts these reads.
    pub fn most_reads(mut self) -> Result<(Reads, Reads)> {
        if self.collector.units() <= FEW_UNITS {
            return Ok((Reads::default(), self.reads_of_hits()?));
        }
        Ok((self.collector.most_reads(), self.most_log_reads()?))
    }

    fn reads_of_hits(&mut self) -> Result<Reads> {
        let (mut damage, mut reads, mut runs) = (DamageLog::default(), Reads::default(), Vec::new());
        while self.collector.next_stretch(&mut self.hits, &mut damage)? {
            self.next_hit = 0;
            while let Some(first) = self.hits.get(self.next_hit).copied() {
                let base = self.open_segment(first.physical_offset)?;
                let (Some(_), Some((index, segment))) = (base, &self.segment) else {
                    self.next_hit += 1;
                    continue;
                };
                self.find_runs(segment, self.log.segments().files()[*index].end(), &mut runs);
                let head = if first.size as usize > BLOCK_LEN { FIRST_READ } else { 0 };
                let bytes = runs.iter().map(|run| run.len as u64).sum::<u64>() + head as u64;
                let ranges = runs.len() as u64 + u64::from(head > 0);
                reads = reads + Reads { ranges, bytes }.of_map(segment.map().is_some());
                self.next_hit = runs.last().map_or(self.next_hit + 1, |run| run.hits.end);
            }
        }
        Ok(reads)
    }

    /// Returns a bound for the log that does not depend on the entries.
    fn most_log_reads(&self) -> Result<Reads> {
        let (units, stretches) = (self.collector.units(), self.collector.most_stretches());
        let mut log = Reads::default();
        for (index, file) in self.log.segments().files().iter().enumerate() {
            let len = self.collector.end.min(file.end()).saturating_sub(self.collector.from.max(file.base));
            if len == 0 || units == 0 {
                continue;
            }
            let segment = match self.log.open(index) {
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => continue,
                opened => opened?,
            };
            let (gap, block) = (segment.gap().max(1), segment.block_len(self.block_len) as u64);
            // Ranges are more than a gap apart, or would together be longer than a block, or end a block or a step.
            let apart = (len / gap).saturating_add(4 * (len / block)).saturating_add(stretches).saturating_add(4);
            // The head of a long record is read first.
            let heads = units.min(len / BLOCK_LEN as u64);
            let bytes = len.saturating_add(heads.saturating_mul(FIRST_READ as u64));
            log = log + Reads { ranges: units.min(apart).saturating_add(heads), bytes }.of_map(segment.map().is_some());
        }
        Ok(log)
    }

    /// Reads the next block, which may be empty. Returns `false` at the end. A removed file, or a symbolic link without
    /// a target, is added to `damage` and is no error.
    pub fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.records.clear();
        self.bytes.clear();
        self.is_in_map = false;
        if self.next_hit == self.hits.len() {
            self.next_hit = 0;
            if !self.collector.next_stretch(&mut self.hits, damage)? {
                return Ok(false);
            }
        }
        self.fetch(damage)?;
        Ok(true)
    }

    pub fn block(&self) -> Block<'_> {
        let mapped = self.segment.as_ref().filter(|_| self.is_in_map).and_then(|(_, s)| s.map());
        Block { bytes: mapped.unwrap_or(&self.bytes), records: &self.records }
    }

    /// Fails if the block could not be read completely, so that what was read is wrong.
    pub fn check_block(&self) -> Result<()> {
        match &self.segment {
            Some((_, segment)) if self.is_in_map && segment.is_map_lost() => Err(segment.lost()),
            _ => Ok(()),
        }
    }

    /// Reads the records of the next hits in the same file, up to the length of a block.
    fn fetch(&mut self, damage: &mut DamageLog) -> Result<()> {
        let Some(first) = self.hits.get(self.next_hit).copied() else { return Ok(()) };
        let Some(base) = self.open_segment(first.physical_offset)? else {
            // The file is missing. Report this record and continue with the next hit.
            let file = self.log.segments().find(first.physical_offset);
            let reason = file.map_or_else(|| NO_FILE.to_owned(), |index| self.log.reason_of_absence(index));
            damage.push(self.damage(first, u64::from(first.size), &reason));
            self.next_hit += 1;
            return Ok(());
        };
        let Some((index, segment)) = &self.segment else { return Ok(()) };
        if let Some(reason) = too_long(segment, first, base)? {
            damage.push(self.damage(first, u64::from(first.size), &reason));
            self.next_hit += 1;
            return Ok(());
        }
        let file_end = self.log.segments().files()[*index].end();
        let mut runs = std::mem::take(&mut self.runs);
        self.find_runs(segment, file_end, &mut runs);
        self.read_runs(base, &mut runs)?;
        let map = self.segment.as_ref().filter(|_| self.is_in_map).and_then(|(_, segment)| segment.map());
        let bytes = map.unwrap_or(&self.bytes);
        let mut faults = Vec::new();
        for run in &runs {
            if map.is_some() {
                // Hits are far apart, so the processor cannot prefetch them by itself.
                prefetch(bytes, base, self.hits.get(run.hits.start + AHEAD));
            }
            // The bytes of the next run do not follow those of this run.
            let end = if map.is_some() { bytes.len() } else { run.start + run.len };
            for hit in &self.hits[run.hits.clone()] {
                let at = run.start + (hit.physical_offset - run.from) as usize;
                match self.check(hit, bytes.get(at..end).unwrap_or_default()) {
                    Ok(layout) => self.records.push(RecordAt { at: at as u32, layout }),
                    Err(reason) => faults.push(self.damage(*hit, u64::from(hit.size), &reason)),
                }
            }
        }
        // Bytes that could not be read look like damage.
        self.check_block()?;
        damage.extend(faults);
        self.next_hit = runs.last().map_or(self.next_hit, |run| run.hits.end);
        self.runs = runs;
        Ok(())
    }

    /// Reads the runs in one request, one behind the other. A mapped record is used in place. Sets where the bytes of each
    /// run are.
    fn read_runs(&mut self, base: u64, runs: &mut [Run]) -> Result<()> {
        let Some((_, segment)) = &mut self.segment else { return Ok(()) };
        self.is_in_map = segment.sound_map().is_some();
        if self.is_in_map {
            runs.iter_mut().for_each(|run| run.start = (run.from - base) as usize);
            return Ok(());
        }
        self.bytes.resize(runs.iter().map(|run| run.len).sum(), 0);
        let mut rest = self.bytes.as_mut_slice();
        let mut parts = Vec::with_capacity(runs.len());
        for run in &*runs {
            let (buffer, behind) = rest.split_at_mut(run.len);
            parts.push(Part::new(run.from - base, buffer));
            rest = behind;
        }
        segment.read_ranges(&mut parts)?;
        let mut start = 0;
        for (run, part) in runs.iter_mut().zip(parts) {
            let len = std::mem::replace(&mut run.len, part.count);
            run.start = start;
            start += len;
        }
        Ok(())
    }

    /// Finds the next runs of hits in a file, up to the length of a block.
    fn find_runs(&self, segment: &Segment, file_end: u64, runs: &mut Vec<Run>) {
        runs.clear();
        let (mut next, mut len) = (self.next_hit, 0);
        let (block_len, gap) = (segment.block_len(self.block_len), segment.gap());
        while len < block_len {
            let count = run_length(&self.hits[next..], file_end, (gap, block_len as u64));
            let hits = next..next + count;
            let Some(first) = self.hits[hits.clone()].first() else { break };
            // The head of a very long record is looked at first, by a call of its own.
            if !runs.is_empty() && first.size as usize > BLOCK_LEN {
                break;
            }
            let from = first.physical_offset;
            // Not the end of the last hit: a damaged unit may point into the middle of the record before it.
            let ends = self.hits[hits.clone()].iter().map(|hit| hit.physical_offset + u64::from(hit.size));
            let to = ends.max().unwrap_or(from).min(file_end);
            len += (to - from) as usize;
            next = hits.end;
            runs.push(Run { hits, from, len: (to - from) as usize, start: 0 });
        }
    }

    fn open_segment(&mut self, offset: u64) -> Result<Option<u64>> {
        let Some(index) = self.log.segments().find(offset) else { return Ok(None) };
        let base = self.log.segments().files()[index].base;
        // Keep the file open, since the next hits are usually in the same file.
        if self.segment.as_ref().is_none_or(|(open, _)| *open != index) {
            self.segment = match self.log.open_for_scan(index) {
                Ok(segment) => Some((index, segment)),
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        Ok(Some(base))
    }

    fn damage(&self, hit: Hit, length: u64, reason: &str) -> Damage {
        let queue = &self.queues[hit.queue as usize];
        let reason = listed_there(reason, queue.topic(), queue.queue_id(), hit.queue_offset);
        self.log.damage(hit.physical_offset, length, reason)
    }

    /// Checks that `bytes` begin with the record that the consume-queue entry describes. Returns the record's layout,
    /// or the reason why it is not that record.
    fn check(&self, hit: &Hit, bytes: &[u8]) -> Result<Layout, String> {
        let layout = match Layout::decode(bytes) {
            Ok(Item::Message(layout)) => layout,
            Ok(other) => return Err(format!("expected the record of a consume-queue unit, got {other:?}")),
            Err(malformed) => return Err(malformed.to_string()),
        };
        if let Some(reason) = find_fault(bytes, layout, hit.physical_offset, self.verify_crc) {
            return Err(reason);
        }
        let queue = &self.queues[hit.queue as usize];
        let (Some(message), size) = (Message::new(bytes, layout), layout.total) else { return Err(String::new()) };
        let expected = (queue.topic().as_bytes(), queue.queue_id(), hit.queue_offset, hit.size);
        let got = (message.topic(), message.queue_id(), message.queue_offset(), size);
        // Multi-dispatch queues (LMQ) list records of other topics, and have offsets of their own.
        if expected == got || (queue.topic().starts_with(LMQ) && hit.size == size) {
            return Ok(layout);
        }
        Err(format!("expected topic, queue, offset, size {}, got {}", describe(expected), describe(got)))
    }
}

/// Returns the number of first hits that share a range. They are at most `gap` bytes apart, in the same file, and together
/// not longer than a block. At least 1 if the first hit is in the file, else 0.
fn run_length(hits: &[Hit], file_end: u64, (gap, block_len): (u64, u64)) -> usize {
    let Some(first) = hits.first().filter(|hit| hit.physical_offset < file_end) else { return 0 };
    let mut end = first.physical_offset;
    let near = |hit: &&Hit| {
        let close = hit.physical_offset <= end.saturating_add(gap) && hit.physical_offset < file_end;
        end = end.max(hit.physical_offset + u64::from(hit.size));
        // The first hit is always read, otherwise the walk would never advance.
        let is_first = hit.queue == first.queue && hit.queue_offset == first.queue_offset;
        let fits = hit.physical_offset - first.physical_offset + u64::from(hit.size) <= block_len;
        is_first || (close && fits)
    };
    hits.iter().take_while(near).count().max(1)
}

/// Checks a record that is larger than a block, according to its consume-queue entry. Returns the reason not to read
/// the record, or `None` if the record itself has the same size.
fn too_long(segment: &Segment, hit: Hit, base: u64) -> Result<Option<String>> {
    // A damaged unit may claim 2 GiB, so the record's head must have the same size before all of it is read.
    if hit.size as usize <= BLOCK_LEN {
        return Ok(None);
    }
    let mut head = Vec::new();
    segment.read_into(hit.physical_offset - base, FIRST_READ, &mut head)?;
    Ok(match Layout::decode(&head) {
        Ok(Item::Partial(needed)) if needed == hit.size as usize => None,
        Ok(other) => {
            Some(format!("expected a record of {} bytes as its consume-queue unit says, got {other:?}", hit.size))
        }
        Err(malformed) => Some(malformed.to_string()),
    })
}

fn prefetch(bytes: &[u8], base: u64, hit: Option<&Hit>) {
    if let Some(hit) = hit {
        let at = hit.physical_offset.saturating_sub(base) as usize;
        mmap::prefetch_range(bytes, at..at + hit.size as usize);
    }
}

fn describe((topic, queue_id, offset, size): (&[u8], i32, i64, u32)) -> String {
    format!("{} {queue_id} {offset} {size}", String::from_utf8_lossy(topic))
}
