//! Columns as Spark's vectors read them: arrays of numbers, and views of text by address and length.
//!
//! A view points into the block of a [`RowSource`](rmqfast_store::scan::RowSource) where the stored bytes are right already,
//! else into a buffer of its vector. All are valid until the batch is filled again.
mod batch;
mod bodies;
mod map;
mod memory;
mod numbers;
mod of_column;
mod texts;
mod unsafe_rows;
mod vector;
mod views;

pub use batch::{Batch, Rows};
pub use memory::Memory;
