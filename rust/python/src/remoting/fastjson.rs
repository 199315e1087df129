//! Converts RocketMQ's JSON, which fastjson writes, to Python values.
use crate::error::RemotingProtocolError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use rmqfast_remoting::{Json, Key};

/// Parses the body of a request or an answer in fastjson's JSON.
#[pyfunction]
pub fn read_fastjson<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // parsed without the GIL, since a list of 50,000 topics takes a while
    let value = py.detach(|| Json::of_body(body));
    value.map_err(|error| RemotingProtocolError::new_err(error.to_string())).and_then(|value| object(py, value))
}

fn object(py: Python<'_>, value: Json) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Flag(flag) => flag.into_bound_py_any(py),
        Json::Number(number) => number.into_bound_py_any(py),
        // a whole number of any length
        Json::BigNumber(digits) => py.get_type::<pyo3::types::PyInt>().call1((digits,)),
        Json::Fraction(fraction) => fraction.into_bound_py_any(py),
        Json::Text(text) => text.into_bound_py_any(py),
        Json::Array(items) => {
            let items = items.into_iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Json::Object(members) => {
            let members_by_name = PyDict::new(py);
            for (name, value) in members {
                members_by_name.set_item(key(py, name)?, object(py, value)?)?;
            }
            Ok(members_by_name.into_any())
        }
    }
}

fn key(py: Python<'_>, key: Key) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match key {
        Key::Text(text) => text.into_bound_py_any(py),
        Key::Number(number) => number.into_bound_py_any(py),
        Key::Queue { topic, broker_name, queue_id } => {
            // fastjson writes a `MessageQueue` as key as a JSON object
            CLASS.import(py, "rmqfast.message", "MessageQueue")?.call1((topic, broker_name, queue_id))
        }
    }
}
