//! Reads `rmqfast.Message` objects as rows to append. Borrows strings and bytes instead of copying them.
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
use std::ops::Range;

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
    /// Returns the properties. The delay level is one of them, and overrides a property of the same name.
    fn take_pairs(&mut self, py: Python<'_>) -> PyResult<Pairs> {
        let mut pairs = std::mem::take(&mut self.properties);
        if self.delay_level != 0 {
            // like Java's `setDelayTimeLevel`, which overwrites the property
            pairs.retain(|(name, _)| &**name != DELAY);
            let level = self.delay_level.to_string();
            pairs.push((PyString::intern(py, DELAY).try_into()?, PyString::new(py, &level).try_into()?));
        }
        Ok(pairs)
    }

    /// Returns the row of a message. `pairs` is the range of its properties in the list of all rows' properties.
    #[inline]
    fn row(&self, pairs: Range<usize>, added: &BrokerFields) -> Row<'_> {
        Row {
            topic: Some(self.topic.as_bytes()),
            body: Some(&self.body),
            // an empty tag or key counts as missing, as in Java's `Message`
            tags: self.tags.as_deref().map(str::as_bytes).filter(|tag| !tag.is_empty()),
            keys: self.keys.as_deref().map(str::as_bytes).filter(|keys| !keys.is_empty()),
            pairs,
            queue_id: self.queue_id,
            flag: self.flag,
            born_timestamp: self.born_timestamp,
            born_host: added.born_host,
            sys_flag: added.sys_flag,
            reconsume_times: added.reconsume_times,
            prepared_transaction_offset: added.prepared_transaction_offset,
            is_due: added.is_due,
        }
    }
}

/// Values of a stored message that the broker determines, not the producer.
#[derive(Clone, Copy, Default)]
pub struct BrokerFields {
    pub born_host: Option<Host>,
    pub sys_flag: i64,
    pub reconsume_times: i64,
    pub prepared_transaction_offset: i64,
    pub is_due: bool,
}

pub struct OneMessage {
    message: PyMessage,
    pairs: Pairs,
    added: BrokerFields,
}

impl OneMessage {
    pub fn new(message: &Bound<'_, PyAny>, added: BrokerFields) -> PyResult<Self> {
        let (py, mut message): (_, PyMessage) = (message.py(), message.extract()?);
        let pairs = message.take_pairs(py)?;
        Ok(Self { message, pairs, added })
    }
}

impl Rows for OneMessage {
    fn len(&self) -> usize {
        1
    }

    #[inline]
    fn row(&self, _: usize) -> Row<'_> {
        self.message.row(0..self.pairs.len(), &self.added)
    }

    #[inline]
    fn pair(&self, index: usize) -> (&[u8], Option<&[u8]>) {
        bytes_of(&self.pairs[index])
    }
}

pub struct PyMessages {
    messages: Vec<PyMessage>,
    ends: Vec<usize>,
    pairs: Pairs,
}

impl PyMessages {
    pub fn many(messages: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let mut rows = Self { messages: Vec::new(), ends: Vec::new(), pairs: Vec::new() };
        for (row, message) in messages.iter().enumerate() {
            let py = message.py();
            // the row's number helps to find an invalid message among thousands
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
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.messages[index].row(start..self.ends[index], &BrokerFields::default())
    }

    #[inline]
    fn pair(&self, index: usize) -> (&[u8], Option<&[u8]>) {
        bytes_of(&self.pairs[index])
    }
}

fn bytes_of((name, value): &(PyBackedStr, PyBackedStr)) -> (&[u8], Option<&[u8]>) {
    (name.as_bytes(), Some(value.as_bytes()))
}

/// Parses a host as `ip:port`.
pub fn host(what: &'static str, text: &str) -> Result<Host> {
    let address: SocketAddr =
        text.parse().map_err(|_| Error::invalid(what, "'ip:port' or '[ip6]:port'", format!("{text:?}")))?;
    Ok(address.into())
}
