//! A message that a client received. Its values are decoded from the answer's bytes when they are read.
use crate::error::{client, corrupt, to_python};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use rmqfast_client::puller::Body;
use rmqfast_client::{Message, pull_body};
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::row::Row;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The bytes of an answer, which Python or Rust owns.
pub enum Bytes {
    Python(PyBackedBytes),
    Rust(Arc<Body>),
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Python(bytes) => bytes,
            Self::Rust(bytes) => bytes,
        }
    }
}

pub struct Source {
    pub bytes: Bytes,
    pub broker_name: Option<String>,
    /// First offset of the queue, and the offset after its last message, according to the answer.
    pub bounds: Option<(i64, i64)>,
    pub max_body_bytes: usize,
    /// Whether a body that does not match its CRC counts as missing.
    pub verify_crc: bool,
}

/// Values that a view shows instead of the values in the record.
#[derive(Clone, Default)]
pub struct SeenAs {
    pub topic: Option<Arc<str>>,
    pub reconsume_times: Option<i32>,
}

/// A message that a client received.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageView {
    source: Arc<Source>,
    row: Row,
    seen_as: SeenAs,
    body: PyOnceLock<Option<Py<PyBytes>>>,
    properties: PyOnceLock<Py<PyDict>>,
}

impl MessageView {
    /// Creates a view of a record in the source's bytes; `row` tells its position.
    pub fn new(source: Arc<Source>, row: Row, seen_as: SeenAs) -> Self {
        Self { source, row, seen_as, body: PyOnceLock::new(), properties: PyOnceLock::new() }
    }

    /// Returns the answer's bytes, and the position of the record in them.
    pub fn place(&self) -> (&Arc<Source>, &Row) {
        (&self.source, &self.row)
    }

    pub fn view_values(&self) -> &SeenAs {
        &self.seen_as
    }

    pub fn view_topic(&self) -> PyResult<Cow<'_, str>> {
        match &self.seen_as.topic {
            Some(topic) => Ok(topic.as_ref().into()),
            None => Ok(self.message()?.topic()),
        }
    }

    pub fn view_reconsume_times(&self) -> PyResult<i32> {
        match self.seen_as.reconsume_times {
            Some(times) => Ok(times),
            None => Ok(self.message()?.record().reconsume_times()),
        }
    }

    fn message(&self) -> PyResult<Message<'_>> {
        let message = Message::new(self.source.bytes.as_ref(), &self.row);
        // never happens, since the row was located in these bytes
        message.ok_or_else(|| PyTypeError::new_err("a view of bytes in which it was not found"))
    }

    /// Returns the body. `None` if it does not decompress, or if its CRC is wrong and `verify_crc` is set.
    #[inline]
    fn body_if_any<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = self.message()?;
        // cached, since decompressing again is expensive
        let body = self.body.get_or_init(py, || {
            let is_sound = !self.source.verify_crc || message.record().body_crc_matches();
            let body = is_sound.then(|| message.body(self.source.max_body_bytes)).flatten();
            body.map(|body| PyBytes::new(py, &body).unbind())
        });
        Ok(body.as_ref().map(|body| body.bind(py).clone()))
    }

    fn no_body(&self) -> PyResult<PyErr> {
        let (message, max) = (self.message()?, self.source.max_body_bytes);
        let record = message.record();
        let (topic, queue, offset) = (message.topic(), record.queue_id(), record.queue_offset());
        let (got, crc) = (record.body().len(), record.body_crc());
        let what = if self.source.verify_crc && !record.body_crc_matches() {
            format!("expected one whose CRC is {crc:#010x}, got {got} bytes of another")
        } else {
            format!("expected compressed bytes that become at most {max}, got {got} that do not decompress so")
        };
        Ok(corrupt(format!(
            "body of the message at offset {offset} of queue {queue} of {topic}: {what}; to_message_ext() gives the message \
             with the body None"
        )))
    }

    fn identity(&self) -> PyResult<(Option<&str>, &[u8], i32, i64)> {
        // the record's topic, so that views that show another topic stay equal
        let record = self.message()?.record();
        Ok((self.source.broker_name.as_deref(), record.topic(), record.queue_id(), record.queue_offset()))
    }
}

#[pymethods]
impl MessageView {
    #[new]
    #[pyo3(signature = (record, *, broker_name=None, topic=None, reconsume_times=None, bounds=None,
                        max_body_bytes=ScanRequest::MAX_BODY_BYTES, verify_crc=false))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python class")]
    fn of_record(
        record: PyBackedBytes,
        broker_name: Option<String>,
        topic: Option<&str>,
        reconsume_times: Option<i32>,
        bounds: Option<(i64, i64)>,
        max_body_bytes: usize,
        verify_crc: bool,
    ) -> PyResult<Self> {
        let rows = pull_body::messages(&record, None).map_err(client)?;
        let [row] = rows[..] else {
            let got = rows.len().to_string();
            return Err(to_python(rmqfast_store::Error::invalid("record", "the bytes of one message", got)));
        };
        let source = Source { bytes: Bytes::Python(record), broker_name, bounds, max_body_bytes, verify_crc };
        let seen_as = SeenAs { topic: topic.map(Into::into), reconsume_times };
        Ok(Self::new(source.into(), row, seen_as))
    }

    #[getter]
    fn topic(&self) -> PyResult<Cow<'_, str>> {
        self.view_topic()
    }

    #[getter]
    fn broker_name(&self) -> Option<&str> {
        self.source.broker_name.as_deref()
    }

    #[getter]
    fn queue_id(&self) -> PyResult<i32> {
        Ok(self.message()?.record().queue_id())
    }

    #[getter]
    fn queue_offset(&self) -> PyResult<i64> {
        Ok(self.message()?.record().queue_offset())
    }

    #[getter]
    fn physical_offset(&self) -> PyResult<i64> {
        Ok(self.message()?.record().physical_offset())
    }

    #[getter]
    fn msg_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        Ok(PyString::new(py, &self.message()?.msg_id()))
    }

    #[getter]
    fn offset_msg_id(&self) -> PyResult<String> {
        Ok(self.message()?.offset_msg_id())
    }

    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        Ok(self.message()?.tags().map(|tags| PyString::new(py, &tags)))
    }

    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        Ok(self.message()?.keys().map(|keys| PyString::new(py, &keys)))
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match self.body_if_any(py)? {
            Some(body) => Ok(body),
            None => Err(self.no_body()?),
        }
    }

    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Java's clients also add the queue's bounds to the properties (`PullAPIWrapper.processPullResult`)
        let properties = self.properties.get_or_try_init(py, || {
            let properties = PyDict::new(py);
            for (name, value) in self.message()?.properties() {
                properties.set_item(name, value)?;
            }
            if let Some((min, max)) = self.source.bounds {
                properties.set_item("MIN_OFFSET", min.to_string())?;
                properties.set_item("MAX_OFFSET", max.to_string())?;
            }
            PyResult::Ok(properties.unbind())
        })?;
        Ok(properties.bind(py).clone())
    }

    #[getter]
    fn born_timestamp(&self) -> PyResult<i64> {
        Ok(self.message()?.record().born_timestamp())
    }

    #[getter]
    fn store_timestamp(&self) -> PyResult<i64> {
        Ok(self.message()?.record().store_timestamp())
    }

    #[getter]
    fn born_host(&self) -> PyResult<String> {
        Ok(self.message()?.born_host())
    }

    #[getter]
    fn store_host(&self) -> PyResult<String> {
        Ok(self.message()?.store_host())
    }

    #[getter]
    fn flag(&self) -> PyResult<i32> {
        Ok(self.message()?.record().flag())
    }

    #[getter]
    fn sys_flag(&self) -> i32 {
        self.row.layout.sys_flag
    }

    #[getter]
    fn reconsume_times(&self) -> PyResult<i32> {
        self.view_reconsume_times()
    }

    #[getter]
    fn prepared_transaction_offset(&self) -> PyResult<i64> {
        Ok(self.message()?.record().prepared_transaction_offset())
    }

    #[getter]
    fn store_size(&self) -> u32 {
        self.row.layout.total
    }

    #[getter]
    fn body_crc(&self) -> PyResult<i32> {
        Ok(self.message()?.record().body_crc())
    }

    #[getter]
    fn transaction_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        Ok(self.message()?.transaction_id().map(|id| PyString::new(py, &id)))
    }

    #[getter]
    fn min_offset(&self) -> Option<i64> {
        self.source.bounds.map(|(min, _)| min)
    }

    #[getter]
    fn max_offset(&self) -> Option<i64> {
        self.source.bounds.map(|(_, max)| max)
    }

    #[getter]
    fn queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "rmqfast.message", "MessageQueue")?;
        let message = self.message()?;
        let broker_name = self.source.broker_name.as_deref().unwrap_or_default();
        class.call1((message.topic(), broker_name, message.record().queue_id()))
    }

    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.message()?.record().record()))
    }

    fn property<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyString>>> {
        Ok(match (name, self.source.bounds) {
            // the queue's bounds come with the answer and are not in the record
            ("MIN_OFFSET", Some((min, _))) => Some(PyString::new(py, &min.to_string())),
            ("MAX_OFFSET", Some((_, max))) => Some(PyString::new(py, &max.to_string())),
            _ => self.message()?.property(name).map(|value| PyString::new(py, &value)),
        })
    }

    #[pyo3(signature = (topic=None, reconsume_times=None))]
    fn seen_as(&self, py: Python<'_>, topic: Option<&str>, reconsume_times: Option<i32>) -> Self {
        let seen_as = SeenAs {
            topic: topic.map(Into::into).or_else(|| self.seen_as.topic.clone()),
            reconsume_times: reconsume_times.or(self.seen_as.reconsume_times),
        };
        let copy = Self::new(self.source.clone(), self.row, seen_as);
        // the decompressed body is shared, not decompressed again
        if let Some(body) = self.body.get(py) {
            // cannot fail, since the new cell is empty
            let _ = copy.body.set(py, body.as_ref().map(|body| body.clone_ref(py)));
        }
        copy
    }

    fn to_message_ext<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(slf.py(), "rmqfast.message", "MessageExt")?;
        let values = PyDict::new(slf.py());
        for name in crate::request::column_names() {
            if name == "body" {
                // `body` would raise for an unreadable message, but this method returns it with the body None
                values.set_item(name, slf.get().body_if_any(slf.py())?)?;
            } else {
                values.set_item(name, slf.getattr(name)?)?;
            }
        }
        class.call((), Some(&values))
    }

    fn __eq__(&self, other: PyRef<'_, Self>) -> PyResult<bool> {
        Ok(self.identity()? == other.identity()?)
    }

    fn __hash__(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.identity()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let value = |name: &str| slf.getattr(name)?.repr()?.extract::<String>();
        let names = ["topic", "broker_name", "queue_id", "queue_offset", "msg_id", "tags", "keys"];
        let values = names.map(|name| value(name).map(|value| format!("{name}={value}")));
        let values: PyResult<Vec<_>> = values.into_iter().collect();
        Ok(format!("MessageView({})", values?.join(", ")))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let keywords = PyDict::new(py);
        keywords.set_item("broker_name", self.source.broker_name.as_deref())?;
        keywords.set_item("topic", self.seen_as.topic.as_deref())?;
        keywords.set_item("reconsume_times", self.seen_as.reconsume_times)?;
        keywords.set_item("bounds", self.source.bounds)?;
        keywords.set_item("max_body_bytes", self.source.max_body_bytes)?;
        // a pickled copy must also reject a body with a wrong CRC
        keywords.set_item("verify_crc", self.source.verify_crc)?;
        Ok((PyTuple::new(py, [self.record(py)?])?, keywords))
    }
}
