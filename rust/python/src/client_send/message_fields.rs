//! Reads the attributes of a `rmqfast.Message`.
use crate::pairs::{Pairs, pairs};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

pub struct MessageFields {
    pub body: PyBackedBytes,
    pub tags: Option<PyBackedStr>,
    pub keys: Option<PyBackedStr>,
    pub pairs: Pairs,
    /// Delay level; 0 delivers at once.
    pub delay_level: i32,
    /// Whether the broker answers only after its disk and slaves have the message.
    pub wait_store: bool,
    /// The application's 32-bit flag.
    pub flag: i32,
    /// Milliseconds since 1970; `None` for the current time.
    pub born_timestamp: Option<i64>,
}

impl MessageFields {
    pub fn of(message: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = message.py();
        Ok(Self {
            // borrowed, so that the body is copied only into the socket
            body: message.getattr(intern!(py, "body"))?.extract()?,
            tags: message.getattr(intern!(py, "tags"))?.extract()?,
            keys: message.getattr(intern!(py, "keys"))?.extract()?,
            pairs: pairs(&message.getattr(intern!(py, "properties"))?)?,
            delay_level: message.getattr(intern!(py, "delay_level"))?.extract()?,
            wait_store: message.getattr(intern!(py, "wait_store"))?.extract()?,
            flag: message.getattr(intern!(py, "flag"))?.extract()?,
            born_timestamp: message.getattr(intern!(py, "born_timestamp"))?.extract()?,
        })
    }
}

pub fn borrowed(pairs: &[(PyBackedStr, PyBackedStr)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// Returns a property as a number, for messages to a retry topic; `None` for other topics.
pub fn number_of(pairs: &[(PyBackedStr, PyBackedStr)], topic: &str, name: &str) -> Option<i32> {
    // Java's `DefaultMQProducerImpl.sendKernelImpl` sets these header fields for retry topics only
    if !topic.starts_with("%RETRY%") {
        return None;
    }
    pairs.iter().find(|(other, _)| &**other == name)?.1.parse().ok()
}
