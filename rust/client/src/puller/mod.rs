//! Pulls many queues, over one connection to each broker, with several requests in flight: what every consumer stands on.
//!
//! [`State`] decides what to ask and in which order answers are handed out; a thread moves what it says through a
//! socket; a [`Puller`] is the handle on both.
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
