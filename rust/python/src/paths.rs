//! Paths that a user gave, and what stands there.
use crate::error::{ArgumentError, to_python};
use pyo3::prelude::*;
use rmqfast_store::file::place;
use std::path::PathBuf;

/// A path of this machine, from what a user gave for `name`.
#[pyfunction]
pub fn local_path(name: &str, given: PathBuf) -> PyResult<PathBuf> {
    rmqfast_store::file::local_path(given.as_os_str())
        .map_err(|expected| ArgumentError::new_err(format!("{name}: expected {expected}, got '{}'", given.display())))
}

/// Whether anything has this name, be it a link that leads nowhere.
#[pyfunction]
pub fn path_exists(path: PathBuf) -> PyResult<bool> {
    place::exists(&path).map_err(to_python)
}

/// Whether there is a file.
#[pyfunction]
pub fn is_file(path: PathBuf) -> PyResult<bool> {
    place::is_file(&path).map_err(to_python)
}

/// Whether there is a directory.
#[pyfunction]
pub fn is_directory(path: PathBuf) -> PyResult<bool> {
    place::is_directory(&path).map_err(to_python)
}

/// The paths that a directory lists; none where it is not there.
#[pyfunction]
pub fn list_directory(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    place::list(&path).map_err(to_python)
}
