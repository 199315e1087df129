//! Counters and durations since the start. The control plane computes rates from them.
//!
//! Source: `BrokerStatsManager`, `StoreStatsService.setPutMessageEntireTimeMax`.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Counts calls, and the messages and bytes of these calls.
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
    /// Returns the counter of a key, and creates it if it is new.
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

    /// Removes the keys for which `keep` returns false.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
