//! The files below `config/`, as JSON: Python's own parser makes objects of it.
use crate::error::to_python;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rmqfast_store::Error;
use rmqfast_store::store::config_files::ConfigFile;
use rmqfast_store::store::config_save;
use std::path::PathBuf;

/// A file's JSON; warnings about its source; the error in the file where its backup was read.
type Loaded = (Option<String>, Vec<String>, Option<String>);

/// The file `name` of the store at `path` or its backup.
#[pyfunction]
pub fn load_config(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<Loaded> {
    py.detach(|| {
        let file = ConfigFile::load(&path, name);
        let text = file.require_readable()?.map(ToString::to_string);
        Ok((text, file.notes(), file.fault))
    })
    .map_err(to_python)
}

/// The text of the file `name` in RocketMQ's bytes; `json` is what it shall say.
#[pyfunction]
pub fn config_text<'py>(py: Python<'py>, name: &str, json: &str) -> PyResult<Bound<'py, PyBytes>> {
    let text = py.detach(|| {
        let value = rmqfast_store::format::config::parse(json.as_bytes());
        // parsed again: the text must be fastjson's, in its order and on its lines
        config_save::text_of(name, value.map_err(|error| Error::invalid("json", "a configuration", error))?)
    });
    Ok(PyBytes::new(py, text.map_err(to_python)?.as_bytes()))
}

/// Writes the file `name` of the store at `path`.
#[pyfunction]
pub fn save_config(py: Python<'_>, path: PathBuf, name: &str, text: &[u8]) -> PyResult<()> {
    py.detach(|| config_save::save_text(&path, name, text)).map_err(to_python)
}
