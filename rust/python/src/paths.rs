//! Checks paths that users pass.
use crate::error::{ArgumentError, to_python};
use pyo3::prelude::*;
use rmqfast_store::file::place;
use rmqfast_store::store::BrokerStores;
use std::path::PathBuf;

/// Checks and converts a user's path; `name` is the argument's name for errors.
#[pyfunction]
pub fn local_path(name: &str, given: PathBuf) -> PyResult<PathBuf> {
    rmqfast_store::file::local_path(given.as_os_str())
        .map_err(|expected| ArgumentError::new_err(format!("{name}: expected {expected}, got '{}'", given.display())))
}

/// Whether a path exists; a dangling link counts, too.
#[pyfunction]
pub fn path_exists(path: PathBuf) -> PyResult<bool> {
    place::exists(&path).map_err(to_python)
}

/// Returns the stores in a directory, or those that match a pattern, by broker; `None` for one store.
#[pyfunction]
pub fn find_broker_stores(py: Python<'_>, path: PathBuf) -> PyResult<Option<BrokerStores>> {
    py.detach(|| rmqfast_store::store::find_broker_stores(&path)).map_err(to_python)
}

#[pyfunction]
pub fn is_file(path: PathBuf) -> PyResult<bool> {
    place::is_file(&path).map_err(to_python)
}

#[pyfunction]
pub fn is_directory(path: PathBuf) -> PyResult<bool> {
    place::is_directory(&path).map_err(to_python)
}

/// Returns the paths in a directory; an empty list if it does not exist.
#[pyfunction]
pub fn list_directory(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    place::list(&path).map_err(to_python)
}
