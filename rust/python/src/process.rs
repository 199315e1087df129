//! Detects forks by Python's hooks.
use crate::error::ForkError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
pub use rmqfast_remoting::process::id;

/// Registers a hook that clears the cached process id in forked processes.
pub fn forget_in_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    // `multiprocessing` and PySpark's daemon fork with `os.fork`, which runs the hooks
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}

/// Refuses an object that was opened before a fork, since the forked process lacks its threads and sockets.
pub fn check_opened_here(process: u32, what: &str) -> PyResult<()> {
    if process == std::process::id() {
        return Ok(());
    }
    let text = format!("this {what} was opened in process {process}, not in its fork; open one here");
    Err(ForkError::new_err(text))
}

#[pyfunction]
/// Clears the cached process id. Runs in each forked process.
fn forget() {
    rmqfast_remoting::process::forget();
}
