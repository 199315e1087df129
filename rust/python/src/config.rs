//! Loads and saves the files below `config/` as JSON strings, which Python parses.
use crate::error::to_python;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rmqfast_store::Error;
use rmqfast_store::store::config_files::{self, ConfigFile};
use std::path::PathBuf;

/// The JSON of a file (`None` without a file), notes for users if a backup was read or a database was not read, and the
/// error of the file if its backup was read.
type Loaded = (Option<String>, Vec<String>, Option<String>);

/// Loads the file `name` of the store at `path`, or its backup.
#[pyfunction]
pub fn load_config(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<Loaded> {
    py.detach(|| {
        let file = ConfigFile::load(&path, name);
        let text = file.require_readable()?.map(ToString::to_string);
        Ok((text, file.notes(), file.fault))
    })
    .map_err(to_python)
}

/// Formats `json` as RocketMQ would write it to the file `name`.
#[pyfunction]
pub fn config_text<'py>(py: Python<'py>, name: &str, json: &str) -> PyResult<Bound<'py, PyBytes>> {
    let text = py.detach(|| {
        let value = rmqfast_store::format::config::parse(json.as_bytes());
        // parsed first, since the output needs fastjson's member order and line breaks
        config_files::text_of(name, value.map_err(|error| Error::invalid("json", "a configuration", error))?)
    });
    Ok(PyBytes::new(py, text.map_err(to_python)?.as_bytes()))
}

#[pyfunction]
pub fn save_config(py: Python<'_>, path: PathBuf, name: &str, text: &[u8]) -> PyResult<()> {
    py.detach(|| config_files::save_text(&path, name, text)).map_err(to_python)
}
