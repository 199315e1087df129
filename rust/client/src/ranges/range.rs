//! Requests for range reads: ranges of offsets, and options.
use crate::puller::{PullerOptions, Queue, Subscription};
use rmqfast_store::scan::ScanRequest;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A range of a queue's offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRange {
    pub queue: Queue,
    pub start: i64,
    /// The offset before which the range ends, or [`ENDLESS`](Self::ENDLESS).
    pub end: i64,
}

impl QueueRange {
    /// Value of `end` for a range that never ends.
    pub const ENDLESS: i64 = i64::MAX;

    /// Returns whether the range has no end and waits for new messages.
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

/// Options of a read, shared by all of its tasks.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    /// Options of the puller, some of which the reader overrides.
    pub puller: PullerOptions,
    pub subscription: Arc<Subscription>,
    /// Columns of the rows, filters by time and key that brokers cannot apply, and whether the CRC of bodies is
    /// checked.
    pub scan: ScanRequest,
    /// Time that a range waits without progress while its broker is down or refuses.
    pub patience: Duration,
    /// Whether lost or unreadable messages are an error. Otherwise they are a warning.
    pub is_strict: bool,
}

impl RangeRequest {
    /// Returns whether a column or a client-side filter needs tags, keys or ids of messages.
    pub fn needs_properties(&self) -> bool {
        self.scan.needs_properties() || self.subscription.tags.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::scan::Column;

    #[test]
    fn columns_and_filters_of_the_client_need_properties() {
        let needs = |columns: &[Column], keys: Option<&str>, tags: &str| {
            let keys = keys.map(|key| vec![key.to_owned()]);
            let scan = ScanRequest { columns: columns.to_vec(), keys, ..ScanRequest::default() };
            let request = RangeRequest {
                puller: PullerOptions::default(),
                subscription: Subscription::by_tags(tags).expect("tags").into(),
                scan,
                patience: Duration::ZERO,
                is_strict: true,
            };
            request.needs_properties()
        };
        // the column of all properties parses them itself
        let plain = [Column::Body, Column::Properties, Column::QueueOffset, Column::OffsetMsgId];
        assert!(!needs(&plain, None, "*"));
        for column in [Column::MsgId, Column::Tags, Column::Keys] {
            assert!(needs(&[Column::Body, column], None, "*"));
        }
        assert!(needs(&plain, Some("key"), "*"));
        assert!(needs(&plain, None, "TagA"));
    }
}
