use super::common::Common;
use super::unique_ids::now_ms;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};
use rmqfast_client::send::SendHeader;
use std::sync::Arc;

/// An encoded message or batch, which can be sent to any queue of its topic.
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

/// The properties and the message id. For a batch, the ids of all messages, separated by commas. One allocation holds
/// all, because another thread frees it.
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
