//! A scan in progress, as an Arrow stream or batch by batch.
use crate::arrow::{Batch, schema_capsule, stream_capsule};
use crate::error::{ForkError, to_python};
use crate::row::{PyDamage, from_damage};
use crate::signals::{Signals, leave_ctrl_c_to_python};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rmqfast_store::scan;
use rmqfast_store::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Batches of a scan; one consumer takes them.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Scan {
    state: Arc<Mutex<State>>,
    schema: SchemaRef,
    process: u32,
}

/// A scan, and what looks for Ctrl-C as long as it goes on: a library takes batch after batch without a word of Python.
struct State {
    scan: scan::Scan,
    interrupt: Box<dyn FnMut() -> Result<()> + Send>,
}

impl Scan {
    /// Wraps a scan that was just started in this thread.
    pub fn new(scan: scan::Scan, schema: SchemaRef) -> Self {
        // made here: `checker` looks for Ctrl-C in the thread that starts the scan
        let state = State { scan, interrupt: Box::new(Signals::here().checker()) };
        Self { state: Arc::new(Mutex::new(state)), schema, process: std::process::id() }
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
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.check_process()?;
        let reader = Reader { state: self.state.clone(), schema: self.schema.clone() };
        // a stream of its own for each call, but all take from one scan
        // a consumer that asks for another schema converts the rows itself, as the interface allows
        let _ = requested_schema;
        stream_capsule(py, Box::new(reader))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.check_process()?;
        // without the GIL, as the lock is waited for while another thread reads
        let batch = py.detach(|| next(&self.state)).map_err(to_python)?;
        Ok(batch.map(Batch))
    }

    #[getter]
    fn damage(&self, py: Python<'_>) -> (Vec<PyDamage>, u64) {
        // without the GIL: the thread that holds the lock may be about to take it, to look for Ctrl-C
        let damage = py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).scan.damage());
        (damage.entries().iter().map(from_damage).collect(), damage.more())
    }
}

fn next(state: &Mutex<State>) -> Result<Option<RecordBatch>> {
    let State { scan, interrupt } = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
    scan.next_batch(interrupt)
}

struct Reader {
    state: Arc<Mutex<State>>,
    schema: SchemaRef,
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = next(&self.state);
        if matches!(batch, Err(Error::Interrupted)) {
            // here Arrow's C interface gets the error, which carries no Python exception
            leave_ctrl_c_to_python();
        }
        batch.map_err(|e| ArrowError::ExternalError(Box::new(e))).transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
