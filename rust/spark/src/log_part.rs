//! Where the messages of a piece stand in their broker's log.
use rmqfast_client::ranges::QueueRange;
use rmqfast_replication::LogStretch;

/// A stretch of a log that holds all messages of a piece's ranges, among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// The stretch.
    pub stretch: LogStretch,
    /// For each range, the place from which on the log lists it. Before it the messages of a deleted topic may stand, which had the
    /// same queues and offsets.
    pub since: Vec<u64>,
}

/// A part as texts have it: addresses; bytes of a file, bytes of a record at most, the first place, the one behind the last; the
/// place of each range.
pub type LogParts = (Vec<String>, u64, u64, u64, u64, Vec<u64>);

impl LogPart {
    /// The part of what filters leave of `ranges`; none where one begins later, at a place that nobody has looked for.
    pub fn left_of(&self, ranges: &[QueueRange], left: &[QueueRange]) -> Option<Self> {
        let since = left.iter().map(|left| {
            let index = ranges.iter().position(|range| range.queue == left.queue && range.start == left.start)?;
            self.since.get(index).copied()
        });
        Some(Self { stretch: self.stretch.clone(), since: since.collect::<Option<_>>()? })
    }

    /// What [`of_parts`](Self::of_parts) takes.
    pub fn to_parts(&self) -> LogParts {
        let LogStretch { addresses, file_size, max_record, from, end } = self.stretch.clone();
        (addresses, file_size, max_record, from, end, self.since.clone())
    }

    /// The part of such values.
    pub fn of_parts((addresses, file_size, max_record, from, end, since): LogParts) -> Self {
        Self { stretch: LogStretch { addresses, file_size, max_record, from, end }, since }
    }
}
