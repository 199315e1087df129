//! Which messages a range read gives, and how.
use crate::puller::{PullerOptions, Queue, Subscription};
use rmqfast_store::scan::ScanRequest;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A range of a queue's offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRange {
    /// The queue.
    pub queue: Queue,
    /// The first offset.
    pub start: i64,
    /// The offset behind the last.
    pub end: i64,
}

impl QueueRange {
    /// The end of a range that has none.
    pub const ENDLESS: i64 = i64::MAX;

    /// Whether it goes on for ever: messages are waited for.
    pub fn is_endless(&self) -> bool {
        self.end == Self::ENDLESS
    }
}

impl fmt::Display for QueueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue: Queue { topic, broker_name, queue_id }, start, end } = self;
        write!(f, "{topic}, broker {broker_name}, queue {queue_id}, offsets {start} ")?;
        if self.is_endless() { f.write_str("on") } else { write!(f, "to {end}") }
    }
}

/// What all tasks of a read have in common.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    /// How brokers are asked.
    pub puller: PullerOptions,
    /// What brokers filter by.
    pub subscription: Arc<Subscription>,
    /// Columns and bodies; times and keys, which brokers do not filter by; whether bodies are compared with their CRC.
    pub scan: ScanRequest,
    /// How long a range may wait for a message, while its broker is away or refuses.
    pub patience: Duration,
    /// Whether messages that are lost or unreadable are an error; otherwise a warning.
    pub is_strict: bool,
}
