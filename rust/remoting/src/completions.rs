//! The queue of completed asynchronous requests: a thread takes many at once.
//!
//! Source: `NettyRemotingAbstract.executeInvokeCallback`, `scanResponseTable`, `semaphoreAsync`.
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, SLICE};
use crate::owned_command::OwnedCommand;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The end of a request.
#[derive(Debug)]
pub struct Completion {
    /// Which request, as whoever asked named it.
    pub token: u64,
    /// Its answer, or why there is none.
    pub outcome: Result<OwnedCommand>,
}

/// Ends of requests in the order in which they came; shared by all connections of a client.
///
/// A request counts from [`reserve`](Self::reserve) until its end is taken.
#[derive(Debug)]
pub struct Completions {
    state: Mutex<State>,
    arrived: Condvar,
    freed: Condvar,
    /// Requests without an end, for whoever looks after their time.
    unanswered: AtomicUsize,
    pub(crate) has_unanswered: Notify,
    max_in_flight: usize,
    takers: usize,
}

#[derive(Debug, Default)]
struct State {
    done: VecDeque<Completion>,
    in_flight: usize,
    /// Threads that wait for an end, and those that wait for a place: who wakes nobody need not ask the system to.
    idle: usize,
    crowded: usize,
    is_closed: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.is_closed && self.in_flight == 0
    }
}

impl Completions {
    /// Allows so many requests at once, and expects so many threads to take their ends.
    pub fn new(max_in_flight: usize, takers: usize) -> Self {
        Self {
            state: Mutex::default(),
            arrived: Condvar::new(),
            freed: Condvar::new(),
            unanswered: AtomicUsize::new(0),
            has_unanswered: Notify::new(),
            max_in_flight,
            takers: takers.max(1),
        }
    }

    /// Takes a place for one more request; waits for one until then, unless `until` is `None`: then the limit does not count.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`] where none came free in time, [`Error::Closed`], [`Error::Interrupted`].
    pub(crate) fn reserve(&self, address: &str, until: Option<Instant>, interrupt: Interrupt<'_>) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return Err(Error::Closed { address: address.to_owned() });
            }
            let Some(until) = until.filter(|_| state.in_flight >= self.max_in_flight) else { break };
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(Error::TooManyRequests { address: address.to_owned(), limit: self.max_in_flight });
            }
            state.crowded += 1;
            state = self.freed.wait_timeout(state, remaining.min(SLICE)).unwrap_or_else(PoisonError::into_inner).0;
            state.crowded -= 1;
            drop(state);
            interrupt()?;
            state = self.lock();
        }
        state.in_flight += 1;
        Ok(())
    }

    /// Gives back the place of a request that was never asked.
    pub(crate) fn release(&self) {
        self.lock().in_flight -= 1;
        self.freed.notify_one();
    }

    /// A request is on its way.
    pub(crate) fn note_asked(&self) {
        // only the first of many wakes the task that looks after the time
        if self.unanswered.fetch_add(1, Ordering::Relaxed) == 0 {
            self.has_unanswered.notify_one();
        }
    }

    /// A request that was on its way will have no end here.
    pub(crate) fn note_forgotten(&self) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether some request has no end yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) > 0
    }

    /// A request has ended.
    pub(crate) fn put(&self, token: u64, outcome: Result<OwnedCommand>) {
        self.note_forgotten();
        let mut state = self.lock();
        state.done.push_back(Completion { token, outcome });
        // where others were there before, somebody was woken for them, and wakes the next one where he leaves some
        let wakes = state.done.len() == 1 && state.idle > 0;
        drop(state);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Takes some that have ended, as [`take_ready`](Self::take_ready) does; waits for them as [`wait`](Self::wait) does: an empty
    /// list after `timeout`, `None` once everything is over.
    pub fn take(&self, max: usize, timeout: Duration) -> Option<Vec<Completion>> {
        self.wait(timeout).then(|| self.take_ready(max))
    }

    /// Waits until some have ended, or `timeout` is over. Returns false once everything is over.
    ///
    /// Who returns from here is to take some: others may not have been woken for them.
    pub fn wait(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        while state.done.is_empty() {
            if state.is_over() {
                return false;
            }
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            state.idle += 1;
            state = self.arrived.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
        true
    }

    /// Takes some of those that have ended, `max` at most, and no more than this thread's share.
    pub fn take_ready(&self, max: usize) -> Vec<Completion> {
        let mut state = self.lock();
        // a thread that took a whole burst would handle it alone
        let share = state.done.len().div_ceil(self.takers).min(max.max(1));
        let completions: Vec<_> = state.done.drain(..share).collect();
        state.in_flight -= completions.len();
        let (is_over, is_crowded) = (state.is_over(), state.crowded > 0);
        let wakes = state.idle > 0 && !state.done.is_empty();
        drop(state);
        // all of them: several places may have come free
        if is_crowded && !completions.is_empty() {
            self.freed.notify_all();
        }
        if is_over {
            self.arrived.notify_all();
        } else if wakes {
            self.arrived.notify_one();
        }
        completions
    }

    /// Requests between [`reserve`](Self::reserve) and the taking of their end.
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Takes no more requests; those that are on their way end as their connections do.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        // all three: takers, callers that wait for a place, and the task that waits for a first request
        self.arrived.notify_all();
        self.freed.notify_all();
        self.has_unanswered.notify_one();
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_waiting::PATIENCE;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn who_leaves_some_wakes_the_next() {
        let completions = Completions::new(10, 2);
        let (counts, taken) = channel();
        thread::scope(|scope| {
            for _ in 0..2 {
                let (counts, completions) = (counts.clone(), &completions);
                scope.spawn(move || counts.send(completions.take(64, PATIENCE).map(|all| all.len())));
            }
            while completions.lock().idle < 2 {
                thread::yield_now();
            }
            let ended = (0..4).map(|token| Completion { token, outcome: Err(Error::Forked) });
            let mut state = completions.lock();
            state.in_flight = 4;
            state.done.extend(ended);
            drop(state);
            // as for the first of them alone: the others came before anybody took it
            completions.arrived.notify_one();
            let mut counts: Vec<_> = (0..2).map(|_| taken.recv_timeout(PATIENCE).expect("woken")).collect();
            counts.sort();
            assert_eq!(counts, [Some(1), Some(2)]);
        });
        assert_eq!(completions.in_flight(), 1);
    }
}
