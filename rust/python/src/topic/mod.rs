//! Reads of a live cluster's topics: planned in the driver, read by the tasks.
pub mod range_reader;
pub mod read;
pub mod request;
pub mod warnings;
