//! Limits the asynchronous sends that are in flight.
//!
//! Source: `DefaultMQProducerImpl.executeAsyncMessageSend`.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval of checks for an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// While this many sends or more are in flight, waiting threads are woken after every `AT_ONCE` ended sends, not after
/// each, since waking a thread costs more than a send.
const MANY: usize = 64;
const AT_ONCE: usize = 16;

/// Limits the number and bytes of sends in flight; further sends wait. A send that is larger than the limit may start
/// if no other send is in flight.
#[derive(Debug)]
pub struct InFlight {
    max_count: usize,
    max_bytes: usize,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    count: usize,
    bytes: usize,
    waiting: usize,
}

/// The room that one send takes. It is free again when this value is dropped.
#[derive(Debug)]
pub struct Room {
    in_flight: Arc<InFlight>,
    size: usize,
}

impl InFlight {
    pub fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { max_count, max_bytes, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Returns room for a send of `size` bytes, or `None` if there is no room now.
    pub fn try_enter(self: &Arc<Self>, size: usize) -> Option<Room> {
        let mut state = self.lock();
        // a thread that already waits goes first
        let enters = state.waiting == 0 && self.has_room(&state, size);
        enters.then(|| self.room(&mut state, size))
    }

    /// Waits for room for a send of `size` bytes, and returns it; `None` if there is no room within `timeout`.
    ///
    /// # Errors
    /// The error of `interrupt`, which is called at intervals and without a lock.
    pub fn enter<E>(
        self: &Arc<Self>,
        size: usize,
        timeout: Duration,
        interrupt: impl Fn() -> Result<(), E>,
    ) -> Result<Option<Room>, E> {
        self.wait(timeout, interrupt, |state| self.has_room(state, size), |state| self.room(state, size))
    }

    /// Waits until no sends are in flight. Returns false after `timeout`.
    ///
    /// # Errors
    /// See [`enter`](Self::enter).
    pub fn wait_until_empty<E>(&self, timeout: Duration, interrupt: impl Fn() -> Result<(), E>) -> Result<bool, E> {
        self.wait(timeout, interrupt, |state| state.count == 0, |_| ()).map(|empty| empty.is_some())
    }

    /// Returns the number of sends in flight.
    pub fn count(&self) -> usize {
        self.lock().count
    }

    /// Returns the text of the error for a send that found no room within `timeout`.
    pub fn full_text(&self, timeout: Duration) -> String {
        let (limit, State { count, bytes, .. }) = (timeout.as_secs_f64() * 1000.0, *self.lock());
        let on_way = format!("{count} sends with {bytes} bytes are on their way");
        format!("send message tryAcquire semaphoreAsync timeout, {limit:.0}(ms): {on_way}")
    }

    fn has_room(&self, state: &State, size: usize) -> bool {
        // a send that is larger than the limit could otherwise never go
        state.count == 0 || (state.count < self.max_count && state.bytes + size <= self.max_bytes)
    }

    fn room(self: &Arc<Self>, state: &mut State, size: usize) -> Room {
        state.count += 1;
        state.bytes += size;
        Room { in_flight: self.clone(), size }
    }

    fn wait<T, E>(
        &self,
        timeout: Duration,
        interrupt: impl Fn() -> Result<(), E>,
        is_ready: impl Fn(&State) -> bool,
        then: impl FnOnce(&mut State) -> T,
    ) -> Result<Option<T>, E> {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        // while a thread waits, `try_enter` refuses, so that no waiting thread is overtaken
        state.waiting += 1;
        let ready = loop {
            if is_ready(&state) {
                break Ok(true);
            }
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break Ok(false);
            }
            let (woken, slept) =
                self.freed.wait_timeout(state, remaining.min(SLICE)).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if slept.timed_out() {
                // unlocked first: `interrupt` takes the GIL, whose holder may wait for this lock
                drop(state);
                let interrupted = interrupt().err();
                state = self.lock();
                if let Some(error) = interrupted {
                    break Err(error);
                }
            }
        };
        state.waiting -= 1;
        ready.map(|ready| ready.then(|| then(&mut state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.in_flight.lock();
        state.count -= 1;
        state.bytes -= self.size;
        let wakes = state.waiting > 0 && (state.count < MANY || state.count.is_multiple_of(AT_ONCE));
        // notified after unlocking, since a woken thread takes the lock at once
        drop(state);
        if wakes {
            self.in_flight.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;

    fn uninterrupted() -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn counts_and_bytes_are_limited_but_a_large_send_alone_may_go() {
        let in_flight = Arc::new(InFlight::new(2, 100));
        let large = in_flight.try_enter(1000).expect("no other send");
        assert!(in_flight.try_enter(0).is_none());
        drop(large);
        let rooms = [60, 40].map(|size| in_flight.try_enter(size).expect("room"));
        assert!(in_flight.try_enter(0).is_none(), "two sends are in flight");
        let text = "send message tryAcquire semaphoreAsync timeout, 50(ms): 2 sends with 100 bytes are on their way";
        assert_eq!(in_flight.full_text(Duration::from_millis(50)), text);
        assert!(in_flight.enter(0, NO_WAIT, uninterrupted).expect("no interrupt").is_none());
        assert_eq!(in_flight.wait_until_empty(NO_WAIT, uninterrupted), Ok(false));
        drop(rooms);
        assert_eq!(in_flight.wait_until_empty(NO_WAIT, uninterrupted), Ok(true));
    }

    #[test]
    fn an_interrupt_ends_a_wait_and_leaves_no_thread_waiting() {
        let in_flight = Arc::new(InFlight::new(1, 100));
        let room = in_flight.try_enter(1).expect("room");
        let interrupted = in_flight.enter(1, Duration::from_secs(600), || Err("Ctrl-C"));
        assert_eq!(interrupted.err(), Some("Ctrl-C"));
        drop(room);
        assert!(in_flight.try_enter(1).is_some());
    }

    #[test]
    fn a_waiting_send_goes_once_there_is_room() {
        let in_flight = Arc::new(InFlight::new(1, 100));
        let room = in_flight.try_enter(1).expect("room");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| in_flight.enter(1, Duration::from_secs(600), uninterrupted));
            drop(room);
            assert!(waiting.join().expect("no panic").expect("no interrupt").is_some());
        });
        assert_eq!(in_flight.count(), 0);
    }
}
