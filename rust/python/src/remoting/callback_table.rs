//! Keeps the callbacks of asynchronous requests until the requests end and Python threads run the callbacks.
use super::command::answer_to_python;
use crate::error::{object, remoting};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rmqfast_remoting::{Completion, OwnedCommand, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::IntoIter;

/// A callable and its argument.
pub type Invocation<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

pub trait Callback: Send {
    /// Returns the Python call that ends the request; `None` if the request was sent once more.
    ///
    /// # Errors
    /// The exceptions of Python.
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>>;
}

/// A Python callable whose argument is the answer or the error.
pub struct Callable(pub Py<PyAny>);

impl Callback for Callable {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        Ok(Some((self.0.into_bound(py), as_it_is(py, outcome)?)))
    }
}

/// Converts an answer to a tuple, or an error to an exception object.
pub fn as_it_is(py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Ok(answer) => answer_to_python(py, answer)?.into_bound_py_any(py),
        Err(error) => Ok(object(py, remoting(error)).into_any()),
    }
}

type ByToken = HashMap<u64, Box<dyn Callback>>;

/// The callbacks of requests in flight. A number ("token") identifies each.
#[derive(Default)]
pub struct CallbackTable {
    next: AtomicU64,
    by_token: Mutex<ByToken>,
    has_takers: AtomicBool,
}

impl CallbackTable {
    /// Adds a callback and returns its token.
    pub fn add(&self, callback: Box<dyn Callback>) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        // added before the request is sent, since the answer may arrive at once
        self.lock().insert(token, callback);
        token
    }

    /// Removes and returns a callback. The caller must drop it after the lock is released, since dropping may run any
    /// Python code.
    pub fn remove(&self, token: u64) -> Option<Box<dyn Callback>> {
        self.lock().remove(&token)
    }

    /// Called when threads are started that run the callbacks.
    pub fn expect_takers(&self) {
        self.has_takers.store(true, Ordering::Release);
    }

    pub fn has_takers(&self) -> bool {
        self.has_takers.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ByToken> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ended requests as `(callable, answer or error)`. Each tuple is created when the iterator reaches it.
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
            // `None` if the request could not be sent, which removed its callback
            if let Some(callback) = self.callbacks.remove(token)
                && let Some(invocation) = callback.invocation(py, outcome)?
            {
                return Ok(Some(invocation));
            }
        }
        Ok(None)
    }
}
