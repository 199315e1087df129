//! The pieces of a plan. A piece is a range of the log that one thread or task reads, by log or by queue. A few samples
//! of the queues show which of the two is cheaper.
use super::request::ScanRequest;
use crate::Result;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::store::ConsumeQueue;
use crate::store::consume_queue::UnitReader;
use crate::store::delay::DELAY_TOPIC;

/// The way to read a piece: all of the log, or only the records that consume queues list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Log,
    Queue,
}

/// A range of the log, from physical offset `from` to `end` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub way: Way,
    pub from: u64,
    pub end: u64,
    /// Whether to check the CRC of every body even if the request does not ask for it. Set for records that no
    /// consume queue lists yet.
    pub verify_crc: bool,
}

/// Costs of reading, in nanoseconds, measured on files in the page cache. Only the ratios matter.
const NS_PER_LOG_BYTE: f64 = 0.15;
const NS_PER_LOG_RECORD: f64 = 40.0;
const NS_PER_UNIT: f64 = 2.5;
const NS_PER_HIT: f64 = 600.0;
const SAMPLES: i64 = 16;
const SAMPLE_UNITS: usize = 64;

/// Estimated numbers in a range of the log: consume-queue entries, matching entries, and bytes of all listed records.
#[derive(Debug, Default)]
pub struct Estimate {
    pub units: f64,
    hits: f64,
    bytes: f64,
}

impl Estimate {
    pub fn of(queues: &[ConsumeQueue], request: &ScanRequest, (from, end): (u64, u64)) -> Result<Self> {
        let mut all = Self::default();
        for queue in queues {
            let max = queue.max_offset()?;
            let listed = (queue.lower_bound(from, max)?, queue.lower_bound(end, max)?);
            let (first, last) = request.within_bounds(queue.queue_id(), listed);
            if first < last {
                all.add(queue, request, first, last)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, queue: &ConsumeQueue, request: &ScanRequest, first: i64, last: i64) -> Result<()> {
        // Units of the delay topic hold the time of delivery in place of a tag hash.
        let by_hash = !request.tags.is_all() && queue.topic() != DELAY_TOPIC;
        let mut reader = UnitReader::new(queue);
        reader.load(first, last)?;
        let (mut seen, mut hits, mut bytes) = (0.0, 0.0, 0.0);
        for sample in 0..SAMPLES {
            // Samples are spread evenly over the queue.
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
        // At least the size of a small record, in case that no sample was a message.
        let mean = (self.bytes / self.units.max(1.0)).max(100.0);
        let bytes = log_bytes as f64;
        bytes * NS_PER_LOG_BYTE + bytes / mean * NS_PER_LOG_RECORD
    }

    /// Returns the cost of reading by queue, as the number of log bytes that could be read in the same time.
    pub fn queue_cost_bytes(&self) -> u64 {
        (self.queue_cost() / NS_PER_LOG_BYTE) as u64
    }

    pub fn cheaper(&self, log_bytes: u64) -> Way {
        if self.queue_cost() < self.log_cost(log_bytes) { Way::Queue } else { Way::Log }
    }

    /// Returns the expected messages that pass the filters by queue, and the bytes of their records.
    pub fn expected(&self) -> (u64, u64) {
        (self.hits.round() as u64, (self.hits * self.bytes / self.units.max(1.0)).round() as u64)
    }

    /// Explains the choice of `way` for `log_bytes` of the log in a sentence for the user. `choice` says why it is that way.
    pub fn explain(&self, way: Way, log_bytes: u64, choice: &str) -> String {
        let name = match way {
            Way::Queue => "by consume queue",
            Way::Log => "straight through the log",
        };
        let milliseconds = |nanoseconds: f64| nanoseconds / 1e6;
        format!(
            "{name}, {choice}: {:.0} messages are listed, about {:.0} pass the hash of the tag; estimated {:.3} ms by queue, \
             {:.3} ms straight",
            self.units,
            self.hits,
            milliseconds(self.queue_cost()),
            milliseconds(self.log_cost(log_bytes)),
        )
    }
}
