//! A message store as RocketMQ defines it: commit log, consume queues and index. Covers appends, concurrent reads, recovery and
//! retention.
pub mod append;
pub mod broker_stores;
pub mod commit_log;
pub mod config_files;
pub mod consume_queue;
pub mod coverage;
pub mod delay;
pub mod follow;
pub mod generation;
pub mod get;
pub mod index_files;
pub mod info;
pub mod last_close;
pub mod log_walk;
#[cfg(test)]
pub(crate) mod made_store;
pub mod message_store;
pub mod newest_copy;
pub mod pull;
pub mod query;
pub mod queue_ends;
pub mod queue_view;
pub mod recover;
pub mod retain;
pub mod serve;
pub mod time_search;
pub mod unlisted;
pub mod verify;

pub use broker_stores::{BrokerStores, find_broker_stores};
pub use commit_log::{CommitLog, Damage};
pub use consume_queue::ConsumeQueue;
pub use follow::LogFollow;
pub use generation::Generations;
pub use get::{GetMessage, GetMessageStatus};
pub use log_walk::LogWalk;
pub use message_store::{MessageStore, OpenOptions, QueueKind};
pub use newest_copy::{CopyNote, newest_copy};
pub use pull::GetLimits;
