//! Reads a store directory for Spark, as a batch or as a stream.
pub mod piece;
pub mod read;
pub mod stream;
