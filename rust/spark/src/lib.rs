//! What a Spark read asks for: option texts, offsets and filters in; a scan, bounds and pieces out.
//!
//! ```text
//! option texts ──► Options ──► ScanRequest · offset bounds ──► pieces
//!                                   ▲
//! filters that Spark pushes ──► Selection
//! ```
//!
//! One meaning for each text: the data source of PySpark and that of the JVM both stand on this crate. It has no socket and
//! no clock of its own; only [`store_read`], [`copies`] and [`copy_rows`] open a store, only [`topics`], [`topic_read`],
//! [`topic_stream`] and the [`sink`] ask a cluster, and only the last two have a clock.
pub mod admission;
pub mod checkpoint;
pub mod cluster_options;
pub mod continuity;
pub mod copies;
pub mod copy_part;
pub mod copy_rows;
pub mod error;
pub mod expression;
pub mod lag;
pub mod log_part;
pub mod log_plan;
pub mod log_rows;
pub mod log_source;
pub mod name_servers;
pub mod names;
pub mod offsets;
pub mod options;
pub mod piece_bytes;
pub mod piece_reader;
pub mod pieces;
pub mod read;
pub mod schema;
pub mod selection;
pub mod sink;
pub mod store_damage;
pub mod store_piece;
pub mod store_read;
pub mod store_stream;
pub mod store_times;
pub mod stream;
pub mod table_options;
pub mod task_position;
pub mod text;
pub mod time;
pub mod topic_offsets;
pub mod topic_piece;
pub mod topic_read;
pub mod topic_stream;
pub mod topics;
pub mod via;

pub use error::{Error, Result};
pub use options::{Kind, Options, Pairs};
