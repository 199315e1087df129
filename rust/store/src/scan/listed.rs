//! Counts the messages of a request from the consume queues alone, without reading the log.
use super::piece::{Piece, Way};
use super::plan::Plan;
use super::request::ScanRequest;
use crate::Result;
use crate::format::consume_queue::{UNIT_SIZE, is_no_message};
use crate::format::cursor::{i32_at, i64_at};
use crate::store::consume_queue::UnitReader;
use crate::store::lost_messages::LostMessages;
use crate::store::multi_dispatch::LMQ;
use crate::store::{CommitLog, ConsumeQueue, MessageStore};

/// Number of consume-queue entries read at a time.
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
            if is_written(store.log(), piece)? {
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

/// Returns whether a piece has a nonzero byte. Behind the listed messages a file is usually zero to its end.
fn is_written(log: &CommitLog, piece: &Piece) -> Result<bool> {
    let is_still = !log.has_writer();
    for (index, file) in log.segments().files().iter().enumerate() {
        let from = piece.from.max(file.base);
        if from < file.end().min(piece.end)
            && log.first_written(index, &log.open(index)?, from - file.base, is_still)?.is_some()
        {
            return Ok(true);
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
    // A multi-dispatch queue lists records of other topics, so its units do not tell what matches.
    !by_record && request.topic.as_ref().is_some_and(|topic| !topic.starts_with(LMQ))
}

/// Returns the range of queue offsets in `queue` that `request` selects, for records before offset `end` of the log.
/// The range is exclusive of its end.
fn range(store: &MessageStore, queue: &ConsumeQueue, request: &ScanRequest, end: u64) -> Result<(i64, i64)> {
    let max = queue.max_offset()?;
    let first = queue.lower_bound(store.log().min_offset(), max)?;
    let last = if end < store.log().segments().end() { queue.lower_bound(end, max)? } else { max };
    Ok(request.within_bounds(queue.queue_id(), (first, last)))
}
