//! Exposes a puller's answers.
use super::message_queue::message_queue;
use super::message_view::{Bytes, MessageView, SeenAs, Source};
use crate::error::client;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};
use rmqfast_client::pull_body;
use rmqfast_client::puller::{self, Item};
use rmqfast_store::scan::row::Row;
use std::sync::Arc;

/// The maximum size of a decompressed body, and whether CRCs are checked.
#[derive(Clone, Copy)]
pub struct Bodies {
    pub max_bytes: usize,
    pub verify_crc: bool,
}

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Fetched {
    inner: puller::PulledAnswer,
    bodies: Bodies,
    messages: PyOnceLock<Py<PyList>>,
}

impl Fetched {
    pub fn new(inner: puller::PulledAnswer, bodies: Bodies) -> Self {
        Self { inner, bodies, messages: PyOnceLock::new() }
    }

    pub fn inner(&self) -> &puller::PulledAnswer {
        &self.inner
    }

    pub fn broker(&self) -> &str {
        &self.inner.queue.broker_name
    }

    pub fn bodies(&self) -> Bodies {
        self.bodies
    }

    fn views<'py>(&self, py: Python<'py>, rows: &[Row], seen_as: SeenAs) -> PyResult<Bound<'py, PyList>> {
        // shared with the puller's pool, which reuses the memory once the last view is gone
        let source = Arc::new(Source {
            bytes: Bytes::Rust(self.inner.body.clone()),
            broker_name: Some(self.broker().to_owned()),
            bounds: Some((self.inner.min_offset, self.inner.max_offset)),
            max_body_bytes: self.bodies.max_bytes,
            verify_crc: self.bodies.verify_crc,
        });
        let views = rows.iter().map(|row| Bound::new(py, MessageView::new(source.clone(), *row, seen_as.clone())));
        PyList::new(py, views.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Fetched {
    #[getter]
    fn queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        message_queue(py, &self.inner.queue)
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.inner.epoch
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.inner.status.name()
    }

    #[getter]
    fn begin_offset(&self) -> i64 {
        self.inner.begin_offset
    }

    #[getter]
    fn next_begin_offset(&self) -> i64 {
        self.inner.next_begin_offset
    }

    #[getter]
    fn min_offset(&self) -> i64 {
        self.inner.min_offset
    }

    #[getter]
    fn max_offset(&self) -> i64 {
        self.inner.max_offset
    }

    #[getter]
    fn offsets(&self) -> Option<(i64, i64)> {
        self.inner.offsets()
    }

    #[getter]
    fn last_store_timestamp(&self) -> Option<i64> {
        self.inner.last_store_timestamp()
    }

    #[getter]
    fn size(&self) -> usize {
        self.inner.bytes()
    }

    fn __len__(&self) -> usize {
        self.inner.rows.len()
    }

    #[getter]
    fn elapsed(&self) -> f64 {
        self.inner.elapsed.as_secs_f64()
    }

    #[getter]
    fn is_end(&self) -> bool {
        self.inner.is_end
    }

    #[getter]
    fn suggested_broker_id(&self) -> i64 {
        self.inner.suggested_broker_id
    }

    #[getter]
    fn code(&self) -> i32 {
        self.inner.code
    }

    #[getter]
    fn remark(&self) -> &str {
        &self.inner.remark
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.body)
    }

    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self
            .messages
            // made once, so that each call returns the same objects
            .get_or_try_init(py, || self.views(py, &self.inner.matching_rows(), SeenAs::default()).map(Bound::unbind))?
            .bind(py)
            .clone())
    }

    fn messages_as<'py>(&self, py: Python<'py>, topic: &str) -> PyResult<Bound<'py, PyList>> {
        self.views(py, &self.inner.matching_rows(), SeenAs { topic: Some(topic.into()), reconsume_times: None })
    }

    fn changed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        // released because checking the CRC reads every body
        let rows = py.detach(|| pull_body::rows_with_wrong_crc(&self.inner.body)).map_err(client)?;
        self.views(py, &rows, SeenAs::default())
    }

    fn __repr__(&self) -> String {
        let of = &self.inner;
        let (topic, queue_id) = (&of.queue.topic, of.queue.queue_id);
        let (from, to, status) = (of.begin_offset, of.next_begin_offset, of.status.name());
        format!("Fetched({status}, topic={topic:?}, queue_id={queue_id}, offsets={from}..{to}, epoch={})", of.epoch)
    }
}

/// The event that reports why a queue is not pulled for now.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct FlowControl(puller::FlowControl);

#[pymethods]
impl FlowControl {
    #[getter]
    fn queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        message_queue(py, &self.0.queue)
    }

    #[getter]
    fn messages(&self) -> i64 {
        self.0.messages
    }

    #[getter]
    fn size(&self) -> i64 {
        self.0.bytes
    }

    #[getter]
    fn span(&self) -> i64 {
        self.0.span
    }

    #[getter]
    fn times(&self) -> u64 {
        self.0.times
    }
}

/// The event that reports an opened or closed connection of a puller.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct PullerEvent {
    address: Arc<str>,
    reason: Option<String>,
}

#[pymethods]
impl PullerEvent {
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    #[getter]
    fn is_connected(&self) -> bool {
        self.reason.is_none()
    }

    #[getter]
    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        match &self.reason {
            None => format!("PullerEvent({} connected)", self.address),
            Some(reason) => format!("PullerEvent({} disconnected: {reason})", self.address),
        }
    }
}

/// Converts an item of the puller to a Python object.
pub fn to_python<'py>(py: Python<'py>, item: Item, bodies: Bodies) -> PyResult<Bound<'py, PyAny>> {
    match item {
        Item::Answer(inner) => Fetched::new(*inner, bodies).into_bound_py_any(py),
        Item::FlowControl(inner) => FlowControl(*inner).into_bound_py_any(py),
        Item::Connected(address) => PullerEvent { address, reason: None }.into_bound_py_any(py),
        Item::Disconnected(address, reason) => PullerEvent { address, reason: Some(reason) }.into_bound_py_any(py),
    }
}
