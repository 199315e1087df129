//! What RocketMQ calls a store: commit log, consume queues, index; appending to it, reading it meanwhile, recovering it, and
//! what goes from it.
pub mod append;
pub mod commit_log;
pub mod config_files;
pub mod config_save;
pub mod consume_queue;
pub mod damage;
pub mod delay_levels;
pub mod follow;
pub mod get;
pub mod get_limits;
pub mod get_status;
pub mod index_files;
pub mod info;
pub mod log_walk;
pub mod message_store;
pub mod multi_dispatch;
pub mod pull;
pub mod query;
pub mod queue_view;
pub mod recover;
pub mod removed_topics;
pub mod resync;
pub mod retain;
pub mod serve;
pub mod time_search;
pub mod unlisted;
pub mod verify;

pub use commit_log::CommitLog;
pub use consume_queue::ConsumeQueue;
pub use damage::Damage;
pub use follow::LogFollow;
pub use get::{GetMessage, GetMessageStatus};
pub use get_limits::GetLimits;
pub use log_walk::LogWalk;
pub use message_store::{MessageStore, OpenOptions, QueueKind};
