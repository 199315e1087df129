//! What a job must know of topics before it reads them: where their queues are, where they begin and end, and since when.
//!
//! `Cluster` asks name servers and brokers; a [`TopicCluster`] knows which of them hold a topic, and asks all at once.
mod heartbeat;
mod parallel;
mod publish;
mod requests;
mod route;
mod search;
mod topic;

pub use heartbeat::Heartbeats;
pub use publish::{DEFAULT_QUEUES, DEFAULT_TOPIC, NO_ROUTE, PublishRoute};
pub use requests::{Cluster, ClusterOptions, NO_ANSWER, Translate};
pub use route::TopicRoute;
pub use topic::{Bounds, FoundMessage, QueueState, TopicCluster};
