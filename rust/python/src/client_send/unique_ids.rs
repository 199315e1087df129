//! The ids of messages.
use pyo3::prelude::*;
use rmqfast_client::send;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes the ids of messages, for all producers of a process.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct UniqueIds {
    ids: send::UniqueIds,
    month: Py<PyAny>,
}

#[pymethods]
impl UniqueIds {
    /// `month_bounds` says when the month of a time began and when the next one does, all in milliseconds.
    #[new]
    fn new(ip: IpAddr, pid: u32, tells_apart: i32, month_bounds: Py<PyAny>) -> Self {
        Self { ids: send::UniqueIds::new(ip, pid, tells_apart), month: month_bounds }
    }

    /// The next id, of this moment unless a time is given.
    #[pyo3(signature = (now_ms=None))]
    fn next(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<String> {
        let now_ms = now_ms.unwrap_or_else(self::now_ms);
        self.begin_month(py, now_ms)?;
        Ok(self.ids.next(now_ms).text())
    }
}

impl UniqueIds {
    /// Makes sure that the month of a time is known, before ids are made.
    pub fn begin_month(&self, py: Python<'_>, now_ms: i64) -> PyResult<()> {
        if self.ids.needs_month(now_ms) {
            // Java counts from the month's begin in local time, which Python's clock knows; once a month
            let (start, next) = self.month.call1(py, (now_ms,))?.extract(py)?;
            self.ids.begin_month(start, next);
        }
        Ok(())
    }

    /// What makes them.
    pub fn core(&self) -> &send::UniqueIds {
        &self.ids
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
