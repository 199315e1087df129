//! The plan of a scan: which ranges of the log to read, and whether by log or by queue.
//!
//! A piece is a range of physical offsets. So pieces never overlap, and can be cut between any two records. Reading
//! by log reads all bytes of the range. Reading by queue reads the consume-queue entries, and the records that pass
//! the filter by tag hash. The plan takes the cheaper way. Ranges that the queues may not list completely are always
//! read by log.
use super::piece::{Estimate, Piece, Way};
use super::request::ScanRequest;
use super::row_source::{RowSource, Sources};
use super::trust::find_fault;
use crate::file::Io;
use crate::format::consume_queue::{UNIT_SIZE, Unit, is_no_message};
use crate::format::cursor::{i32_at, i64_at};
use crate::store::consume_queue::UnitReader;
use crate::store::generation::RemovedTopics;
use crate::store::last_close::LastClose;
use crate::store::log_walk::record_behind;
use crate::store::queue_ends::LostMessages;
use crate::store::unlisted::UnlistedRecords;
use crate::store::{CommitLog, ConsumeQueue, Generations, MessageStore, QueueKind};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Plan {
    /// The pieces, in the order of the log.
    pub pieces: Vec<Piece>,
    pub sources: Sources,
    /// Number of messages that the queues list in the range, before any filter. 0 if no queue was read.
    pub listed: u64,
    /// Estimate of the messages that pass the filters by queue, and of the bytes of their records. 0 if no queue was read.
    pub expected: (u64, u64),
    /// Cost of reading by queue, as the bytes of the log that could be read in the same time.
    pub queue_cost_bytes: u64,
    /// Explains to the user why the plan reads by log or by queue. See also [`reason_of`](Self::reason_of).
    pub reason: String,
}

/// Tolerated backward step of the broker's clock, in milliseconds. A filter by time finds all messages unless the
/// clock stepped back by more.
pub const CLOCK_SLACK_MS: i64 = 3_600_000;

/// Reason to read the pieces whose bodies are checked.
const UNLISTED: &str = "straight through the log: no consume queue is sure to list what is there";

impl Plan {
    /// Plans `request`. `way` overrides the estimate if the queues are usable.
    pub fn new(store: &MessageStore, request: &ScanRequest, way: Option<Way>) -> Result<Self> {
        store.check_end()?;
        let log_end = LastClose::end_of_log(store)?;
        let may_list = request.topic.as_deref().map_or(Ok(false), |topic| store.has_queues(topic))?;
        if may_list && log_end.is_none() {
            // Before the queues are listed: their ends must not be older than this offset.
            store.dispatched_to()?;
        }
        let mut sources = Self::sources_to(store, request, log_end)?;
        let (from, end) = time_range(store, request)?;
        let straight = |sources: &Sources, reason: &str| Self {
            pieces: vec![Piece { way: Way::Log, from, end, verify_crc: false }],
            sources: sources.clone(),
            listed: 0,
            expected: (0, 0),
            queue_cost_bytes: 0,
            reason: format!("straight through the log: {reason}"),
        };
        let Some(topic) = &request.topic else {
            // Only check that the topics exist. Several topics are always read by log.
            for topic in request.among.iter().flatten() {
                if store.queues(topic)?.is_empty() {
                    Self::without_queues(store, request, topic, straight(&sources, ""))?;
                }
            }
            let reason = if request.among.is_some() { "several topics are read" } else { "all topics are read" };
            return Ok(straight(&sources, reason));
        };
        if sources.queues.is_empty() {
            return Self::without_queues(store, request, topic, straight(&sources, "no consume queue lists the topic"));
        }
        let close = LastClose::of(store, log_end)?;
        let closed_end = close.listed_to(topic, &sources.queues, |id| request.has_queue(id))?;
        if closed_end.is_none() && (log_end.is_some() || !may_list) {
            // A writer may have opened the store since it was closed, or made the topic just now. Or the notes are too old.
            store.dispatched_to()?;
            sources = Self::sources_to(store, request, None)?;
        }
        let listed_to = closed_end.map_or_else(|| store.dispatched_to(), Ok)?;
        if let Some(fault) = find_fault(store, (request, &sources.queues), &close, listed_to)? {
            return Ok(straight(&sources, &fault));
        }
        // Consume queues list the log only up to here.
        let listed_to = listed_to.clamp(from, end);
        let estimate = Estimate::of(&sources.queues, request, (from, listed_to))?;
        let (way, choice) = match way {
            Some(way) => (way, "as asked for"),
            // The log does not tell all of what it lists: a 4.9.4 broker gives its offsets again after a restart.
            None if request.has_light_queues() => (Way::Queue, "as it is a light queue"),
            None => (estimate.cheaper(listed_to - from), "the cheaper way"),
        };
        let gap = match way {
            Way::Queue => {
                let ids = request.queue_ids.as_deref();
                let missing = match closed_end {
                    Some(end) => store.missing_of_closed(topic, (&sources.queues, ids), end)?,
                    None => store.missing_of(topic, ids)?,
                };
                unlisted_range(&missing, (topic, ids), (from, listed_to))
            }
            Way::Log => None,
        };
        let (way, reason) = match gap {
            // Units there may point to other messages, so the log itself is searched.
            Some((first, last)) => {
                (Way::Log, format!("straight through the log: queues lack messages that it has, of {first} to {last}"))
            }
            None => (way, estimate.explain(way, listed_to - from, choice)),
        };
        let listed = |from, end| Piece { way, from, end, verify_crc: false };
        // A crash may have left torn records there, which no unit lists.
        let unlisted = |from, end| Piece { way: Way::Log, from, end, verify_crc: true };
        let (gap_from, gap_to) = gap.unwrap_or((listed_to, listed_to));
        let pieces =
            [listed(from, gap_from), unlisted(gap_from, gap_to), listed(gap_to, listed_to), unlisted(listed_to, end)];
        let pieces = pieces.into_iter().filter(|p| p.from < p.end).collect();
        let (listed, queue_cost_bytes) = (estimate.units as u64, estimate.queue_cost_bytes());
        Ok(Self { pieces, sources, listed, expected: estimate.expected(), queue_cost_bytes, reason })
    }

    /// Explains to the user why `piece` is read by log or by queue.
    pub fn reason_of(&self, piece: &Piece) -> &str {
        if piece.verify_crc { UNLISTED } else { &self.reason }
    }

    /// Opens the log and the queues of `request`.
    pub fn sources(store: &MessageStore, request: &ScanRequest) -> Result<Sources> {
        store.check_end()?;
        Self::sources_to(store, request, LastClose::end_of_log(store)?)
    }

    fn sources_to(store: &MessageStore, request: &ScanRequest, closed_end: Option<u64>) -> Result<Sources> {
        let mut queues = request.topic.as_deref().map(|t| store.queues(t)).transpose()?.unwrap_or_default();
        // Once, as the planning asks for the ends many times.
        queues.iter_mut().try_for_each(ConsumeQueue::fix_end)?;
        let generations = Arc::new(match &request.topic {
            Some(topic) => Generations::of(RemovedTopics::load(store.root())?, store.log(), [(&**topic, &*queues)])?,
            None => generations(store, request)?,
        });
        queues.retain(|queue| request.has_queue(queue.queue_id()));
        Ok(Sources { log: store.log().clone(), queues: Arc::new(queues), generations, closed_end })
    }

    /// Returns the given plan `straight` for a topic without queues. Fails if the store does not have the topic.
    fn without_queues(store: &MessageStore, request: &ScanRequest, topic: &str, straight: Self) -> Result<Self> {
        if store.queue_kind() != QueueKind::Files || request.queue_ids.is_some() && !store.queues(topic)?.is_empty() {
            return Ok(straight);
        }
        store.check_topic(topic)?;
        Ok(straight)
    }
}

pub(super) fn generations(store: &MessageStore, request: &ScanRequest) -> Result<Generations> {
    let queues_of = |topic: &String| Ok((topic.clone(), store.queues(topic)?));
    let topics = request.topics().unwrap_or_default().iter().map(queues_of).collect::<Result<Vec<_>>>()?;
    let topics = topics.iter().map(|(name, queues)| (&**name, queues as &[ConsumeQueue]));
    Generations::of(RemovedTopics::load(store.root())?, store.log(), topics)
}

/// Returns the part of a range of the log in which the queues of a topic do not list the `missing` records. `None` if
/// they list all records.
fn unlisted_range(
    missing: &UnlistedRecords,
    (topic, ids): (&str, Option<&[i32]>),
    (from, end): (u64, u64),
) -> Option<(u64, u64)> {
    let stretch = missing.stretch(topic, |id| ids.is_none_or(|ids| ids.contains(&id)));
    let within = stretch.map(|(first, last)| (first.clamp(from, end), last.clamp(from, end)));
    within.filter(|(first, last)| first < last)
}

/// Returns the range of the log that may hold messages of the requested times. The range consists of whole files,
/// with a margin for steps of the clock.
pub(super) fn time_range(store: &MessageStore, request: &ScanRequest) -> Result<(u64, u64)> {
    let segments = store.log().segments();
    let lost_end = store.log().lost_end().flatten().map_or(0, |lost| lost.end);
    let (mut from, mut end) = (segments.start(), segments.end().min(store.end()).max(lost_end));
    for (index, file) in segments.files().iter().enumerate() {
        let has_times = request.start_time.is_some() || request.end_time.is_some();
        // A file without a readable first record gives no bound.
        let Some(first) = has_times.then(|| store.first_store_timestamp(index)).transpose()?.flatten() else {
            continue;
        };
        if request.start_time.is_some_and(|start| first.saturating_add(CLOCK_SLACK_MS) <= start) {
            // The first record of this file is old enough, so all files before it are older still.
            from = from.max(file.base);
        }
        if request.end_time.is_some_and(|last| first.saturating_sub(CLOCK_SLACK_MS) >= last) {
            end = end.min(file.base);
        }
    }
    Ok((from, end.max(from)))
}

/// Maximum number of parts of a piece. It protects against a damaged file name, which can make a piece look endless.
const MAX_PARTS: u64 = 1 << 14;

impl Plan {
    /// Cuts the pieces into parts of about equal size and at most `bytes`. The number of parts is a multiple of `readers`, so that the
    /// readers finish together, unless that would make the parts much smaller.
    pub fn cut(&mut self, bytes: u64, readers: u64) -> Result<()> {
        let mut pieces = Vec::new();
        let parts = |cost: u64| match cost.div_ceil(bytes.max(1)) {
            0 | 1 => 1,
            parts => parts.min(MAX_PARTS).next_multiple_of(readers.clamp(1, MAX_PARTS)).min(4 * parts),
        };
        for piece in std::mem::take(&mut self.pieces) {
            let mut from = piece.from;
            for at in self.cuts(piece, parts)? {
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

    fn cuts(&self, piece: Piece, parts: impl Fn(u64) -> u64) -> Result<Vec<u64>> {
        match piece.way {
            Way::Queue => self.cuts_by_units(piece, parts),
            Way::Log => self.cuts_by_bytes(piece, parts(piece.end - piece.from)),
        }
    }

    /// Returns physical offsets that divide the consume-queue entries of the largest queues into equal parts. The
    /// number of parts depends on the bytes to read, so a rare tag has few parts even if its messages are spread over
    /// the whole log.
    fn cuts_by_units(&self, piece: Piece, parts: impl Fn(u64) -> u64) -> Result<Vec<u64>> {
        const QUEUES: usize = 8;
        let mut ranges = Vec::new();
        for queue in self.sources.queues.iter() {
            let max = queue.max_offset()?;
            let (first, last) = (queue.lower_bound(piece.from, max)?, queue.lower_bound(piece.end, max)?);
            ranges.push((last - first, first, queue));
        }
        ranges.sort_by_key(|(units, _, _)| std::cmp::Reverse(*units));
        let units: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        let listed = (units as u64).saturating_mul(self.mean_size(&ranges)?);
        // The smaller cost of the two, since a few hits cost less than all listed messages.
        let parts = parts(listed.min(self.queue_cost_bytes)) as i64;
        // Samples of the largest queues are enough to find the cuts.
        ranges.truncate(QUEUES);
        let sampled: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        // Eight samples per part keep the parts about equal.
        let step = (sampled / (parts * 8)).max(1);
        let mut samples = Vec::new();
        for (units, first, queue) in ranges {
            let mut reader = UnitReader::new(queue);
            for n in (0..units).step_by(step as usize) {
                samples.extend(reader.unit(first + n)?.filter(Unit::is_message).map(|u| u.physical_offset as u64));
            }
        }
        // Each queue is in the order of the log, but the queues together are not.
        samples.sort_unstable();
        Ok((1..parts as usize).filter_map(|i| samples.get(i * samples.len() / parts as usize).copied()).collect())
    }

    fn mean_size(&self, ranges: &[(i64, i64, &ConsumeQueue)]) -> Result<u64> {
        let Some((units, first, queue)) = ranges.first() else { return Ok(1) };
        let mut reader = UnitReader::new(queue);
        let (mut sum, mut count) = (0, 0);
        // About 32 units of the largest queue are a sufficient sample.
        for n in (0..*units).step_by((*units as usize / 32).max(1)) {
            if let Some(unit) = reader.unit(first + n)?.filter(Unit::is_message) {
                sum += unit.size as u64;
                count += 1;
            }
        }
        Ok((sum / std::cmp::max(count, 1)).max(1))
    }

    /// Returns offsets at about equal distances, each of which is the start of a record. Finds them by searching the
    /// log for the magic numbers of records.
    fn cuts_by_bytes(&self, piece: Piece, parts: u64) -> Result<Vec<u64>> {
        let log = &self.sources.log;
        let len = u128::from(piece.end - piece.from);
        let (mut cuts, mut ended) = (Vec::new(), None);
        for target in (1..parts).map(|part| piece.from + (len * u128::from(part) / u128::from(parts)) as u64) {
            let Some(index) = log.segments().find(target).filter(|index| ended != Some(*index)) else { continue };
            match record_behind(log, index, target) {
                Ok(Some(at)) => cuts.push(at),
                // No record follows in this file, so its zeroes need not be searched again.
                Ok(None) => ended = Some(index),
                // The file was removed, or is a dead link; the scan reports it.
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => ended = Some(index),
                Err(error) => return Err(error),
            }
        }
        // Several targets in a gap lead to the same record.
        cuts.dedup();
        Ok(cuts)
    }
}

/// Bytes of the log in the first step. Each further step goes towards the beginning of the log and is twice as long.
const FIRST_STRETCH: u64 = 1 << 20;
const MAX_STRETCH: u64 = 256 << 20;

/// Returns the physical offset of the first of the last `count` matching messages before `end`. If fewer messages
/// match, returns the offset of the first of them. Reads the log backwards in stretches, by log or by queue as the
/// plan chooses.
pub fn start_of_last(
    store: &MessageStore,
    request: &ScanRequest,
    (count, end): (usize, u64),
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<u64> {
    // Reopen the store, since messages may have been appended meanwhile.
    let store = store.reopen(Io::Pread)?;
    let plan = Plan::new(&store, request, None)?;
    // Only offsets are needed, so no columns.
    let request = Arc::new(ScanRequest { columns: Vec::new(), ..request.clone() });
    let (mut missing, mut first, mut behind, mut stretch) = (count, end, end, FIRST_STRETCH);
    let begin = store.log().min_offset();
    while missing > 0 && behind > begin {
        let target = behind.saturating_sub(stretch);
        stretch = (2 * stretch).min(MAX_STRETCH);
        let from = if target <= begin { begin } else { record_at_or_behind(&store, target)? };
        // No earlier record in this stretch. The next stretch is longer.
        if from >= behind {
            continue;
        }
        let pieces = plan.pieces.iter().filter_map(|piece| clip(*piece, from, behind));
        let mut source = RowSource::new(plan.sources.clone(), request.clone(), pieces);
        let mut last = VecDeque::new();
        while source.advance(interrupt)? {
            last.extend(
                source.rows().iter().filter_map(|row| row.message(source.bytes())).map(|m| m.physical_offset()),
            );
            // Keep only as many as are still missing, the last of this stretch.
            last.drain(..last.len().saturating_sub(missing));
        }
        first = last.front().map_or(first, |offset| *offset as u64);
        missing -= last.len();
        behind = from;
    }
    Ok(first)
}

fn clip(piece: Piece, from: u64, end: u64) -> Option<Piece> {
    let (from, end) = (piece.from.max(from), piece.end.min(end));
    (from < end).then_some(Piece { from, end, verify_crc: piece.verify_crc || piece.way == Way::Log, ..piece })
}

/// Returns the offset of the first record at or behind `target`. If `target` is in a gap, or no record follows in the
/// file, returns the start of the next file.
fn record_at_or_behind(store: &MessageStore, target: u64) -> Result<u64> {
    let segments = store.log().segments();
    let files = segments.files();
    let next = || files.iter().find(|file| file.base >= target).map_or(u64::MAX, |file| file.base);
    let Some(index) = segments.find(target).filter(|index| files[*index].base < target) else { return Ok(next()) };
    match record_behind(store.log(), index, target) {
        Ok(record) => Ok(record.unwrap_or_else(next)),
        // The file was removed, or is a dead link: continue with the next file.
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => Ok(next()),
        Err(error) => Err(error),
    }
}

const UNITS: usize = 1 << 15;

/// Number of messages of a queue, and the smallest and largest of their queue offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    pub messages: i64,
    /// Smallest queue offset; `None` if there are no messages.
    pub min_offset: Option<i64>,
    pub max_offset: Option<i64>,
}

impl QueueCounts {
    /// Counts the messages of `request` before offset `end` of the log. Returns `None` if the log must be read. This
    /// is so for a filter by anything but queue and offset, for a damaged queue, and if the queues may not list the
    /// end of the log.
    pub fn of(store: &MessageStore, request: &ScanRequest, end: u64) -> Result<Option<Self>> {
        if !can_count_by_queues(request) {
            return Ok(None);
        }
        let end = end.min(store.end());
        let plan = Plan::new(store, request, Some(Way::Queue))?;
        // Queues may list messages that the log has lost.
        if store.log().lost_end().flatten().is_some() {
            return Ok(None);
        }
        // Unlisted messages would be missing from the count.
        for piece in plan.pieces.iter().filter(|piece| piece.way == Way::Log) {
            if is_written(store.log(), piece, plan.sources.closed_end)? {
                return Ok(None);
            }
        }
        let mut all = Self::default();
        for queue in plan.sources.queues.iter() {
            let range = range(store, queue, request, end)?;
            if may_have_left_out(store) { all.add_messages(queue, range)? } else { all.add_all(range) }
        }
        Ok(Some(all))
    }

    fn add_all(&mut self, (first, end): (i64, i64)) {
        if first < end {
            self.messages += end - first;
            self.min_offset = Some(self.min_offset.map_or(first, |least| least.min(first)));
            self.max_offset = self.max_offset.max(Some(end - 1));
        }
    }

    /// Counts messages entry by entry, since any entry of the consume queue may be without a message.
    fn add_messages(&mut self, queue: &ConsumeQueue, (first, end): (i64, i64)) -> Result<()> {
        let mut reader = UnitReader::new(queue);
        let mut at = first;
        while at < end {
            let units = reader.units(at, UNITS.min((end - at) as usize))?;
            let (units, _) = units.as_chunks::<UNIT_SIZE>();
            let number = |unit: &[u8; UNIT_SIZE]| Some((i32_at(unit, 8)?, i64_at(unit, 12)?));
            let is_blank = |unit: &[u8; UNIT_SIZE]| number(unit).is_some_and(|(size, code)| is_no_message(size, code));
            let blanks = units.iter().filter(|unit| is_blank(unit)).count() as i64;
            let read = units.len() as i64;
            if blanks < read {
                let offset = |n: Option<usize>| n.map(|n| at + n as i64);
                let (least, most) = match blanks {
                    0 => (Some(at), Some(at + read - 1)),
                    _ => (
                        offset(units.iter().position(|unit| !is_blank(unit))),
                        offset(units.iter().rposition(|unit| !is_blank(unit))),
                    ),
                };
                self.min_offset = self.min_offset.into_iter().chain(least).min();
                self.max_offset = self.max_offset.max(most);
            }
            // The units in a hole between files are unknown and count as messages.
            let step = if read == 0 { 1 } else { read };
            self.messages += step - blanks;
            at += step;
        }
        Ok(())
    }
}

/// Returns whether queues may have entries without a message. An export has such entries, and its log does not begin
/// at 0. A repair also writes such entries, and records them as lost messages.
fn may_have_left_out(store: &MessageStore) -> bool {
    store.log().min_offset() > 0 || LostMessages::exist(store.root())
}

/// Returns whether a piece has a nonzero byte, or had a file that is gone. Behind the listed messages a file is usually
/// zero to its end. Behind the noted end of a closed log only some bytes are looked at.
fn is_written(log: &CommitLog, piece: &Piece, closed_end: Option<u64>) -> Result<bool> {
    if closed_end.is_some_and(|end| end <= piece.from) {
        return log.goes_on_behind(piece.from);
    }
    let is_still = !log.has_writer();
    for (index, file) in log.segments().files().iter().enumerate() {
        let from = piece.from.max(file.base);
        if from >= file.end().min(piece.end) {
            continue;
        }
        match log.open(index) {
            Ok(segment) if log.first_written(index, &segment, from - file.base, is_still)?.is_some() => {
                return Ok(true);
            }
            Ok(_) => {}
            // The file was removed, which only a scan reports.
            Err(error) if error.is_not_found() => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns whether the consume queues alone decide which messages match. This is so if the request filters only by
/// queue and offset.
fn can_count_by_queues(request: &ScanRequest) -> bool {
    let by_record = request.filters_properties()
        || request.sql.is_some()
        || request.start_time.is_some()
        || request.end_time.is_some()
        || request.verify_crc;
    // A light queue lists records whose queue offsets are those of other queues.
    !by_record && request.topic.is_some() && !request.has_light_queues()
}

/// Returns the range of queue offsets in `queue` that `request` selects, for records before offset `end` of the log.
/// The range is exclusive of its end.
fn range(store: &MessageStore, queue: &ConsumeQueue, request: &ScanRequest, end: u64) -> Result<(i64, i64)> {
    let max = queue.max_offset()?;
    let first = queue.lower_bound(store.log().min_offset(), max)?;
    let last = if end < store.log().segments().end() { queue.lower_bound(end, max)? } else { max };
    Ok(request.within_bounds(queue.queue_id(), (first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::ScanRequest;
    use crate::store::append::AppendOptions;
    use crate::store::{MessageStore, made_store};

    fn store_of(messages: usize, body: usize, file_size: u64) -> (tempfile::TempDir, MessageStore) {
        made_store::store_of(messages, body, AppendOptions { file_size, ..AppendOptions::default() })
    }

    #[test]
    fn the_zeroes_behind_a_log_are_looked_at_once() {
        let (_dir, store) = store_of(100, 1000, 256 << 20);
        let mut plan = Plan::new(&store, &ScanRequest::default(), None).expect("planned");
        // This would take minutes if each of the 16,384 cuts were searched for in the rest of the file.
        plan.cut(1, 1).expect("cut");
        assert!((1..100).contains(&plan.pieces.len()), "{}", plan.pieces.len());
    }

    #[test]
    fn pieces_are_equal_and_a_multiple_of_their_readers() {
        let (_dir, store) = store_of(4000, 100, 1 << 16);
        let request = ScanRequest { topic: Some("T".into()), ..ScanRequest::default() };
        let pieces = |way: Way, bytes: u64, readers: u64| {
            let mut plan = Plan::new(&store, &request, Some(way)).expect("planned");
            plan.cut(bytes, readers).expect("cut");
            plan.pieces.retain(|piece| !piece.verify_crc);
            plan.pieces.iter().map(|piece| piece.end - piece.from).collect::<Vec<_>>()
        };
        for way in [Way::Log, Way::Queue] {
            for (bytes, readers, count) in [(300_000, 1, 3), (300_000, 4, 4), (300_000, 1000, 12), (1 << 30, 4, 1)] {
                let lens = pieces(way, bytes, readers);
                let (least, most) = (lens.iter().min().expect("one"), lens.iter().max().expect("one"));
                assert_eq!(lens.len(), count, "{way:?} {bytes} {readers}");
                assert!(most - least <= most / 5, "{way:?} {lens:?}");
            }
        }
    }
}
