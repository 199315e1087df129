//! Panics on purpose. Tests call this to check that panics become Python exceptions on each platform.
use pyo3::prelude::*;

#[pyfunction]
pub fn panic(text: &str) {
    panic!("{text}");
}
