//! Forks, which Python tells of.
use crate::error::ForkError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
pub use rmqfast_remoting::process::id;

/// A fork forgets the number of its parent: every fork that may run Python tells Python so.
pub fn forget_in_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    // `multiprocessing` and PySpark's daemon both fork by `os.fork`, which calls the hooks
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}

/// Refuses to use in a fork what was opened in another process: threads and sockets do not come along.
pub fn check_opened_here(process: u32, what: &str) -> PyResult<()> {
    if process == std::process::id() {
        return Ok(());
    }
    let text = format!("this {what} was opened in process {process}, not in its fork; open one here");
    Err(ForkError::new_err(text))
}

#[pyfunction]
fn forget() {
    rmqfast_remoting::process::forget();
}
