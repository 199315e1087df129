//! Exposes tails. A tail waits for new messages without the GIL, until Ctrl-C or until another thread closes it.
use crate::arrow::Batch;
use crate::error::{ForkError, to_python};
use crate::row::{PyDamage, from_damage};
use crate::signals::Signals;
use crate::store_scans::StoreGuard;
use crate::work_lock::{WorkGuard, WorkLock};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use rmqfast_store::scan::plan::start_of_last;
use rmqfast_store::scan::{self, ScanRequest, Start};
use rmqfast_store::store::MessageStore;
use rmqfast_store::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// interval of checks for Ctrl-C
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// The start of a tail as a tuple: `("end" | "begin" | "position" | "time", number)`.
pub type PyStart = (String, i64);

/// Follows the new messages of a store.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Tail {
    state: WorkLock<scan::Tail>,
    /// The position of the tail. It can be read without the lock, so that a signal handler can save it.
    position: AtomicU64,
    poll_interval: Duration,
    closed: Mutex<bool>,
    store: StoreGuard,
    wake: Condvar,
    process: u32,
}

/// The start and end of a tail. `stop` is a position; a negative number means the current end.
pub struct Range {
    pub start: PyStart,
    /// Number of messages before `start` to read first.
    pub last: usize,
    pub stop: Option<i64>,
    /// Whether damage ends the tail with an error.
    pub fails_on_damage: bool,
}

impl Tail {
    pub fn open(
        store: &MessageStore,
        request: &ScanRequest,
        range: &Range,
        poll_interval: f64,
        opened: StoreGuard,
    ) -> Result<Self> {
        let interrupt = &mut Signals::here().checker();
        let start = start_of(&range.start)?;
        let mut tail = scan::Tail::new(store, request, start)?;
        // the end of the whole log, not only of the topic
        let end = || scan::Tail::new(store, &ScanRequest { topic: None, ..request.clone() }, Start::End);
        let stop = match range.stop {
            // determined before reading, so that messages that arrive later do not move it
            Some(stop) if stop < 0 => Some(if start == Start::End { tail.position() } else { end()?.position() }),
            stop => stop.map(|stop| stop as u64),
        };
        if range.last > 0 {
            let from = start_of_last(store, request, (range.last, tail.position()), interrupt)?;
            tail = scan::Tail::new(store, request, Start::Position(from))?;
        }
        Ok(Self {
            position: AtomicU64::new(tail.position()),
            state: WorkLock::new(tail.until(stop.unwrap_or(u64::MAX)).failing(range.fails_on_damage)),
            poll_interval: Duration::try_from_secs_f64(poll_interval)
                .map_err(|_| Error::invalid("poll_interval", "seconds, 0 or more", poll_interval))?,
            closed: Mutex::new(false),
            store: opened,
            wake: Condvar::new(),
            process: std::process::id(),
        })
    }

    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text =
            format!("this tail was started in process {}, not in its fork; start another one here", self.process);
        Err(ForkError::new_err(text))
    }

    fn tail(&self) -> Result<WorkGuard<'_, scan::Tail>> {
        self.state.lock("this tail")
    }

    fn lock_closed(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next batch. `None` when the tail has ended or is closed, or if `wait` is false and there is no
    /// message.
    fn next(&self, wait: bool, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        loop {
            // a closed tail ends without an error, also if its store was closed
            if !*self.lock_closed() {
                self.store.check()?;
            }
            let (batch, is_over) = {
                let mut tail = self.tail()?;
                // `closed` has its own lock, so that another thread can close the tail during a poll
                let batch = tail.poll(&mut || if *self.lock_closed() { Err(Error::Interrupted) } else { interrupt() });
                self.position.store(tail.position(), Ordering::Release);
                (batch, tail.is_over())
            };
            let batch = match batch {
                // closing interrupts the poll like Ctrl-C, but is no error
                Err(Error::Interrupted) if *self.lock_closed() => return Ok(None),
                other => other?,
            };
            if batch.is_some() || is_over || !wait {
                return Ok(batch);
            }
            self.pause(interrupt)?;
        }
    }

    /// Waits for the poll interval, or until the tail is closed.
    fn pause(&self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let end = Instant::now() + self.poll_interval;
        let mut closed = self.lock_closed();
        while !*closed {
            let remaining = end.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            closed =
                self.wake.wait_timeout(closed, remaining.min(ASK_INTERVAL)).unwrap_or_else(PoisonError::into_inner).0;
            // released during the check for Ctrl-C, which may wait for the GIL, so that `close` does not wait, too
            drop(closed);
            interrupt()?;
            self.store.check()?;
            closed = self.lock_closed();
        }
        Ok(())
    }
}

#[pymethods]
impl Tail {
    #[pyo3(signature = (*, wait))]
    fn next_batch(&self, py: Python<'_>, wait: bool) -> PyResult<Option<Batch>> {
        self.check_process()?;
        let batch = py.detach(|| self.next(wait, &mut Signals::here().checker())).map_err(to_python)?;
        Ok(batch.map(Batch))
    }

    #[getter]
    fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    #[getter]
    fn damage(&self, py: Python<'_>) -> PyResult<(Vec<PyDamage>, u64)> {
        let damage = py.detach(|| Ok(self.tail()?.damage().clone())).map_err(to_python)?;
        Ok((damage.entries().iter().map(from_damage).collect(), damage.more()))
    }

    #[getter]
    fn retained(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        let stretches =
            |tail: &scan::Tail| tail.removed_ranges().iter().map(|gone| (gone.offset, gone.length)).collect();
        py.detach(|| Ok(stretches(&*self.tail()?))).map_err(to_python)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            *self.lock_closed() = true;
            self.wake.notify_all();
        });
    }
}

fn start_of((kind, number): &PyStart) -> Result<Start> {
    match (kind.as_str(), u64::try_from(*number)) {
        ("end", _) => Ok(Start::End),
        ("begin", _) => Ok(Start::Begin),
        ("time", _) => Ok(Start::Time(*number)),
        ("position", Ok(position)) => Ok(Start::Position(position)),
        _ => Err(Error::invalid("start", "'end', 'begin', a position from 0 on, or a time", number)),
    }
}
