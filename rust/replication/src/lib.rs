//! RocketMQ's replication. A master sends its commit log unchanged to every process that connects to its HA port.
//!
//! ```text
//! wire         the socket of a connection, with or without TLS, the frames on it, and reasons for its end
//! connection   the reading side of a connection, and the reports that keep it alive while its thread writes
//! log_copy     compares the end of a copy, then checks, appends and indexes new records
//! topic_copy   the same for some topics: a filter builds their log, which is copied like another
//! mark         the saved position in the master's log for a copy of topics, and positions in both logs
//! follower     all of it: a copy that follows its master's log
//! log_reader   reads a range of a log, without a copy
//! ha_service   the master's side: listener and permissions
//! slave        one connection of the master's side
//! replicas     options of the master's side, and positions of slaves, for sends that wait for a slave
//! source       addresses and limits of a broker's log, from its configuration
//! ```
#![allow(missing_docs)]

pub mod connection;
pub mod follower;
pub mod ha_service;
pub mod log_copy;
pub mod log_reader;
pub mod mark;
pub mod replicas;
pub mod slave;
pub mod source;
pub mod topic_copy;
pub mod wire;

pub use follower::{Follow, Follower, Progress};
pub use ha_service::HaService;
pub use log_reader::{LogReader, LogStep, LogStretch};
pub use mark::Mark;
pub use replicas::{HaOptions, Peers, Replicas};
pub use source::{Sends, Source};
pub use wire::End;
