//! Ctrl-C, while Rust works without the GIL.
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rmqfast_store::{Error, Result};
use std::cell::Cell;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

// Bytes between two calls of a progress callback.
const PROGRESS: u64 = 64 << 20;

/// Looks for Ctrl-C, now and then, and only in the thread that this was made in: another may not take the GIL from
/// whoever waits for it.
#[derive(Clone, Copy)]
pub struct Signals {
    thread: ThreadId,
}

impl Signals {
    const INTERVAL: Duration = Duration::from_millis(50);

    /// For work that this thread starts.
    pub fn here() -> Self {
        Self { thread: std::thread::current().id() }
    }

    /// To be called between two reads; an exception that waits to be raised ends the work. Who reads in many short calls
    /// keeps one for all of them: each looks again only after a while.
    pub fn checker(self) -> impl FnMut() -> Result<()> + Send + 'static {
        // a short call never takes the GIL for this
        let mut last = Instant::now();
        move || {
            // looked at first: taking the GIL while others compute may cost 5 ms, Python's switch interval
            if last.elapsed() < Self::INTERVAL || self.thread != std::thread::current().id() {
                return Ok(());
            }
            last = Instant::now();
            attempt(|py| py.check_signals())
        }
    }
}

/// Runs `f` under the GIL; its exception is raised once the work has ended with [`Error::Interrupted`].
pub fn attempt(f: impl FnOnce(Python<'_>) -> PyResult<()>) -> Result<()> {
    // set again, because the error that goes up through Rust has no room for an exception
    Python::attach(|py| f(py).inspect_err(|e| e.clone_ref(py).restore(py))).map_err(|_| Error::Interrupted)
}

/// To be called where a library, not Python, gets the [`Error::Interrupted`]: it raises an error of its own, which it cannot while
/// an exception is set. So Ctrl-C comes once more, to be raised where Python goes on.
pub fn leave_ctrl_c_to_python() {
    Python::attach(|py| match PyErr::take(py) {
        Some(e) if e.is_instance_of::<PyKeyboardInterrupt>(py) => come_again(py, &e),
        Some(e) => e.restore(py),
        None => {}
    });
}

/// Has Ctrl-C come once more where this exception is one, and is not raised: as the signal's own handler would.
pub fn come_again(py: Python<'_>, exception: &PyErr) {
    if exception.is_instance_of::<PyKeyboardInterrupt>(py) {
        let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        again.map_or_else(|e| e.restore(py), drop);
    }
}

/// Looks for Ctrl-C during a wait for a peer; an exception that waits to be raised ends the wait.
pub fn check() -> rmqfast_remoting::Result<()> {
    thread_local!(static LAST_LOOK: Cell<Option<Instant>> = const { Cell::new(None) });
    // each look takes the GIL, and many short waits may follow one another
    if LAST_LOOK.get().is_some_and(|last| last.elapsed() < Signals::INTERVAL) {
        return Ok(());
    }
    LAST_LOOK.set(Some(Instant::now()));
    attempt(|py| py.check_signals()).map_err(|_| rmqfast_remoting::Error::Interrupted)
}

/// Watches long work: looks for Ctrl-C, and calls `progress` with bytes done and bytes in all.
pub fn watch(progress: Option<Py<PyAny>>) -> impl FnMut(u64, u64) -> Result<()> {
    let mut interrupt = Signals::here().checker();
    let mut next_call_at = 0;
    move |done, total| {
        interrupt()?;
        // each call takes the GIL; the end is reported in any case, so that a bar becomes full
        if let Some(progress) = progress.as_ref().filter(|_| done >= next_call_at || done == total) {
            next_call_at = done + PROGRESS;
            attempt(|py| progress.call1(py, (done, total)).map(drop))?;
        }
        Ok(())
    }
}
