//! Appends to a store. An append checks its rows, allocates files, then writes the commit log, and after it consume queues and
//! index.
//!
//! ```text
//! rows, columns        messages to append: from values, from Arrow
//! row_check            rules for a row, and a broker's names of errors
//! properties           encodes the property string of a row
//! plan                 checks every row and computes its size, place and properties, before anything is written
//! log_writer           writes records, in files of one size
//! queue_writer         writes units of one queue; queue_table holds all queues
//! index_writer         writes hash entries of keys
//! writers              log, queues and index together
//! flusher              files to flush, group commit, checkpoint
//! background, threads  background threads: flush, create the next file, fault pages in, detect changes by other processes
//! owned_store          all of it behind one lock; retention while others append
//! appender             the façade: append, flush, close, wait for the disk
//! replicate            copies records of a master's log, and lists them in queues and index
//! resume               opens an existing store at its end, or refuses it
//! ```
pub mod appender;
pub mod background;
pub mod columns;
pub mod flusher;
pub mod index_writer;
pub mod log_writer;
pub mod options;
pub mod owned_store;
pub mod plan;
pub mod properties;
pub mod queue_table;
pub mod queue_writer;
pub mod replicate;
pub mod resume;
pub mod row_check;
pub mod rows;
pub mod threads;
pub mod writers;

pub use appender::{AppendResult, Appender, Place, cut, missing_end, repair};
pub use columns::Columns;
pub use options::{AppendOptions, Flush};
pub use row_check::PutMessageStatus;
pub use rows::{Messages, OwnedMessage, Pair, Row, Rows};
