//! Exposes a running scan, as an Arrow stream or batch by batch.
use crate::arrow::{Batch, schema_capsule, stream_capsule};
use crate::error::{ForkError, to_python};
use crate::row::{PyDamage, from_damage};
use crate::signals::{Signals, leave_ctrl_c_to_python};
use crate::work_lock::WorkLock;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rmqfast_store::scan;
use rmqfast_store::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

// the scan's name in errors
const NAME: &str = "this scan";

/// A running scan. Only one reader can take its batches.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Scan {
    state: Arc<WorkLock<State>>,
    schema: SchemaRef,
    process: u32,
}

/// The state of a store that all its scans share.
#[derive(Clone)]
pub struct StoreGuard {
    pub root: PathBuf,
    /// Whether the store was closed.
    pub is_closed: Arc<AtomicBool>,
}

impl StoreGuard {
    /// Checks that the store is open.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn check(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed { path: self.root.clone() }) } else { Ok(()) }
    }
}

/// The state of a scan. It has its own check for Ctrl-C, since an Arrow library takes all batches without running
/// Python code.
struct State {
    scan: scan::Scan,
    interrupt: Box<dyn FnMut() -> Result<()> + Send>,
    store: StoreGuard,
    fails_on_damage: bool,
}

impl Scan {
    /// Wraps a scan of `store` that was just started by this thread.
    pub fn new(scan: scan::Scan, schema: SchemaRef, store: StoreGuard, fails_on_damage: bool) -> Self {
        // made here because `checker` works only in the thread that creates it
        let state = State { scan, interrupt: Box::new(Signals::here().checker()), store, fails_on_damage };
        Self { state: Arc::new(WorkLock::new(state)), schema, process: std::process::id() }
    }

    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = format!("this scan was started in process {}, not in its fork; scan again here", self.process);
        Err(ForkError::new_err(text))
    }
}

#[pymethods]
impl Scan {
    /// Returns an Arrow C stream. If damage was found, `on_end` is called once when the stream ends or is released.
    fn stream<'py>(&self, py: Python<'py>, on_end: Py<PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        self.check_process()?;
        // each call returns a new stream, but all streams share one scan
        let reader = Reader { state: self.state.clone(), schema: self.schema.clone(), on_end: Some(on_end) };
        stream_capsule(py, Box::new(reader))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.check_process()?;
        // the GIL is released because the lock may be held by a thread that reads
        let batch = py.detach(|| next(&self.state)).map_err(to_python)?;
        Ok(batch.map(Batch))
    }

    #[getter]
    fn fails_on_damage(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| Ok(self.state.lock(NAME)?.fails_on_damage)).map_err(to_python)
    }

    #[getter]
    fn damage(&self, py: Python<'_>) -> PyResult<(Vec<PyDamage>, u64)> {
        // the GIL is released because the lock's holder may need it to check for Ctrl-C
        let damage = py.detach(|| Ok(self.state.lock(NAME)?.scan.damage())).map_err(to_python)?;
        Ok((damage.entries().iter().map(from_damage).collect(), damage.more()))
    }
}

fn next(state: &WorkLock<State>) -> Result<Option<RecordBatch>> {
    let State { scan, interrupt, store, fails_on_damage } = &mut *state.lock(NAME)?;
    store.check()?;
    let batch = scan.next_batch(interrupt)?;
    // checked first, so that no batch behind lost messages is returned
    match scan.damage_error().filter(|_| *fails_on_damage) {
        Some(damage) => Err(damage),
        None => Ok(batch),
    }
}

struct Reader {
    state: Arc<WorkLock<State>>,
    schema: SchemaRef,
    on_end: Option<Py<PyAny>>,
}

impl Reader {
    /// Calls `on_end` if damage was found. Does nothing when called again.
    fn end(&mut self) -> PyResult<()> {
        let Some(on_end) = self.on_end.take().filter(|_| self.has_damage()) else { return Ok(()) };
        // `try_attach` returns `None` while the interpreter ends
        Python::try_attach(|py| on_end.call0(py).map(drop)).unwrap_or(Ok(()))
    }

    /// Returns whether there is damage to report. Called first, so that the GIL is only taken if it is needed.
    fn has_damage(&self) -> bool {
        // only tried: the lock's holder may wait for the GIL, which this thread may hold
        self.state.try_lock().is_some_and(|state| !state.fails_on_damage && state.scan.damage_error().is_some())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            // a destructor cannot raise, so Python prints the exception
            let _ = Python::try_attach(|py| error.write_unraisable(py, None));
        }
    }
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = next(&self.state);
        if matches!(batch, Err(Error::Interrupted)) {
            // Arrow's C interface passes on only an error code and text, so the pending exception is left to Python
            leave_ctrl_c_to_python();
        }
        match batch {
            Ok(None) => self.end().err().map(|e| Err(ArrowError::ExternalError(e.to_string().into()))),
            batch => batch.map_err(|e| ArrowError::ExternalError(Box::new(e))).transpose(),
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
