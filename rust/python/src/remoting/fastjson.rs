//! Converts RocketMQ's JSON, which fastjson writes, to Python values.
use crate::error::RemotingProtocolError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use rmqfast_remoting::{Json, Key};
use std::collections::HashMap;

/// Parses the body of a request or an answer in fastjson's JSON.
#[pyfunction]
pub fn read_fastjson<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // parsed without the GIL, since a list of 50,000 topics takes a while
    let value = py.detach(|| Json::of_body(body));
    let value = value.map_err(|error| RemotingProtocolError::new_err(error.to_string()))?;
    Values { py, texts: HashMap::new() }.object(value)
}

/// Longest text that is kept once: names of members, topics, groups and brokers repeat thousands of times in a body.
const SHORT: usize = 128;
/// Number of different texts that are kept.
const MOST: usize = 16_384;

struct Values<'py> {
    py: Python<'py>,
    texts: HashMap<String, Bound<'py, PyString>>,
}

impl<'py> Values<'py> {
    fn object(&mut self, value: Json) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match value {
            Json::Null => Ok(py.None().into_bound(py)),
            Json::Flag(flag) => flag.into_bound_py_any(py),
            Json::Number(number) => number.into_bound_py_any(py),
            // a whole number of any length
            Json::BigNumber(digits) => py.get_type::<pyo3::types::PyInt>().call1((digits,)),
            Json::Fraction(fraction) => fraction.into_bound_py_any(py),
            Json::Text(text) => Ok(self.text(text).into_any()),
            Json::Array(items) => {
                let items = items.into_iter().map(|item| self.object(item)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
            Json::Object(members) => {
                let members_by_name = PyDict::new(py);
                for (name, value) in members {
                    members_by_name.set_item(self.key(name)?, self.object(value)?)?;
                }
                Ok(members_by_name.into_any())
            }
        }
    }

    fn key(&mut self, key: Key) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        match key {
            Key::Text(text) => Ok(self.text(text).into_any()),
            Key::Number(number) => number.into_bound_py_any(self.py),
            Key::Queue { topic, broker_name, queue_id } => {
                // fastjson writes a `MessageQueue` as key as a JSON object
                let class = CLASS.import(self.py, "rmqfast.message", "MessageQueue")?;
                class.call1((self.text(topic), self.text(broker_name), queue_id))
            }
        }
    }

    fn text(&mut self, text: String) -> Bound<'py, PyString> {
        if let Some(known) = self.texts.get(&text) {
            return known.clone();
        }
        let made = PyString::new(self.py, &text);
        if text.len() <= SHORT && self.texts.len() < MOST {
            self.texts.insert(text, made.clone());
        }
        made
    }
}
