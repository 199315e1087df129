//! A walk over the messages of some queues in the order of the log: units first, by tag hash, then their records.
//!
//! Units of a stretch of the log are collected from all queues, sorted by physical offset, and their records fetched:
//! neighbours with one read. Each record must be what its unit says, or it becomes damage.
//!
//! Source: `DefaultMessageStore.getMessage`, `DefaultMessageFilter.isMatchedByConsumeQueue`.
use super::request::{OffsetBound, ScanRequest};
use crate::Result;
use crate::file::{Segment, mmap};
use crate::format::consume_queue::{PRE_BLANK_SIZE, UNIT_SIZE, Unit};
use crate::format::cursor::{i32_at, i64_at};
use crate::format::message::{Item, Layout, Message};
use crate::store::commit_log::{CommitLog, sound};
use crate::store::consume_queue::{ConsumeQueue, UnitReader};
use crate::store::damage::{Damage, DamageLog};
use crate::store::log_walk::{Block, RecordAt};
use std::sync::Arc;

/// Stretch of the log whose units are collected and sorted at a time.
const STRETCH: u64 = 64 << 20;
/// Units read at a time.
const UNITS: usize = 4096;
/// Bytes of records fetched at a time.
const BLOCK_LEN: usize = 256 << 10;
/// Records no further apart than this are fetched with one read.
const NEAR: u64 = 4 << 10;
/// Hits ahead that a mapped file is prefetched for.
const AHEAD: usize = 16;
/// Delay-topic units hold a time where others hold a tag hash (`ScheduleMessageService`).
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

/// A unit that passed the hash filter.
#[derive(Clone, Copy, Debug)]
struct Hit {
    physical_offset: u64,
    size: u32,
    queue: u32,
    queue_offset: i64,
}

/// How far a queue was read.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: i64,
    end: i64,
}

/// The walk; [`advance`](Self::advance) then [`block`](Self::block).
#[derive(Debug)]
pub struct QueueWalk {
    log: Arc<CommitLog>,
    queues: Arc<Vec<ConsumeQueue>>,
    request: Arc<ScanRequest>,
    by_hash: bool,
    verify_crc: bool,
    cursors: Vec<Cursor>,
    position: u64,
    end: u64,
    hits: Vec<Hit>,
    next_hit: usize,
    segment: Option<(usize, Segment)>,
    bytes: Vec<u8>,
    records: Vec<RecordAt>,
}

impl QueueWalk {
    /// Walks the messages of `queues` whose records start in `[from, end)` of the log.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn new(
        log: Arc<CommitLog>,
        queues: Arc<Vec<ConsumeQueue>>,
        request: Arc<ScanRequest>,
        (from, end): (u64, u64),
        verify_crc: bool,
    ) -> Result<Self> {
        let from = from.max(log.min_offset());
        let cursors = queues.iter().map(|q| Cursor::of(q, &request, from)).collect::<Result<_>>()?;
        let by_hash = !request.tags.is_all() && request.topic.as_deref() != Some(SCHEDULE_TOPIC);
        Ok(Self {
            log,
            queues,
            by_hash,
            verify_crc,
            request,
            cursors,
            position: from,
            end,
            hits: Vec::new(),
            next_hit: 0,
            segment: None,
            bytes: Vec::new(),
            records: Vec::new(),
        })
    }

    /// Fetches the next records; a block may be empty. `false` at the end.
    ///
    /// # Errors
    /// [`crate::Error::Io`], other than for a file that was removed meanwhile: that is damage.
    pub fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.records.clear();
        self.bytes.clear();
        if self.next_hit == self.hits.len() {
            if self.position >= self.end || self.cursors.iter().all(|c| c.next >= c.end) {
                return Ok(false);
            }
            self.collect(damage)?;
        }
        self.fetch(damage)?;
        Ok(true)
    }

    /// What [`advance`](Self::advance) fetched.
    pub fn block(&self) -> Block<'_> {
        let mapped = self.segment.as_ref().and_then(|(_, s)| s.mapped());
        Block { bytes: mapped.unwrap_or(&self.bytes), records: &self.records }
    }

    /// Collects the hits of the next stretch.
    fn collect(&mut self, damage: &mut DamageLog) -> Result<()> {
        self.hits.clear();
        self.next_hit = 0;
        let end = self.end.min(self.position.saturating_add(STRETCH));
        let queues = self.queues.clone();
        for (index, queue) in queues.iter().enumerate() {
            self.collect_queue(index, &mut UnitReader::new(queue), end, damage)?;
        }
        self.hits.sort_unstable_by_key(|hit| hit.physical_offset);
        self.position = end;
        Ok(())
    }

    fn collect_queue(
        &mut self,
        index: usize,
        reader: &mut UnitReader<'_>,
        end: u64,
        damage: &mut DamageLog,
    ) -> Result<()> {
        let log_end = self.log.segments().end();
        while self.cursors[index].next < self.cursors[index].end {
            let Cursor { next, end: last } = self.cursors[index];
            let units = reader.units(next, UNITS.min((last - next) as usize))?;
            let read = units.len() / UNIT_SIZE;
            if read == 0 {
                let reason = format!("queue offset {next}: expected a file of the consume queue, got none");
                damage.push(unit_damage(&self.queues[index], next, last - next, reason));
                self.cursors[index].next = last;
                return Ok(());
            }
            let within = end_of_stretch(units, end);
            let units = &units[..within * UNIT_SIZE];
            let (hits, queue) = (&mut self.hits, index as u32);
            let mut odd = Vec::new();
            let mut take = |n: usize, unit: Unit| {
                let (physical_offset, queue_offset) = (unit.physical_offset as u64, next + n as i64);
                if unit.is_message() && physical_offset.saturating_add(unit.size as u64) <= log_end {
                    hits.push(Hit { physical_offset, size: unit.size as u32, queue, queue_offset });
                } else if unit != Unit::PRE_BLANK {
                    odd.push((queue_offset, unit));
                }
            };
            match self.request.tags.codes() {
                _ if !self.by_hash => pick(units, |_| true, &mut take),
                [code] => pick(units, |tags| tags == i64::from(*code) || is_ext_address(tags), &mut take),
                _ => pick(units, |tags| is_ext_address(tags) || self.request.tags.codes_match(tags), &mut take),
            }
            for (queue_offset, unit) in odd {
                let reason = format!("queue offset {queue_offset}: expected a record below {log_end}, got {unit:?}");
                damage.push(unit_damage(&self.queues[index], queue_offset, 1, reason));
            }
            self.cursors[index].next = next + within as i64;
            if within < read {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Fetches the records of the next hits that lie in one file, up to a block.
    fn fetch(&mut self, damage: &mut DamageLog) -> Result<()> {
        let Some(first) = self.hits.get(self.next_hit).copied() else { return Ok(()) };
        let Some(base) = self.open_segment(first.physical_offset)? else {
            let reason = "expected a file of the commit log, got none";
            damage.push(self.log.damage(first.physical_offset, u64::from(first.size), reason));
            self.next_hit += 1;
            return Ok(());
        };
        let Some((index, segment)) = &self.segment else { return Ok(()) };
        let file_end = self.log.segments().files()[*index].end();
        let mut fetched = 0;
        while fetched < BLOCK_LEN && self.next_hit < self.hits.len() {
            let run = self.run_length(file_end);
            if run == 0 {
                break;
            }
            let hits = &self.hits[self.next_hit..self.next_hit + run];
            let (from, to) = (hits[0].physical_offset, hits[run - 1].physical_offset + u64::from(hits[run - 1].size));
            let start = match segment.mapped() {
                Some(_) => (from - base) as usize,
                None => {
                    let start = self.bytes.len();
                    segment.read_into(from - base, (to - from) as usize, &mut self.bytes)?;
                    start
                }
            };
            let bytes = segment.mapped().unwrap_or(&self.bytes);
            if segment.is_mapped() {
                prefetch(bytes, base, self.hits.get(self.next_hit + AHEAD));
            }
            for hit in hits {
                let at = start + (hit.physical_offset - from) as usize;
                match self.check(hit, bytes.get(at..).unwrap_or_default()) {
                    Ok(layout) => self.records.push(RecordAt { at: at as u32, layout }),
                    Err(reason) => damage.push(self.log.damage(hit.physical_offset, u64::from(hit.size), reason)),
                }
            }
            fetched += (to - from) as usize;
            self.next_hit += run;
        }
        Ok(())
    }

    /// How many of the next hits one read may bring: near each other, within the file and a block.
    fn run_length(&self, file_end: u64) -> usize {
        let hits = &self.hits[self.next_hit..];
        let Some(first) = hits.first().filter(|hit| hit.physical_offset < file_end) else { return 0 };
        let mut end = first.physical_offset;
        let near = |hit: &&Hit| {
            let close = hit.physical_offset <= end.saturating_add(NEAR) && hit.physical_offset < file_end;
            end = end.max(hit.physical_offset + u64::from(hit.size));
            close && hit.physical_offset - first.physical_offset < BLOCK_LEN as u64
        };
        hits.iter().take_while(near).count().max(1)
    }

    fn open_segment(&mut self, offset: u64) -> Result<Option<u64>> {
        let Some(index) = self.log.segments().find(offset) else { return Ok(None) };
        let base = self.log.segments().files()[index].base;
        if self.segment.as_ref().is_none_or(|(open, _)| *open != index) {
            self.segment = match self.log.open(index) {
                Ok(segment) => Some((index, segment)),
                Err(crate::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
        }
        Ok(Some(base))
    }

    /// Whether the bytes are the record that the unit promises.
    fn check(&self, hit: &Hit, bytes: &[u8]) -> Result<Layout, String> {
        let layout = match Layout::decode(bytes) {
            Ok(Item::Message(layout)) => layout,
            Ok(other) => return Err(format!("expected the record of a consume-queue unit, got {other:?}")),
            Err(malformed) => return Err(malformed.to_string()),
        };
        if let Some(reason) = sound(bytes, layout, hit.physical_offset, self.verify_crc) {
            return Err(reason);
        }
        let queue = &self.queues[hit.queue as usize];
        let (Some(message), size) = (Message::new(bytes, layout), layout.total) else { return Err(String::new()) };
        let expected = (queue.topic().as_bytes(), queue.queue_id(), hit.queue_offset, hit.size);
        let got = (message.topic(), message.queue_id(), message.queue_offset(), size);
        // Multi-dispatch queues (LMQ) list records of other topics and number them by themselves.
        if expected == got || (queue.topic().starts_with("%LMQ%") && hit.size == size) {
            return Ok(layout);
        }
        Err(format!("expected topic, queue, offset, size {}, got {}", told(expected), told(got)))
    }
}

impl Cursor {
    fn of(queue: &ConsumeQueue, request: &ScanRequest, from: u64) -> Result<Self> {
        let bound = |bound: &Option<OffsetBound>| bound.as_ref().and_then(|b| b.of(queue.queue_id()));
        let max = queue.max_offset()?;
        let first = queue.lower_bound(from, max)?;
        let next = bound(&request.start_offset).map_or(first, |start| first.max(start));
        Ok(Self { next, end: bound(&request.end_offset).map_or(max, |end| max.min(end)) })
    }
}

/// How many units list records below `end`: those of a queue are in the order of the log, so a bisection tells. A unit that
/// lists nothing counts as below; the log's end is checked unit by unit.
fn end_of_stretch(units: &[u8], end: u64) -> usize {
    let (units, _) = units.as_chunks::<UNIT_SIZE>();
    units.partition_point(|bytes| {
        Unit::decode(bytes).is_none_or(|unit| !unit.is_message() || (unit.physical_offset as u64) < end)
    })
}

/// Gives the units whose tags code is wanted, and those that list nothing, to `take`. The hot loop of a tag scan.
#[inline]
fn pick(units: &[u8], wanted: impl Fn(i64) -> bool, take: &mut impl FnMut(usize, Unit)) {
    let (units, _) = units.as_chunks::<UNIT_SIZE>();
    for (n, bytes) in units.iter().enumerate() {
        let (tags_code, size) = (i64_at(bytes, 12).unwrap_or(0), i32_at(bytes, 8).unwrap_or(0));
        if (wanted(tags_code) || size <= 0 || size == PRE_BLANK_SIZE)
            && let Some(unit) = Unit::decode(bytes)
        {
            take(n, unit);
        }
    }
}

/// Source: `ConsumeQueueExt.isExtAddr`: the hash is elsewhere, so it cannot be compared.
fn is_ext_address(tags_code: i64) -> bool {
    tags_code < i64::from(i32::MIN)
}

fn prefetch(bytes: &[u8], base: u64, hit: Option<&Hit>) {
    if let Some(hit) = hit {
        let at = hit.physical_offset.saturating_sub(base) as usize;
        (at..at + hit.size as usize).step_by(64).for_each(|line| mmap::prefetch(bytes, line));
    }
}

fn unit_damage(queue: &ConsumeQueue, queue_offset: i64, units: i64, reason: String) -> Damage {
    let unit = UNIT_SIZE as u64;
    Damage {
        offset: queue_offset as u64 * unit,
        length: units as u64 * unit,
        reason,
        file: queue.directory().to_path_buf(),
    }
}

fn told((topic, queue_id, offset, size): (&[u8], i32, i64, u32)) -> String {
    format!("{} {queue_id} {offset} {size}", String::from_utf8_lossy(topic))
}
