//! The attributes of a `rmqfast.Message`.
use crate::pairs::{Pairs, pairs};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

/// The attributes of a `rmqfast.Message`.
pub struct MessageFields {
    pub body: PyBackedBytes,
    pub tags: Option<PyBackedStr>,
    pub keys: Option<PyBackedStr>,
    pub pairs: Pairs,
    /// 0 for none.
    pub delay_level: i32,
    /// Whether a broker waits for its disk and slaves.
    pub wait_store: bool,
    /// The user's 32 bits.
    pub flag: i32,
    /// Milliseconds, where they are given.
    pub born_timestamp: Option<i64>,
}

impl MessageFields {
    pub fn of(message: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = message.py();
        Ok(Self {
            // borrowed: a body is not copied before the socket takes it
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

/// A number among the properties of a message that goes to a retry topic.
pub fn number_of(pairs: &[(PyBackedStr, PyBackedStr)], topic: &str, name: &str) -> Option<i32> {
    // `DefaultMQProducerImpl.sendKernelImpl` puts these into the header for retry topics only
    if !topic.starts_with("%RETRY%") {
        return None;
    }
    pairs.iter().find(|(other, _)| &**other == name)?.1.parse().ok()
}
