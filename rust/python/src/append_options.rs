//! Converts `rmqfast.AppendOptions` to the options of the store crate.
use crate::message::host;
use pyo3::prelude::*;
use rmqfast_store::store::append::{AppendOptions, Flush};
use rmqfast_store::store::delay::DelayLevels;
use rmqfast_store::{Error, Result};
use std::time::Duration;

/// The attributes of `rmqfast.store.writer.AppendOptions`.
#[derive(FromPyObject)]
pub struct PyAppendOptions {
    flush: String,
    file_size: u64,
    queue_file_size: u64,
    index_slots: u32,
    index_entries: u32,
    max_message_size: usize,
    store_host: String,
    long_topics: bool,
    property_crc: bool,
    multi_dispatch: bool,
    max_lmq_queues: usize,
    sync_flush_timeout: f64,
    busy_after: Option<f64>,
    delay_levels: Vec<u32>,
    zone_offset_ms: i64,
    file_permission: u32,
}

impl PyAppendOptions {
    pub fn into_options(self) -> Result<AppendOptions> {
        Ok(AppendOptions {
            flush: match self.flush.as_str() {
                "async" => Flush::Async,
                "sync" => Flush::Sync,
                other => return Err(Error::invalid("flush", "'async' or 'sync'", other)),
            },
            file_size: self.file_size,
            queue_file_size: self.queue_file_size,
            index_slots: self.index_slots,
            index_entries: self.index_entries,
            max_message_size: self.max_message_size,
            store_host: host("store_host", &self.store_host)?,
            long_topics: self.long_topics,
            property_crc: self.property_crc,
            multi_dispatch: self.multi_dispatch,
            max_lmq_queues: self.max_lmq_queues,
            sync_flush_timeout: seconds("sync_flush_timeout", self.sync_flush_timeout)?,
            busy_after: self.busy_after.map(|busy| seconds("busy_after", busy)).transpose()?,
            delay_levels: DelayLevels::new(&self.delay_levels)?,
            zone_offset_ms: self.zone_offset_ms,
            file_permission: self.file_permission,
            // retention has its own options, which `open` adds
            retain: None,
            replica_from: None,
        })
    }
}

fn seconds(what: &'static str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| Error::invalid(what, "seconds, 0 or more", value))
}
