//! The part of a read of topics that one task gets. Cuts queue ranges into such parts.
use crate::error::{Error, Result};
use crate::store::piece::{self as store_piece, decode, encode, malformed_piece};
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::QueueRange;
use rmqfast_replication::LogStretch;
use rmqfast_store::scan::Piece;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A task's share of a read: ranges of one broker's queues, which no other task reads. The ranges may belong to several
/// topics, because one connection serves all topics of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPiece {
    /// The broker's address at the time of planning.
    pub address: Option<String>,
    /// At most one range of each queue.
    pub ranges: Vec<QueueRange>,
    /// Whether the stream's next batch continues with the same queues. The task then keeps its connection for that
    /// batch.
    pub goes_on: bool,
    /// The part of the broker's log to read instead of pulling.
    pub log: Option<LogPart>,
    /// The part of a copy of the broker to read instead of pulling.
    pub copy: Option<CopyPart>,
}

/// A range in JSON: topic, broker name, queue id, first offset, and the offset after its last message.
pub type RangeParts = (String, String, i32, i64, i64);

/// Ranges of a broker with fewer rows than this are combined into one task, since starting a task takes longer than
/// reading them.
const FEW_ROWS: i64 = 50_000;
/// Maximum number of pieces in a plan. Spark's driver needs some KiB of memory for each task of a job.
const MOST_PIECES: i64 = 100_000;

impl TopicPiece {
    /// Cuts ranges into pieces, with the rules of the function [`cut`]. `address_of` returns a broker's address.
    ///
    /// # Errors
    /// Fails like [`cut`].
    pub fn cut(
        ranges: Vec<QueueRange>,
        max_rows: i64,
        min_pieces: i64,
        address_of: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Self>> {
        let tasks = cut(ranges, max_rows, min_pieces)?;
        Ok(tasks.into_iter().map(|ranges| Self::at(ranges, &address_of)).collect())
    }

    /// Joins pieces that are pulled into fewer ones: `most`, or one for each broker if there are more brokers. A reader
    /// pulls all queues of its piece at once. Pieces of logs and copies stay as they are.
    #[must_use]
    pub fn join(pieces: Vec<Self>, most: usize) -> Vec<Self> {
        let (pulled, others): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| piece.log.is_none() && piece.copy.is_none());
        let mut by_broker: BTreeMap<Arc<str>, (Option<String>, Vec<QueueRange>)> = BTreeMap::new();
        for piece in pulled {
            for range in piece.ranges {
                let (address, ranges) = by_broker.entry(range.queue.broker_name.clone()).or_default();
                address.clone_from(&piece.address);
                match ranges.iter_mut().find(|known| known.queue == range.queue && known.end == range.start) {
                    Some(before) => before.end = range.end,
                    None => ranges.push(range),
                }
            }
        }
        let readers = most.div_ceil(by_broker.len().max(1)).max(1);
        let joined = by_broker.into_values().flat_map(|(address, ranges)| {
            let size = ranges.len().div_ceil(readers).max(1);
            let part = |ranges: &[QueueRange]| Self::at(ranges.to_vec(), |_| address.clone());
            ranges.chunks(size).map(part).collect::<Vec<_>>()
        });
        joined.chain(others).collect()
    }

    /// Returns pieces without an end. There are `most` pieces, or one for each broker if there are more brokers.
    pub fn endless(
        queues: impl IntoIterator<Item = (Queue, i64)>,
        most: usize,
        address_of: impl Fn(&str) -> Option<String>,
    ) -> Vec<Self> {
        let mut by_broker: BTreeMap<_, Vec<QueueRange>> = BTreeMap::new();
        for (queue, start) in queues {
            let broker_name = queue.broker_name.clone();
            by_broker.entry(broker_name).or_default().push(QueueRange { queue, start, end: QueueRange::ENDLESS });
        }
        let total: usize = by_broker.values().map(Vec::len).sum();
        let pieces = by_broker.into_values().flat_map(|ranges| {
            // the tasks all run at once, each on its own core, so cores are shared out by each broker's number of
            // queues
            let tasks = (most * ranges.len() / total).clamp(1, ranges.len());
            let size = ranges.len().div_ceil(tasks);
            ranges.chunks(size).map(<[QueueRange]>::to_vec).collect::<Vec<_>>()
        });
        pieces.map(|ranges| Self { goes_on: true, ..Self::at(ranges, &address_of) }).collect()
    }

    fn at(ranges: Vec<QueueRange>, address_of: impl Fn(&str) -> Option<String>) -> Self {
        let address = ranges.first().and_then(|range| address_of(&range.queue.broker_name));
        Self { address, ranges, goes_on: false, log: None, copy: None }
    }

    /// Returns how the messages are got, `pull`, `log` or `mirror`, and the range of the log that contains them, if it is
    /// known.
    pub fn way(&self) -> (&'static str, Option<(u64, u64)>) {
        match (&self.log, &self.copy) {
            (Some(part), _) => ("log", Some((part.stretch.from, part.stretch.end))),
            (None, Some(part)) => ("mirror", Some((part.piece.from, part.piece.end))),
            (None, None) => ("pull", None),
        }
    }

    pub fn of_copy(ranges: Vec<QueueRange>, part: CopyPart) -> Self {
        Self { copy: Some(part), ..Self::at(ranges, |_| None) }
    }

    /// Returns a number that stays equal for the same queues, so that each batch gives them to the same executor.
    /// `None` if the next batch does not continue with the same queues.
    pub fn number(&self) -> Option<u32> {
        let Queue { topic, broker_name, queue_id } = &self.ranges.first().filter(|_| self.goes_on)?.queue;
        // not `Hash`, whose values may differ between processes and releases
        let bytes = topic.bytes().chain(broker_name.bytes());
        let sum = bytes.fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Some(sum.wrapping_add(queue_id.cast_unsigned()))
    }

    /// Serializes the piece. Driver and tasks pass the bytes on without parsing them.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(&self.to_json())
    }

    /// Formats pieces as the JSON of the option `pieces`.
    pub fn to_option(pieces: &[Self]) -> String {
        serde_json::Value::from_iter(pieces.iter().map(Self::to_json)).to_string()
    }

    /// Parses a serialized piece.
    ///
    /// # Errors
    /// Bytes of another release, or bytes that are not a piece of topics.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of_json(decode(bytes)?)
    }

    /// Parses the JSON of the option `pieces`.
    ///
    /// # Errors
    /// The text is not the JSON of pieces.
    pub fn of_option(text: &str) -> Result<Vec<Self>> {
        let pieces: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| Error::argument(format!("option pieces: {error}")))?;
        pieces.into_iter().map(Self::of_json).collect()
    }

    pub fn to_parts(&self) -> (Option<String>, Vec<RangeParts>) {
        let parts = |QueueRange { queue: Queue { topic, broker_name, queue_id }, start, end }: &QueueRange| {
            (topic.clone(), broker_name.to_string(), *queue_id, *start, *end)
        };
        (self.address.clone(), self.ranges.iter().map(parts).collect())
    }

    fn to_json(&self) -> serde_json::Value {
        let (address, ranges) = self.to_parts();
        let (log, copy) = (self.log.as_ref().map(LogPart::to_parts), self.copy.as_ref().map(CopyPart::to_parts));
        serde_json::json!([address, ranges, self.goes_on, log, copy])
    }

    fn of_json(json: serde_json::Value) -> Result<Self> {
        type Parts = (Option<String>, Vec<RangeParts>, bool, Option<LogParts>, Option<CopyParts>);
        let (address, ranges, goes_on, log, copy): Parts = serde_json::from_value(json).map_err(malformed_piece)?;
        let range = |(topic, broker_name, queue_id, start, end): RangeParts| QueueRange {
            queue: Queue { topic, broker_name: broker_name.into(), queue_id },
            start,
            end,
        };
        let ranges = ranges.into_iter().map(range).collect();
        let log = log.map(LogPart::of_parts).transpose();
        let log = log.map_err(|problem| Error::argument(format!("piece: {problem}")))?;
        let copy = copy.map(CopyPart::of_parts).transpose().map_err(malformed_piece)?;
        Ok(Self { address, ranges, goes_on, log, copy })
    }
}

/// Splits large ranges, and combines small ranges of a broker. A task gets at most `max_rows` offsets. There are at
/// least `min_partitions` tasks, unless there are fewer offsets.
///
/// # Errors
/// More pieces than a driver can plan. The count depends on offsets that brokers report, which may be wrong.
pub fn cut(mut ranges: Vec<QueueRange>, max_rows: i64, min_partitions: i64) -> Result<Vec<Vec<QueueRange>>> {
    let total = ranges.iter().map(rows).fold(0, i64::saturating_add);
    // rounded down, so that there are as many tasks as asked for, or more
    let most = max_rows.min((total / min_partitions.max(1)).max(1)).max(1);
    let pieces = ranges.iter().map(|range| piece_count(range, most)).fold(0, i64::saturating_add);
    if pieces > MOST_PIECES {
        let largest = ranges.iter().max_by_key(|range| rows(range)).map_or_else(String::new, QueueRange::to_string);
        return Err(Error::argument(format!(
            "expected {MOST_PIECES} pieces of a read at most, got {pieces} of {most} offsets each; the largest range is {largest}; raise \
             maxRowsPerPartition or lower minPartitions, or read fewer offsets at a time"
        )));
    }
    // putting small ranges together must not give fewer than `min_partitions` tasks
    let few = FEW_ROWS.min(most);
    // the sort is stable, so that ranges of one topic stay together
    ranges.sort_by(|one, other| one.queue.broker_name.cmp(&other.queue.broker_name));
    let mut tasks: Vec<Vec<QueueRange>> = Vec::new();
    let mut room = 0;
    for piece in ranges.iter().flat_map(|range| equal_pieces(range, most)) {
        let rows = rows(&piece);
        // a task has one connection, so one broker; and its reader takes each queue once
        let fits = |last: &QueueRange| {
            rows <= room && last.queue.broker_name == piece.queue.broker_name && last.queue != piece.queue
        };
        match tasks.last_mut() {
            Some(task) if task.last().is_some_and(fits) => {
                room -= rows;
                task.push(piece);
            }
            _ => {
                room = few - rows;
                tasks.push(vec![piece]);
            }
        }
    }
    Ok(tasks)
}

fn piece_count(range: &QueueRange, most: i64) -> i64 {
    let rows = rows(range);
    rows / most + i64::from(rows % most > 0)
}

fn equal_pieces(range: &QueueRange, most: i64) -> impl Iterator<Item = QueueRange> {
    let (queue, start) = (range.queue.clone(), range.start);
    let (rows, count) = (rows(range), piece_count(range, most));
    // of equal size: a short last piece would leave its core idle
    let edge = move |number: i64| start + (i128::from(rows) * i128::from(number) / i128::from(count)) as i64;
    (0..count).map(move |number| QueueRange { queue: queue.clone(), start: edge(number), end: edge(number + 1) })
}

fn rows(range: &QueueRange) -> i64 {
    range.end.saturating_sub(range.start).max(0)
}

/// The part of a log that contains all messages of a piece's ranges, among other records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    pub stretch: LogStretch,
    /// Store time and body CRC of the first record. If they differ, the address leads to the log of another broker.
    pub first: (i64, i32),
    /// For each range, its first offset in the plan and the physical offset of the first record that counts for it. An
    /// earlier record may be of a deleted topic that had the same queues and offsets.
    pub begins: Vec<(i64, u64)>,
}

/// A log part in JSON: addresses; file size, longest record, start and end in bytes; identity of the first record; the
/// beginning of each range.
pub type LogParts = (Vec<String>, [u64; 4], (i64, i32), Vec<(i64, u64)>);

/// Maximum size of a log file, since Java stores it in 32 bits.
const MAX_FILE: u64 = i32::MAX as u64;

impl LogPart {
    /// Returns the part without the ranges that filters have removed; `left` are the ranges that remain.
    #[must_use]
    pub fn keep_ranges(&self, ranges: &[QueueRange], left: &[QueueRange]) -> Self {
        let begins = ranges.iter().zip(&self.begins);
        let begins = begins.filter(|(range, _)| left.iter().any(|left| left.queue == range.queue));
        Self { begins: begins.map(|(_, begin)| *begin).collect(), ..self.clone() }
    }

    pub fn to_parts(&self) -> LogParts {
        let LogStretch { addresses, file_size, max_record, from, end } = self.stretch.clone();
        (addresses, [file_size, max_record, from, end], self.first, self.begins.clone())
    }

    /// Builds the part from JSON values.
    ///
    /// # Errors
    /// Values that no log can have, as text.
    pub fn of_parts((addresses, numbers, first, begins): LogParts) -> Result<Self, String> {
        let [file_size, max_record, from, end] = numbers;
        if !(1..=MAX_FILE).contains(&file_size) || from > end || end > i64::MAX as u64 {
            return Err(format!("log: expected a file size and a stretch, got {numbers:?}"));
        }
        Ok(Self { stretch: LogStretch { addresses, file_size, max_record, from, end }, first, begins })
    }
}

/// The part of a copy that contains messages of a piece's ranges, all of one topic. Other pieces read other parts of
/// the same ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The copy's directory, which must be at the same path on every executor.
    pub path: PathBuf,
    pub piece: Piece,
}

/// A copy part in JSON: the directory, and a piece of the store.
pub type CopyParts = (PathBuf, Value);

impl CopyPart {
    pub fn to_parts(&self) -> CopyParts {
        (self.path.clone(), store_piece::to_json(&self.piece))
    }

    /// Builds the part from JSON values.
    ///
    /// # Errors
    /// The value is not a piece of a store.
    pub fn of_parts((path, piece): CopyParts) -> serde_json::Result<Self> {
        Ok(Self { path, piece: store_piece::of_json(piece)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmqfast_client::puller::Queue;
    use rmqfast_replication::LogStretch;
    use rmqfast_store::scan::{Piece, Way};
    use std::collections::BTreeMap;

    fn range(topic: &str, broker: &str, queue_id: i32, start: i64, end: i64) -> QueueRange {
        QueueRange { queue: Queue { topic: topic.into(), broker_name: broker.into(), queue_id }, start, end }
    }

    #[test]
    fn large_ranges_are_cut_and_small_ones_put_together() {
        let of = |id, rows| range("t", "b", id, 0, rows);
        let places = |tasks: Vec<Vec<QueueRange>>| -> Vec<Vec<_>> {
            let place = |range: QueueRange| (range.queue.queue_id, range.start, range.end);
            tasks.into_iter().map(|task| task.into_iter().map(place).collect()).collect()
        };
        let both = || vec![of(0, 10), of(1, 4)];
        assert_eq!(places(cut(both(), 8, 1).expect("pieces")), [vec![(0, 0, 5)], vec![(0, 5, 10)], vec![(1, 0, 4)]]);
        assert_eq!(places(cut(both(), 100, 1).expect("pieces")), [vec![(0, 0, 10), (1, 0, 4)]]);
        assert!(cut(vec![of(0, 0)], 8, 1).expect("pieces").is_empty());
    }

    #[test]
    fn joined_pieces_have_each_offset_once_and_each_queue_in_one_range() {
        let ranges = || vec![range("t", "a", 0, 3, 100), range("t", "b", 0, 0, 7), range("t", "a", 1, 5, 6)];
        let address = |name: &str| Some(format!("{name}:1"));
        let pieces = TopicPiece::cut(ranges(), 10, 1, address).expect("pieces");
        for (most, readers) in [(1, vec!["a:1", "b:1"]), (4, vec!["a:1", "a:1", "b:1"])] {
            let joined = TopicPiece::join(pieces.clone(), most);
            assert_eq!(joined.iter().filter_map(|piece| piece.address.clone()).collect::<Vec<_>>(), readers);
            let mut joined: Vec<_> = joined.into_iter().flat_map(|piece| piece.ranges).collect();
            let mut expected = ranges();
            for ranges in [&mut joined, &mut expected] {
                ranges.sort_by_key(|range| (range.queue.broker_name.to_string(), range.queue.queue_id));
            }
            assert_eq!(joined, expected);
        }
        assert!(TopicPiece::join(Vec::new(), 3).is_empty());
    }

    #[test]
    fn more_pieces_than_a_driver_plans_are_refused_before_they_are_made() {
        for (ranges, max_rows, min_partitions, count) in [
            (vec![range("t", "b", 0, 0, i64::MAX - 1)], 1_000_000, 1, 9_223_372_036_855),
            (vec![range("t", "b", 0, i64::MIN, i64::MAX - 1)], 1, 1, i64::MAX),
            ((0..3).map(|id| range("t", "b", id, 0, i64::MAX - 1)).collect(), 1, 1, i64::MAX),
            (vec![range("t", "b", 0, 0, 100_001)], 1, 1, 100_001),
            (vec![range("t", "b", 0, 0, 1 << 40)], 1_000_000, i64::MAX, 1 << 40),
            (vec![range("t", "b", 0, 0, 1 << 40)], 0, 1, 1 << 40),
        ] {
            let error = cut(ranges, max_rows, min_partitions).expect_err("too many").to_string();
            assert!(
                error.starts_with(&format!("expected 100000 pieces of a read at most, got {count} of ")),
                "{error}"
            );
            assert!(
                error.ends_with("raise maxRowsPerPartition or lower minPartitions, or read fewer offsets at a time")
            );
        }
        assert_eq!(cut(vec![range("t", "b", 0, 0, 100_000)], 1, 1).expect("pieces").len(), 100_000);
    }

    #[test]
    fn a_task_reads_what_one_broker_has_of_several_topics() {
        let ranges = vec![
            range("bills", "a", 0, 0, 9),
            range("bills", "b", 0, 0, 9),
            range("orders", "a", 0, 0, 9),
            range("orders", "b", 0, 0, 9),
        ];
        let pieces = TopicPiece::cut(ranges.clone(), 1000, 1, |_| None).expect("pieces");
        let topics = |piece: &TopicPiece| -> Vec<String> {
            piece.ranges.iter().map(|range| range.queue.topic.clone()).collect()
        };
        assert_eq!(pieces.iter().map(topics).collect::<Vec<_>>(), [["bills", "orders"], ["bills", "orders"]]);
        let queues = ranges.into_iter().map(|range| (range.queue, 5));
        let endless = TopicPiece::endless(queues, 2, |_| None);
        assert_eq!(endless.iter().map(topics).collect::<Vec<_>>(), [["bills", "orders"], ["bills", "orders"]]);
        assert!(endless.iter().flat_map(|piece| &piece.ranges).all(|range| range.start == 5 && range.is_endless()));
        assert_eq!(TopicPiece::endless([], 2, |_| None), []);
    }

    proptest! {
        #[test]
        fn pieces_have_each_offset_once_and_a_queue_of_one_broker_once(
            queues in proptest::collection::btree_map(("[xy]", "[ab]", 0..4), (0i64..10, 1i64..=200_000), 0..8),
            max_rows in 1000i64..=300_000, min_pieces in 1i64..=20
        ) {
            let address = |broker: &str| (broker == "a").then(|| "10.0.0.1:10911".to_owned());
            let ranges: Vec<QueueRange> = queues
                .into_iter()
                .map(|((topic, broker, id), (from, count))| range(&topic, &broker, id, from, from + count))
                .collect();
            let pieces = TopicPiece::cut(ranges.clone(), max_rows, min_pieces, address).expect("pieces");
            let total: i64 = ranges.iter().map(rows).sum();
            prop_assert!(pieces.len() as i64 >= min_pieces.min(total));
            let mut parts: BTreeMap<&Queue, Vec<(i64, i64)>> = BTreeMap::new();
            for TopicPiece { address: at, ranges, .. } in &pieces {
                let broker = &ranges.first().expect("a range").queue.broker_name;
                prop_assert_eq!(at, &address(broker));
                prop_assert!(ranges.iter().all(|range| range.queue.broker_name == *broker));
                let queues: std::collections::BTreeSet<&Queue> = ranges.iter().map(|range| &range.queue).collect();
                prop_assert_eq!(queues.len(), ranges.len());
                prop_assert!(ranges.iter().map(rows).sum::<i64>() <= max_rows);
                for range in ranges {
                    parts.entry(&range.queue).or_default().push((range.start, range.end));
                }
            }
            prop_assert_eq!(parts.len(), ranges.len());
            for range in &ranges {
                let own = &parts[&range.queue];
                // each piece begins where the one before it ends
                let edges: Vec<i64> = own.iter().map(|(from, _)| *from).chain([range.end]).collect();
                let expected: Vec<i64> = [range.start].into_iter().chain(own.iter().map(|(_, end)| *end)).collect();
                prop_assert_eq!(edges, expected);
            }
        }
    }

    #[test]
    fn a_piece_comes_back_from_its_bytes_and_one_of_another_release_is_refused() {
        let ranges = vec![range("orders", "broker-a", 0, 5, 1 << 40), range("bills", "broker-a", 3, 0, 1)];
        for address in [Some("10.0.0.1:10911".to_owned()), None] {
            let stretch = LogStretch { file_size: 1000, from: 5, end: 1 << 62, ..LogStretch::default() };
            let log = address.as_ref().map(|_| LogPart { stretch, first: (7, -7), begins: vec![(5, 5), (0, 77)] });
            let piece = Piece { way: Way::Queue, from: 5, end: 1 << 62, verify_crc: true };
            let copy = address.is_none().then(|| CopyPart { path: "/copies/broker-a".into(), piece });
            let piece = TopicPiece { address, ranges: ranges.clone(), goes_on: true, log, copy };
            let mut bytes = piece.to_bytes();
            assert_eq!(TopicPiece::of_bytes(&bytes).expect("a piece"), piece);
            bytes[0] = 1;
            let error = TopicPiece::of_bytes(&bytes).expect_err("another release").to_string();
            assert!(error.starts_with("piece: expected version 5, got 1"), "{error}");
        }
        for bytes in [&b""[..], b"\x05", b"\x05[null]"] {
            assert!(TopicPiece::of_bytes(bytes).is_err());
        }
    }

    #[test]
    fn filters_leave_where_the_ranges_that_are_left_begin() {
        let stretch = LogStretch { file_size: 1000, from: 5, end: 900, ..LogStretch::default() };
        let part = LogPart { stretch, first: (7, -1), begins: vec![(0, 5), (3, 6), (0, 7)] };
        let ranges = [range("t", "b", 0, 0, 100), range("t", "b", 1, 3, 100), range("t", "b", 2, 0, 100)];
        // a range that begins later still records its planned beginning
        let left = part.keep_ranges(&ranges, &[range("t", "b", 1, 50, 100), range("t", "b", 2, 0, 100)]);
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
