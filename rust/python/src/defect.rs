//! A panic on request: whether it becomes a Python exception depends on how a platform's build unwinds.
use pyo3::prelude::*;

#[pyfunction]
pub fn panic(text: &str) {
    panic!("{text}");
}
