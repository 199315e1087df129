//! RocketMQ's replication: a master sends its commit log, as it is, to whoever connects to its HA port.
//!
//! ```text
//! frame        what goes over the wire, both ways
//! wire         what their bytes go over: a socket, with TLS or without
//! connection   the reading side of one connection: frames become bytes of the log, one behind the other
//! keeper       what keeps a connection while its thread writes, and ends one that nobody reads
//! log_copy     compares what a copy has, checks and appends what it has not
//! topic_copy   the same for some topics: topic_filter makes a log of them, places are those of both logs that belong together
//! mark         how far a master's log was taken for such a copy, and when that is saved; trail proves it
//! log_sink     the trait of log_copy and topic_copy
//! listing      lists what was appended, on a thread of its own
//! follower     all of it: a copy that grows with its master's log
//! log_reader   a stretch of a log, without a copy
//! ha_service   the master's side: who may have the log; ha_options how
//! slave        a connection over which it is sent
//! replicas     how far slaves are, for sends that wait for one
//! source       whether and where a broker's log may be read, by its configuration
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
