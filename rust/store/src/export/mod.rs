//! Export: copies a part of a store into a new store.
//!
//! ```text
//! Plan ── pieces ──► RowSource ── blocks, rows ──► record ──► log_writer
//!                                                    └──► lists ──► queue_table, index_writer
//! ```
//!
//! Records keep their bytes and queue offsets; only the physical offset is new. The new log begins at the second file's offset, like one
//! whose first file expired. RocketMQ's classes then skip units that point to offset 0, which stand for messages left out. If the
//! log began at 0, they would skip its whole first file at such a unit, with all messages of the queue in it.
//!
//! Source: `DefaultMessageStore.getMessage`, `CommitLog.rollNextFile`, `ConsumeQueue.correctMinOffset`.
pub mod config;
pub mod exporter;
pub mod lists;
pub mod partial;
pub mod record;
pub mod syncer;

pub use exporter::{ExportReport, export, sizes_of};
