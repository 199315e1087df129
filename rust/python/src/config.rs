//! The files below `config/`, as JSON: Python's own parser makes objects of it.
use crate::error::to_python;
use pyo3::prelude::*;
use rmqfast_store::Error;
use rmqfast_store::store::config_files::ConfigFile;
use rmqfast_store::store::config_save;
use std::path::PathBuf;

/// The file `name` of the store at `path` or its backup, as JSON, and what a person should know of where it is from.
#[pyfunction]
pub fn load_config(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<(Option<String>, Vec<String>)> {
    py.detach(|| {
        let file = ConfigFile::load(&path, name);
        let text = file.required()?.map(ToString::to_string);
        Ok((text, file.notes()))
    })
    .map_err(to_python)
}

/// Writes the file `name` of the store at `path`; `json` is what it shall say.
#[pyfunction]
pub fn save_config(py: Python<'_>, path: PathBuf, name: &str, json: &str) -> PyResult<()> {
    py.detach(|| {
        let value = rmqfast_store::format::config::parse(json.as_bytes());
        config_save::save(&path, name, value.map_err(|error| Error::invalid("json", "a configuration", error))?)
    })
    .map_err(to_python)
}
