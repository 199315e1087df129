//! Converts Python values to RocketMQ's JSON, as fastjson writes it.
use crate::error::ArgumentError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView, PySequence, PyString, PyType,
};
use rmqfast_remoting::MAX_DEPTH;
use rmqfast_store::format::fastjson::{self, Escapes, write_text, write_units};
use std::borrow::Cow;

/// Returns a value as fastjson's JSON; with `standard`, number keys are quoted, maps are sorted, and all is ASCII.
#[pyfunction]
#[pyo3(signature = (value, *, standard = false))]
pub fn write_fastjson<'py>(value: &Bound<'py, PyAny>, standard: bool) -> PyResult<Bound<'py, PyBytes>> {
    let mut writer = Writer::new(value.py(), standard)?;
    writer.value(value, 0)?;
    Ok(PyBytes::new(value.py(), writer.out.as_bytes()))
}

/// Formats a number as Java prints it.
#[pyfunction]
pub fn java_double(number: f64) -> String {
    fastjson::java_double(number)
}

struct Writer<'py> {
    queue_class: &'py Bound<'py, PyType>,
    enum_class: &'py Bound<'py, PyType>,
    is_standard: bool,
    out: String,
}

impl<'py> Writer<'py> {
    fn new(py: Python<'py>, is_standard: bool) -> PyResult<Self> {
        static QUEUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static ENUM: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let queue_class = QUEUE.import(py, "rmqfast.message", "MessageQueue")?;
        let enum_class = ENUM.import(py, "enum", "Enum")?;
        Ok(Self { queue_class, enum_class, is_standard, out: String::new() })
    }

    /// Appends a value, which is nested `depth` times.
    fn value(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        // the usual types first: none of them runs Python code
        if let Ok(text) = value.cast_exact::<PyString>() {
            self.text(text)
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            self.number(number)
        } else if let Ok(flag) = value.cast_exact::<PyBool>() {
            self.out.push_str(if flag.is_true() { "true" } else { "false" });
            Ok(())
        } else if let Ok(members) = value.cast_exact::<PyDict>() {
            self.check_depth(depth)?;
            self.object(&members.iter().collect::<Vec<_>>(), depth + 1)
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            self.check_depth(depth)?;
            self.array(items.iter(), depth + 1)
        } else if value.is_none() {
            self.out.push_str("null");
            Ok(())
        } else {
            self.rare_value(value, depth)
        }
    }

    fn rare_value(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        if let Ok(text) = value.cast::<PyString>() {
            self.text(text)
        } else if value.is_instance(self.enum_class)? {
            self.text(value.getattr("name")?.cast::<PyString>()?)
        } else if let Ok(number) = value.cast::<PyFloat>() {
            self.out.push_str(&fastjson::java_double(number.value()));
            Ok(())
        } else if let Ok(number) = value.cast::<PyInt>() {
            self.number(number)
        } else {
            self.check_depth(depth)?;
            self.rare_container(value, depth)
        }
    }

    fn rare_container(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        let is_bytes = value.is_instance_of::<PyBytes>()
            || value.is_instance_of::<PyByteArray>()
            || value.is_instance_of::<PyMemoryView>();
        if value.is_instance(self.queue_class)? {
            self.queue(value)
        } else if let Ok(members) = value.cast::<PyMapping>() {
            let items = members.items()?.iter().map(|item| item.extract()).collect::<PyResult<Vec<_>>>()?;
            self.object(&items, depth + 1)
        } else if let (Ok(items), false) = (value.cast::<PySequence>(), is_bytes) {
            let items: Vec<_> = items.try_iter()?.collect::<PyResult<_>>()?;
            self.array(items.into_iter(), depth + 1)
        } else {
            Err(ArgumentError::new_err(format!("no json for {}", value.get_type().name()?)))
        }
    }

    fn check_depth(&self, depth: usize) -> PyResult<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        Err(ArgumentError::new_err(format!("json is nested deeper than {MAX_DEPTH}")))
    }

    fn object(&mut self, members: &[(Bound<'py, PyAny>, Bound<'py, PyAny>)], depth: usize) -> PyResult<()> {
        let mut separator = '{';
        for at in self.order(members)? {
            let (key, value) = &members[at];
            if value.is_none() {
                continue;
            }
            self.out.push(separator);
            self.key(key)?;
            self.out.push(':');
            self.value(value, depth)?;
            separator = ',';
        }
        self.out.push_str(if separator == '{' { "{}" } else { "}" });
        Ok(())
    }

    /// Returns the indexes of members in the order in which fastjson writes them.
    fn order(&self, members: &[(Bound<'py, PyAny>, Bound<'py, PyAny>)]) -> PyResult<Vec<usize>> {
        let mut order: Vec<usize> = (0..members.len()).collect();
        // queues as keys stay in the map's own order
        if members.iter().any(|(key, _)| key.is_exact_instance(self.queue_class)) {
            return Ok(order);
        }
        let ranks = members.iter().map(|(key, _)| self.rank(key)).collect::<PyResult<Vec<_>>>()?;
        order.sort_by(|one, other| ranks[*one].cmp(&ranks[*other]));
        Ok(order)
    }

    fn array(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<()> {
        let mut separator = '[';
        for item in items {
            self.out.push(separator);
            self.value(&item, depth)?;
            separator = ',';
        }
        self.out.push_str(if separator == '[' { "[]" } else { "]" });
        Ok(())
    }

    /// Returns the place of a member in its object: numbers go before names.
    fn rank<'a>(&self, key: &'a Bound<'py, PyAny>) -> PyResult<Rank<'a>> {
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(Rank::Name(text.to_string_lossy()));
        }
        if key.is_instance(self.enum_class)? {
            return Ok(Rank::Name(Cow::Owned(key.getattr("name")?.extract()?)));
        }
        // other keys are refused when they are written
        Ok(key.extract().map_or(Rank::Name(Cow::Borrowed("")), Rank::Number))
    }

    fn key(&mut self, key: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(text) = key.cast::<PyString>() {
            return self.text(text);
        }
        if key.is_instance(self.queue_class)? {
            return self.queue(key);
        }
        if key.is_instance(self.enum_class)? {
            return self.text(key.getattr("name")?.cast::<PyString>()?);
        }
        let Ok(number) = key.cast_exact::<PyInt>() else {
            return Err(ArgumentError::new_err(format!("no json key for {}", key.get_type().name()?)));
        };
        // `{0:"10.0.0.1:10911"}` is not JSON, but RocketMQ's answer to clients before 4.9.4
        let quote = if self.is_standard { "\"" } else { "" };
        self.out.push_str(quote);
        self.number(number)?;
        self.out.push_str(quote);
        Ok(())
    }

    fn queue(&mut self, queue: &Bound<'py, PyAny>) -> PyResult<()> {
        self.out.push_str("{\"brokerName\":");
        self.text(queue.getattr("broker_name")?.cast::<PyString>()?)?;
        self.out.push_str(",\"queueId\":");
        self.number(queue.getattr("queue_id")?.cast::<PyInt>()?)?;
        self.out.push_str(",\"topic\":");
        self.text(queue.getattr("topic")?.cast::<PyString>()?)?;
        self.out.push('}');
        Ok(())
    }

    fn number(&mut self, number: &Bound<'py, PyInt>) -> PyResult<()> {
        let digits = match number.extract::<i64>() {
            Ok(number) => number.to_string(),
            Err(_) => number.str()?.to_str()?.to_owned(),
        };
        self.out.push_str(&digits);
        Ok(())
    }

    fn text(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        let escapes = if self.is_standard { Escapes::Browser } else { Escapes::Fastjson1 };
        if let Ok(text) = text.to_cow() {
            write_text(&text, escapes, &mut self.out);
            return Ok(());
        }
        // a text with surrogates that have no partner
        let bytes = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
        let pairs = bytes.cast::<PyBytes>()?.as_bytes().chunks_exact(2);
        write_units(pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])), escapes, &mut self.out);
        Ok(())
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Number(i128),
    Name(Cow<'a, str>),
}
