//! Measures the lag of a query, in offsets and in seconds, from the ends of queues that the stream fetches anyway.
use crate::topic::admission::StreamBounds;
use crate::topic::checkpoint::StreamOffsets;
use rmqfast_client::puller::Queue;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of end offsets that are kept for a queue.
const KEPT: usize = 64;

/// The end offsets of queues, as a stream has seen them over time.
#[derive(Debug, Default)]
pub struct Lag {
    queues: BTreeMap<Queue, Ends>,
}

/// The last known end of a queue, and earlier ends with the time at which each was first seen.
#[derive(Debug, Default)]
struct Ends {
    last: i64,
    seen: Vec<(Duration, i64)>,
}

impl Lag {
    /// Records the ends of queues. A queue that is missing, because its broker does not answer, keeps its last end.
    pub fn see(&mut self, bounds: &StreamBounds, now: Duration) {
        for (queue, (_, last)) in bounds {
            self.queues.entry(queue.clone()).or_default().see(*last, now);
        }
    }

    /// Drops ends that the query has already read, since only unread ends are needed for the lag in seconds.
    pub fn forget(&mut self, consumed: &StreamOffsets) {
        for (queue, offset) in consumed {
            if let Some(ends) = self.queues.get_mut(queue) {
                ends.seen.retain(|(_, end)| end > offset);
            }
        }
    }

    /// Returns the last known end of each queue.
    pub fn ends(&self) -> StreamOffsets {
        self.queues.iter().map(|(queue, ends)| (queue.clone(), ends.last)).collect()
    }

    /// Returns the lag of a query that has read up to `consumed`. Empty if the ends of its queues are not known.
    ///
    /// Source: Spark's `KafkaMicroBatchStream.metrics`, for the first three names.
    pub fn metrics(&self, consumed: &StreamOffsets, now: Duration) -> Vec<(String, String)> {
        let positions = consumed.iter().filter_map(|(queue, offset)| Some((queue, *offset, self.queues.get(queue)?)));
        let behind: Vec<(&Queue, i64)> =
            positions.clone().map(|(queue, offset, ends)| (queue, ends.last.saturating_sub(offset).max(0))).collect();
        let counts = behind.iter().map(|(_, count)| *count);
        let (Some(least), Some(most)) = (counts.clone().min(), counts.clone().max()) else { return Vec::new() };
        let average = counts.map(|count| count as f64).sum::<f64>() / behind.len() as f64;
        let since = positions.filter_map(|(_, offset, ends)| ends.first_seen(offset)).min().unwrap_or(now);
        let of_all = [
            ("minOffsetsBehindLatest", least.to_string()),
            ("maxOffsetsBehindLatest", most.to_string()),
            ("avgOffsetsBehindLatest", format!("{average:?}")),
            ("maxSecondsBehindLatest", format!("{:.3}", now.saturating_sub(since).as_secs_f64())),
        ];
        let of_each = behind.into_iter().map(|(Queue { topic, broker_name, queue_id }, count)| {
            (format!("behind.{topic}.{broker_name}.{queue_id}"), count.to_string())
        });
        of_all.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(of_each).collect()
    }
}

impl Ends {
    fn see(&mut self, last: i64, now: Duration) {
        if last < self.last {
            // the queue shrank: ends beyond the new end become the new end
            self.seen.iter_mut().for_each(|(_, end)| *end = last.min(*end));
            self.seen.dedup_by_key(|(_, end)| *end);
        }
        // only growth is recorded: an unchanged end was first seen earlier
        if self.seen.last().is_none_or(|(_, end)| *end < last) {
            if self.seen.len() == KEPT {
                // keep every second end; messages of dropped ends count as seen slightly later than they were
                self.seen = self.seen.iter().skip(1).step_by(2).copied().collect();
            }
            self.seen.push((now, last));
        }
        self.last = last;
    }

    /// Returns the time at which the message at `offset` was first known to exist; `None` if it is not known to exist.
    fn first_seen(&self, offset: i64) -> Option<Duration> {
        self.seen.iter().find(|(_, end)| *end > offset).map(|(when, _)| *when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(queue_id: i32) -> Queue {
        Queue { topic: "orders".into(), broker_name: "b".into(), queue_id }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn seen(ends: &[(u64, i64)]) -> Lag {
        let mut lag = Lag::default();
        for (when, end) in ends {
            lag.see(&StreamBounds::from([(queue(0), (0, *end))]), seconds(*when));
        }
        lag
    }

    fn behind(lag: &Lag, offset: i64, now: u64) -> String {
        lag.metrics(&StreamOffsets::from([(queue(0), offset)]), seconds(now)).swap_remove(3).1
    }

    #[test]
    fn a_query_is_behind_by_what_it_did_not_read_of_the_queues_that_are_known() {
        let mut lag = Lag::default();
        let consumed = StreamOffsets::from([(queue(0), 5), (queue(1), 7), (queue(2), 0)]);
        assert_eq!(lag.metrics(&consumed, seconds(9)), []);
        lag.see(&StreamBounds::from([(queue(0), (0, 9)), (queue(1), (3, 7))]), seconds(2));
        let names = |texts: &[(&str, &str)]| -> Vec<(String, String)> {
            texts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let expected = [
            ("minOffsetsBehindLatest", "0"),
            ("maxOffsetsBehindLatest", "4"),
            ("avgOffsetsBehindLatest", "2.0"),
            ("maxSecondsBehindLatest", "7.000"),
            ("behind.orders.b.0", "4"),
            ("behind.orders.b.1", "0"),
        ];
        assert_eq!(lag.metrics(&consumed, seconds(9)), names(&expected));
        assert_eq!(lag.ends(), StreamOffsets::from([(queue(0), 9), (queue(1), 7)]));
    }

    #[test]
    fn seconds_count_from_when_the_next_message_was_seen() {
        let mut lag = seen(&[(1, 10), (2, 10), (4, 30), (8, 40)]);
        for (offset, expected) in
            [(0, "9.000"), (9, "9.000"), (10, "6.000"), (29, "6.000"), (30, "2.000"), (40, "0.000")]
        {
            assert_eq!(behind(&lag, offset, 10), expected, "{offset}");
        }
        lag.forget(&StreamOffsets::from([(queue(0), 30), (queue(7), 1)]));
        assert_eq!((behind(&lag, 30, 10), behind(&lag, 40, 10)), ("2.000".to_owned(), "0.000".to_owned()));
    }

    #[test]
    fn a_queue_that_was_cut_off_is_seen_anew_behind_its_end() {
        let lag = seen(&[(1, 10), (2, 20), (3, 30), (4, 15), (5, 18)]);
        assert_eq!((behind(&lag, 12, 10), behind(&lag, 15, 10)), ("8.000".to_owned(), "5.000".to_owned()));
    }

    #[test]
    fn few_times_are_kept_and_a_message_is_never_older_than_it_is() {
        let ends: Vec<(u64, i64)> = (1..=1000).map(|step| (step, step as i64)).collect();
        let lag = seen(&ends);
        assert!(lag.queues[&queue(0)].seen.len() <= KEPT);
        for offset in 0..1000 {
            let told = lag.queues[&queue(0)].first_seen(offset).expect("it was seen").as_secs();
            // message n was first seen in second n + 1
            assert!((offset as u64 + 1..=1000).contains(&told), "{offset}: {told}");
        }
        assert_eq!(behind(&lag, 999, 1000), "0.000");
    }
}
