//! Converts retention options and reports.
use crate::error::to_python;
use pyo3::prelude::*;
use rmqfast_store::Result;
use rmqfast_store::store::retain::{self, CleanReport, Clock, DeleteWhen, Removable, RetainOptions};
use std::path::PathBuf;

/// The attributes of `rmqfast.store.retention.RetentionOptions`.
#[derive(FromPyObject)]
pub struct PyRetentionOptions {
    file_reserved_hours: u32,
    delete_when: String,
    disk_max_used_ratio: u8,
    force_ratio: u8,
    warning_ratio: u8,
    clean_forcibly: bool,
}

/// The report of a retention run: `log_files, queue_files, index_files, bytes, min_offset, used_ratio, is_writable,
/// clock_jump_ms`.
pub type Report = (usize, usize, usize, u64, u64, Option<u8>, bool, i64);

type PyRemovable = (&'static str, PathBuf, u64);

impl PyRetentionOptions {
    /// Converts to the options of the store crate, and checks them.
    pub fn into_options(self) -> Result<RetainOptions> {
        let options = RetainOptions {
            file_reserved_hours: self.file_reserved_hours,
            delete_when: DeleteWhen::parse(&self.delete_when)?,
            disk_max_used_percent: self.disk_max_used_ratio,
            force_percent: self.force_ratio,
            warning_percent: self.warning_ratio,
            clean_forcibly: self.clean_forcibly,
            ..RetainOptions::default()
        };
        // checked before anything is opened or removed
        options.check()
    }
}

pub fn report(cleaned: &CleanReport) -> Report {
    (
        cleaned.log_files,
        cleaned.queue_files,
        cleaned.index_files,
        cleaned.bytes,
        cleaned.min_offset,
        cleaned.used_percent,
        cleaned.is_writable,
        cleaned.clock_jump_ms,
    )
}

/// Returns the files that a manual retention run would remove, and the offset at which the log would then begin.
#[pyfunction]
#[pyo3(signature = (path, retention, *, now))]
pub fn plan_clean(
    py: Python<'_>,
    path: PathBuf,
    retention: PyRetentionOptions,
    now: Option<i64>,
) -> PyResult<(Vec<PyRemovable>, u64)> {
    let options = retention.into_options().map_err(to_python)?;
    let now = now.unwrap_or_else(|| Clock::now().wall_ms);
    // a preview takes no lock, so a broker may run on the store
    let plan = py.detach(|| retain::preview(&path, &options, now)).map_err(to_python)?;
    let row = |kind: &'static str| move |file: Removable| (kind, file.path, file.bytes);
    let log = plan.log.into_iter().map(row("commit log"));
    let lists = plan.queues.into_iter().map(row("consume queue")).chain(plan.index.into_iter().map(row("index")));
    Ok((log.chain(lists).collect(), plan.min_offset))
}

/// Returns how much of a directory's disk is used, in percent; `None` if the system does not tell.
#[pyfunction]
pub fn used_percent(py: Python<'_>, directory: PathBuf) -> Option<u8> {
    py.detach(|| retain::clean_plan::used_percent(&[&directory]))
}
