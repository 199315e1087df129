//! The JVM library behind the Spark data source `rocketmq-columnar`: options, filters and partitions in, vectors out.
//!
//! ```text
//! options ──► StoreRead ──► partitions       in the driver; rmqfast-spark
//!               └────► Task ── RowSource ──► Batch of vectors, valid until the next one
//! ```
//!
//! Java does no parsing: it carries texts and numbers. `exports` is the one module that it calls, and the one with
//! `unsafe` in it.
mod exports;
pub mod failure;
mod filters;
mod java;
pub mod task;
pub mod vectors;
