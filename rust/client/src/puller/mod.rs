//! Pulls many queues over one connection per broker, with several requests in flight. All consumers use this puller.
//!
//! [`State`] decides which pulls are sent and in which order answers are returned. It does no I/O.
//! A thread per broker moves requests and answers through a socket. A [`Puller`] is the handle of both.
mod answer;
mod body;
mod handle;
mod illegal_offset;
mod link;
mod options;
mod pull_queue;
mod pulled_answer;
mod state;
#[cfg(test)]
mod test_record;
mod wire;
mod worker;

pub use answer::{Answer, PullStatus};
pub use body::{Body, Pool};
pub use handle::Puller;
pub use illegal_offset::IllegalOffset;
pub use options::{Assignment, Broker, Gather, PullerOptions, Queue, Sign, Subscription, Threshold};
pub use pull_queue::{Pull, Volume};
pub use pulled_answer::{FlowControl, Item, PulledAnswer};
pub use state::{Request, State};
pub use wire::{PullHeader, texts};
pub use worker::OnReady;
