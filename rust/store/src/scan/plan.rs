//! The plan of a scan: which stretches of the log are read, and whether straight or by consume queue.
//!
//! A piece is a range of physical offsets, so pieces never overlap, whatever way each is read, and can be cut anywhere
//! between two records. Straight reading costs the bytes of the log, reading by queue costs the units of the queues and the
//! records that pass the tag hash; the cheaper way is taken. What the queues do not list surely is read straight.
use super::hits::SCHEDULE_TOPIC;
use super::request::ScanRequest;
use super::scanner::Sources;
use crate::file::Io;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::{Item, Layout, Message};
use crate::store::consume_queue::UnitReader;
use crate::store::{ConsumeQueue, MessageStore, QueueKind};
use crate::{Error, Result};
use std::sync::Arc;

/// How a piece is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Record after record.
    Log,
    /// By the units of consume queues.
    Queue,
}

/// A stretch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How it is read.
    pub way: Way,
    /// Physical offset of its first byte.
    pub from: u64,
    /// Physical offset behind its last byte.
    pub end: u64,
    /// Check every body, asked for or not: nothing vouches for these records yet.
    pub verify_crc: bool,
}

/// Pieces, and what they read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the log.
    pub pieces: Vec<Piece>,
    /// Log and queues.
    pub sources: Sources,
    /// Messages that the queues list within the range, before filters; 0 where no queue was looked at.
    pub listed: u64,
    /// Why the way was chosen, for people.
    pub reason: String,
}

/// A broker's clock may step back this much without a time range losing messages.
const CLOCK_SLACK_MS: i64 = 3_600_000;
/// What reading costs, in nanoseconds: measured on warm files, only their ratios matter.
const NS_PER_LOG_BYTE: f64 = 0.15;
const NS_PER_LOG_RECORD: f64 = 40.0;
const NS_PER_UNIT: f64 = 2.5;
const NS_PER_HIT: f64 = 600.0;
const SAMPLES: i64 = 16;
/// Pieces of a file, or of all queues: a damaged name must not ask for billions.
const MAX_PARTS: u64 = 1 << 14;
/// Bytes read to see whether a unit leads to its record: the size in a damaged one may be anything.
const MAX_HEAD: usize = 256 << 10;
const SAMPLE_UNITS: usize = 64;

impl Plan {
    /// Plans `request` on `store`; `way` overrules the estimate where queues are usable.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a topic that the store does not have, [`Error::Io`].
    pub fn new(store: &MessageStore, request: &ScanRequest, way: Option<Way>) -> Result<Self> {
        let (from, end) = time_range(store, request)?;
        let sources = Self::sources(store, request)?;
        let straight = |reason: &str| Self {
            pieces: vec![Piece { way: Way::Log, from, end, verify_crc: false }],
            sources: sources.clone(),
            listed: 0,
            reason: reason.to_owned(),
        };
        let Some(topic) = &request.topic else { return Ok(straight("all topics")) };
        if sources.queues.is_empty() {
            return Self::without_queues(store, request, topic, straight("no consume queue lists the topic"));
        }
        if let Some(why) = unusable(store, &sources.queues)? {
            return Ok(straight(&why));
        }
        let listed_to = store.dispatched_to()?.clamp(from, end);
        let estimate = Estimate::of(&sources.queues, request, (from, listed_to))?;
        let way = way.unwrap_or_else(|| estimate.cheaper(listed_to - from));
        let listed = Piece { way, from, end: listed_to, verify_crc: false };
        let unlisted = Piece { way: Way::Log, from: listed_to, end, verify_crc: true };
        let pieces = [listed, unlisted].into_iter().filter(|p| p.from < p.end).collect();
        Ok(Self { pieces, sources, listed: estimate.units as u64, reason: estimate.told(way) })
    }

    /// The log, and the queues that `request` asks for.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sources(store: &MessageStore, request: &ScanRequest) -> Result<Sources> {
        let mut queues = request.topic.as_deref().map(|t| store.queues(t)).transpose()?.unwrap_or_default();
        queues.retain(|q| request.queue_ids.as_ref().is_none_or(|ids| ids.contains(&q.queue_id())));
        Ok(Sources { log: store.log().clone(), queues: Arc::new(queues) })
    }

    /// A topic without queues is unknown if the queues that exist list the whole log.
    fn without_queues(store: &MessageStore, request: &ScanRequest, topic: &str, straight: Self) -> Result<Self> {
        if store.queue_kind() != QueueKind::Files || request.queue_ids.is_some() && !store.queues(topic)?.is_empty() {
            return Ok(straight);
        }
        let known = store.topic_names()?;
        if known.iter().any(|name| name == topic) {
            return Ok(straight);
        }
        Err(Error::unknown("topic", topic, known.iter().map(String::as_str)))
    }

    /// Cuts the pieces so that each has about `bytes` bytes to read, at records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn cut(&mut self, bytes: u64) -> Result<()> {
        let mut pieces = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            let mut from = piece.from;
            for at in self.cuts(piece, bytes.max(1))? {
                if at > from && at < piece.end {
                    pieces.push(Piece { from, end: at, ..piece });
                    from = at;
                }
            }
            pieces.push(Piece { from, ..piece });
        }
        self.pieces = pieces;
        Ok(())
    }

    fn cuts(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        match piece.way {
            Way::Queue => self.cuts_by_units(piece, bytes),
            Way::Log => self.cuts_by_bytes(piece, bytes),
        }
    }

    /// Physical offsets that split what the largest queues list into equal parts.
    fn cuts_by_units(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        const QUEUES: usize = 8;
        let mut ranges = Vec::new();
        for queue in self.sources.queues.iter() {
            let max = queue.max_offset()?;
            let (first, last) = (queue.lower_bound(piece.from, max)?, queue.lower_bound(piece.end, max)?);
            ranges.push((last - first, first, queue));
        }
        ranges.sort_by_key(|(units, _, _)| std::cmp::Reverse(*units));
        let units: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        let parts = (units as u64).saturating_mul(self.mean_size(&ranges)?) / bytes;
        let parts = parts.clamp(1, MAX_PARTS) as i64;
        ranges.truncate(QUEUES);
        let looked_at: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        let step = (looked_at / (parts * 8)).max(1);
        let mut samples = Vec::new();
        for (units, first, queue) in ranges {
            let mut reader = UnitReader::new(queue);
            for n in (0..units).step_by(step as usize) {
                samples.extend(reader.unit(first + n)?.filter(Unit::is_message).map(|u| u.physical_offset as u64));
            }
        }
        samples.sort_unstable();
        Ok((1..parts as usize).filter_map(|i| samples.get(i * samples.len() / parts as usize).copied()).collect())
    }

    fn mean_size(&self, ranges: &[(i64, i64, &ConsumeQueue)]) -> Result<u64> {
        let Some((units, first, queue)) = ranges.first() else { return Ok(1) };
        let mut reader = UnitReader::new(queue);
        let (mut sum, mut count) = (0, 0);
        for n in (0..*units).step_by((*units as usize / 32).max(1)) {
            if let Some(unit) = reader.unit(first + n)?.filter(Unit::is_message) {
                sum += unit.size as u64;
                count += 1;
            }
        }
        Ok((sum / std::cmp::max(count, 1)).max(1))
    }

    /// Starts of files, and within a file records that the largest queue lists or that stand behind a found magic.
    fn cuts_by_bytes(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        let mut cuts = Vec::new();
        let log = &self.sources.log;
        for (index, file) in log.segments().files().iter().enumerate() {
            if file.end() <= piece.from || file.base >= piece.end {
                continue;
            }
            cuts.push(file.base);
            let parts = file.len.div_ceil(bytes).min(MAX_PARTS);
            for wanted in (1..parts).map(|part| file.base + part * (file.len / parts)) {
                if wanted > piece.from && wanted < piece.end {
                    let Some(cut) = crate::store::resync::record_behind(log, index, wanted)? else { break };
                    cuts.push(cut);
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts)
    }
}

/// The stretch of the log that may hold records of the asked time: whole files, with room for a clock that stepped back.
fn time_range(store: &MessageStore, request: &ScanRequest) -> Result<(u64, u64)> {
    let segments = store.log().segments();
    let (mut from, mut end) = (segments.start(), segments.end());
    for (index, file) in segments.files().iter().enumerate() {
        let asked = request.start_time.is_some() || request.end_time.is_some();
        let Some(first) = asked.then(|| store.first_store_timestamp(index)).transpose()?.flatten() else { continue };
        if request.start_time.is_some_and(|start| first.saturating_add(CLOCK_SLACK_MS) <= start) {
            from = from.max(file.base);
        }
        if request.end_time.is_some_and(|last| first.saturating_sub(CLOCK_SLACK_MS) >= last) {
            end = end.min(file.base);
        }
    }
    Ok((from, end.max(from)))
}

/// Why the queues cannot be trusted: the first or last unit of one of their files does not lead to its record.
fn unusable(store: &MessageStore, queues: &[ConsumeQueue]) -> Result<Option<String>> {
    let log = store.log();
    for queue in queues {
        let max = queue.max_offset()?;
        let first = queue.lower_bound(log.min_offset(), max)?;
        let mut reader = UnitReader::new(queue);
        for file in queue.segments().files() {
            let unit = UNIT_SIZE as u64;
            let (low, high) = ((file.base / unit) as i64, (file.end() / unit) as i64);
            for offset in [low.max(first), high.min(max) - 1] {
                if offset < low.max(first) || offset >= high.min(max) {
                    continue;
                }
                let Some(found) = reader.unit(offset)? else { continue };
                if let Some(why) = leads_astray(store, queue, offset, found)? {
                    let (topic, id) = (queue.topic(), queue.queue_id());
                    return Ok(Some(format!("consume queue {topic} {id} is damaged at offset {offset}: {why}")));
                }
            }
        }
        if let Some(at) = written_behind(queue, max)? {
            let (topic, id) = (queue.topic(), queue.queue_id());
            let got = format!("expected nothing behind offset {max}, got data at byte {at}");
            return Ok(Some(format!("consume queue {topic} {id} is damaged: {got}")));
        }
    }
    Ok(None)
}

/// Where a queue holds data behind its end: the end was found by bisection, which a hole of zeroes misleads.
fn written_behind(queue: &ConsumeQueue, max: i64) -> Result<Option<u64>> {
    let end = max as u64 * UNIT_SIZE as u64;
    for (index, file) in queue.segments().files().iter().enumerate().filter(|(_, file)| file.end() > end) {
        let segment = queue.segments().open(index, Io::Pread)?;
        let found = segment.first_written(end.saturating_sub(file.base), file.len)?;
        // A live broker may have listed more meanwhile.
        if found.is_some() && queue.max_offset()? == max {
            return Ok(found.map(|at| file.base + at));
        }
    }
    Ok(None)
}

fn leads_astray(store: &MessageStore, queue: &ConsumeQueue, offset: i64, unit: Unit) -> Result<Option<String>> {
    if !unit.is_message() {
        return Ok(Some(format!("expected a record, got {unit:?}")));
    }
    // The record of the last unit may be torn; then the log says so, not the queue.
    if unit.physical_offset as u64 >= store.dispatched_to()? {
        return Ok(None);
    }
    let head = match store.log().record_head(unit.physical_offset as u64, (unit.size as usize).min(MAX_HEAD)) {
        Ok(head) => head,
        Err(Error::Invalid { expected, got, .. }) => return Ok(Some(format!("expected {expected}, got {got}"))),
        Err(Error::Corrupt { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let layout = match Layout::decode(&head) {
        Ok(Item::Message(layout)) => layout,
        Ok(Item::Partial(needed)) if needed > MAX_HEAD && needed == unit.size as usize => return Ok(None),
        _ => return Ok(Some(format!("expected a record at {}, got none", unit.physical_offset))),
    };
    let ours = Message::new(&head, layout).is_some_and(|m| {
        m.topic() == queue.topic().as_bytes() && m.queue_id() == queue.queue_id() && m.queue_offset() == offset
    });
    let lmq = queue.topic().starts_with("%LMQ%");
    Ok((!ours && !lmq).then(|| format!("the record at {} is another's", unit.physical_offset)))
}

/// What the queues list in a range, from a few samples.
#[derive(Debug, Default)]
struct Estimate {
    units: f64,
    hits: f64,
    bytes: f64,
}

impl Estimate {
    fn of(queues: &[ConsumeQueue], request: &ScanRequest, (from, end): (u64, u64)) -> Result<Self> {
        let mut all = Self::default();
        for queue in queues {
            let max = queue.max_offset()?;
            let mut first = queue.lower_bound(from, max)?;
            let mut last = queue.lower_bound(end, max)?;
            if let Some(bound) = request.start_offset.as_ref().and_then(|b| b.of(queue.queue_id())) {
                first = first.max(bound);
            }
            if let Some(bound) = request.end_offset.as_ref().and_then(|b| b.of(queue.queue_id())) {
                last = last.min(bound);
            }
            if first < last {
                all.add(queue, request, first, last)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, queue: &ConsumeQueue, request: &ScanRequest, first: i64, last: i64) -> Result<()> {
        let by_hash = !request.tags.is_all() && queue.topic() != SCHEDULE_TOPIC;
        let mut reader = UnitReader::new(queue);
        let (mut seen, mut hits, mut bytes) = (0.0, 0.0, 0.0);
        for sample in 0..SAMPLES {
            let at = first + (last - first) * sample / SAMPLES;
            let count = SAMPLE_UNITS.min((last - at) as usize);
            for unit in reader.units(at, count)?.chunks_exact(UNIT_SIZE).filter_map(Unit::decode) {
                let hit = unit.is_message() && (!by_hash || request.tags.codes_match(unit.tags_code));
                seen += 1.0;
                bytes += if unit.is_message() { f64::from(unit.size) } else { 0.0 };
                hits += if hit { 1.0 } else { 0.0 };
            }
        }
        let units = (last - first) as f64;
        self.units += units;
        self.hits += units * hits / f64::max(seen, 1.0);
        self.bytes += units * bytes / f64::max(seen, 1.0);
        Ok(())
    }

    fn queue_cost(&self) -> f64 {
        let mean = self.bytes / self.units.max(1.0);
        self.units * NS_PER_UNIT + self.hits * (NS_PER_HIT + mean * NS_PER_LOG_BYTE)
    }

    fn log_cost(&self, log_bytes: u64) -> f64 {
        let mean = (self.bytes / self.units.max(1.0)).max(100.0);
        let bytes = log_bytes as f64;
        bytes * NS_PER_LOG_BYTE + bytes / mean * NS_PER_LOG_RECORD
    }

    fn cheaper(&self, log_bytes: u64) -> Way {
        if self.queue_cost() < self.log_cost(log_bytes) { Way::Queue } else { Way::Log }
    }

    fn told(&self, way: Way) -> String {
        let name = match way {
            Way::Queue => "by consume queue",
            Way::Log => "straight through the log",
        };
        format!("{name}: {:.0} messages listed, about {:.0} pass the tag hash", self.units, self.hits)
    }
}
