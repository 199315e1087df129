//! Appending to a store: check, allocate, then write; commit log first, consume queues and index behind it.
//!
//! ```text
//! columns, messages    rows as they were given; values, lists, pairs: those of Arrow
//! row_check            what a row may be
//! plan                 every row checked, its size, place and properties known; nothing is written yet
//! batch, status        what a producer may send as one; what a broker tells of what it refuses
//! log_writer           records, in files of one size
//! queue_writer         units of one queue; queue_table holds them all
//! index_writer         hash entries of keys
//! unsynced, flusher    what is not on the disk yet; one wait for all who wait for it
//! background_work      what an append leaves to a thread
//! threads, timer       what flushes, creates the next file and touches the next pages
//! file_watch, harm     whether other processes change files meanwhile, and what follows
//! owned_store          all of it behind one lock
//! appender             the façade: one batch of rows after the other, flush, close
//! replicate            records of a master's log, in place of rows
//! dispatch             what lists them: units and index entries of records that have their places
//! cleaning             what retention removes meanwhile
//! serving              what others read meanwhile, and how a server waits for the disk
//! resume               where an existing store goes on, or why it does not
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

pub use appender::{Appended, Appender, Place, cut, missing_end, repair};
pub use columns::Columns;
pub use messages::{Messages, OwnedMessage};
pub use options::{AppendOptions, Flush};
pub use row::{Pair, Row, Rows};
pub use status::PutMessageStatus;
