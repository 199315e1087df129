//! A queue of a topic.
use std::sync::Arc;

/// A queue, as `MessageQueue`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    pub topic: String,
    /// The name of its brokers.
    pub broker_name: Arc<str>,
    /// Number of the queue in the topic.
    pub queue_id: i32,
}
