//! The rules of sends: the queues of a topic, the next one of them, the failures that are tried again.
//!
//! ```text
//! PublishQueues ──► Attempts::begin ──► a request ──► Attempts::record ──► again, or the end
//!        ▲                 ▲                                │
//!     a route        FaultStrategy ◄─────── latency ────────┘
//! ```
//!
//! Nothing here asks the network or looks at a clock: callers make the attempts and say what time it is.
mod answer;
mod attempts;
mod errors;
mod fault_strategy;
mod publish_queues;

pub use answer::{Refusal, SendStatus, StoredMessage};
pub use attempts::{AttemptEnd, Attempts, RetryRules, TimeOver};
pub use errors::{NO_ROUTE, broker_not_exist, no_route};
pub use fault_strategy::FaultStrategy;
pub use publish_queues::{Choice, DEFAULT_QUEUES, DEFAULT_TOPIC, PublishQueues, select_queue};
