//! Reading a commit log that somebody else is writing.
//!
//! A record shows up in the page cache in any order of its bytes, so what stands at the end of the log is taken only when
//! it is surely whole, and whatever is not is looked at again later:
//!
//! - `bound.rs`: a broker lists a record in its consume queue only once it is whole, and lists them in the order of the log.
//!   So what a queue lists vouches for all that stands before it.
//! - `settled.rs`: what no queue vouches for must be the same in two reads.
//! - `log_follow.rs`: the walk. It stays where it is at zeroes, at half a record, at a file that is not there yet.
//! - `log_place.rs`: where it stands. A broken record is damage once the bound has passed it; files that retention removed are no damage.
//!
//! With `transientStorePoolEnable` a broker keeps messages in memory of its own for up to 200 ms, or until 16 KiB have come
//! together: the files, and so who follows them, lag as much.
//!
//! Source: `CommitLog.DefaultAppendMessageCallback.doAppend`, `ReputMessageService.doReput`, `MappedFile.commit`,
//! `MappedFileQueue.deleteExpiredFileByTime`.
mod bound;
mod log_follow;
mod log_place;
mod settled;

pub use log_follow::LogFollow;
pub use log_place::{Retained, Waits};
