//! Name servers, routes, and the begin and end of queues.
//!
//! `Cluster` asks name servers and brokers; a [`TopicCluster`] knows which of them hold a topic, and asks all at once.
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
pub use name_servers::{AskError, NameServers};
pub use requests::{CheckInterrupt, Cluster, ClusterOptions, NO_ANSWER, Translate};
pub use route::{TopicRoute, readable_queues};
pub use route_data::{BrokerData, QueueData, RouteData};
pub use route_table::{Addresses, FoundBroker, RouteTable};
pub use topic::TopicCluster;
