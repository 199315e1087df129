//! Panics on request. Tests use it to check that a platform's build turns panics into Python exceptions.
use pyo3::prelude::*;

#[pyfunction]
pub fn panic(text: &str) {
    panic!("{text}");
}
