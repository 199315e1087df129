//! Reads of a topic of a live cluster: what the driver asks and fixes, and what a task reads.
pub mod plan;
pub mod range_reader;
pub mod request;
pub mod warnings;
