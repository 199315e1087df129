//! The JVM library behind the Spark data source `rocketmq-columnar`: options, filters and partitions in, vectors out.
//!
//! ```text
//! options ──► Read ──► partitions            in the driver
//!               └────► Task ── RowSource ──► Batch of vectors, valid until the next one
//! ```
//!
//! Java does no parsing: it carries texts and numbers. `exports` is the one module that it calls, and the one with
//! `unsafe` in it.
mod exports;
pub mod failure;
pub mod filters;
mod java;
pub mod offsets;
pub mod options;
pub mod read;
pub mod task;
pub mod time;
pub mod vectors;
