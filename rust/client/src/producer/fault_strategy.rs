//! Makes a producer avoid brokers that were slow recently.
//!
//! Source: `MQFaultStrategy`, `LatencyFaultToleranceImpl`.
use super::publish_queues::{Choice, PublishQueues};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Latencies in milliseconds, each with the number of seconds for which a broker with this or a higher latency is
/// avoided.
const PENALTIES: [(u64, u64); 5] = [(550, 30), (1000, 60), (2000, 120), (3000, 180), (15_000, 600)];
/// Latency assumed for a failed call, in milliseconds.
const ISOLATION_LATENCY: u64 = 30_000;

/// Chooses queues, and avoids brokers that were slow recently.
#[derive(Debug, Default)]
pub struct FaultStrategy {
    items: Mutex<HashMap<Arc<str>, FaultItem>>,
    which: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct FaultItem {
    latency_ms: u64,
    /// Time from which the broker may be used again.
    start: Instant,
}

impl FaultStrategy {
    /// Returns the queue for the next attempt; `None` if there are no queues.
    ///
    /// Source: `MQFaultStrategy.selectOneMessageQueue`.
    pub fn select(&self, queues: &PublishQueues, now: Instant) -> Option<Choice> {
        let listed = &queues.queues;
        let start = queues.next_index();
        for step in 0..listed.len() {
            let index = start.wrapping_add(step) % listed.len();
            if self.is_available(&listed[index].broker_name, now) {
                return Some(Choice::Listed(index));
            }
        }
        self.best_of_slow(queues, now).or_else(|| queues.select(None).map(Choice::Listed))
    }

    /// Records the latency of a call. With `isolates` the call has failed, and the broker counts as very slow.
    ///
    /// Source: `MQFaultStrategy.updateFaultItem`.
    pub fn update(&self, broker_name: &Arc<str>, latency_ms: u64, isolates: bool, now: Instant) {
        let pause = not_available(if isolates { ISOLATION_LATENCY } else { latency_ms });
        self.lock().insert(broker_name.clone(), FaultItem { latency_ms, start: now + pause });
    }

    /// Returns whether a broker may be used now. True for a broker that was not used yet.
    pub fn is_available(&self, broker_name: &str, now: Instant) -> bool {
        self.lock().get(broker_name).is_none_or(|item| now >= item.start)
    }

    fn best_of_slow(&self, queues: &PublishQueues, now: Instant) -> Option<Choice> {
        let broker_name = self.pick_one_at_least(now)?;
        let count = queues.write_queues(&broker_name).unwrap_or(-1);
        if count <= 0 {
            self.lock().remove(&broker_name);
            return None;
        }
        // Java advances the index twice here: it first selects a queue, then replaces its broker and number
        queues.next_index();
        Some(Choice::Named(broker_name, (queues.next_index() % count as usize) as i32))
    }

    /// Returns a broker from the faster half of the known brokers. Called when every broker is being avoided.
    ///
    /// Source: `LatencyFaultToleranceImpl.pickOneAtLeast`.
    fn pick_one_at_least(&self, now: Instant) -> Option<Arc<str>> {
        let mut items: Vec<_> = self.lock().iter().map(|(name, item)| (name.clone(), *item)).collect();
        // as in Java, equal brokers are ordered at random
        let chance = RandomState::new();
        items.sort_by_cached_key(|(name, item)| (now < item.start, item.latency_ms, item.start, chance.hash_one(name)));
        let half = (items.len() / 2).max(1);
        let which = if half > 1 { self.which.fetch_add(1, Ordering::Relaxed) % half } else { 0 };
        items.into_iter().nth(which).map(|(name, _)| name)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, FaultItem>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time for which a broker is avoided after a call with this latency.
///
/// Source: `MQFaultStrategy.computeNotAvailableDuration`.
fn not_available(latency_ms: u64) -> Duration {
    let penalty = PENALTIES.iter().rev().find(|(from, _)| latency_ms >= *from);
    Duration::from_secs(penalty.map_or(0, |(_, seconds)| *seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn chosen(strategy: &FaultStrategy, queues: &PublishQueues, now: Instant, count: usize) -> HashSet<(String, i32)> {
        let choices = (0..count).filter_map(|_| strategy.select(queues, now));
        choices.map(|choice| (choice.broker_name(queues).to_string(), choice.queue_id(queues))).collect()
    }

    fn brokers(chosen: HashSet<(String, i32)>) -> Vec<String> {
        let mut names: Vec<_> = chosen.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn how_long_a_broker_is_left_alone_is_javas_table() {
        let table = [
            (0, 0),
            (50, 0),
            (549, 0),
            (550, 30),
            (999, 30),
            (1000, 60),
            (2000, 120),
            (3000, 180),
            (14_999, 180),
            (15_000, 600),
            (30_000, 600),
        ];
        for (latency, seconds) in table {
            assert_eq!(not_available(latency).as_secs(), seconds, "{latency}");
        }
    }

    #[test]
    fn a_slow_broker_is_passed_over_until_its_time_is_over() {
        let (strategy, now) = (FaultStrategy::default(), Instant::now());
        let queues = PublishQueues::for_tests(&[("a", 2), ("b", 2)], 0);
        strategy.update(&"a".into(), 600, false, now);
        for (ms, expected) in [(0, &["b"][..]), (29_999, &["b"]), (30_000, &["a", "b"])] {
            assert_eq!(brokers(chosen(&strategy, &queues, now + Duration::from_millis(ms), 8)), expected);
        }
    }

    #[test]
    fn a_failed_call_counts_as_thirty_seconds() {
        let (strategy, now) = (FaultStrategy::default(), Instant::now());
        strategy.update(&"a".into(), 3, true, now);
        assert!(!strategy.is_available("a", now + Duration::from_millis(599_999)));
        assert!(strategy.is_available("a", now + Duration::from_secs(600)));
    }

    #[test]
    fn where_all_are_slow_one_of_the_better_half_is_taken() {
        let (strategy, now) = (FaultStrategy::default(), Instant::now());
        let queues = PublishQueues::for_tests(&[("a", 2), ("b", 2), ("c", 2), ("d", 2)], 0);
        for (name, latency) in [("a", 20_000), ("b", 600), ("c", 700), ("d", 16_000)] {
            strategy.update(&name.into(), latency, false, now);
        }
        let chosen = chosen(&strategy, &queues, now, 40);
        assert_eq!(chosen.iter().map(|(_, id)| *id).collect::<HashSet<_>>(), HashSet::from([0, 1]));
        assert_eq!(brokers(chosen), ["b", "c"]);
    }

    #[test]
    fn a_slow_broker_without_queues_is_forgotten() {
        let (strategy, now) = (FaultStrategy::default(), Instant::now());
        let queues = PublishQueues::for_tests(&[("a", 2)], 0);
        strategy.update(&"a".into(), 20_000, false, now);
        strategy.update(&"gone".into(), 600, false, now);
        assert_eq!(brokers(chosen(&strategy, &queues, now, 1)), ["a"]);
        assert_eq!(strategy.pick_one_at_least(now).as_deref(), Some("a"));
    }
}
