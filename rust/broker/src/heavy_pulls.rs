//! Pulls with expensive filters. A separate thread answers them one by one, so that their filters do not delay other
//! requests.
use crate::parked_pulls::{Look, ParkedPull};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum bytes of queued requests.
const MAX_BYTES: usize = 64 << 20;
/// Bytes that are added to the fields of a request to estimate its memory.
const OF_REQUEST: usize = 1 << 10;

/// Queue of pulls with expensive filters.
#[derive(Debug, Default)]
pub struct HeavyPulls {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    pulls: VecDeque<(ParkedPull, Look)>,
    bytes: usize,
    is_closed: bool,
}

impl HeavyPulls {
    /// Queues a pull. Returns false if too many pulls are queued, or after [`close`](Self::close).
    pub fn push(&self, pull: ParkedPull, look: Look) -> bool {
        let mut waiting = self.lock();
        let bytes = bytes_of(&pull);
        if waiting.is_closed || waiting.bytes + bytes > MAX_BYTES {
            return false;
        }
        waiting.bytes += bytes;
        waiting.pulls.push_back((pull, look));
        self.changed.notify_one();
        true
    }

    /// Answers queued pulls until [`close`](Self::close). Called by the separate thread.
    pub fn run(&self, answer: impl Fn(&ParkedPull, Look)) {
        while let Some((pull, look)) = self.next() {
            answer(&pull, look);
        }
    }

    /// Makes [`run`](Self::run) return after the current pull. Queued pulls are dropped.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.pulls.clear();
        self.changed.notify_all();
    }

    fn next(&self) -> Option<(ParkedPull, Look)> {
        let mut waiting = self.lock();
        while waiting.pulls.is_empty() && !waiting.is_closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (pull, look) = waiting.pulls.pop_front()?;
        waiting.bytes -= bytes_of(&pull);
        Some((pull, look))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(pull: &ParkedPull) -> usize {
    let fields = &pull.request.borrow().fields;
    OF_REQUEST + fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}
