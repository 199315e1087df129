//! Exposes the generator of message ids.
use pyo3::prelude::*;
use rmqfast_client::send;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes message ids, for all producers of a process.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct UniqueIds {
    ids: send::UniqueIds,
    month: Py<PyAny>,
}

#[pymethods]
impl UniqueIds {
    /// `month_bounds` is a callable that takes a time. It returns the start of its month and of the next month in
    /// milliseconds.
    #[new]
    fn new(ip: IpAddr, pid: u32, tells_apart: i32, month_bounds: Py<PyAny>) -> Self {
        Self { ids: send::UniqueIds::new(ip, pid, tells_apart), month: month_bounds }
    }

    /// Returns the next id, for the current time or `now_ms`.
    #[pyo3(signature = (now_ms=None))]
    fn next(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<String> {
        let now_ms = now_ms.unwrap_or_else(self::now_ms);
        self.begin_month(py, now_ms)?;
        Ok(self.ids.next(now_ms).text())
    }
}

impl UniqueIds {
    /// Sets the bounds of the current month, unless they are set. Called before ids are created.
    pub fn begin_month(&self, py: Python<'_>, now_ms: i64) -> PyResult<()> {
        if self.ids.needs_month(now_ms) {
            // ids count from the start of the month in local time, which Python computes; once a month
            let (start, next) = self.month.call1(py, (now_ms,))?.extract(py)?;
            self.ids.begin_month(start, next);
        }
        Ok(())
    }

    pub fn core(&self) -> &send::UniqueIds {
        &self.ids
    }
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
