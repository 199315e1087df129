//! Reads a commit log that another process is writing.
//!
//! The bytes of a record appear in the page cache in any order. So a record at the end of the log is returned only when it is
//! surely complete; other records are read again later:
//!
//! - A broker lists a record in its consume queue only when the record is complete, and in the order of the log.
//!   So a listed record confirms all records before it.
//! - A record that no queue confirms must be the same in two reads.
//! - `log_follow.rs`: the walk. It waits at zeroes, at half a record, and at a file that does not exist yet.
//! - `log_place.rs`: the position of the walk. An invalid record is damage once the bound is behind it. Removed files are
//!   not damage.
//!
//! With `transientStorePoolEnable` a broker keeps messages in its own memory for up to 200 ms or 16 KiB. Files and followers
//! lag behind the broker by as much.
//!
//! Source: `CommitLog.DefaultAppendMessageCallback.doAppend`, `ReputMessageService.doReput`, `MappedFile.commit`,
//! `MappedFileQueue.deleteExpiredFileByTime`.
mod log_follow;
mod log_place;

pub use log_follow::LogFollow;
pub use log_place::{RemovedRange, Waits};
