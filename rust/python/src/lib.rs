//! The Python extension: registration only.
use pyo3::prelude::*;

mod append;
mod append_options;
mod config;
mod error;
mod export;
mod lookup;
mod message;
mod request;
mod retain;
mod row;
mod scan;
mod signals;
mod store;
mod tail;

/// The extension module of `rmqfast`; its types and functions are described in `_rmqfast.pyi`.
#[pymodule]
fn _rmqfast(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<store::Store>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<tail::Tail>()?;
    module.add_class::<append::Appender>()?;
    module.add_function(wrap_pyfunction!(append::repair, module)?)?;
    module.add_function(wrap_pyfunction!(config::load_config, module)?)?;
    module.add_function(wrap_pyfunction!(config::save_config, module)?)?;
    module.add_function(wrap_pyfunction!(retain::plan_clean, module)?)?;
    module.add("COLUMNS", request::column_names())?;
    Ok(())
}
