//! RocketMQ's replication. A master sends its commit log unchanged to every process that connects to its HA port.
//!
//! ```text
//! frame        encoding of reports and frames
//! wire         the socket of a connection, with or without TLS
//! connection   the reading side of a connection: frames become a stream of log bytes
//! keeper       sends reports while the thread of a connection writes, and ends a connection that is not read
//! log_copy     compares the end of a copy, then checks and appends new records
//! topic_copy   the same for some topics: topic_filter builds their log, places maps positions between both logs
//! mark         the saved position in the master's log for a copy of topics; trail proves that it is the same log
//! log_sink     the trait of log_copy and topic_copy
//! listing      indexes appended records on a separate thread
//! follower     all of it: a copy that follows its master's log
//! log_reader   reads a range of a log, without a copy
//! ha_service   the master's side: listener and permissions; ha_options its options
//! slave        one connection of the master's side
//! replicas     positions of slaves, for sends that wait for a slave
//! source       addresses and limits of a broker's log, from its configuration
//! ```
#![allow(missing_docs)]

pub mod connection;
pub mod end;
pub mod follower;
pub mod frame;
pub mod ha_options;
pub mod ha_service;
pub mod keeper;
pub mod listing;
pub mod log_copy;
pub mod log_reader;
pub mod log_sink;
pub mod mark;
pub mod places;
pub mod replicas;
pub mod slave;
pub mod source;
pub mod topic_copy;
pub mod topic_filter;
pub mod trail;
pub mod wire;

pub use end::End;
pub use follower::{Follow, Follower, Progress};
pub use ha_options::{HaOptions, Peers};
pub use ha_service::HaService;
pub use log_reader::{LogReader, LogStep, LogStretch};
pub use mark::Mark;
pub use replicas::{ReplicaWait, Replicas};
pub use source::{Sends, Source};
