//! Holds what all messages of a producer have in common, for whoever makes requests of them.
use super::unique_ids::UniqueIds;
use crate::error::ArgumentError;
use pyo3::prelude::*;
use rmqfast_client::send::Properties;

/// The fields that all messages of a producer share.
pub struct Common {
    pub group: String,
    /// The topic after whose settings a broker makes one that is missing, as `TBW102`.
    pub default_topic: String,
    pub default_topic_queue_nums: i32,
    /// Whether the producer is of a unit.
    pub is_unit_mode: bool,
    /// Bodies of so many bytes or more are compressed.
    pub compress_over: usize,
    /// The instance that messages name, where it has one.
    pub instance_id: Option<String>,
    pub ids: Py<UniqueIds>,
}

impl Common {
    /// Writes properties, with those of the producer's own and an id.
    pub fn write(&self, py: Python<'_>, said: Properties<'_>, now_ms: i64, out: &mut String) -> PyResult<String> {
        let ids = self.ids.get();
        ids.begin_month(py, now_ms)?;
        let make_id = || ids.core().next(now_ms).text();
        let written = said.write_with_id(self.instance_id.as_deref(), make_id, out);
        written.map_err(|e| ArgumentError::new_err(e.to_string()))
    }
}
