//! A pull from a consume queue of a store that this process appends to. Consume-queue entries and records are read
//! through maps, and records go to the caller without a copy in between.
//!
//! Source: `DefaultMessageStore.getMessage`, `MessageFilter`, `ExpressionMessageFilter.isMatchedByConsumeQueue`,
//! `isMatchedByCommitLog`.
use super::live_log::{LiveLog, PROOF_LEN, record_in};
use super::live_queue::{LiveQueue, unit_in};
use super::map_cache::FileMap;
use super::places::{Fault, Records, SkippedRange};
use crate::Result;
use crate::file::mmap::prefetch;
use crate::filter::TagExpression;
use crate::filter::sql92::Sql92;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
pub use crate::store::pull::PullResult;
use crate::store::pull::{GetLimits, Pull, PullSource, PullStop, behind_file};
use std::sync::Arc;

/// Pulls messages from `queue` and passes their records to `out`.
pub fn get_message<F: PullFilter + ?Sized>(
    (log, queue): (&LiveLog, &LiveQueue),
    offset: i64,
    max_messages: usize,
    filter: &F,
    limits: GetLimits,
    out: &mut impl Records,
) -> Result<PullResult> {
    // The queue's bounds are read first, so that the log's end is behind all of their records.
    let bounds = queue.bounds();
    let log_end = log.end();
    let mut source = Source {
        log,
        queue,
        bounds,
        log_end,
        filter,
        out,
        units: None,
        records: None,
        present_to: 0,
        checks_bodies: log.checks_bodies(),
        filter_cost: 0,
    };
    Pull { max_messages, limits, log_end }.run(&mut source, offset)
}

/// Maximum cost of a filter in one pull. It is about 25 ms of a processor, or 800 messages with a filter of 300
/// parts.
const MAX_FILTER_COST: usize = 1 << 18;

/// Number of entries by which the prefetching of records is ahead of reading.
const AHEAD: i64 = 16;

struct Source<'a, F: ?Sized, R> {
    log: &'a LiveLog,
    queue: &'a LiveQueue,
    bounds: (i64, i64),
    log_end: u64,
    filter: &'a F,
    out: &'a mut R,
    /// The map of the queue file. A pull reads only one file of a queue.
    units: Option<Arc<FileMap>>,
    records: Option<Arc<FileMap>>,
    /// Offset before which all bytes of the file in `records` are known to exist. Checked once per page.
    present_to: u64,
    checks_bodies: bool,
    filter_cost: usize,
}

impl<F: PullFilter + ?Sized, R: Records> PullSource for Source<'_, F, R> {
    fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    fn units_per_file(&self) -> Option<i64> {
        Some(self.queue.units_per_file())
    }

    #[inline]
    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        if self.units.is_none() {
            self.units = self.queue.file_of(offset)?;
        }
        Ok(self.units.as_ref().and_then(|file| unit_in(file, offset)))
    }

    #[inline]
    fn is_spent(&self) -> bool {
        self.filter_cost >= MAX_FILTER_COST
    }

    fn behind_hole(&mut self, offset: i64) -> i64 {
        let units = self.queue.units_per_file();
        let behind = offset + units - offset % units;
        if !self.queue.has_let_go(offset) {
            let messages = (behind.min(self.bounds.1) - offset).unsigned_abs();
            let unit = Unit::default();
            self.out.skip(SkippedRange { queue_offset: offset, messages, unit, fault: Fault::NoQueueFile });
        }
        behind
    }

    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        self.filter.matches_code(tags_code)
    }

    #[cold]
    fn skip(&mut self, queue_offset: i64, unit: Unit) {
        if !unit.is_message() {
            self.out.skip(SkippedRange { queue_offset, messages: 1, unit, fault: Fault::NoUnit });
        } else if unit.physical_offset as u64 >= self.log.min_offset() {
            // Before the log's start, retention has removed the file, which is not a fault.
            self.out.skip(SkippedRange { queue_offset, messages: 1, unit, fault: Fault::NoFile });
        }
    }

    #[inline]
    fn fetch(&mut self, queue_offset: i64, unit: Unit) -> Result<PullStop> {
        self.prefetch(queue_offset + AHEAD);
        if !unit.is_message() {
            return Ok(PullStop::Gone(None));
        }
        let (offset, len) = (unit.physical_offset as u64, unit.size as usize);
        let end = offset.saturating_add(len as u64);
        // The unit is stale, because nothing was published behind the log's end.
        if end > self.log_end {
            return Ok(self.gone(queue_offset, unit, Fault::BehindLog));
        }
        if self.records.as_ref().is_none_or(|file| file.slice(offset, len).is_none()) {
            self.records = self.log.file_of(offset)?;
            self.present_to = 0;
        }
        let Some(file) = &self.records else {
            self.skip(queue_offset, unit);
            return Ok(PullStop::Gone(Some(behind_file(offset, self.log.file_size()))));
        };
        let record = record_in(file, offset, len);
        if end > self.present_to {
            // Checked once per page, because each check loads from another page.
            self.present_to = file.has_to(end);
        }
        // Checked after the record was read, because a lost page reads as zeroes.
        if end > self.present_to.min(file.lost_from()) {
            return Ok(self.gone(queue_offset, unit, Fault::CutOff));
        }
        let Some(record) = record else { return Ok(self.gone(queue_offset, unit, Fault::NoRecord)) };
        if self.checks_bodies && !file.has_sound_body(offset, record) {
            return Ok(self.gone(queue_offset, unit, Fault::Body));
        }
        if self.filter.reads_messages() {
            let Some(message) = Message::decode(record) else { return Ok(PullStop::Unmatched) };
            self.filter_cost = self.filter_cost.saturating_add(self.filter.cost(message.properties().len()));
            if !self.filter.matches_message(&message) {
                return Ok(PullStop::Unmatched);
            }
        }
        self.out.take(file, offset, record);
        Ok(PullStop::Record(len))
    }
}

impl<F: ?Sized, R: Records> Source<'_, F, R> {
    #[cold]
    fn gone(&mut self, queue_offset: i64, unit: Unit, fault: Fault) -> PullStop {
        self.out.skip(SkippedRange { queue_offset, messages: 1, unit, fault });
        PullStop::Gone(None)
    }

    /// Prefetches the fields that identify the record at a queue offset, if the record is in the current file.
    #[inline]
    fn prefetch(&self, queue_offset: i64) {
        if queue_offset >= self.bounds.1 {
            return;
        }
        let (Some(units), Some(records)) = (&self.units, &self.records) else { return };
        let Some(unit) = unit_in(units, queue_offset) else { return };
        let (Ok(offset), Ok(len)) = (u64::try_from(unit.physical_offset), usize::try_from(unit.size)) else { return };
        let is_published = offset.saturating_add(len as u64) <= self.log_end;
        // Bytes behind the published end may still be written.
        if let Some(record) = records.slice(offset, len).filter(|_| is_published) {
            prefetch(record, 0);
            prefetch(record, PROOF_LEN - 1);
        }
    }
}

pub trait PullFilter {
    #[inline]
    fn matches_code(&self, _tags_code: i64) -> bool {
        true
    }

    /// Returns whether [`matches_message`](Self::matches_message) must decide, because tag hashes are not enough.
    #[inline]
    fn reads_messages(&self) -> bool {
        false
    }

    fn matches_message(&self, _message: &Message<'_>) -> bool {
        true
    }

    /// Returns the cost of [`matches_message`](Self::matches_message) for a message with `properties` bytes of
    /// properties. A cost of 1 is the evaluation of one part of an expression on a short message.
    fn cost(&self, _properties: usize) -> usize {
        0
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Every;

impl PullFilter for Every {}

/// A filter for messages whose tag has one of these hashes, like the `codeSet` of a subscription.
#[derive(Clone, Debug, Default)]
pub struct TagCodes(Box<[i32]>);

impl TagCodes {
    pub fn new(codes: impl IntoIterator<Item = i32>) -> Self {
        let mut codes: Vec<i32> = codes.into_iter().collect();
        codes.sort_unstable();
        codes.dedup();
        Self(codes.into())
    }
}

impl PullFilter for TagCodes {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        match &*self.0 {
            // A broker compares only the lower half of the code (`tagsCode.intValue()`).
            [only] => *only == tags_code as i32,
            codes => codes.binary_search(&(tags_code as i32)).is_ok(),
        }
    }
}

impl PullFilter for TagExpression {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        self.codes_match(tags_code)
    }
}

/// Bytes of properties that a part of an expression can search at a cost of 1.
const SHORT: usize = 256;

impl PullFilter for Sql92 {
    fn reads_messages(&self) -> bool {
        true
    }

    fn cost(&self, properties: usize) -> usize {
        // Each part searches its property from the start, and may parse all of it as a number.
        self.parts().saturating_mul(1 + properties / SHORT)
    }

    fn matches_message(&self, message: &Message<'_>) -> bool {
        self.matches(|name| std::str::from_utf8(message.property(name)?).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_compared_in_32_bits() {
        let codes = TagCodes::new([7, -3, 7, 2_598_919]);
        assert!([7, -3, 2_598_919, 7 + (1 << 40)].iter().all(|code| codes.matches_code(*code)));
        assert!([0, 8, 3].iter().all(|code| !codes.matches_code(*code)));
        assert!(!TagCodes::default().matches_code(0) && TagCodes::new([5]).matches_code(5));
        assert!(Every.matches_code(i64::MIN) && !Every.reads_messages());
    }
}
