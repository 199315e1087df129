//! Copies messages of a store into a new store.
//!
//! ```text
//! Plan ── pieces ──► RowSource ── blocks, rows ──► record ──► log_writer
//!                                                    └──► lists ──► queue_table, index_writer
//! ```
//!
//! Records keep their bytes and queue offsets; only the physical offset changes. The new log begins at the offset of
//! the second file, like a log whose first file has expired. The reason is that the consume-queue entry of a left-out
//! message points to offset 0. RocketMQ skips this entry alone if the log begins later. If the log began at 0,
//! RocketMQ would skip all messages of the queue that are in the first file of the log.
//!
//! Source: `DefaultMessageStore.getMessage`, `CommitLog.rollNextFile`, `ConsumeQueue.correctMinOffset`.
pub mod config;
pub mod exporter;
pub mod lists;
pub mod partial;

pub use exporter::{ExportReport, export, sizes_of};
