//! Batches and streams of a cluster's topics, planned in the driver.
pub mod admission;
pub mod checkpoint;
pub mod continuity;
pub mod lag;
pub mod offsets;
pub mod position;
pub mod read;
pub mod scan;
pub mod stream;
pub mod topics;
