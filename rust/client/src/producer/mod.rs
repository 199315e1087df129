//! Rules of sends: the queues of a topic, the choice of the next queue, retries, and room in flight.
//!
//! ```text
//! PublishQueues ──► Attempts::begin ──► a request ──► Attempts::record ──► again, or the end
//!        ▲                 ▲                                │
//!     a route        FaultStrategy ◄─────── latency ────────┘
//! ```
//!
//! This module does no I/O. Callers make the attempts and pass the time; only [`InFlight`] waits.
mod answer;
mod attempts;
mod errors;
mod fault_strategy;
mod in_flight;
mod publish_queues;

pub use answer::{Refusal, SendStatus, StoredMessage};
pub use attempts::{AttemptEnd, Attempts, RetryRules, TimeOver};
pub use errors::{NO_ROUTE, broker_not_exist, no_route};
pub use fault_strategy::FaultStrategy;
pub use in_flight::{InFlight, Room};
pub use publish_queues::{Choice, DEFAULT_QUEUES, DEFAULT_TOPIC, PublishQueues, select_queue};
