//! Names and values of a Python mapping: header fields, properties of messages.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

/// Names and values in their order.
pub type Pairs = Vec<(PyBackedStr, PyBackedStr)>;

/// The items of any mapping.
///
/// It does not ask whether `mapping` is a `collections.abc.Mapping`: Python code answers that, and before Python 3.14 a daemon
/// thread that is in Python code below Rust when the interpreter ends takes the process with it.
pub fn pairs(mapping: &Bound<'_, PyAny>) -> PyResult<Pairs> {
    // a dictionary is walked without a line of Python
    if let Ok(dict) = mapping.cast::<PyDict>() {
        return dict.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect();
    }
    // most messages have no properties but an empty mapping, whose `items` need not be called
    if mapping.len()? == 0 {
        return Ok(Pairs::new());
    }
    mapping.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
}
