//! Warnings of a read, in Python's log.
use pyo3::prelude::*;

/// Logs each text as a warning of that logger.
pub fn log(py: Python<'_>, logger: &str, warnings: Vec<String>) -> PyResult<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.call_method1("getLogger", (logger,))?;
    // as an argument: a text may have a `%` of its own
    warnings.into_iter().try_for_each(|text| logger.call_method1("warning", ("%s", text)).map(drop))
}
