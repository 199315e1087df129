//! Reads of topics of a live cluster: what the driver asks and fixes, and what a task reads.
pub mod range_reader;
pub mod read;
pub mod request;
pub mod warnings;
