//! The Python extension: registration only.
use pyo3::prelude::*;

#[pymodule]
fn _rmqfast(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
