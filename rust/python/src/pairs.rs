//! Reads names and values of Python mappings, such as header fields and message properties.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

pub type Pairs = Vec<(PyBackedStr, PyBackedStr)>;

/// Returns the items of a mapping.
///
/// Does not check that `mapping` is a `collections.abc.Mapping`, since that runs Python code. Before Python 3.14 a
/// daemon thread that runs Python code called from Rust crashes the process when the interpreter ends.
pub fn pairs(mapping: &Bound<'_, PyAny>) -> PyResult<Pairs> {
    // the items of a dict are read without running Python code
    if let Ok(dict) = mapping.cast::<PyDict>() {
        return dict.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect();
    }
    // most messages have an empty mapping, so the call of `items` is avoided
    if mapping.len()? == 0 {
        return Ok(Pairs::new());
    }
    mapping.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
}
