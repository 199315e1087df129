//! How long puts and gets took.
//!
//! Source: `StoreStatsService.setPutMessageEntireTimeMax`.
use std::sync::atomic::{AtomicU64, Ordering};

/// The ranges, and the milliseconds at which each ends; the last has no end.
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

/// How often a put took a time of a range, and the longest put and get there was.
#[derive(Debug, Default)]
pub struct PutTimes {
    puts: [AtomicU64; RANGES.len()],
    put_max: AtomicU64,
    get_max: AtomicU64,
}

impl PutTimes {
    /// Notes a put that took so many milliseconds.
    pub fn note_put(&self, millis: u64) {
        let range = RANGES.iter().position(|(_, end)| millis < *end).unwrap_or(RANGES.len() - 1);
        if let Some(puts) = self.puts.get(range) {
            puts.fetch_add(1, Ordering::Relaxed);
        }
        raise(&self.put_max, millis);
    }

    /// Notes a get that took so many milliseconds.
    pub fn note_get(&self, millis: u64) {
        raise(&self.get_max, millis);
    }

    /// The longest put and the longest get, in milliseconds.
    pub fn longest(&self) -> (u64, u64) {
        (self.put_max.load(Ordering::Relaxed), self.get_max.load(Ordering::Relaxed))
    }

    /// Puts by the name of their range; ranges without any are left out.
    pub fn ranges(&self) -> Vec<(&'static str, u64)> {
        let counted = RANGES.iter().zip(&self.puts).map(|((name, _), puts)| (*name, puts.load(Ordering::Relaxed)));
        counted.filter(|(_, puts)| *puts > 0).collect()
    }
}

fn raise(max: &AtomicU64, millis: u64) {
    // most of the time nothing is written, so that threads do not wait for one another
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
