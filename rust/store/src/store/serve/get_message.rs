//! A pull from a consume queue of a store that this process appends to. Consume-queue entries and records are read
//! through maps, and records go to the caller without a copy in between.
//!
//! Source: `DefaultMessageStore.getMessage`.
use super::live_log::{LiveLog, PROOF_LEN, record_in};
use super::live_queue::{LiveQueue, unit_in};
use super::map_cache::FileMap;
use super::places::Records;
use super::pull_filter::PullFilter;
use super::skipped::{Fault, SkippedRange};
use crate::Result;
use crate::file::mmap::prefetch;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use crate::store::get_limits::GetLimits;
pub use crate::store::pull::PullResult;
use crate::store::pull::{Pull, PullSource, PullStop, behind_file};
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

/// Number of entries by which prefetching of records is ahead.
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
    /// The map of the log file that was read last.
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
