//! A walk over the messages of some queues in the order of the log: units first, by tag hash, then their records.
//!
//! Units of a stretch of the log are collected from all queues, sorted by physical offset, and their records fetched:
//! neighbours with one read. Each record must be what its unit says, or it becomes damage.
//!
//! Source: `DefaultMessageStore.getMessage`, `DefaultMessageFilter.isMatchedByConsumeQueue`.
use super::request::{OffsetBound, ScanRequest};
use crate::Result;
use crate::file::{Segment, mmap};
use crate::format::consume_queue::{UNIT_SIZE, Unit};
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

/// How far a queue was read: all units from the first to the end belong to the walk, whatever they say.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: i64,
    end: i64,
    /// Units before the first of these lead to records that the log has lost already.
    is_live: bool,
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
    from: u64,
    position: u64,
    end: u64,
    /// The least physical offset that waits for its stretch.
    waiting: u64,
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
        let cursors = queues.iter().map(|q| Cursor::of(q, &request, (from, end), &log)).collect::<Result<_>>()?;
        let by_hash = !request.tags.is_all() && request.topic.as_deref() != Some(SCHEDULE_TOPIC);
        Ok(Self {
            log,
            queues,
            by_hash,
            verify_crc,
            request,
            cursors,
            from,
            position: from,
            end,
            waiting: u64::MAX,
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
        self.waiting = u64::MAX;
        let end = self.end.min(self.position.saturating_add(STRETCH));
        let queues = self.queues.clone();
        for (index, queue) in queues.iter().enumerate() {
            self.collect_queue(index, &mut UnitReader::new(queue), end, damage)?;
        }
        self.hits.sort_unstable_by_key(|hit| hit.physical_offset);
        // A stretch without units is passed at once: a damaged name of a file may make the log seem endless.
        self.position = if self.hits.is_empty() { end.max(self.waiting) } else { end };
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
            let Cursor { next, end: last, .. } = self.cursors[index];
            let units = reader.units(next, UNITS.min((last - next) as usize))?;
            if units.is_empty() {
                let after = next_file(&self.queues[index], next).min(last);
                let reason = format!("queue offset {next}: expected a file of the consume queue, got none");
                damage.push(unit_damage(&self.queues[index], next, after - next, reason));
                self.cursors[index].next = after;
                continue;
            }
            for (n, bytes) in units.chunks_exact(UNIT_SIZE).enumerate() {
                let Some(unit) = Unit::decode(bytes) else { continue };
                let queue_offset = next + n as i64;
                let physical_offset = unit.physical_offset as u64;
                if !unit.is_message() || physical_offset.saturating_add(unit.size as u64) > log_end {
                    // Pre-blank units come before all others.
                    if unit != Unit::PRE_BLANK || self.cursors[index].is_live {
                        let reason =
                            format!("queue offset {queue_offset}: expected a record below {log_end}, got {unit:?}");
                        damage.push(unit_damage(&self.queues[index], queue_offset, 1, reason));
                    }
                } else if physical_offset >= self.end || (physical_offset < self.from && self.cursors[index].is_live) {
                    let expected = format!("a record from {} to {}", self.from, self.end);
                    let reason = format!("queue offset {queue_offset}: expected {expected}, got {unit:?}");
                    damage.push(unit_damage(&self.queues[index], queue_offset, 1, reason));
                } else if physical_offset < self.from {
                    // Expired.
                } else if physical_offset >= end {
                    self.cursors[index].next = queue_offset;
                    self.waiting = self.waiting.min(physical_offset);
                    return Ok(());
                } else {
                    self.cursors[index].is_live = true;
                    let code = unit.tags_code;
                    if !self.by_hash || is_ext_address(code) || self.request.tags.codes_match(code) {
                        let (size, queue) = (unit.size as u32, index as u32);
                        self.hits.push(Hit { physical_offset, size, queue, queue_offset });
                    }
                }
            }
            self.cursors[index].next = next + (units.len() / UNIT_SIZE) as i64;
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
            if let Some(reason) = too_long(segment, self.hits[self.next_hit], base)? {
                let hit = self.hits[self.next_hit];
                damage.push(self.log.damage(hit.physical_offset, 0, reason));
                self.next_hit += 1;
                continue;
            }
            let hits = &self.hits[self.next_hit..self.next_hit + run];
            // Not the end of the last one: a damaged unit may lead into the middle of the record before it.
            let from = hits[0].physical_offset;
            let to =
                hits.iter().map(|hit| hit.physical_offset + u64::from(hit.size)).max().unwrap_or(from).min(file_end);
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
            let is_first = hit.queue == first.queue && hit.queue_offset == first.queue_offset;
            let fits = hit.physical_offset - first.physical_offset + u64::from(hit.size) <= BLOCK_LEN as u64;
            is_first || (close && fits)
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
    /// The units of a range of the log. At both ends of the log no bisection is trusted: units that were damaged mislead it.
    fn of(queue: &ConsumeQueue, request: &ScanRequest, (from, end): (u64, u64), log: &CommitLog) -> Result<Self> {
        let bound = |bound: &Option<OffsetBound>| bound.as_ref().and_then(|b| b.of(queue.queue_id()));
        let max = queue.max_offset()?;
        let first = if from > log.min_offset() { queue.lower_bound(from, max)? } else { queue.first_offset() };
        let reaches_on = end < log.segments().end() && queue.max_physical_offset()? > end;
        let last = if reaches_on { queue.lower_bound(end, max)? } else { max };
        let next = bound(&request.start_offset).map_or(first, |start| first.max(start));
        let last = bound(&request.end_offset).map_or(last, |end| last.min(end));
        Ok(Self { next, end: last, is_live: from > log.min_offset() })
    }
}

/// Queue offset of the first unit in a file behind `offset`.
fn next_file(queue: &ConsumeQueue, offset: i64) -> i64 {
    let firsts = queue.segments().files().iter().map(|file| file.base.div_ceil(UNIT_SIZE as u64) as i64);
    firsts.filter(|first| *first > offset).min().unwrap_or(i64::MAX)
}

/// Why a hit of more than a block is not fetched: the lengths of the record there say something else.
fn too_long(segment: &Segment, hit: Hit, base: u64) -> Result<Option<String>> {
    if hit.size as usize <= BLOCK_LEN {
        return Ok(None);
    }
    let mut head = Vec::new();
    segment.read_into(hit.physical_offset - base, BLOCK_LEN, &mut head)?;
    Ok(match Layout::decode(&head) {
        Ok(Item::Partial(needed)) if needed == hit.size as usize => None,
        Ok(other) => {
            Some(format!("expected a record of {} bytes as its consume-queue unit says, got {other:?}", hit.size))
        }
        Err(malformed) => Some(malformed.to_string()),
    })
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
    let segments = queue.segments();
    let file = segments
        .find(queue_offset as u64 * unit)
        .map_or(queue.directory(), |i| &segments.files()[i].path)
        .to_path_buf();
    Damage { offset: queue_offset as u64 * unit, length: units as u64 * unit, reason, file }
}

fn told((topic, queue_id, offset, size): (&[u8], i32, i64, u32)) -> String {
    format!("{} {queue_id} {offset} {size}", String::from_utf8_lossy(topic))
}
