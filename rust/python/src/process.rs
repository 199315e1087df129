//! Which process this is, without asking the operating system each time.
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU32, Ordering};

static ID: AtomicU32 = AtomicU32::new(0);

/// The number of this process.
pub fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            ID.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// A fork forgets the number of its parent: every fork that may run Python tells Python so.
pub fn forget_in_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forget, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}

#[pyfunction]
fn forget() {
    ID.store(0, Ordering::Relaxed);
}
