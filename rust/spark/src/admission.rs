//! How far the next batch of a stream goes: decisions from values alone.
//!
//! A queue that is found while the stream runs first joins the offsets where it begins, and gives messages from the next batch
//! on: so each batch is a pair of offsets, and whoever runs it again reads the same.
use crate::topic_offsets::QueueBounds;

/// A queue of a topic: broker and number.
pub type Queue = (String, i32);

/// How far a batch goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextEnd {
    /// The offset of each queue.
    pub end: Vec<(Queue, i64)>,
    /// Messages that wait in all queues, before the batch.
    pub waiting: i64,
    /// Queues whose next messages retention has deleted.
    pub expired: Vec<Queue>,
    /// Queues that end before the stream's offset.
    pub shorter: Vec<Queue>,
}

impl NextEnd {
    /// How far the batch goes that begins at `start` and takes `most` messages. A queue that is missing in `queues`, as its
    /// broker is away, stays where it is.
    pub fn of(start: &[(Queue, i64)], queues: &[QueueBounds], most: Option<i64>) -> Self {
        let bounds_of = |queue: &Queue| queues.iter().find(|(broker, id, ..)| (broker, *id) == (&queue.0, queue.1));
        let mut found = Self { end: start.to_vec(), ..Self::default() };
        let (mut places, mut waiting) = (Vec::new(), Vec::new());
        for (place, (queue, at)) in start.iter().enumerate() {
            let Some((_, _, first, last)) = bounds_of(queue) else { continue };
            // expired or shorter is told and not decided here: that depends on failOnDataLoss
            if at < first {
                found.expired.push(queue.clone());
            }
            if last < at {
                found.shorter.push(queue.clone());
            }
            // what has expired is none of what waits
            let begin = *at.max(first);
            places.push((place, begin));
            waiting.push(last.saturating_sub(begin).max(0));
        }
        // a broker may say any number
        found.waiting = waiting.iter().fold(0, |sum, count| sum.saturating_add(*count));
        let shares = most.map_or_else(|| waiting.clone(), |most| allotted(&waiting, most));
        for ((place, begin), share) in places.into_iter().zip(shares).filter(|(_, share)| *share > 0) {
            // from the first message that is there: the caller has told what is lost before it
            found.end[place].1 = begin + share;
        }
        // it joins with nothing read: the checkpoint must have its first offset before any message of it is given
        let is_new = |(broker, id, ..): &&QueueBounds| !start.iter().any(|((b, i), _)| (b, i) == (broker, id));
        found.end.extend(queues.iter().filter(is_new).map(|(broker, id, first, _)| ((broker.clone(), *id), *first)));
        found
    }
}

/// Shares `most` messages out among queues, in proportion to what waits in each: none gets more than that, and together they
/// get `most`, or all there is. What is left over by rounding goes to the queues in their order.
pub fn allotted(waiting: &[i64], most: i64) -> Vec<i64> {
    let total: i128 = waiting.iter().copied().map(i128::from).sum();
    if total <= i128::from(most) {
        return waiting.to_vec();
    }
    // 128 bits: the product of two counts does not fit into 64
    let share = |count: i64| (i128::from(count) * i128::from(most) / total) as i64;
    let mut shares: Vec<i64> = waiting.iter().map(|count| share(*count)).collect();
    let mut left = most - shares.iter().sum::<i64>();
    for (share, count) in shares.iter_mut().zip(waiting) {
        // rounding leaves less than one message for each queue
        let more = left.min(count - *share).min(1);
        *share += more;
        left -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: i32) -> Queue {
        ("b".to_owned(), id)
    }

    #[test]
    fn a_batch_gets_as_many_as_allowed_in_proportion() {
        assert_eq!(allotted(&[90, 9, 0], 10), [10, 0, 0]);
        assert_eq!(allotted(&[5, 5], 100), [5, 5]);
        assert_eq!(allotted(&[1 << 62, 1 << 61], 3), [2, 1]);
    }

    #[test]
    fn queues_that_are_away_stay_and_new_ones_join_where_they_begin() {
        let bounds = [("b".to_owned(), 0, 0, 9), ("b".to_owned(), 2, 3, 30)];
        let found = NextEnd::of(&[(queue(0), 5), (queue(1), 7)], &bounds, None);
        assert_eq!(found.end, [(queue(0), 9), (queue(1), 7), (queue(2), 3)]);
        assert_eq!((found.waiting, found.expired, found.shorter), (4, vec![], vec![]));
    }

    #[test]
    fn what_expired_and_what_is_gone_is_told() {
        let bounds = [("b".to_owned(), 0, 20, 30), ("b".to_owned(), 1, 0, 60)];
        let found = NextEnd::of(&[(queue(0), 5), (queue(1), 70)], &bounds, Some(4));
        assert_eq!(found.end, [(queue(0), 24), (queue(1), 70)]);
        assert_eq!((found.waiting, found.expired, found.shorter), (10, vec![queue(0)], vec![queue(1)]));
    }
}
