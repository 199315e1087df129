//! Requests to name servers and brokers: routes, and the bounds of queues.
//!
//! [`Cluster`] sends requests to name servers and brokers. A [`TopicCluster`] knows the brokers of topics and asks them
//! in parallel.
mod broker;
mod heartbeat;
mod name_servers;
mod parallel;
mod requests;
mod route;
mod route_data;
mod route_table;
mod search;
mod topic;

pub use broker::{Bounds, BrokerCall, FoundMessage, QueueState};
pub use heartbeat::Heartbeats;
pub use name_servers::{AskError, NO_ANSWER, NameServers, unreachable};
pub use requests::{CheckInterrupt, Cluster, ClusterOptions, Translate};
pub use route::{TopicRoute, readable_queues};
pub use route_data::{BrokerData, QueueData, RouteData};
pub use route_table::{Addresses, FoundBroker, RouteRefusal, RouteTable};
pub use topic::TopicCluster;
