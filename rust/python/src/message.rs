//! `rmqfast.Message` objects as rows to be appended; their text and bytes are borrowed, not copied.
use crate::pairs::{Pairs, pairs};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::properties::DELAY;
use rmqfast_store::store::append::{Row, Rows};
use rmqfast_store::{Error, Result};
use std::net::SocketAddr;

/// The attributes of `rmqfast.Message`.
#[derive(FromPyObject)]
struct PyMessage {
    topic: PyBackedStr,
    body: PyBackedBytes,
    tags: Option<PyBackedStr>,
    keys: Option<PyBackedStr>,
    #[pyo3(from_py_with = pairs)]
    properties: Pairs,
    delay_level: i64,
    queue_id: i64,
    flag: i64,
    born_timestamp: Option<i64>,
}

impl PyMessage {
    /// The properties; a delay level is one of them, and wins over a property of its name.
    fn take_pairs(&mut self, py: Python<'_>) -> PyResult<Pairs> {
        let mut pairs = std::mem::take(&mut self.properties);
        if self.delay_level != 0 {
            pairs.retain(|(name, _)| &**name != DELAY);
            let level = self.delay_level.to_string();
            pairs.push((PyString::intern(py, DELAY).try_into()?, PyString::new(py, &level).try_into()?));
        }
        Ok(pairs)
    }
}

/// What a broker knows of a message that its producer does not say.
#[derive(Clone, Copy, Default)]
pub struct Sent {
    pub born_host: Option<Host>,
    pub sys_flag: i64,
    pub reconsume_times: i64,
    pub prepared_transaction_offset: i64,
    pub is_due: bool,
}

/// A batch of messages.
pub struct PyMessages {
    messages: Vec<PyMessage>,
    ends: Vec<usize>,
    pairs: Pairs,
    sent: Sent,
}

impl PyMessages {
    pub fn one(message: &Bound<'_, PyAny>, sent: Sent) -> PyResult<Self> {
        let py = message.py();
        let mut message: PyMessage = message.extract()?;
        let pairs = message.take_pairs(py)?;
        Ok(Self { messages: vec![message], ends: vec![pairs.len()], pairs, sent })
    }

    pub fn many(messages: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let mut rows = Self { messages: Vec::new(), ends: Vec::new(), pairs: Vec::new(), sent: Sent::default() };
        for (row, message) in messages.iter().enumerate() {
            let py = message.py();
            let message: PyResult<PyMessage> = message.extract();
            let mut message = message.map_err(|e| PyTypeError::new_err(format!("message {row}: {e}")))?;
            rows.pairs.append(&mut message.take_pairs(py)?);
            rows.ends.push(rows.pairs.len());
            rows.messages.push(message);
        }
        Ok(rows)
    }
}

impl Rows for PyMessages {
    fn len(&self) -> usize {
        self.messages.len()
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'_> {
        let message = &self.messages[index];
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Row {
            topic: Some(message.topic.as_bytes()),
            body: Some(&message.body),
            tags: message.tags.as_deref().map(str::as_bytes),
            keys: message.keys.as_deref().map(str::as_bytes),
            pairs: start..self.ends[index],
            queue_id: message.queue_id,
            flag: message.flag,
            born_timestamp: message.born_timestamp,
            born_host: self.sent.born_host,
            sys_flag: self.sent.sys_flag,
            reconsume_times: self.sent.reconsume_times,
            prepared_transaction_offset: self.sent.prepared_transaction_offset,
            is_due: self.sent.is_due,
        }
    }

    #[inline]
    fn pair(&self, index: usize) -> (&[u8], Option<&[u8]>) {
        let (name, value) = &self.pairs[index];
        (name.as_bytes(), Some(value.as_bytes()))
    }
}

/// A host as `ip:port`.
pub fn host(what: &'static str, text: &str) -> Result<Host> {
    let address: SocketAddr =
        text.parse().map_err(|_| Error::invalid(what, "'ip:port' or '[ip6]:port'", format!("{text:?}")))?;
    Ok(address.into())
}
