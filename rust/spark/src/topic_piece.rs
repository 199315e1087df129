//! A task's share of a read of a topic, and how ranges of queues become such pieces.
use crate::error::{Error, Result};
use crate::piece_bytes::{self, malformed};
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::QueueRange;
use std::collections::BTreeMap;

/// A task's share of a read: ranges of queues of one broker that no other task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPiece {
    /// Where the broker was when this was planned.
    pub address: Option<String>,
    /// The ranges, of different queues.
    pub ranges: Vec<Range>,
    /// Whether the next batch of a stream goes on where the ranges end.
    pub goes_on: bool,
}

/// Offsets of a queue: broker, number, the first, the one behind the last.
pub type Range = (String, i32, i64, i64);

/// Ranges of a broker that have less than this together become one task, which takes longer to begin than to read them.
const FEW_ROWS: i64 = 50_000;

impl TopicPiece {
    /// Cuts ranges as [`cut`] does; `address_of` says where brokers are.
    pub fn cut(
        ranges: &[Range],
        max_rows: i64,
        min_pieces: i64,
        address_of: impl Fn(&str) -> Option<String>,
    ) -> Vec<Self> {
        let pieces = cut(ranges, max_rows, min_pieces).into_iter();
        pieces.map(|ranges| Self::of(ranges, &address_of)).collect()
    }

    /// Pieces without an end of queues that begin at these offsets, `most` of them where there are no more brokers.
    pub fn endless(
        queues: Vec<(String, i32, i64)>,
        most: usize,
        address_of: impl Fn(&str) -> Option<String>,
    ) -> Vec<Self> {
        let mut by_broker: BTreeMap<String, Vec<Range>> = BTreeMap::new();
        let total = queues.len();
        for (broker, id, start) in queues {
            let range = (broker.clone(), id, start, QueueRange::ENDLESS);
            by_broker.entry(broker).or_default().push(range);
        }
        let pieces = by_broker.into_values().flat_map(|ranges| {
            // all tasks run at once, each on a core of its own: a broker gets its share of them, and one at least
            let tasks = (most * ranges.len() / total).clamp(1, ranges.len());
            let size = ranges.len().div_ceil(tasks);
            ranges.chunks(size).map(<[Range]>::to_vec).collect::<Vec<_>>()
        });
        pieces.map(|ranges| Self { goes_on: true, ..Self::of(ranges, &address_of) }).collect()
    }

    /// Of ranges of one broker.
    fn of(ranges: Vec<Range>, address_of: impl Fn(&str) -> Option<String>) -> Self {
        Self { address: ranges.first().and_then(|(name, ..)| address_of(name)), ranges, goes_on: false }
    }

    /// A number that the next batch's piece of the same queues has, too; none where no piece goes on.
    pub fn number(&self) -> Option<u32> {
        let (broker_name, queue_id, ..) = self.ranges.first().filter(|_| self.goes_on)?;
        // a sum that is the same in each process and each release
        let sum = broker_name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Some(sum.wrapping_add(queue_id.cast_unsigned()) >> 1)
    }

    /// The piece as bytes, which driver and tasks carry unread.
    pub fn to_bytes(&self) -> Vec<u8> {
        piece_bytes::to_bytes(&serde_json::json!([self.address, self.ranges, self.goes_on]))
    }

    /// The piece that bytes are.
    ///
    /// # Errors
    /// Bytes of another release, or none of a piece of a topic.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let (address, ranges, goes_on) = serde_json::from_value(piece_bytes::of_bytes(bytes)?).map_err(malformed)?;
        Ok(Self { address, ranges, goes_on })
    }

    /// Pieces that were planned before, as the JSON of an option.
    ///
    /// # Errors
    /// No such text.
    pub fn of_option(text: &str) -> Result<Vec<Self>> {
        let pieces: Vec<(Option<String>, Vec<Range>)> =
            serde_json::from_str(text).map_err(|error| Error::argument(format!("option pieces: {error}")))?;
        Ok(pieces.into_iter().map(|(address, ranges)| Self { address, ranges, goes_on: false }).collect())
    }

    /// The ranges as the reader of them takes them.
    pub fn queue_ranges(&self, topic: &str) -> Vec<QueueRange> {
        let range = |(broker_name, queue_id, start, end): &Range| QueueRange {
            queue: Queue { topic: topic.to_owned(), broker_name: broker_name.as_str().into(), queue_id: *queue_id },
            start: *start,
            end: *end,
        };
        self.ranges.iter().map(range).collect()
    }
}

/// Cuts large ranges, and puts small ones of a broker together: a task has `max_rows` offsets at most, and there are
/// `min_partitions` at least, where there are as many offsets.
pub fn cut(ranges: &[Range], max_rows: i64, min_partitions: i64) -> Vec<Vec<Range>> {
    let total = ranges.iter().map(rows).fold(0, i64::saturating_add);
    // rounded down, so that there are as many tasks as asked for, or more
    let most = max_rows.min((total / min_partitions.max(1)).max(1));
    // small ranges together must not undo `min_partitions`
    let few = FEW_ROWS.min(most);
    let mut tasks: Vec<Vec<Range>> = Vec::new();
    let mut room = 0;
    for piece in ranges.iter().flat_map(|range| equal_pieces(range, most)) {
        let rows = rows(&piece);
        // one broker, one connection; and a reader takes each queue once
        let fits = |last: &Range| rows <= room && last.0 == piece.0 && last.1 != piece.1;
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
    tasks
}

fn equal_pieces(range: &Range, most: i64) -> impl Iterator<Item = Range> {
    let (broker, id, start, _) = range.clone();
    let rows = rows(range);
    let count = rows / most + i64::from(rows % most > 0);
    // of equal size: a short last piece would leave its core idle
    let edge = move |number: i64| start + (i128::from(rows) * i128::from(number) / i128::from(count)) as i64;
    (0..count).map(move |number| (broker.clone(), id, edge(number), edge(number + 1)))
}

fn rows((_, _, start, end): &Range) -> i64 {
    end.saturating_sub(*start).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn large_ranges_are_cut_and_small_ones_put_together() {
        let of = |id, rows| ("b".to_owned(), id, 0, rows);
        let places = |tasks: Vec<Vec<Range>>| -> Vec<Vec<_>> {
            tasks.into_iter().map(|task| task.into_iter().map(|(_, id, from, end)| (id, from, end)).collect()).collect()
        };
        assert_eq!(places(cut(&[of(0, 10), of(1, 4)], 8, 1)), [vec![(0, 0, 5)], vec![(0, 5, 10)], vec![(1, 0, 4)]]);
        assert_eq!(places(cut(&[of(0, 10), of(1, 4)], 100, 1)), [vec![(0, 0, 10), (1, 0, 4)]]);
        assert!(cut(&[of(0, 0)], 8, 1).is_empty());
    }

    proptest! {
        #[test]
        fn pieces_have_each_offset_once_and_a_queue_of_one_broker_once(
            queues in proptest::collection::btree_map(("[ab]", 0..6), (0i64..10, 1i64..=200_000), 0..8),
            max_rows in 1000i64..=300_000, min_pieces in 1i64..=20
        ) {
            let address = |broker: &str| (broker == "a").then(|| "10.0.0.1:10911".to_owned());
            let ranges: Vec<Range> =
                queues.into_iter().map(|((broker, id), (from, count))| (broker, id, from, from + count)).collect();
            let pieces = TopicPiece::cut(&ranges, max_rows, min_pieces, address);
            let total: i64 = ranges.iter().map(rows).sum();
            prop_assert!(pieces.len() as i64 >= min_pieces.min(total));
            let mut parts: BTreeMap<(&str, i32), Vec<(i64, i64)>> = BTreeMap::new();
            for TopicPiece { address: at, ranges, .. } in &pieces {
                let (broker, ..) = ranges.first().expect("a range");
                prop_assert_eq!(at, &address(broker));
                prop_assert!(ranges.iter().all(|(other, ..)| other == broker));
                let ids: std::collections::BTreeSet<i32> = ranges.iter().map(|(_, id, ..)| *id).collect();
                prop_assert_eq!(ids.len(), ranges.len());
                prop_assert!(ranges.iter().map(rows).sum::<i64>() <= max_rows);
                for (broker, id, from, end) in ranges {
                    parts.entry((broker, *id)).or_default().push((*from, *end));
                }
            }
            prop_assert_eq!(parts.len(), ranges.len());
            for (broker, id, from, end) in &ranges {
                let own = &parts[&(broker.as_str(), *id)];
                // one follows the other, from the first offset to the last
                let edges: Vec<i64> = own.iter().map(|(from, _)| *from).chain([*end]).collect();
                let expected: Vec<i64> = [*from].into_iter().chain(own.iter().map(|(_, end)| *end)).collect();
                prop_assert_eq!(edges, expected);
            }
        }
    }

    #[test]
    fn a_piece_comes_back_from_its_bytes_and_one_of_another_release_is_refused() {
        let ranges = vec![("broker-a".to_owned(), 0, 5, 1 << 40), ("broker-a".to_owned(), 3, 0, 1)];
        for address in [Some("10.0.0.1:10911".to_owned()), None] {
            let piece = TopicPiece { address, ranges: ranges.clone(), goes_on: true };
            let mut bytes = piece.to_bytes();
            assert_eq!(TopicPiece::of_bytes(&bytes).expect("a piece"), piece);
            bytes[0] = 1;
            let error = TopicPiece::of_bytes(&bytes).expect_err("another release").to_string();
            assert!(error.starts_with("piece: expected version 2, got 1"), "{error}");
        }
        for bytes in [&b""[..], b"\x02", b"\x02[null]"] {
            assert!(TopicPiece::of_bytes(bytes).is_err());
        }
    }
}
