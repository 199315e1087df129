//! Limits the sends that are in flight.
use crate::error::RemotingTimeoutError;
use crate::remoting::command::seconds;
use pyo3::prelude::*;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval of checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(100);

/// With `MANY` or more sends in flight, waiting threads are woken once per `AT_ONCE` ended sends, since waking costs
/// more than a send.
const MANY: usize = 64;
const AT_ONCE: usize = 16;

/// Counts sends and their bytes, and makes further sends wait at a limit. A send larger than the limit may go if no
/// other is in flight.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct InFlight {
    max_count: usize,
    max_bytes: usize,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    count: usize,
    bytes: usize,
    waiting: usize,
}

impl State {
    fn take(&mut self, size: usize) {
        self.count += 1;
        self.bytes += size;
    }
}

#[pymethods]
impl InFlight {
    #[new]
    fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { max_count, max_bytes, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Takes room for a send without waiting. Returns whether there was room.
    pub fn try_take(&self, size: usize) -> bool {
        let mut state = self.lock();
        // a thread that already waits goes first
        let takes = state.waiting == 0 && self.has_room(&state, size);
        if takes {
            state.take(size);
        }
        takes
    }

    /// Takes room for a send. Waits for it, and raises after `timeout` seconds.
    pub fn take(&self, py: Python<'_>, size: usize, timeout: f64) -> PyResult<()> {
        // the GIL is kept in the usual case that there is room
        if self.try_take(size) {
            return Ok(());
        }
        let taken = py.detach(|| self.wait(timeout, |state| self.has_room(state, size), |state| state.take(size)))?;
        if taken { Ok(()) } else { Err(self.full(timeout)) }
    }

    /// Called when a send has ended; returns its room.
    pub fn give_back(&self, size: usize) {
        let mut state = self.lock();
        state.count -= 1;
        state.bytes -= size;
        let wakes = state.waiting > 0 && (state.count < MANY || state.count.is_multiple_of(AT_ONCE));
        // notified after unlocking, since a woken thread takes the lock at once
        drop(state);
        if wakes {
            self.freed.notify_all();
        }
    }

    /// Waits until no sends are in flight. Returns false after `timeout` seconds.
    fn wait_until_empty(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        py.detach(|| self.wait(timeout, |state| state.count == 0, |_| {}))
    }

    /// Number of sends in flight.
    #[getter]
    fn count(&self) -> usize {
        self.lock().count
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl InFlight {
    fn has_room(&self, state: &State, size: usize) -> bool {
        // a send that is larger than the limit could otherwise never go
        state.count == 0 || (state.count < self.max_count && state.bytes + size <= self.max_bytes)
    }

    fn full(&self, timeout: f64) -> PyErr {
        let (limit, State { count, bytes, .. }) = (timeout * 1000.0, *self.lock());
        let on_way = format!("{count} sends with {bytes} bytes are on their way");
        RemotingTimeoutError::new_err(format!(
            "send message tryAcquire semaphoreAsync timeout, {limit:.0}(ms): {on_way}"
        ))
    }

    fn wait(&self, timeout: f64, is_ready: impl Fn(&State) -> bool, then: impl FnOnce(&mut State)) -> PyResult<bool> {
        let until = Instant::now() + seconds(timeout);
        let mut state = self.lock();
        // while a thread waits, `try_take` refuses, so that no waiting thread is overtaken
        state.waiting += 1;
        let ready = loop {
            if is_ready(&state) {
                break Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Ok(false);
            }
            let (woken, slept) =
                self.freed.wait_timeout(state, left.min(SLICE)).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if slept.timed_out() {
                // unlocked before taking the GIL: the GIL's holder may wait for this lock
                drop(state);
                let interrupted = Python::attach(|py| py.check_signals()).err();
                state = self.lock();
                if let Some(error) = interrupted {
                    break Err(error);
                }
            }
        };
        state.waiting -= 1;
        if matches!(ready, Ok(true)) {
            then(&mut state);
        }
        ready
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
