//! Apache RocketMQ's message store in Rust: its file formats, its files, the store itself, and a scan that turns messages into Arrow.
//!
//! Layers, lowest first. Each layer uses only the layers above it in this list (`tests/store/layers.rs` checks this):
//!
//! ```text
//! format   bytes <-> values, without I/O: message, properties, consume queue, index, checkpoint, ids, config
//! filter   tag expressions and SQL92 on the properties of a message
//! file     files: names, reads of any storage, writes, maps, locks
//! store    commit log, consume queues, index, append: what RocketMQ calls a store
//! scan     plans, reads and filters messages, and builds Arrow batches
//! export   copies the messages that a scan selects into a new store
//! ```
#![allow(missing_docs)] // The crate is not published, and most names need no explanation.

pub mod error;
pub mod export;
pub mod file;
pub mod filter;
pub mod format;
pub mod scan;
pub mod store;

pub use error::{Error, Result};
