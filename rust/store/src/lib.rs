//! Apache RocketMQ's message store in Rust: its formats, its files, its store, and a scan of it into Arrow.
//!
//! Layers, low to high; each names only those before it (`tests/store/layers.rs` holds this):
//!
//! ```text
//! format   bytes <-> values, pure: message, properties, consume queue, index, checkpoint, ids, config
//! filter   tag expressions and SQL92 over the values of a message
//! file     segments: names, reads, maps, locks
//! store    commit log, consume queues, index, append: what RocketMQ calls a store
//! scan     plan, read, filter, build Arrow batches
//! export   what a scan reads, as a store of its own
//! ```
#![allow(missing_docs)] // The crate is not published: a name that says all needs no sentence.

pub mod error;
pub mod export;
pub mod file;
pub mod filter;
pub mod format;
pub mod scan;
pub mod store;

pub use error::{Error, Result};
