//! Exposes Spark's sink. It sends Arrow rows to a topic without the GIL, and stops on Ctrl-C.
use crate::arrow::OneBatch;
use crate::error::{ChannelClosedError, spark};
use crate::process::check_opened_here;
use crate::signals;
use crate::spark::pairs;
use crate::topic::warnings::log_lines;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_spark::sink::{self, ArrowRows, Month, SinkColumn, SinkOptions, check_topic, sink_columns, unique_ids};
use rmqfast_spark::{Pairs, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

// interval of checks for Ctrl-C
const LOOK: Duration = Duration::from_millis(100);
const LOGGER: &str = "rmqfast.spark";

/// A sink, with its options and the schema of its rows.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct TopicSink {
    given: (Pairs, Pairs),
    options: SinkOptions,
    columns: Vec<SinkColumn>,
}

#[pymethods]
impl TopicSink {
    #[new]
    fn new(options: &Bound<'_, PyDict>, fields: Pairs) -> PyResult<Self> {
        let texts = pairs(options)?;
        let options = SinkOptions::of(&texts).map_err(spark)?;
        let columns = sink_columns(&fields, options.topic.as_deref()).map_err(spark)?;
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(Self { given: (texts, fields), options, columns })
    }

    /// Pickles the sink as its arguments, for the tasks.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Pairs)> {
        let (texts, fields) = &self.given;
        let options = PyDict::new(py);
        texts.iter().try_for_each(|(name, text)| options.set_item(name, text))?;
        Ok((options, fields.clone()))
    }

    #[staticmethod]
    fn column_types() -> Vec<(&'static str, Vec<&'static str>)> {
        sink::column_types().map(|(name, types)| (name, types.to_vec())).collect()
    }

    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.name()).collect()
    }

    #[getter]
    fn topic(&self) -> Option<&str> {
        self.options.topic.as_deref()
    }

    fn check(&self, py: Python<'_>, month: Month) -> PyResult<()> {
        let ids = unique_ids(&self.options, month);
        let mut options = self.options.clone();
        // only for this call: threads of a writer get no signals and must not take the GIL
        options.cluster.interrupt = Arc::new(signals::check);
        py.detach(|| check_topic(options, &self.columns, ids)).map_err(spark)
    }

    fn open(&self, partition: i32, month: Month) -> PyResult<TopicWriter> {
        // not prompt: the last rows of a batch wait for more rows of their target
        let writer = sink::TopicWriter::new(self.options.clone(), self.columns.clone(), partition, month, false);
        Ok(TopicWriter { writer: Mutex::new(Some(writer.map_err(spark)?)), process: std::process::id() })
    }
}

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct TopicWriter {
    writer: Mutex<Option<sink::TopicWriter>>,
    process: u32,
}

#[pymethods]
impl TopicWriter {
    fn write(&self, py: Python<'_>, batch: OneBatch) -> PyResult<()> {
        // handed over in the first call; later calls only wait for room
        let mut batch = Some(batch.0);
        self.wait(py, move |writer| {
            let is_taken = match batch.take() {
                Some(batch) => writer.push(ArrowRows::new(&batch, writer.columns())?, LOOK)?,
                None => writer.push_waiting(LOOK)?,
            };
            Ok(is_taken.then_some(()))
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Written> {
        self.wait(py, |writer| writer.finish(LOOK)).map(|written| Written { written })
    }

    fn close(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| drop(self.lock().take()));
        }
    }
}

impl TopicWriter {
    /// Repeats a call until it returns a result. Checks for Ctrl-C in between.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        mut ask: impl FnMut(&mut sink::TopicWriter) -> Result<Option<T>> + Send,
    ) -> PyResult<T> {
        check_opened_here(self.process, "writer")?;
        loop {
            let result = py.detach(|| self.lock().as_mut().map(|writer| (ask(writer), writer.take_log())));
            let (answer, lines) = result.ok_or_else(|| ChannelClosedError::new_err("the writer is closed"))?;
            // logged before an error is raised, since the lines may explain it
            log_lines(py, LOGGER, lines)?;
            if let Some(answer) = answer.map_err(spark)? {
                return Ok(answer);
            }
            // the rows that were not handed over are lost, so the writer is closed
            py.check_signals().inspect_err(|_| self.close(py))?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<sink::TopicWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TopicWriter {
    fn drop(&mut self) {
        // closing joins a thread that may need the GIL to free rows that Python made
        let _ = Python::try_attach(|py| self.close(py));
        // in a fork, or while the interpreter ends, the thread does not exist, so dropping would wait forever
        std::mem::forget(self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[pyclass(frozen, eq, module = "rmqfast._native._rmqfast")]
#[derive(PartialEq)]
pub struct Written {
    written: sink::Written,
}

#[pymethods]
impl Written {
    #[new]
    #[pyo3(signature = (rows=0, bytes=0, batches=0, retries=0, less_safe=0))]
    fn new(rows: u64, bytes: u64, batches: u64, retries: u64, less_safe: u64) -> Self {
        Self { written: sink::Written { rows, bytes, batches, retries, less_safe } }
    }

    fn __getnewargs__(&self) -> (u64, u64, u64, u64, u64) {
        self.counts()
    }

    #[staticmethod]
    fn total(parts: Vec<PyRef<'_, Self>>) -> Self {
        Self { written: parts.iter().map(|part| part.written).sum() }
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.written.rows
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.written.bytes
    }

    #[getter]
    fn batches(&self) -> u64 {
        self.written.batches
    }

    #[getter]
    fn retries(&self) -> u64 {
        self.written.retries
    }

    #[getter]
    fn less_safe(&self) -> u64 {
        self.written.less_safe
    }

    fn counts(&self) -> (u64, u64, u64, u64, u64) {
        self.written.counts().into()
    }

    fn __str__(&self) -> String {
        self.written.to_string()
    }

    fn __repr__(&self) -> String {
        let sink::Written { rows, bytes, batches, retries, less_safe } = self.written;
        format!("Written(rows={rows}, bytes={bytes}, batches={batches}, retries={retries}, less_safe={less_safe})")
    }
}
