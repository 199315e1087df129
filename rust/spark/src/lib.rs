//! Plans the reads and writes of Spark: turns options, offsets and filters into scans, queue bounds and pieces.
//!
//! ```text
//! options ───────► request::Options ──► store::StoreRead ──► scan plan ──────────────► store pieces
//!                        ▲        └───► topic::TopicRead ──► offset bounds ─► origin ─► topic pieces
//! filters of Spark ──► request::Selection
//! ```
//!
//! Spark's Python and JVM sources share this crate, so that an option has the same meaning in both.
//!
//! - [`request`] parses options, offsets, times and filters. It opens no file and no socket.
//! - [`store`] plans batches and streams of a store's directory.
//! - [`topic`] plans batches and streams of a cluster's topics.
//! - [`origin`] reads the pieces of topics: by pulls, from a broker's log, or from a mirror's copy.
//! - [`catalog`] lists topics as tables, and tells options of reads from those of writes.
//! - [`sink`] writes rows to a topic.
#![allow(missing_docs, reason = "not published")]

pub mod catalog;
pub mod error;
pub mod origin;
pub mod read;
pub mod request;
pub mod sink;
pub mod store;
pub mod stream;
pub mod topic;

pub use error::{Error, Result};
pub use request::options::{Kind, Options, Pairs};
