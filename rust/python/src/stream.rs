//! Exposes a Spark stream to the driver. Calls release the GIL, and end on Ctrl-C.
use crate::error::{spark, to_python};
use crate::request::{PyPiece, from_piece};
use crate::signals;
use crate::spark::pairs;
use crate::topic::read::TopicRead;
use crate::topic::warnings::log_lines;
use crate::work_lock::WorkLock;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rmqfast_spark::Result;
use rmqfast_spark::store::piece::StorePiece;
use rmqfast_spark::store::stores_stream::open_store_stream;
use rmqfast_spark::stream::{Level, Stream};
use rmqfast_spark::topic::stream::TopicStream;
use rmqfast_spark::topic::topics::TopicPattern;
use std::collections::BTreeMap;
use std::sync::Arc;

const LOGGER: &str = "rmqfast.spark";

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct SparkStream {
    stream: WorkLock<Box<dyn Stream>>,
    /// Called with each warning instead of the logger.
    warn: Option<Py<PyAny>>,
}

impl SparkStream {
    fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce(&mut dyn Stream) -> Result<T> + Send) -> PyResult<T> {
        let result = py.detach(|| {
            let mut stream = self.stream.lock("this stream")?;
            let answer = question(&mut **stream);
            Ok((answer, stream.take_log()))
        });
        let (answer, lines) = result.map_err(to_python)?;
        // converted first, since it takes the pending exception, and logging runs Python code
        let answer = answer.map_err(spark);
        // logged before an error is raised, since the lines may explain it
        self.tell(py, lines)?;
        answer
    }

    fn tell(&self, py: Python<'_>, lines: Vec<(Level, String)>) -> PyResult<()> {
        let Some(warn) = &self.warn else { return log_lines(py, LOGGER, lines) };
        let (warnings, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(level, _)| *level == Level::Warning);
        log_lines(py, LOGGER, others)?;
        warnings.into_iter().try_for_each(|(_, text)| warn.call1(py, (text,)).map(drop))
    }
}

#[pymethods]
impl SparkStream {
    #[staticmethod]
    #[pyo3(signature = (read, *, warn=None))]
    fn of_topic(read: &TopicRead, warn: Option<Py<PyAny>>) -> PyResult<Self> {
        let stream = Box::new(TopicStream::new(read.read().clone()).map_err(spark)?);
        Ok(Self { stream: WorkLock::new(stream), warn })
    }

    #[staticmethod]
    #[pyo3(signature = (options, *, warn=None))]
    fn of_store(options: &Bound<'_, PyDict>, warn: Option<Py<PyAny>>) -> PyResult<Self> {
        let stream = open_store_stream(&pairs(options)?, Arc::new(signals::check)).map_err(spark)?;
        Ok(Self { stream: WorkLock::new(stream), warn })
    }

    fn initial(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |stream| stream.initial())
    }

    fn aim(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |stream| stream.aim())
    }

    #[pyo3(signature = (start, *, is_limited))]
    fn latest(&self, py: Python<'_>, start: Option<&str>, is_limited: bool) -> PyResult<String> {
        self.ask(py, |stream| stream.latest(start, is_limited))
    }

    fn report(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.ask(py, |stream| Ok(stream.report()))
    }

    fn pieces<'py>(&self, py: Python<'py>, start: &str, end: &str) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let pieces = self.ask(py, |stream| stream.pieces(start, end))?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }

    fn commit(&self, py: Python<'_>, end: &str) -> PyResult<()> {
        self.ask(py, |stream| stream.commit(end))
    }

    #[pyo3(signature = (consumed))]
    fn metrics(&self, py: Python<'_>, consumed: Option<&str>) -> PyResult<BTreeMap<String, String>> {
        Ok(self.ask(py, |stream| stream.metrics(consumed))?.into_iter().collect())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |stream| {
            stream.close();
            Ok(())
        })
    }
}

/// Returns the names of topics that a pattern selects, as the option `subscribePattern` does.
#[pyfunction]
pub fn topics_like(pattern: &str, names: Vec<String>) -> PyResult<Vec<String>> {
    let pattern = TopicPattern::new(pattern).map_err(spark)?;
    Ok(names.into_iter().filter(|name| pattern.matches(name)).collect())
}

/// Parses a serialized piece of a store: the piece, and of several stores the broker and the path of its store.
#[pyfunction]
pub fn read_store_piece(piece: &[u8]) -> PyResult<(PyPiece, Option<(String, String)>)> {
    let StorePiece { piece, broker, .. } = StorePiece::of_bytes(piece).map_err(spark)?;
    Ok((from_piece(&piece), broker))
}
