//! Requests that this side has sent and that are not answered yet.
//!
//! Source: `NettyRemotingAbstract.executeInvokeCallback`, `scanResponseTable`, `semaphoreAsync`.
use crate::command::{Command, OwnedCommand};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, SLICE};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

type Waiting = HashMap<i32, Waiter>;

/// Waiting callers, by the number of their request. An answer for which nobody waits is dropped.
#[derive(Debug)]
pub struct Pending {
    next_opaque: AtomicI32,
    /// The waiting callers; `None` after the connection was closed.
    waiting: Mutex<Option<Waiting>>,
}

#[derive(Debug)]
enum Waiter {
    /// A thread is blocked and checks its timeout itself.
    Caller(SyncSender<OwnedCommand>),
    /// No thread is blocked. The result goes to the completions of the ticket.
    Ticket(Ticket),
}

/// An asynchronous request. Its result goes to `completions`.
#[derive(Debug)]
pub struct Ticket {
    pub completions: Arc<Completions>,
    pub token: u64,
    pub asked_at: Instant,
    pub timeout: Duration,
}

impl Ticket {
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked_at) >= self.timeout
    }
}

impl Pending {
    pub fn new() -> Self {
        Self { next_opaque: AtomicI32::new(1), waiting: Mutex::new(Some(Waiting::new())) }
    }

    pub fn opaque(&self) -> i32 {
        self.next_opaque.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a blocked caller. Returns the number of its request and the receiver of the answer, or `None` if the
    /// connection is closed.
    pub fn wait(&self) -> Option<(i32, Receiver<OwnedCommand>)> {
        let opaque = self.opaque();
        // room for the one answer, so that the session never blocks
        let (sender, receiver) = sync_channel(1);
        self.lock().as_mut()?.insert(opaque, Waiter::Caller(sender));
        Some((opaque, receiver))
    }

    /// Registers an asynchronous request. Returns its number, or `None` if the connection is closed.
    pub fn take_ticket(&self, ticket: Ticket) -> Option<i32> {
        let opaque = self.opaque();
        let completions = ticket.completions.clone();
        self.lock().as_mut()?.insert(opaque, Waiter::Ticket(ticket));
        // after the insertion, as the task that this wakes looks for requests that time out
        completions.note_asked();
        Some(opaque)
    }

    /// Removes a waiting caller. Returns whether its request had no result yet.
    pub fn forget(&self, opaque: i32) -> bool {
        let forgotten = self.lock().as_mut().and_then(|waiting| waiting.remove(&opaque));
        if let Some(Waiter::Ticket(ticket)) = &forgotten {
            ticket.completions.note_forgotten();
        }
        forgotten.is_some()
    }

    /// Passes an answer to the caller that waits for it. An answer for which nobody waits is not copied.
    pub fn answer(&self, answer: &Command<'_>) {
        // unlocked after this line, as completions have their own lock
        let waiter = self.lock().as_mut().and_then(|waiting| waiting.remove(&answer.opaque));
        match waiter {
            // a caller that gave up has dropped the receiver
            Some(Waiter::Caller(sender)) => drop(sender.try_send(answer.into())),
            Some(Waiter::Ticket(ticket)) => ticket.completions.put(ticket.token, Ok(answer.into())),
            None => {}
        }
    }

    /// Fails the asynchronous requests that have timed out. Returns the time at which the oldest of them was sent.
    pub fn expire(&self, address: &str, now: Instant) -> Option<Instant> {
        // collected first, so that completions are not locked within this lock
        let mut late = Vec::new();
        if let Some(waiting) = self.lock().as_mut() {
            late.extend(
                waiting.extract_if(|_, waiter| matches!(waiter, Waiter::Ticket(ticket) if ticket.is_late(now))),
            );
        }
        let mut oldest = None;
        for (_, waiter) in late {
            let Waiter::Ticket(ticket) = waiter else { continue };
            oldest = oldest.into_iter().chain([ticket.asked_at]).min();
            let timeout_ms = ticket.timeout.as_millis() as u64;
            ticket.completions.put(ticket.token, Err(Error::Timeout { address: address.to_owned(), timeout_ms }));
        }
        oldest
    }

    /// Fails all waiting callers. Called when the connection was closed.
    pub fn close(&self, address: &str) {
        // from here on no waiter can be registered
        let waiting = self.lock().take();
        for waiter in waiting.into_iter().flat_map(HashMap::into_values) {
            // a blocked caller notices that its channel ended
            if let Waiter::Ticket(ticket) = waiter {
                let closed: Result<OwnedCommand> = Err(Error::Closed { address: address.to_owned() });
                ticket.completions.put(ticket.token, closed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Completion {
    pub token: u64,
    pub outcome: Result<OwnedCommand>,
}

/// Results of requests, in the order of their arrival. All connections of a client share them.
///
/// A request is in flight from [`reserve`](Self::reserve) until its result is taken.
#[derive(Debug)]
pub struct Completions {
    state: Mutex<State>,
    arrived: Condvar,
    freed: Condvar,
    /// Number of requests without a result. The task that checks timeouts reads it.
    unanswered: AtomicUsize,
    pub(crate) has_unanswered: Notify,
    max_in_flight: usize,
    takers: usize,
}

#[derive(Debug, Default)]
struct State {
    done: VecDeque<Completion>,
    in_flight: usize,
    /// Number of threads that wait for a result (`idle`) or for a free place (`crowded`). If it is zero, nobody has
    /// to be woken, which saves a system call.
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
    /// Creates the queue for at most `max_in_flight` requests. `takers` is the number of threads that take results.
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

    /// Reserves a place for a request. Waits until `until` for a free place. With `None` does not wait, and ignores the limit. Fails with [`Error::TooManyRequests`] if no place became free in time, [`Error::Closed`],
    /// [`Error::Interrupted`].
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

    /// Frees the place of a request that was not sent after all.
    pub(crate) fn release(&self) {
        self.lock().in_flight -= 1;
        self.freed.notify_one();
    }

    pub(crate) fn note_asked(&self) {
        // only the first request wakes the task that checks timeouts
        if self.unanswered.fetch_add(1, Ordering::Relaxed) == 0 {
            self.has_unanswered.notify_one();
        }
    }

    /// Subtracts a request from those without a result: it got a result, or nobody waits for one any more.
    pub(crate) fn note_forgotten(&self) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether any request is without a result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn put(&self, token: u64, outcome: Result<OwnedCommand>) {
        self.note_forgotten();
        let mut state = self.lock();
        state.done.push_back(Completion { token, outcome });
        // if results were waiting, a thread was woken for them, and wakes the next one if it leaves any
        let wakes = state.done.len() == 1 && state.idle > 0;
        drop(state);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Waits for results and takes some of them, by [`wait`](Self::wait) and [`take_ready`](Self::take_ready). Returns
    /// an empty list after `timeout`, and `None` once the queue is closed and no request is in flight.
    pub fn take(&self, max: usize, timeout: Duration) -> Option<Vec<Completion>> {
        self.wait(timeout).then(|| self.take_ready(max))
    }

    /// Waits until there is a result, or `timeout` is over. Returns false once the queue is closed and no request is in
    /// flight.
    ///
    /// The caller must take results afterwards, because other threads may not have been woken for them.
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

    /// Takes at most `max` results, and no more than a fair share for this thread.
    pub fn take_ready(&self, max: usize) -> Vec<Completion> {
        let mut state = self.lock();
        // a thread that takes a whole burst would handle it alone
        let share = state.done.len().div_ceil(self.takers).min(max.max(1));
        let completions: Vec<_> = state.done.drain(..share).collect();
        state.in_flight -= completions.len();
        let (is_over, is_crowded) = (state.is_over(), state.crowded > 0);
        let wakes = state.idle > 0 && !state.done.is_empty();
        drop(state);
        // wakes all, as several places may be free
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

    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Refuses further requests. Requests in flight get a result when their connections are closed.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        // wakes takers, callers that wait for a place, and the task that waits for a first request
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
            // only the first result wakes a taker: the others arrived before it was taken
            completions.arrived.notify_one();
            let mut counts: Vec<_> = (0..2).map(|_| taken.recv_timeout(PATIENCE).expect("woken")).collect();
            counts.sort();
            assert_eq!(counts, [Some(1), Some(2)]);
        });
        assert_eq!(completions.in_flight(), 1);
    }
}
