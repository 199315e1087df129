//! Export: a part of a store becomes a store of its own.
//!
//! ```text
//! Plan ── pieces ──► RowSource ── blocks, rows ──► record ──► log_writer
//!                                                    └──► lists ──► queue_table, index_writer
//! ```
//!
//! Records stay what they are, and keep their queue offsets; the physical offset alone is new. The new log begins at the
//! second file's offset, as one whose first file expired: then a unit that leads nowhere, as before the first message of a
//! queue or in place of one that was left out, is passed over by RocketMQ's own classes. If the log began at 0, they would go on
//! behind its first file, past all messages of the queue in it.
//!
//! Source: `DefaultMessageStore.getMessage`, `CommitLog.rollNextFile`, `ConsumeQueue.correctMinOffset`.
pub mod config;
pub mod exporter;
pub mod lists;
pub mod partial;
pub mod record;
pub mod sizes;
pub mod syncer;

pub use exporter::{ExportReport, export};
pub use sizes::sizes_of;
