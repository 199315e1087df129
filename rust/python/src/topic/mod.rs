//! Reads of a live cluster's topics: planning in the driver, reading in the tasks.
pub mod range_reader;
pub mod read;
pub mod request;
pub mod warnings;
