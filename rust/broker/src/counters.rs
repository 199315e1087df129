//! Counters and durations since the start. The control plane computes rates from them.
//!
//! Source: `BrokerStatsManager`, `StoreStatsService.setPutMessageEntireTimeMax`.
use rmqfast_store::store::serve::SkippedRange;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Counter {
    calls: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    #[inline]
    pub fn add(&self, messages: usize, bytes: u64) {
        // Relaxed, as the numbers only serve statistics
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

type Keys = HashMap<Box<str>, Arc<Counter>>;

/// Counters, each with a name, such as `TOPIC_PUT`, and a key, such as a topic.
#[derive(Debug, Default)]
pub struct Counters {
    by_name: RwLock<HashMap<&'static str, Keys>>,
}

impl Counters {
    pub fn of(&self, name: &'static str, key: &str) -> Arc<Counter> {
        let read = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = read.get(name).and_then(|keys| keys.get(key)) {
            return counter.clone();
        }
        // only the first use of a key takes the write lock
        drop(read);
        let mut write = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        write.entry(name).or_default().entry(key.into()).or_default().clone()
    }

    /// Removes the counters for whose name and key `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&'static str, &str) -> bool) {
        let mut write = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        write.iter_mut().for_each(|(name, keys)| keys.retain(|key, _| keep(name, key)));
    }

    /// Returns name, key, calls, messages and bytes of each counter.
    pub fn all(&self) -> Vec<(&'static str, String, u64, u64, u64)> {
        let read = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (name, keys) in read.iter() {
            for (key, counter) in keys {
                let [calls, messages, bytes] =
                    [&counter.calls, &counter.messages, &counter.bytes].map(|number| number.load(Ordering::Relaxed));
                all.push((*name, key.to_string(), calls, messages, bytes));
            }
        }
        all
    }
}

/// Names of the ranges of durations, with the end of each range in milliseconds (exclusive).
const RANGES: [(&str, u64); 13] = [
    ("<=0ms", 1),
    ("0~10ms", 10),
    ("10~50ms", 50),
    ("50~100ms", 100),
    ("100~200ms", 200),
    ("200~500ms", 500),
    ("500ms~1s", 1_000),
    ("1~2s", 2_000),
    ("2~3s", 3_000),
    ("3~4s", 4_000),
    ("4~5s", 5_000),
    ("5~10s", 10_000),
    ("10s~", u64::MAX),
];

/// Counts the puts (stored sends) per range of duration. Also holds the longest put and the longest get (answered
/// pull).
#[derive(Debug, Default)]
pub struct PutTimes {
    puts: [AtomicU64; RANGES.len()],
    put_max: AtomicU64,
    get_max: AtomicU64,
}

impl PutTimes {
    pub fn note_put(&self, millis: u64) {
        let range = RANGES.iter().position(|(_, end)| millis < *end).unwrap_or(RANGES.len() - 1);
        if let Some(puts) = self.puts.get(range) {
            puts.fetch_add(1, Ordering::Relaxed);
        }
        raise(&self.put_max, millis);
    }

    pub fn note_get(&self, millis: u64) {
        raise(&self.get_max, millis);
    }

    /// Returns the longest put and the longest get, in milliseconds.
    pub fn longest(&self) -> (u64, u64) {
        (self.put_max.load(Ordering::Relaxed), self.get_max.load(Ordering::Relaxed))
    }

    /// Returns the name of each range, and the number of puts whose duration is in it. Empty ranges are left out.
    pub fn ranges(&self) -> Vec<(&'static str, u64)> {
        let counted = RANGES.iter().zip(&self.puts).map(|((name, _), puts)| (*name, puts.load(Ordering::Relaxed)));
        counted.filter(|(_, puts)| *puts > 0).collect()
    }
}

fn raise(max: &AtomicU64, millis: u64) {
    // reads first, as threads would contend for a write that is rarely needed
    if max.load(Ordering::Relaxed) < millis {
        max.fetch_max(millis, Ordering::Relaxed);
    }
}

/// A token bucket for each connection.
#[derive(Debug)]
pub struct Quota {
    burst: f64,
    per_second: f64,
    /// For each connection, its tokens and the time at which they were computed. A connection that never asked for a
    /// token has no entry.
    budgets: Mutex<HashMap<u64, (f64, Instant)>>,
}

impl Quota {
    /// Creates the buckets. Each holds at most `burst` tokens, is full at first, and gains `per_second` tokens per
    /// second.
    pub fn new(burst: u32, per_second: u32) -> Self {
        Self { burst: burst.into(), per_second: per_second.into(), budgets: Mutex::default() }
    }

    /// Takes a token of a connection. Returns false if the connection has no token left.
    pub fn take(&self, connection: u64, now: Instant) -> bool {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = budgets.entry(connection).or_insert((self.burst, now));
        // tokens since the last call, up to the burst
        let gained = now.saturating_duration_since(*at).as_secs_f64() * self.per_second;
        (*tokens, *at) = ((*tokens + gained).min(self.burst), now);
        let is_there = *tokens >= 1.0;
        *tokens -= f64::from(u8::from(is_there));
        is_there
    }

    pub fn forget(&self, connection: u64) {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner).remove(&connection);
    }

    /// Returns the limits in words, for the refusal of a request.
    pub fn limits(&self) -> String {
        format!("{} at once and {} a second", self.burst, self.per_second)
    }
}

/// Maximum number of positions to remember. Further skipped messages are only counted.
const MAX_PLACES: usize = 10_000;

#[derive(Clone, Debug)]
pub struct SkippedMessage {
    pub topic: String,
    pub queue_id: i32,
    /// The range of skipped messages, and the reason why they could not be read.
    pub skipped: SkippedRange,
}

/// Messages skipped since the start.
#[derive(Debug, Default)]
pub struct SkippedMessages {
    count: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    seen: HashSet<(String, i32, i64)>,
    unreported: Vec<SkippedMessage>,
}

impl SkippedMessages {
    #[inline]
    pub fn add(&self, queue: (&str, i32), messages: &[SkippedRange]) {
        if !messages.is_empty() {
            self.note(queue, messages);
        }
    }

    #[cold]
    fn note(&self, (topic, queue_id): (&str, i32), messages: &[SkippedRange]) {
        let count = messages.iter().map(|message| message.messages).sum();
        self.count.fetch_add(count, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let place = (topic.to_owned(), queue_id, message.queue_offset);
            if places.seen.len() < MAX_PLACES && places.seen.insert(place) {
                places.unreported.push(SkippedMessage { topic: topic.to_owned(), queue_id, skipped: *message });
            }
        }
    }

    /// Returns the number of skipped messages. A message that two groups pulled counts twice.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the skipped messages that earlier calls have not returned.
    pub fn take(&self) -> Vec<SkippedMessage> {
        std::mem::take(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner).unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::format::consume_queue::Unit;
    use rmqfast_store::store::serve::Fault;
    use std::time::Duration;

    #[test]
    fn puts_are_counted_in_the_range_of_their_time_and_the_longest_is_known() {
        let times = PutTimes::default();
        for millis in [0, 1, 9, 10, 999, 10_000, 70_000] {
            times.note_put(millis);
        }
        times.note_get(3);
        let expected = [("<=0ms", 1), ("0~10ms", 2), ("10~50ms", 1), ("500ms~1s", 1), ("10s~", 2)];
        assert_eq!((times.ranges(), times.longest()), (expected.to_vec(), (70_000, 3)));
    }

    #[test]
    fn a_connection_has_its_burst_and_then_what_time_brings() {
        let (quota, start) = (Quota::new(3, 2), Instant::now());
        let taken = |connection, seconds: f64| {
            let now = start + Duration::from_secs_f64(seconds);
            (0..10).filter(|_| quota.take(connection, now)).count()
        };
        assert_eq!([taken(1, 0.0), taken(1, 0.0), taken(1, 1.0), taken(1, 100.0)], [3, 0, 2, 3]);
        assert_eq!(taken(2, 100.0), 3);
        quota.forget(1);
        assert_eq!(taken(1, 100.0), 3);
    }

    fn at(queue_offset: i64) -> SkippedRange {
        SkippedRange { queue_offset, messages: 1, unit: Unit::default(), fault: Fault::NoUnit }
    }

    #[test]
    fn each_message_is_counted_and_each_place_reported_once() {
        let skipped = SkippedMessages::default();
        skipped.add(("T", 0), &[]);
        skipped.add(("T", 0), &[at(3), at(4)]);
        skipped.add(("T", 0), &[at(4), at(5)]);
        skipped.add(("T", 1), &[at(4)]);
        let reported: Vec<_> = skipped.take().iter().map(|one| (one.queue_id, one.skipped.queue_offset)).collect();
        assert_eq!((skipped.count(), reported, skipped.take().len()), (5, vec![(0, 3), (0, 4), (0, 5), (1, 4)], 0));
    }

    #[test]
    fn only_so_many_places_are_remembered() {
        let skipped = SkippedMessages::default();
        let many: Vec<_> = (0..MAX_PLACES as i64 + 10).map(at).collect();
        skipped.add(("T", 0), &many);
        assert_eq!((skipped.count(), skipped.take().len()), (many.len() as u64, MAX_PLACES));
    }
}
