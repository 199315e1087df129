//! Copies messages of a store into a new store.
//!
//! ```text
//! Plan ── pieces ──► RowSource ── blocks, rows ──► record ──► log_writer
//!                                                    └──► lists ──► queue_table, index_writer
//! ```
//!
//! Records keep their bytes and queue offsets; only the physical offset changes. The new log begins at the offset of the second file, like
//! a log whose first file has expired. The reason is that left-out messages have units that point to offset 0. RocketMQ skips such a unit
//! if the log begins later. If the log began at 0, RocketMQ would skip the whole first file at such a unit, with all messages of the queue
//! in it.
//!
//! Source: `DefaultMessageStore.getMessage`, `CommitLog.rollNextFile`, `ConsumeQueue.correctMinOffset`.
pub mod config;
pub mod exporter;
pub mod lists;
pub mod partial;
pub mod record;
pub mod syncer;

pub use exporter::{ExportReport, export, sizes_of};
