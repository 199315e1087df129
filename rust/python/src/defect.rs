//! Panics on purpose. Tests check with it that panics become Python exceptions on each platform.
use pyo3::prelude::*;

#[pyfunction]
pub fn panic(text: &str) {
    panic!("{text}");
}
