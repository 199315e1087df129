//! Pulls many queues, over one connection to each broker, with several requests in flight: what every consumer stands on.
//!
//! [`State`] decides what to ask and in which order answers are handed out; a thread moves what it says through a
//! socket; a [`Puller`] is the handle on both.
mod answer;
mod body;
mod fetched;
mod handle;
mod link;
mod options;
mod pull_queue;
mod pull_status;
mod queue;
mod state;
#[cfg(test)]
mod test_record;
mod wire;
mod worker;

pub use answer::Answer;
pub use body::{Body, Pool};
pub use fetched::{Fetched, FlowControl, Item};
pub use handle::Puller;
pub use options::{Assignment, Broker, Gather, PullerOptions, Sign, Subscription, Threshold};
pub use pull_queue::{Volume, Wanted};
pub use pull_status::PullStatus;
pub use queue::Queue;
pub use state::{Request, State};
pub use wire::{PullHeader, texts};
pub use worker::OnReady;
