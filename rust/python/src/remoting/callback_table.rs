//! Keeps the callbacks of asynchronous requests until threads of Python take their completions.
use super::command::answer_to_python;
use crate::error::{object, remoting};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rmqfast_remoting::{Completion, OwnedCommand, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::IntoIter;

/// A callable, and the value that it is called with.
pub type Invocation<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The completion of a request.
pub trait Callback: Send {
    /// The Python call that completes the request; `None` where it was sent again.
    ///
    /// # Errors
    /// Those of Python.
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>>;
}

/// A callable that takes the answer as it is, or the error.
pub struct Callable(pub Py<PyAny>);

impl Callback for Callable {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        Ok(Some((self.0.into_bound(py), as_it_is(py, outcome)?)))
    }
}

/// The answer as a tuple, or the error.
pub fn as_it_is(py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Ok(answer) => answer_to_python(py, answer)?.into_bound_py_any(py),
        Err(error) => Ok(object(py, remoting(error)).into_any()),
    }
}

type ByToken = HashMap<u64, Box<dyn Callback>>;

/// The callbacks of requests in flight, by the number of the request.
#[derive(Default)]
pub struct CallbackTable {
    next: AtomicU64,
    by_token: Mutex<ByToken>,
    has_takers: AtomicBool,
}

impl CallbackTable {
    /// A number for a request.
    pub fn add(&self, callback: Box<dyn Callback>) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        // before the request goes out: its answer may come at once
        self.lock().insert(token, callback);
        token
    }

    /// Takes a callback out. To be dropped without the lock, as that may run any code of Python.
    pub fn remove(&self, token: u64) -> Option<Box<dyn Callback>> {
        self.lock().remove(&token)
    }

    /// There are threads that take completions.
    pub fn expect_takers(&self) {
        self.has_takers.store(true, Ordering::Release);
    }

    /// Whether there are threads that take completions.
    pub fn has_takers(&self) -> bool {
        self.has_takers.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ByToken> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests that have completed, as `(callable, answer or error)`, each made when its turn comes.
#[pyclass(module = "rmqfast._native._rmqfast")]
pub struct CompletedRequests {
    completions: IntoIter<Completion>,
    callbacks: Arc<CallbackTable>,
}

impl CompletedRequests {
    pub fn new(completions: Vec<Completion>, callbacks: Arc<CallbackTable>) -> Self {
        Self { completions: completions.into_iter(), callbacks }
    }
}

#[pymethods]
impl CompletedRequests {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Invocation<'py>>> {
        for Completion { token, outcome } in &mut self.completions {
            // a request that could not be sent took its callback back
            if let Some(callback) = self.callbacks.remove(token)
                && let Some(invocation) = callback.invocation(py, outcome)?
            {
                return Ok(Some(invocation));
            }
        }
        Ok(None)
    }
}
