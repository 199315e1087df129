//! Checks for Ctrl-C while Rust works without the GIL.
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rmqfast_store::{Error, Result};
use std::cell::Cell;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

// bytes between two calls of a progress callback
const PROGRESS: u64 = 64 << 20;

/// Checks for Ctrl-C at intervals, in the thread that created this object. Python handles signals in its main thread
/// only, so checks in other threads would only compete for the GIL.
#[derive(Clone, Copy)]
pub struct Signals {
    thread: ThreadId,
}

impl Signals {
    // short enough that Ctrl-C seems immediate, long enough that taking the GIL costs little
    const INTERVAL: Duration = Duration::from_millis(50);

    pub fn here() -> Self {
        Self { thread: std::thread::current().id() }
    }

    /// Returns a function to call between two reads, which returns an error once an exception is pending. It only
    /// checks after an interval, so a caller of many short reads must use the same function for all.
    pub fn checker(self) -> impl FnMut() -> Result<()> + Send + 'static {
        // starts now, so that a short call never takes the GIL
        let mut last = Instant::now();
        move || {
            // tested before the GIL is taken, which may take 5 ms, Python's switch interval
            if last.elapsed() < Self::INTERVAL || self.thread != std::thread::current().id() {
                return Ok(());
            }
            last = Instant::now();
            attempt(|py| py.check_signals())
        }
    }
}

/// Runs `f` with the GIL. If `f` raises, returns [`Error::Interrupted`] and leaves the exception pending in this
/// thread.
pub fn attempt(f: impl FnOnce(Python<'_>) -> PyResult<()>) -> Result<()> {
    // restored because a Rust error cannot hold the exception
    Python::attach(|py| f(py).inspect_err(|e| e.clone_ref(py).restore(py))).map_err(|_| Error::Interrupted)
}

/// Called when a library, not Python, gets [`Error::Interrupted`]. The library must raise its own error, which is not
/// possible while an exception is pending. So this triggers Ctrl-C again, and Python raises it after the library has
/// returned.
pub fn leave_ctrl_c_to_python() {
    Python::attach(|py| match PyErr::take(py) {
        Some(e) if e.is_instance_of::<PyKeyboardInterrupt>(py) => come_again(py, &e),
        Some(e) => e.restore(py),
        None => {}
    });
}

/// Triggers Ctrl-C again if this exception is a `KeyboardInterrupt` that will not be raised.
pub fn come_again(py: Python<'_>, exception: &PyErr) {
    if exception.is_instance_of::<PyKeyboardInterrupt>(py) {
        let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        again.map_or_else(|e| e.restore(py), drop);
    }
}

/// Checks for Ctrl-C during a wait for an answer. Returns an error once an exception is pending.
pub fn check() -> rmqfast_remoting::Result<()> {
    thread_local!(static LAST_LOOK: Cell<Option<Instant>> = const { Cell::new(None) });
    // at intervals only, since each check takes the GIL and many short waits may follow each other
    if LAST_LOOK.get().is_some_and(|last| last.elapsed() < Signals::INTERVAL) {
        return Ok(());
    }
    LAST_LOOK.set(Some(Instant::now()));
    attempt(|py| py.check_signals()).map_err(|_| rmqfast_remoting::Error::Interrupted)
}

/// Returns a function for long work, which checks for Ctrl-C and calls `progress` with the bytes done and the total.
pub fn watch(progress: Option<Py<PyAny>>) -> impl FnMut(u64, u64) -> Result<()> {
    let mut interrupt = Signals::here().checker();
    let mut next_call_at = 0;
    move |done, total| {
        interrupt()?;
        // at intervals only, since each call takes the GIL; the end is always reported, so that progress bars fill up
        if let Some(progress) = progress.as_ref().filter(|_| done >= next_call_at || done == total) {
            next_call_at = done + PROGRESS;
            attempt(|py| progress.call1(py, (done, total)).map(drop))?;
        }
        Ok(())
    }
}
