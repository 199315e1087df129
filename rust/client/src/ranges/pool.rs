//! Pullers that a task leaves for the next one: a connection and a thread each, which a batch of a stream need not begin anew.
//!
//! Source: `InternalKafkaConsumerPool` of Spark, whose size this has.
use crate::puller::Puller;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pullers kept at most.
const MOST: usize = 64;
/// How long one is kept.
const IDLE: Duration = Duration::from_secs(60);

/// Pullers without a queue, for whoever reaches the same cluster in the same way.
#[derive(Debug)]
pub struct PullerPool {
    idle: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// The longest one first.
    pullers: VecDeque<Idle>,
    has_cleaner: bool,
}

#[derive(Debug)]
struct Idle {
    key: PoolKey,
    puller: Puller,
    since: Instant,
}

/// How a cluster is reached, by whom, and how it is asked. It may hold a secret, and is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PoolKey(String);

impl PoolKey {
    /// A key of everything that two readers have to agree on.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        // no text of an option has this character
        Self(parts.into_iter().flat_map(|part| [part, "\0"]).collect())
    }

    /// The same, with one thing more.
    pub fn with(&self, part: &str) -> Self {
        Self(format!("{}{part}\0", self.0))
    }
}

impl std::fmt::Debug for PoolKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolKey").finish_non_exhaustive()
    }
}

impl PullerPool {
    /// Without a puller.
    pub const fn new() -> Self {
        Self { idle: Mutex::new(Kept { pullers: VecDeque::new(), has_cleaner: false }) }
    }

    /// A puller of that key, for one reader.
    pub fn take(&self, key: &PoolKey) -> Option<Puller> {
        let mut kept = self.lock();
        // the one that was used last: its connection is the least likely to be dead
        let place = kept.pullers.iter().rposition(|idle| idle.key == *key)?;
        kept.pullers.remove(place).map(|idle| idle.puller)
    }

    /// Takes a puller whose reader is done, without a queue.
    pub fn give_back(&'static self, key: PoolKey, puller: Puller) {
        let mut kept = self.lock();
        if kept.pullers.len() >= MOST {
            kept.pullers.pop_front();
        }
        kept.pullers.push_back(Idle { key, puller, since: Instant::now() });
        if !kept.has_cleaner {
            // without a thread nothing is kept for ever either: the next one to come tries again
            let cleaner = std::thread::Builder::new().name("rmqfast-idle".into()).spawn(|| self.clean());
            kept.has_cleaner = cleaner.is_ok();
        }
    }

    /// Closes what nobody asked for, until nothing is left.
    fn clean(&self) {
        loop {
            let now = Instant::now();
            let wait = {
                let mut kept = self.lock();
                while kept.pullers.front().is_some_and(|idle| now - idle.since >= IDLE) {
                    kept.pullers.pop_front();
                }
                let Some(first) = kept.pullers.front() else {
                    kept.has_cleaner = false;
                    return;
                };
                IDLE - (now - first.since)
            };
            std::thread::sleep(wait);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for PullerPool {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puller::PullerOptions;

    static POOL: PullerPool = PullerPool::new();

    #[test]
    fn a_puller_is_for_one_reader_of_its_key_and_few_are_kept() {
        let key = |name: &str| PoolKey::of([name, "group"]);
        for number in 0..MOST + 3 {
            POOL.give_back(key(&number.to_string()), Puller::new(PullerOptions::default(), None));
        }
        assert_eq!(POOL.lock().pullers.len(), MOST);
        assert!(POOL.take(&key("2")).is_none());
        assert!(POOL.take(&key("3")).is_some());
        assert!(POOL.take(&key("3")).is_none());
        assert!(!format!("{:?}", key("secret")).contains("secret"));
        assert_ne!(key("a"), key("a").with("b"));
    }
}
