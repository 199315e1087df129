//! A pool of idle pullers, so that a stream's next micro-batch reuses the connection and thread of the previous
//! micro-batch.
//!
//! Source: `InternalKafkaConsumerPool` of Spark, which has the same size.
use crate::puller::{Puller, Queue};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// Maximum pullers in the pool.
const MOST: usize = 64;
// Time after which an unused puller is closed.
const IDLE: Duration = Duration::from_secs(60);
// Maximum pullers with messages read ahead. Each may hold as many bytes as its thresholds allow.
const MOST_AHEAD: usize = 8;

/// Idle pullers by key. An idle puller has no queues, or queues that it reads ahead for the next reader.
#[derive(Debug)]
pub struct PullerPool {
    idle: Mutex<Pool>,
}

#[derive(Debug)]
struct Pool {
    /// Sorted by the time since which they are idle, oldest first.
    pullers: VecDeque<Idle>,
    has_cleaner: bool,
}

#[derive(Debug)]
struct Idle {
    key: PoolKey,
    puller: Puller,
    since: Instant,
}

/// A key that is equal for pullers with the same cluster, account and options. It may contain a secret, so it is never
/// printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PoolKey(String);

impl PoolKey {
    /// Creates a key from all settings that two readers must have in common to share pullers.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        // no option contains a NUL character
        Self(parts.into_iter().flat_map(|part| [part, "\0"]).collect())
    }

    /// Returns a key with one more part.
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
    pub const fn new() -> Self {
        Self { idle: Mutex::new(Pool { pullers: VecDeque::new(), has_cleaner: false }) }
    }

    /// Removes and returns a puller with this key. Prefers the puller that has read ahead for most of the positions,
    /// otherwise returns a puller without queues. `None` if there is neither.
    ///
    /// Source: `FetchedDataPool` of Spark.
    pub fn take(&self, key: &PoolKey, positions: &[(Queue, i64)]) -> Option<Puller> {
        let mut pool = self.lock();
        let leads = |puller: &Puller| {
            let is_there = |(queue, offset): &&(Queue, i64)| puller.position(queue) == Some(*offset);
            let count = positions.iter().filter(is_there).count();
            // a puller that reads ahead for another task is left to that task
            (count > 0 || !puller.has_queues()).then_some(count)
        };
        let of_key = pool.pullers.iter().enumerate().filter(|(_, idle)| idle.key == *key);
        let leading = of_key.filter_map(|(place, idle)| Some((leads(&idle.puller)?, place)));
        // of several pullers the last used, as its connection is least likely dead
        let (_, place) = leading.max()?;
        pool.pullers.remove(place).map(|idle| idle.puller)
    }

    /// Adds the puller of a finished reader.
    pub fn give_back(&'static self, key: PoolKey, puller: Puller) {
        let mut pool = self.lock();
        if pool.pullers.len() >= MOST {
            pool.pullers.pop_front();
        }
        if puller.has_queues() {
            let mut ahead = pool.pullers.iter().map(|idle| &idle.puller).filter(|puller| puller.has_queues());
            if let Some(oldest) = ahead.next().filter(|_| ahead.count() + 1 >= MOST_AHEAD) {
                oldest.retain(|_| false);
            }
        }
        pool.pullers.push_back(Idle { key, puller, since: Instant::now() });
        if !pool.has_cleaner {
            // if no thread can be started, the next call tries again
            let cleaner = std::thread::Builder::new().name("rmqfast-idle".into()).spawn(|| self.clean());
            pool.has_cleaner = cleaner.is_ok();
        }
    }

    /// Closes pullers that have been idle for too long. Ends when the pool is empty.
    fn clean(&self) {
        loop {
            let now = Instant::now();
            let wait = {
                let mut pool = self.lock();
                while pool.pullers.front().is_some_and(|idle| now - idle.since >= IDLE) {
                    pool.pullers.pop_front();
                }
                let Some(first) = pool.pullers.front() else {
                    pool.has_cleaner = false;
                    return;
                };
                IDLE - (now - first.since)
            };
            std::thread::sleep(wait);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
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
    use crate::puller::{Assignment, Broker, PullerOptions};

    static POOL: PullerPool = PullerPool::new();

    #[test]
    fn a_puller_is_for_one_reader_of_its_key_and_few_are_kept() {
        let key = |name: &str| PoolKey::of([name, "group"]);
        for number in 0..MOST + 3 {
            POOL.give_back(key(&number.to_string()), Puller::new(PullerOptions::default(), None));
        }
        assert_eq!(POOL.lock().pullers.len(), MOST);
        assert!(POOL.take(&key("2"), &[]).is_none());
        assert!(POOL.take(&key("3"), &[]).is_some());
        assert!(POOL.take(&key("3"), &[]).is_none());
        POOL.lock().pullers.clear();
        let queue = Queue { topic: "t".into(), broker_name: "b".into(), queue_id: 0 };
        let ahead = |start| {
            let puller = Puller::new(PullerOptions::default(), None);
            let broker = Broker { address: "127.0.0.1:1".into(), is_slave: false };
            puller.assign(broker, queue.clone(), Assignment { start, ..Assignment::default() }).expect("a thread");
            puller
        };
        (0..MOST_AHEAD as i64 + 2).for_each(|start| POOL.give_back(key("a"), ahead(start)));
        let with_queues = |pool: &Pool| pool.pullers.iter().filter(|idle| idle.puller.has_queues()).count();
        assert_eq!(with_queues(&POOL.lock()), MOST_AHEAD);
        let taken = POOL.take(&key("a"), &[(queue.clone(), 5)]).and_then(|puller| puller.position(&queue));
        assert_eq!((taken, with_queues(&POOL.lock())), (Some(5), MOST_AHEAD - 1));
        // messages read ahead are for one reader only: two pullers have no queue any more
        let others = || POOL.take(&key("a"), &[(queue.clone(), 99)]).map(|puller| puller.has_queues());
        assert_eq!([others(), others(), others()], [Some(false), Some(false), None]);
        assert!(!format!("{:?}", key("secret")).contains("secret"));
        assert_ne!(key("a"), key("a").with("b"));
    }
}
