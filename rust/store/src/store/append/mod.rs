//! Appends to a store. An append checks its rows, allocates files, then writes the commit log, and after it consume queues and
//! index.
//!
//! ```text
//! columns, messages    rows from Arrow or from values; values, lists, pairs: Arrow columns
//! row_check            rules for a row
//! plan                 checks every row and computes its size, place and properties, before anything is written
//! batch, status        checks of a producer's batch; a broker's names of errors
//! log_writer           writes records, in files of one size
//! queue_writer         writes units of one queue; queue_table holds all queues
//! index_writer         writes hash entries of keys
//! unsynced, flusher    files to flush; group commit
//! background_work      work that an append leaves to a thread
//! threads, timer       background threads: flush, create the next file, fault pages in
//! file_watch, harm     detects changes by other processes, and stops appends
//! owned_store          all of it behind one lock
//! appender             the façade: append, flush, close
//! replicate            copies records of a master's log
//! dispatch             lists copied records in queues and index
//! cleaning             retention while others append
//! serving              the interface for a server: reads, and waiting for the disk
//! resume               opens an existing store at its end, or refuses it
//! ```
pub mod appender;
pub mod background_work;
pub mod batch;
pub mod checkpoint;
pub mod cleaning;
pub mod columns;
pub mod delay;
pub mod dispatch;
pub mod file_watch;
pub mod flusher;
pub mod harm;
pub mod index_name;
pub mod index_writer;
pub mod lists;
pub mod log_writer;
pub mod messages;
pub mod options;
pub mod owned_store;
pub mod pairs;
pub mod plan;
pub mod properties;
pub mod queue_table;
pub mod queue_writer;
pub mod replicate;
pub mod resume;
pub mod row;
pub mod row_check;
pub mod serving;
pub mod status;
pub mod threads;
pub mod timer;
pub mod unsynced;
pub mod values;
pub mod writers;

pub use appender::{AppendResult, Appender, Place, cut, missing_end, repair};
pub use columns::Columns;
pub use messages::{Messages, OwnedMessage};
pub use options::{AppendOptions, Flush};
pub use row::{Pair, Row, Rows};
pub use status::PutMessageStatus;
