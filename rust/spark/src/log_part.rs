//! Where the messages of a piece stand in their broker's log.
use rmqfast_client::ranges::QueueRange;
use rmqfast_replication::LogStretch;

/// A stretch of a log that holds all messages of a piece's ranges, among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// The stretch.
    pub stretch: LogStretch,
    /// Store time and CRC of the body of its first record: an address may lead to another broker's log.
    pub first: (i64, i32),
    /// For each range, the offset that was planned as its first, and from which place on the log lists it. Before that place
    /// messages of a deleted topic may stand, which had the same queues and offsets.
    pub begins: Vec<(i64, u64)>,
}

/// A part as texts have it: addresses; bytes of a file, bytes of a record at most, the first place, the one behind the last; what
/// tells the first record; where each range begins.
pub type LogParts = (Vec<String>, [u64; 4], (i64, i32), Vec<(i64, u64)>);

/// Java counts bytes of a file in 32 bits.
const MAX_FILE: u64 = i32::MAX as u64;

impl LogPart {
    /// The part of what filters leave of `ranges`.
    #[must_use]
    pub fn left_of(&self, ranges: &[QueueRange], left: &[QueueRange]) -> Self {
        let begins = ranges.iter().zip(&self.begins);
        let begins = begins.filter(|(range, _)| left.iter().any(|left| left.queue == range.queue));
        Self { begins: begins.map(|(_, begin)| *begin).collect(), ..self.clone() }
    }

    /// What [`of_parts`](Self::of_parts) takes.
    pub fn to_parts(&self) -> LogParts {
        let LogStretch { addresses, file_size, max_record, from, end } = self.stretch.clone();
        (addresses, [file_size, max_record, from, end], self.first, self.begins.clone())
    }

    /// The part of such values.
    ///
    /// # Errors
    /// What no log has, in words.
    pub fn of_parts((addresses, numbers, first, begins): LogParts) -> Result<Self, String> {
        let [file_size, max_record, from, end] = numbers;
        if !(1..=MAX_FILE).contains(&file_size) || from > end || end > i64::MAX as u64 {
            return Err(format!("log: expected a file size and a stretch, got {numbers:?}"));
        }
        Ok(Self { stretch: LogStretch { addresses, file_size, max_record, from, end }, first, begins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_client::puller::Queue;

    fn range(queue_id: i32, start: i64) -> QueueRange {
        QueueRange { queue: Queue { topic: "t".into(), broker_name: "b".into(), queue_id }, start, end: 100 }
    }

    #[test]
    fn filters_leave_where_the_ranges_that_are_left_begin() {
        let stretch = LogStretch { file_size: 1000, from: 5, end: 900, ..LogStretch::default() };
        let part = LogPart { stretch, first: (7, -1), begins: vec![(0, 5), (3, 6), (0, 7)] };
        let ranges = [range(0, 0), range(1, 3), range(2, 0)];
        // one that begins later still counts from where it was planned to
        let left = part.left_of(&ranges, &[range(1, 50), range(2, 0)]);
        assert_eq!(left.begins, [(3, 6), (0, 7)]);
        assert_eq!(LogPart::of_parts(left.to_parts()), Ok(left));
    }

    #[test]
    fn what_no_log_has_is_refused() {
        for numbers in [[0, 1, 0, 9], [1 << 31, 1, 0, 9], [1000, 1, 10, 9], [1000, 1, 0, u64::MAX]] {
            assert!(LogPart::of_parts((Vec::new(), numbers, (0, 0), Vec::new())).is_err(), "{numbers:?}");
        }
    }
}
