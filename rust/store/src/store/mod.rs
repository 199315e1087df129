//! What RocketMQ calls a store: commit log, consume queues, index; appending to it and recovering it.
pub mod append;
pub mod commit_log;
pub mod config_files;
pub mod consume_queue;
pub mod damage;
pub mod get;
pub mod get_limits;
pub mod get_status;
pub mod index_files;
pub mod info;
pub mod log_walk;
pub mod message_store;
pub mod multi_dispatch;
pub mod query;
pub mod queue_view;
pub mod recover;
pub mod resync;
pub mod tail;
pub mod time_search;
pub mod verify;

pub use commit_log::CommitLog;
pub use consume_queue::ConsumeQueue;
pub use damage::Damage;
pub use get::{GetMessage, GetMessageStatus};
pub use get_limits::GetLimits;
pub use log_walk::LogWalk;
pub use message_store::{MessageStore, OpenOptions, QueueKind};
