//! Who is told how requests ended that nobody waits for.
use super::command::answered;
use crate::error::{object, remoting};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rmqfast_remoting::{Completion, OwnedCommand, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::IntoIter;

/// What is called, and with what.
pub type Told<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Somebody who is told how one request ended.
pub trait Asker: Send {
    /// What to call with which value.
    ///
    /// # Errors
    /// Those of Python.
    fn told(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Told<'_>>;
}

/// A callable that takes the answer as it is, or the error.
pub struct Callable(pub Py<PyAny>);

impl Asker for Callable {
    fn told(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Told<'_>> {
        Ok((self.0.into_bound(py), as_it_is(py, outcome)?))
    }
}

/// The answer as a tuple, or the error.
pub fn as_it_is(py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Ok(answer) => answered(py, answer)?.into_bound_py_any(py),
        Err(error) => Ok(object(py, remoting(error)).into_any()),
    }
}

type ByToken = HashMap<u64, Box<dyn Asker>>;

/// All who are to be told, by the number of their request.
#[derive(Default)]
pub struct Askers {
    next: AtomicU64,
    by_token: Mutex<ByToken>,
    has_tellers: AtomicBool,
}

impl Askers {
    /// A number for a request.
    pub fn add(&self, asker: Box<dyn Asker>) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(token, asker);
        token
    }

    /// Who asked, and is not waiting any more. To be dropped without the lock: that may run anything.
    pub fn remove(&self, token: u64) -> Option<Box<dyn Asker>> {
        self.lock().remove(&token)
    }

    /// There are threads that tell.
    pub fn expect_tellers(&self) {
        self.has_tellers.store(true, Ordering::Release);
    }

    /// Whether there are threads that tell.
    pub fn has_tellers(&self) -> bool {
        self.has_tellers.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ByToken> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests that have ended, as `(callable, answer or error)`, each made when its turn comes.
#[pyclass(module = "rmqfast._native._rmqfast")]
pub struct Ended {
    completions: IntoIter<Completion>,
    askers: Arc<Askers>,
}

impl Ended {
    pub fn new(completions: Vec<Completion>, askers: Arc<Askers>) -> Self {
        Self { completions: completions.into_iter(), askers }
    }
}

#[pymethods]
impl Ended {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Told<'py>>> {
        for Completion { token, outcome } in &mut self.completions {
            if let Some(asker) = self.askers.remove(token) {
                return asker.told(py, outcome).map(Some);
            }
        }
        Ok(None)
    }
}
