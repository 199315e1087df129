//! Decides where a topic stream's next batch ends. Does no I/O, and gets the time from its callers.
//!
//! A queue that appears while the stream runs joins the offsets at its first message and is read from the next batch
//! on. So a batch is fully described by two offsets, and running it again reads the same messages.
//!
//! Source: Spark's `KafkaMicroBatchStream`.
use crate::error::{Error, Result};
use crate::stream::{Limits, Log};
use crate::topic::checkpoint::StreamOffsets;
use crate::topic::continuity::Break;
use rmqfast_client::cluster::Bounds;
use rmqfast_client::puller::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The first offset of each queue, and the offset after its last message.
pub type StreamBounds = BTreeMap<Queue, Bounds>;

const NEXT_STEP: &str = "failOnDataLoss=false goes on with what is there; a new checkpointLocation begins anew";

/// The state of a stream between its batches.
#[derive(Debug)]
pub struct Admission {
    /// Name of the read in log lines.
    topics: String,
    patience: Duration,
    is_strict: bool,
    last_batch: Duration,
    shorter_since: BTreeMap<Queue, Duration>,
    /// Losses that were already logged. Every trigger finds them again, but each loss is logged once.
    told: BTreeSet<(Queue, i64)>,
}

impl Admission {
    /// Creates the state at time 0. With `is_strict`, a loss is an error. If a slave's queue ends before the stream's
    /// offset, the slave may be behind, and the stream waits up to `patience`.
    pub fn new(topics: String, patience: Duration, is_strict: bool) -> Self {
        Self {
            topics,
            patience,
            is_strict,
            last_batch: Duration::ZERO,
            shorter_since: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Returns the end of the batch that begins at `start`. It equals `start` while the stream waits for more messages.
    /// `breaks` are queues that `bounds` does not contain.
    ///
    /// # Errors
    /// The stream is strict, and messages have expired or a queue does not continue at the stream's offset.
    pub fn end(
        &mut self,
        start: &StreamOffsets,
        bounds: &StreamBounds,
        breaks: &[Break],
        limits: Limits,
        now: Duration,
        log: &mut Log,
    ) -> Result<StreamOffsets> {
        let NextEnd { mut end, waiting, expired } = NextEnd::of(start, bounds, limits.most);
        for Gap { queue, offset, edge } in expired {
            let what = format!("offset {offset} has expired, the queue begins at {edge}");
            self.lose(&queue, offset, &what, log)?;
        }
        end.extend(self.next_offsets(breaks, now, log)?);
        // the stream waits only if no queue is new, since a new queue must reach the checkpoint at once
        if end.keys().eq(start.keys()) && self.waits(waiting, limits, now) {
            return Ok(start.clone());
        }
        if end != *start {
            self.last_batch = now;
            let count = start.iter().map(|(queue, from)| end[queue].saturating_sub(*from).max(0));
            let count = count.fold(0, i64::saturating_add);
            log.info(format!("{}: a batch of {count} offsets, {waiting} wait", self.topics));
        }
        Ok(end)
    }

    /// Returns where to continue in queues that do not continue at the stream's offset. If only a slave answered, its
    /// queue may be behind, so the stream first waits up to `patience`.
    ///
    /// # Errors
    /// There is such a queue, and the stream is strict.
    pub fn next_offsets(&mut self, breaks: &[Break], now: Duration, log: &mut Log) -> Result<StreamOffsets> {
        let since = |queue: &Queue| self.shorter_since.get(queue).copied().unwrap_or(now);
        let uncertain = breaks.iter().filter(|found| !found.is_certain);
        self.shorter_since = uncertain.map(|found| (found.queue.clone(), since(&found.queue))).collect();
        let mut next_offsets = StreamOffsets::new();
        for Break { queue, offset, what, next, .. } in breaks {
            let is_waited_for = |since: &Duration| now.saturating_sub(*since) <= self.patience;
            if self.shorter_since.get(queue).is_some_and(is_waited_for) {
                // a key of its own (-1 - offset), so that a later loss at this offset is still logged
                if self.told.insert((queue.clone(), -1 - offset)) {
                    log.warn([format!("{}: {what}; a slave says so, which is waited for", place(queue))]);
                }
                continue;
            }
            let what = if self.is_strict { what.clone() } else { format!("{what}; it goes on at offset {next}") };
            self.lose(queue, *offset, &what, log)?;
            next_offsets.insert(queue.clone(), *next);
        }
        Ok(next_offsets)
    }

    /// Returns where to continue in queues whose topic was deleted and created again during a batch.
    ///
    /// # Errors
    /// There is such a queue, and the stream is strict.
    pub fn offsets_behind(&self, breaks: &[Break], log: &mut Log) -> Result<StreamOffsets> {
        let mut next_offsets = StreamOffsets::new();
        for Break { queue, what, next, .. } in breaks {
            let text = self.allowed_loss(queue, what)?;
            log.warn([format!("{text}; it goes on at offset {next}")]);
            next_offsets.insert(queue.clone(), *next);
        }
        Ok(next_offsets)
    }

    /// Logs queues that do not continue at the start offsets of a batch that an earlier run of the query planned.
    ///
    /// # Errors
    /// There is such a queue, and the stream is strict.
    pub fn tell_of_breaks(&self, breaks: &[Break], log: &mut Log) -> Result<()> {
        for Break { queue, what, .. } in breaks.iter().filter(|found| found.is_certain) {
            let text = self.allowed_loss(queue, what)?;
            log.warn([format!("{text}; the batch is read all the same, as far as it is there")]);
        }
        Ok(())
    }

    /// Logs that a batch reads a queue between two offsets, but the topic no longer has this queue.
    ///
    /// # Errors
    /// The stream is strict.
    pub fn tell_of_gone(&self, queue: &Queue, (from, to): Bounds, log: &mut Log) -> Result<()> {
        let what = format!(
            "the checkpoint has a batch of its offsets {from} to {to}, which cannot be read any more: the topic has fewer queues"
        );
        log.warn([self.allowed_loss(queue, &what)?]);
        Ok(())
    }

    /// Logs that a batch ends after the end of its queue.
    ///
    /// # Errors
    /// The stream is strict.
    pub fn tell_of_end(&self, queue: &Queue, end: i64, last: i64, log: &mut Log) -> Result<()> {
        let what = format!("the checkpoint has a batch that ends at offset {end}, and the queue ends at {last}");
        log.warn([self.allowed_loss(queue, &what)?]);
        Ok(())
    }

    fn lose(&mut self, queue: &Queue, offset: i64, what: &str, log: &mut Log) -> Result<()> {
        let text = self.allowed_loss(queue, what)?;
        if self.told.insert((queue.clone(), offset)) {
            log.warn([text]);
        }
        Ok(())
    }

    /// Returns the log text of a loss, or an error if the stream is strict.
    fn allowed_loss(&self, queue: &Queue, what: &str) -> Result<String> {
        let text = format!("{}: messages are lost: {what}", place(queue));
        if self.is_strict { Err(Error::DataLoss(format!("{text}\n{NEXT_STEP}"))) } else { Ok(text) }
    }

    fn waits(&self, waiting: i64, limits: Limits, now: Duration) -> bool {
        limits.least.is_some_and(|least| waiting < least) && now.saturating_sub(self.last_batch) < limits.delay
    }
}

/// Formats a queue for logs and errors.
pub fn place(Queue { topic, broker_name, queue_id }: &Queue) -> String {
    format!("topic {topic}, broker {broker_name}, queue {queue_id}")
}

/// A queue whose messages at the stream's offset have expired, and the first offset that it still has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gap {
    queue: Queue,
    offset: i64,
    edge: i64,
}

/// The end of a batch, as computed from the bounds of the queues, without reading messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NextEnd {
    end: StreamOffsets,
    /// Total backlog before the batch.
    waiting: i64,
    /// Queues whose next messages were removed by retention.
    expired: Vec<Gap>,
}

impl NextEnd {
    /// Computes the end of the batch that begins at `start` and takes `most` messages. A queue that is not in `bounds`
    /// stays at its offset, because its broker does not answer.
    fn of(start: &StreamOffsets, bounds: &StreamBounds, most: Option<i64>) -> Self {
        let mut batch = Self { end: start.clone(), ..Self::default() };
        let (mut begins, mut waiting) = (Vec::new(), Vec::new());
        for (queue, at) in start {
            let Some((first, last)) = bounds.get(queue) else { continue };
            // only collected here: whether it is an error depends on failOnDataLoss
            if at < first {
                batch.expired.push(Gap { queue: queue.clone(), offset: *at, edge: *first });
            }
            // expired messages do not count as backlog
            let begin = *at.max(first);
            begins.push((queue, begin));
            waiting.push(last.saturating_sub(begin).max(0));
        }
        // saturating, since a broker may report any number
        batch.waiting = waiting.iter().fold(0, |sum, count| sum.saturating_add(*count));
        let shares = most.map_or_else(|| waiting.clone(), |most| allot(&waiting, most));
        for ((queue, begin), share) in begins.into_iter().zip(shares).filter(|(_, share)| *share > 0) {
            // from the first message that still exists; the caller reports the expired messages
            batch.end.insert(queue.clone(), begin + share);
        }
        for (queue, (first, _)) in bounds {
            // a new queue joins without reading: its first offset must be in the checkpoint before any of its messages
            // is read
            batch.end.entry(queue.clone()).or_insert(*first);
        }
        batch
    }
}

/// Divides `most` messages among queues in proportion to their backlogs. No queue gets more than its backlog. The
/// remainder from rounding goes to the first queues.
fn allot(waiting: &[i64], most: i64) -> Vec<i64> {
    let total: i128 = waiting.iter().copied().map(i128::from).sum();
    if total <= i128::from(most) {
        return waiting.to_vec();
    }
    // 128 bits, since the product of two counts does not fit into 64
    let share = |count: i64| (i128::from(count) * i128::from(most) / total) as i64;
    let mut shares: Vec<i64> = waiting.iter().map(|count| share(*count)).collect();
    let mut remaining = most - shares.iter().sum::<i64>();
    for (share, count) in shares.iter_mut().zip(waiting) {
        // rounding down leaves less than one message for each queue
        let more = remaining.min(count - *share).min(1);
        *share += more;
        remaining -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Level;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const UNLIMITED: Limits = Limits { most: None, least: None, delay: Duration::ZERO };

    fn queue(queue_id: i32) -> Queue {
        Queue { topic: "orders".into(), broker_name: "b".into(), queue_id }
    }

    fn offsets(queues: &[(i32, i64)]) -> StreamOffsets {
        queues.iter().map(|(id, offset)| (queue(*id), *offset)).collect()
    }

    fn bounds(queues: &[(i32, Bounds)]) -> StreamBounds {
        queues.iter().map(|(id, bounds)| (queue(*id), *bounds)).collect()
    }

    fn gap(id: i32, offset: i64, edge: i64) -> Gap {
        Gap { queue: queue(id), offset, edge }
    }

    #[test]
    fn a_batch_gets_as_many_as_allowed_in_proportion() {
        assert_eq!(allot(&[90, 9, 0], 10), [10, 0, 0]);
        assert_eq!(allot(&[5, 5], 100), [5, 5]);
        assert_eq!(allot(&[1 << 62, 1 << 61], 3), [2, 1]);
    }

    proptest! {
        #[test]
        fn a_batch_gets_as_many_as_allowed_or_all(
            waiting in proptest::collection::vec(0i64..=1 << 40, 0..12), most in 1i64..=1 << 41
        ) {
            let queues: Vec<_> = (0..).zip(&waiting).map(|(id, count)| (id, (0, *count))).collect();
            let start: Vec<_> = queues.iter().map(|(id, _)| (*id, 0)).collect();
            let found = NextEnd::of(&offsets(&start), &bounds(&queues), Some(most));
            let total: i64 = waiting.iter().sum();
            prop_assert_eq!(found.waiting, total);
            prop_assert!(found.end.values().zip(&waiting).all(|(end, count)| (0..=*count).contains(end)));
            prop_assert_eq!((found.end.len(), found.end.values().sum::<i64>()), (waiting.len(), most.min(total)));
        }
    }

    #[test]
    fn queues_that_are_away_stay_and_new_ones_join_where_they_begin() {
        let found = NextEnd::of(&offsets(&[(0, 5), (1, 7)]), &bounds(&[(0, (0, 9)), (2, (3, 30))]), None);
        assert_eq!(found.end, offsets(&[(0, 9), (1, 7), (2, 3)]));
        assert_eq!((found.waiting, found.expired), (4, vec![]));
    }

    #[test]
    fn what_expired_is_told_and_a_queue_that_ends_before_the_stream_stays() {
        let found = NextEnd::of(&offsets(&[(0, 5), (1, 70)]), &bounds(&[(0, (20, 30)), (1, (0, 60))]), Some(4));
        assert_eq!(found.end, offsets(&[(0, 24), (1, 70)]));
        assert_eq!((found.waiting, found.expired), (10, vec![gap(0, 5, 20)]));
    }

    #[test]
    fn a_batch_is_told_with_what_it_takes_and_what_waits() {
        let (mut admission, mut log) = (Admission::new("topic orders".into(), PATIENCE, true), Log::default());
        let (start, there) = (offsets(&[(0, 0), (1, 5)]), bounds(&[(0, (0, 8)), (1, (0, 5))]));
        let limits = Limits { most: Some(3), ..UNLIMITED };
        let end = admission.end(&start, &there, &[], limits, Duration::ZERO, &mut log).expect("an end");
        assert_eq!(end, offsets(&[(0, 3), (1, 5)]));
        assert_eq!(log.take(), [(Level::Info, "topic orders: a batch of 3 offsets, 8 wait".to_owned())]);
        let nothing = bounds(&[(0, (0, 3)), (1, (0, 5))]);
        assert_eq!(admission.end(&end, &nothing, &[], limits, Duration::ZERO, &mut log).expect("an end"), end);
        assert_eq!(log.take(), []);
    }

    #[test]
    fn too_few_messages_wait_for_more_or_for_the_delay() {
        let (mut admission, mut log) = (Admission::new("topic orders".into(), PATIENCE, true), Log::default());
        let limits = Limits { least: Some(10), delay: Duration::from_secs(900), ..UNLIMITED };
        let mut end = |from, last, limits, now| {
            let there = bounds(&[(0, (0, last))]);
            let end = admission.end(&offsets(&[(0, from)]), &there, &[], limits, Duration::from_secs(now), &mut log);
            end.expect("an end")[&queue(0)]
        };
        assert_eq!(end(0, 9, limits, 0), 0);
        // with Trigger.AvailableNow the stream must not wait for more messages
        assert_eq!(end(0, 9, UNLIMITED, 0), 9);
        assert_eq!(end(0, 10, limits, 5), 10);
        // the delay counts from the last batch
        assert_eq!(end(10, 12, limits, 904), 10);
        assert_eq!(end(10, 12, limits, 905), 12);
    }

    #[test]
    fn a_queue_that_was_found_does_not_wait() {
        let (mut admission, mut log) = (Admission::new("topic orders".into(), PATIENCE, true), Log::default());
        let limits = Limits { least: Some(10), delay: Duration::from_secs(900), ..UNLIMITED };
        let there = bounds(&[(0, (0, 2)), (1, (0, 0))]);
        let end = admission.end(&offsets(&[(0, 0)]), &there, &[], limits, Duration::ZERO, &mut log).expect("an end");
        assert_eq!(end, offsets(&[(0, 2), (1, 0)]));
    }

    #[test]
    fn what_expired_is_an_error_or_told_once() {
        let (start, there) = (offsets(&[(0, 7)]), bounds(&[(0, (20, 40))]));
        let lost = "topic orders, broker b, queue 0: messages are lost: offset 7 has expired, the queue begins at 20";
        let (mut strict, mut log) = (Admission::new("topic orders".into(), PATIENCE, true), Log::default());
        let error = strict.end(&start, &there, &[], UNLIMITED, Duration::ZERO, &mut log).expect_err("a loss");
        assert!(
            matches!(&error, Error::DataLoss(text) if
            *text == format!("{lost}\n{NEXT_STEP}")),
            "{error}"
        );
        let mut careless = Admission::new("topic orders".into(), PATIENCE, false);
        let limits = Limits { most: Some(5), ..UNLIMITED };
        for _ in 0..2 {
            let end = careless.end(&start, &there, &[], limits, Duration::ZERO, &mut log).expect("an end");
            assert_eq!(end, offsets(&[(0, 25)]));
        }
        let warnings = log.take().into_iter().filter(|(level, _)| *level == Level::Warning);
        assert_eq!(warnings.collect::<Vec<_>>(), [(Level::Warning, lost.to_owned())]);
    }

    fn broken(queue_id: i32, next: i64, is_certain: bool) -> Break {
        Break { queue: queue(queue_id), offset: 50, what: "it is another one".into(), next, is_certain }
    }

    #[test]
    fn a_queue_that_does_not_go_on_is_a_loss_at_once_and_goes_on_elsewhere() {
        let (start, there) = (offsets(&[(0, 50), (1, 1)]), bounds(&[(1, (0, 9))]));
        let lost = "topic orders, broker b, queue 0: messages are lost: it is another one";
        let (mut strict, mut log) = (Admission::new("topic orders".into(), PATIENCE, true), Log::default());
        let error = strict.end(&start, &there, &[broken(0, 3, true)], UNLIMITED, Duration::ZERO, &mut log);
        assert_eq!(error.expect_err("a loss").to_string(), format!("{lost}\n{NEXT_STEP}"));
        let mut careless = Admission::new("topic orders".into(), PATIENCE, false);
        for _ in 0..2 {
            let end = careless.end(&start, &there, &[broken(0, 3, true)], UNLIMITED, Duration::ZERO, &mut log);
            assert_eq!(end.expect("an end"), offsets(&[(0, 3), (1, 9)]));
        }
        let warnings = log.take().into_iter().filter(|(level, _)| *level == Level::Warning);
        let text = format!("{lost}; it goes on at offset 3");
        assert_eq!(warnings.collect::<Vec<_>>(), [(Level::Warning, text)]);
    }

    #[test]
    fn what_a_slave_does_not_have_is_waited_for_and_then_a_loss() {
        let (start, rest, whole) =
            (offsets(&[(0, 50), (1, 1)]), bounds(&[(1, (0, 1))]), bounds(&[(0, (0, 50)), (1, (0, 1))]));
        for is_strict in [true, false] {
            let (mut admission, mut log) = (Admission::new("topic orders".into(), PATIENCE, is_strict), Log::default());
            let mut end = |there, breaks: &[Break], now| {
                admission.end(&start, there, breaks, UNLIMITED, Duration::from_secs(now), &mut log)
            };
            let shorter = [broken(0, 30, false)];
            assert_eq!(end(&rest, &shorter, 1).expect("an end"), start);
            // the queue was complete in between, so the patience starts again
            for (there, breaks, now) in [(&whole, &[][..], 60), (&rest, &shorter, 70), (&rest, &shorter, 130)] {
                assert_eq!(end(there, breaks, now).expect("an end"), start);
            }
            match end(&rest, &shorter, 131) {
                Ok(end) => assert_eq!((end, is_strict), (offsets(&[(0, 30), (1, 1)]), false)),
                Err(error) => assert!(is_strict && error.to_string().contains("it is another one"), "{error}"),
            }
            let waits =
                log.take().into_iter().filter(|(_, text)| text.ends_with("a slave says so, which is waited for"));
            assert_eq!(waits.count(), 1);
        }
    }
}
