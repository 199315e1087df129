//! Reads store directories for Spark, as a batch or as a stream.
pub mod brokers;
pub mod hosts;
pub mod piece;
pub mod read;
pub mod stores_read;
pub mod stores_stream;
pub mod stream;
