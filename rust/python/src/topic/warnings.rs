//! Writes log lines of Spark reads to Python's log.
use pyo3::prelude::*;
use rmqfast_spark::stream::Level;

/// Logs each text as a warning.
pub fn log(py: Python<'_>, logger: &str, warnings: Vec<String>) -> PyResult<()> {
    log_lines(py, logger, warnings.into_iter().map(|text| (Level::Warning, text)).collect())
}

pub fn log_lines(py: Python<'_>, logger: &str, lines: Vec<(Level, String)>) -> PyResult<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.call_method1("getLogger", (logger,))?;
    lines.into_iter().try_for_each(|(level, text)| {
        let method = match level {
            Level::Info => "info",
            Level::Warning => "warning",
        };
        // passed as an argument, since the text may contain `%`
        logger.call_method1(method, ("%s", text)).map(drop)
    })
}
