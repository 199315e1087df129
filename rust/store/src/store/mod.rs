//! What RocketMQ calls a store: commit log, consume queues, index, append.
pub mod append;
pub mod commit_log;
pub mod consume_queue;
pub mod damage;
pub mod log_walk;
pub mod message_store;
pub mod resync;
pub mod tail;

pub use commit_log::CommitLog;
pub use consume_queue::ConsumeQueue;
pub use damage::Damage;
pub use log_walk::LogWalk;
pub use message_store::{MessageStore, OpenOptions, QueueKind};
