//! Columns in the form that Spark's vectors read. Numbers are arrays. Strings are views, which are address and length
//! of each string.
//!
//! A view points into the block of a [`RowSource`](rmqfast_store::scan::RowSource) if the stored bytes can be used as
//! they are, otherwise into a buffer of its vector. Views are valid until the batch is filled again.
mod batch;
mod columns;
mod unsafe_rows;
mod values;
mod views;

pub use batch::{Batch, Rows};
pub use views::Memory;
