//! Exposes a running scan of a store or of topics, as an Arrow stream or batch by batch.
use crate::arrow::{Batch, schema_capsule, stream_capsule};
use crate::decode::{PyBadBody, from_bad_body};
use crate::error::{ForkError, spark, to_python};
use crate::row::PyDamage;
use crate::signals::{Signals, leave_ctrl_c_to_python};
use crate::store_scans::{Interrupt, StoreScans};
use crate::work_lock::WorkLock;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rmqfast_spark::Error;
use rmqfast_spark::topic::scan::{TopicScan, Warnings};
use rmqfast_store::scan::RowLimit;
use std::sync::Arc;

// the scan's name in errors
const NAME: &str = "this scan";

/// The first texts of a kind, and the number of further ones.
type FirstTexts = (Vec<String>, u64);

/// A running scan. Only one reader can take its batches.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Scan {
    state: Arc<WorkLock<State>>,
    schema: SchemaRef,
    process: u32,
}

/// Scans of stores, or of topics.
pub enum Source {
    Stores(StoreScans),
    Topics(TopicScan),
}

impl Source {
    fn next_batch(&mut self, interrupt: &mut Interrupt, fails_on_damage: bool) -> Result<Option<RecordBatch>, Error> {
        match self {
            Self::Stores(scans) => Ok(scans.next_batch(interrupt, fails_on_damage)?),
            // a strict request ends at the first loss by itself
            Self::Topics(scan) => scan.next_batch(&mut || Ok(interrupt()?)),
        }
    }

    /// Returns whether there is anything to report, besides the error of a scan that fails on damage.
    fn has_report(&self, fails_on_damage: bool) -> bool {
        let has_damage = match self {
            Self::Stores(scans) => !fails_on_damage && scans.has_damage(),
            Self::Topics(scan) => scan.has_warnings(),
        };
        has_damage || (!self.fails_on_bad_bodies() && !self.bad_bodies().0.is_empty())
    }

    fn fails_on_bad_bodies(&self) -> bool {
        match self {
            Self::Stores(scans) => scans.fails_on_bad_bodies(),
            Self::Topics(scan) => scan.fails_on_bad_bodies(),
        }
    }

    fn bad_bodies(&self) -> (Vec<PyBadBody>, u64) {
        match self {
            Self::Stores(scans) => scans.bad_bodies(),
            Self::Topics(scan) => {
                let bodies = scan.warnings().bad_bodies;
                (bodies.entries().iter().map(from_bad_body).collect(), bodies.more())
            }
        }
    }
}

/// The state of a scan. It has its own check for Ctrl-C, since an Arrow library takes all batches without running
/// Python code.
struct State {
    source: Source,
    interrupt: Box<Interrupt>,
    limit: RowLimit,
    fails_on_damage: bool,
}

impl Scan {
    /// Wraps a scan that was just started by this thread.
    pub fn new(source: Source, schema: SchemaRef, limit: Option<usize>, fails_on_damage: bool) -> Self {
        // made here because `checker` works only in the thread that creates it
        let interrupt = Box::new(Signals::here().checker());
        let state = State { source, interrupt, limit: RowLimit::new(limit), fails_on_damage };
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
    /// Returns one scan of the same columns, which reads scans of stores one after the other. These are empty then.
    #[staticmethod]
    fn chain(py: Python<'_>, scans: Vec<PyRef<'_, Self>>, limit: Option<usize>) -> PyResult<Self> {
        let first =
            scans.first().ok_or_else(|| to_python(rmqfast_store::Error::invalid("scans", "one or more", "none")))?;
        let (schema, mut taken, mut fails) = (first.schema.clone(), Vec::new(), false);
        for scan in &scans {
            scan.check_process()?;
            let state = &scan.state;
            let (source, fails_on_damage) = py.detach(|| take_source(state)).map_err(to_python)?;
            taken.push(source);
            fails |= fails_on_damage;
        }
        Ok(Self::new(Source::Stores(StoreScans::chain(taken)), schema, limit, fails))
    }

    /// Returns an Arrow C stream. If damage or bad bodies were found, `on_end` is called once when the stream ends or is released.
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
        let batch = py.detach(|| next(&self.state)).map_err(spark)?;
        Ok(batch.map(Batch))
    }

    #[getter]
    fn fails_on_damage(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| Ok(self.state.lock(NAME)?.fails_on_damage)).map_err(to_python)
    }

    #[getter]
    fn damage(&self, py: Python<'_>) -> PyResult<(Vec<PyDamage>, u64)> {
        // the GIL is released because the lock's holder may need it to check for Ctrl-C
        let damage = py.detach(|| match &self.state.lock(NAME)?.source {
            Source::Stores(scans) => Ok(scans.damage()),
            Source::Topics(_) => Ok((Vec::new(), 0)),
        });
        damage.map_err(to_python)
    }

    /// Returns the losses of a scan of topics so far, and its troubles: the first of each, and the number of further ones.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<(FirstTexts, FirstTexts)> {
        let warnings = py.detach(|| match &self.state.lock(NAME)?.source {
            Source::Stores(_) => Ok(Warnings::default()),
            Source::Topics(scan) => Ok(scan.warnings()),
        });
        let Warnings { losses, troubles, .. } = warnings.map_err(to_python)?;
        Ok(((losses.first, losses.more), (troubles.first, troubles.more)))
    }

    #[getter]
    fn fails_on_bad_bodies(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| Ok(self.state.lock(NAME)?.source.fails_on_bad_bodies())).map_err(to_python)
    }

    #[getter]
    fn bad_bodies(&self, py: Python<'_>) -> PyResult<(Vec<PyBadBody>, u64)> {
        py.detach(|| Ok(self.state.lock(NAME)?.source.bad_bodies())).map_err(to_python)
    }
}

/// Takes the scans of stores out of a state, which has none then. Returns whether damage ends them, too.
fn take_source(state: &WorkLock<State>) -> rmqfast_store::Result<(StoreScans, bool)> {
    let mut state = state.lock(NAME)?;
    let scans = match &mut state.source {
        Source::Stores(scans) => std::mem::take(scans),
        Source::Topics(_) => return Err(rmqfast_store::Error::invalid("scans", "scans of stores", "one of topics")),
    };
    Ok((scans, state.fails_on_damage))
}

fn next(state: &WorkLock<State>) -> Result<Option<RecordBatch>, Error> {
    let State { source, interrupt, limit, fails_on_damage } = &mut *state.lock(NAME)?;
    if limit.is_reached() {
        return Ok(None);
    }
    Ok(source.next_batch(interrupt, *fails_on_damage)?.map(|batch| limit.take(batch)))
}

struct Reader {
    state: Arc<WorkLock<State>>,
    schema: SchemaRef,
    on_end: Option<Py<PyAny>>,
}

impl Reader {
    /// Calls `on_end` if there is anything to report. Does nothing when called again.
    fn end(&mut self) -> PyResult<()> {
        let Some(on_end) = self.on_end.take().filter(|_| self.has_report()) else { return Ok(()) };
        // `try_attach` returns `None` while the interpreter ends
        Python::try_attach(|py| on_end.call0(py).map(drop)).unwrap_or(Ok(()))
    }

    /// Returns whether there is anything to report. Called first, so that the GIL is only taken if it is needed.
    fn has_report(&self) -> bool {
        // only tried: the lock's holder may wait for the GIL, which this thread may hold
        self.state.try_lock().is_some_and(|state| state.source.has_report(state.fails_on_damage))
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
        if matches!(batch, Err(Error::Store(rmqfast_store::Error::Interrupted))) {
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
