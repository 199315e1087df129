//! The JVM library of the Spark data source `rocketmq-columnar`: Java passes options, filters and partitions, and
//! gets vectors.
//!
//! ```text
//! options ──► Read ──► pieces       in the driver; rmqfast-spark
//!              └──► Task ──► Batch of vectors, valid until the next one
//!              StoreTask scans, TopicTask pulls
//! ```
//!
//! Java parses nothing and passes strings and numbers. `exports` is the only module that Java calls. `exports::frame`
//! catches panics, and `exports::handle` has the `unsafe` code for values that Java owns.
#![allow(missing_docs, reason = "not published")]
mod bad_bodies;
mod exports;
mod java;
mod open;
pub mod store_task;
pub mod task;
pub mod topic_task;
pub mod vectors;
