//! Converts commands and header fields between Rust and Python.
use crate::pairs::{Pairs, pairs};
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rmqfast_remoting::{Ask, OwnedCommand, OwnedFields, Value};
use std::time::Duration;

pub struct Fields(pub Pairs);

impl<'a, 'py> FromPyObject<'a, 'py> for Fields {
    type Error = PyErr;

    fn extract(fields: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        pairs(&fields).map(Self)
    }
}

impl Fields {
    pub fn values(&self) -> Vec<(&str, Value<'_>)> {
        self.0.iter().map(|(name, value)| (&**name, Value::Text(value))).collect()
    }
}

/// `code, remark, ext_fields, body, version` of an answer.
pub type Answered<'py> = (i32, Option<String>, Bound<'py, PyDict>, Bound<'py, PyBytes>, i32);

pub fn answer_to_python(py: Python<'_>, answer: OwnedCommand) -> PyResult<Answered<'_>> {
    let body = PyBytes::new(py, &answer.body);
    answer_with_body(py, answer, body)
}

/// Converts an answer whose body is passed separately.
pub fn answer_with_body<'py>(
    py: Python<'py>,
    answer: OwnedCommand,
    body: Bound<'py, PyBytes>,
) -> PyResult<Answered<'py>> {
    Ok((answer.code, answer.remark, dict(py, &answer.fields)?, body, answer.version))
}

pub fn dict<'py>(py: Python<'py>, fields: &OwnedFields) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fields.iter().try_for_each(|(name, value)| dict.set_item(name, value))?;
    Ok(dict)
}

/// Converts a timeout in seconds.
pub fn seconds(timeout: f64) -> Duration {
    // at least 1 ms, since sockets refuse a timeout of zero
    Duration::try_from_secs_f64(timeout).unwrap_or_default().clamp(Duration::from_millis(1), LONGEST)
}

/// Upper limit of timeouts, short enough to be added to any time without overflow.
pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns a request whose wait for the answer ends on Ctrl-C.
pub fn interruptible<'a>(code: i32, fields: &'a [(&'a str, Value<'a>)], body: &'a [u8], timeout: Duration) -> Ask<'a> {
    Ask { interrupt: &signals::check, ..Ask::new(code, fields, body, timeout) }
}
