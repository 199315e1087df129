//! An encoded message or batch, and message ids.
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};
use rmqfast_client::send::{self, SendHeader};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The settings that all messages of a producer share.
pub struct Common {
    pub group: String,
    /// Topic whose settings brokers use to create a missing topic: `TBW102`.
    pub default_topic: String,
    pub default_topic_queue_nums: i32,
    /// Whether the producer belongs to a unit, RocketMQ's term for a part of a deployment.
    pub is_unit_mode: bool,
    /// Minimum size in bytes of bodies that are compressed.
    pub compress_over: usize,
    /// The instance id to add to messages, if there is one.
    pub instance_id: Option<String>,
    pub ids: Py<UniqueIds>,
}

/// A request without its queue, which can be sent to any queue of the topic.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Outgoing {
    pub common: Arc<Common>,
    /// Topic with its namespace.
    pub topic: PyBackedStr,
    pub texts: Texts,
    /// The body after compression.
    pub body: Body,
    /// The bits of `sysFlag` for compression and transaction.
    pub sys_flag: i32,
    /// The application's 32-bit flag.
    pub flag: i32,
    pub born_timestamp: i64,
    pub is_batch: bool,
    /// Whether the message is a reply to a request.
    pub is_reply: bool,
    pub reconsume_times: i32,
    pub max_reconsume_times: Option<i32>,
}

/// The properties and the message id. For a batch, the ids of all messages, separated by commas. They share one
/// allocation.
pub struct Texts {
    both: String,
    id_at: usize,
}

impl Texts {
    pub fn new(properties: String, unique_id: &str) -> Self {
        let id_at = properties.len();
        Self { both: properties + unique_id, id_at }
    }

    pub fn properties(&self) -> &str {
        &self.both[..self.id_at]
    }

    #[inline]
    pub fn unique_id(&self) -> &str {
        &self.both[self.id_at..]
    }
}

pub enum Body {
    /// The application's `bytes` object.
    Given(PyBackedBytes),
    /// A compressed body or a batch.
    Made(Vec<u8>),
}

impl Outgoing {
    /// Creates the request of an encoded batch.
    pub fn batch(common: Arc<Common>, topic: PyBackedStr, body: Vec<u8>, unique_id: &str, wait_store: bool) -> Self {
        Self {
            common,
            topic,
            // like Java's `MessageBatch`; a batch has no other properties of its own
            texts: Texts::new(format!("WAIT\u{1}{wait_store}"), unique_id),
            body: Body::Made(body),
            sys_flag: 0,
            flag: 0,
            // of the whole batch: brokers store it with each message
            born_timestamp: now_ms(),
            is_batch: true,
            is_reply: false,
            reconsume_times: 0,
            max_reconsume_times: None,
        }
    }
}

#[pymethods]
impl Outgoing {
    #[getter]
    fn code(&self) -> i32 {
        self.header(0).code()
    }

    /// The message id. For a batch, the ids of all messages, separated by commas.
    #[getter]
    #[inline]
    fn unique_id(&self) -> &str {
        self.texts.unique_id()
    }

    /// Topic with its namespace.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    #[getter]
    fn properties(&self) -> &str {
        self.texts.properties()
    }

    /// The bits of `sysFlag` for compression and transaction.
    #[getter]
    fn sys_flag(&self) -> i32 {
        self.sys_flag
    }

    /// The body after compression.
    #[getter]
    pub fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match &self.body {
            // the application's object, without a copy
            Body::Given(bytes) => Ok(bytes.into_pyobject(py)?.cast_into()?),
            Body::Made(bytes) => Ok(PyBytes::new(py, bytes)),
        }
    }

    /// Bytes of the body after compression.
    fn __len__(&self) -> usize {
        self.bytes().len()
    }

    /// Returns the header fields for a queue.
    pub fn fields<'py>(&self, py: Python<'py>, queue_id: i32) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let fields = self.header(queue_id).fields();
        fields.into_iter().try_for_each(|(name, value)| dict.set_item(name, value.to_text()))?;
        Ok(dict)
    }
}

impl Outgoing {
    pub fn header(&self, queue_id: i32) -> SendHeader<'_> {
        SendHeader {
            producer_group: &self.common.group,
            topic: &self.topic,
            default_topic: &self.common.default_topic,
            default_topic_queue_nums: self.common.default_topic_queue_nums,
            queue_id,
            sys_flag: self.sys_flag,
            born_timestamp: self.born_timestamp,
            flag: self.flag,
            properties: self.texts.properties(),
            reconsume_times: self.reconsume_times,
            max_reconsume_times: self.max_reconsume_times,
            is_unit_mode: self.common.is_unit_mode,
            is_batch: self.is_batch,
            is_reply: self.is_reply,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Given(bytes) => bytes,
            Body::Made(bytes) => bytes,
        }
    }
}

/// Makes message ids, for all producers of a process.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct UniqueIds {
    ids: send::UniqueIds,
    month: Py<PyAny>,
}

#[pymethods]
impl UniqueIds {
    /// Creates the generator. `month_bounds` is a Python callable whose argument is a time. It returns the start of the
    /// month that contains this time, and the start of the following month, in milliseconds.
    #[new]
    fn new(ip: IpAddr, pid: u32, tells_apart: i32, month_bounds: Py<PyAny>) -> Self {
        Self { ids: send::UniqueIds::new(ip, pid, tells_apart), month: month_bounds }
    }

    /// Returns the next id, for the current time or `now_ms`.
    #[pyo3(signature = (now_ms=None))]
    fn next(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<String> {
        let now_ms = now_ms.unwrap_or_else(self::now_ms);
        Ok(self.of_month(py, now_ms)?.next(now_ms).text())
    }
}

impl UniqueIds {
    /// Returns the generator of ids. If the month of the last id is over at `now_ms`, first calls Python for the bounds
    /// of the new month.
    pub fn of_month(&self, py: Python<'_>, now_ms: i64) -> PyResult<&send::UniqueIds> {
        if self.ids.needs_month(now_ms) {
            // ids count from the start of the month in local time, which Python computes; once a month
            let (start, next) = self.month.call1(py, (now_ms,))?.extract(py)?;
            self.ids.begin_month(start, next);
        }
        Ok(&self.ids)
    }
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
