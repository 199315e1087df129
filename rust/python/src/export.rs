//! Exposes exports of a store.
use crate::append_options::PyAppendOptions;
use crate::error::to_python;
use crate::row::from_damage;
use crate::signals::watch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_store::export::{ExportReport, export, sizes_of};
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::store::MessageStore;
use std::path::Path;

/// File sizes, or `None` to keep those of the store, and the UTC offset of local time in milliseconds.
#[derive(FromPyObject)]
pub struct PySizes(Option<PyAppendOptions>, i64);

/// Exports a store, and returns the counts by name. Calls `progress` with the bytes done and the total number of bytes.
pub fn export_store<'py>(
    py: Python<'py>,
    store: &MessageStore,
    request: &ScanRequest,
    out: &Path,
    sizes: PySizes,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let PySizes(given, zone_offset_ms) = sizes;
    let options = match given {
        Some(given) => given.into_options(),
        // with the same sizes the broker that wrote the store can open the export
        None => sizes_of(store).map(|sizes| rmqfast_store::store::append::AppendOptions { zone_offset_ms, ..sizes }),
    };
    let options = options.map_err(to_python)?;
    let mut watch = watch(progress);
    let report = py.detach(|| export(store, request, out, options, &mut watch)).map_err(to_python)?;
    report_of(py, &report)
}

fn report_of<'py>(py: Python<'py>, report: &ExportReport) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for (name, count) in [
        ("rows", report.rows),
        ("bytes", report.bytes),
        ("files", report.files),
        ("unlisted", report.unlisted),
        ("index_entries", report.index_entries),
        ("more_damage", report.damage.more()),
    ] {
        fields.set_item(name, count)?;
    }
    fields.set_item("damage", report.damage.entries().iter().map(from_damage).collect::<Vec<_>>())?;
    Ok(fields)
}
