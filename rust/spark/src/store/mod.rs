//! Batches and streams of a store's directory.
pub mod piece;
pub mod read;
pub mod stream;
