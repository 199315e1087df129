//! A scan in progress, as an Arrow stream or batch by batch.
use crate::error::{ForkError, to_python};
use crate::row::{PyDamage, from_damage};
use crate::signals::Signals;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader, PySchema};
use rmqfast_store::Result;
use rmqfast_store::scan;
use std::sync::{Arc, Mutex, PoisonError};

/// Batches of a scan; one consumer takes them.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Scan {
    state: Arc<Mutex<scan::Scan>>,
    schema: SchemaRef,
    signals: Signals,
    process: u32,
}

impl Scan {
    /// Wraps a scan that was just started in this thread.
    pub fn new(scan: scan::Scan, schema: SchemaRef) -> Self {
        Self { state: Arc::new(Mutex::new(scan)), schema, signals: Signals::here(), process: std::process::id() }
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
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_process()?;
        let reader = Reader { state: self.state.clone(), schema: self.schema.clone(), signals: self.signals };
        let reader = Bound::new(py, PyRecordBatchReader::new(Box::new(reader)))?;
        reader.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, PySchema::new(self.schema.clone()))?.call_method0("__arrow_c_schema__")
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        self.check_process()?;
        let batch = py.detach(|| next(&self.state, self.signals)).map_err(to_python)?;
        Ok(batch.map(PyRecordBatch::new))
    }

    #[getter]
    fn damage(&self) -> (Vec<PyDamage>, u64) {
        let damage = self.state.lock().unwrap_or_else(PoisonError::into_inner).damage();
        (damage.entries().iter().map(from_damage).collect(), damage.more())
    }
}

fn next(state: &Mutex<scan::Scan>, signals: Signals) -> Result<Option<RecordBatch>> {
    state.lock().unwrap_or_else(PoisonError::into_inner).next_batch(&mut signals.checker())
}

struct Reader {
    state: Arc<Mutex<scan::Scan>>,
    schema: SchemaRef,
    signals: Signals,
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        next(&self.state, self.signals).map_err(|e| ArrowError::ExternalError(Box::new(e))).transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
