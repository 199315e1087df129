use super::unique_ids::UniqueIds;
use crate::error::ArgumentError;
use pyo3::prelude::*;
use rmqfast_client::send::Properties;

/// The settings that all messages of a producer share.
pub struct Common {
    pub group: String,
    /// Topic whose settings brokers use to create a missing topic: `TBW102`.
    pub default_topic: String,
    pub default_topic_queue_nums: i32,
    /// Whether the producer belongs to a unit, RocketMQ's term for a part of a deployment.
    pub is_unit_mode: bool,
    /// Minimum size in bytes of bodies that are compressed.
    pub compress_over: usize,
    /// The instance id to add to messages, if there is one.
    pub instance_id: Option<String>,
    pub ids: Py<UniqueIds>,
}

impl Common {
    /// Writes a message's properties, adds a unique id and returns the id.
    pub fn write(&self, py: Python<'_>, said: Properties<'_>, now_ms: i64, out: &mut String) -> PyResult<String> {
        let ids = self.ids.get();
        ids.begin_month(py, now_ms)?;
        let make_id = || ids.core().next(now_ms).text();
        let written = said.write_with_id(self.instance_id.as_deref(), make_id, out);
        written.map_err(|e| ArgumentError::new_err(e.to_string()))
    }
}
