//! The JVM library behind the Spark data source `rocketmq-columnar`: options, filters and partitions in, vectors out.
//!
//! ```text
//! options ──► Read ──► pieces       in the driver; rmqfast-spark
//!              └──► Task ──► Batch of vectors, valid until the next one
//!              StoreTask scans, TopicTask pulls
//! ```
//!
//! Java does no parsing: it carries texts and numbers. `exports` is the one module that it calls; `exports::frame` catches
//! what panics there, and `exports::handle` has the `unsafe` of what Java holds.
#![allow(missing_docs, reason = "not published")]
mod exports;
pub mod failure;
mod filters;
mod java;
mod open;
pub mod store_task;
pub mod task;
pub mod topic_task;
pub mod vectors;
