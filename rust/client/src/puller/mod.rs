//! Pulls many queues of a broker over one connection, with several requests under way.
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
mod state;
mod wire;
mod worker;

pub use answer::Answer;
pub use body::Body;
pub use fetched::{Fetched, Item, PullStatus, Queue};
pub use handle::Puller;
pub use options::{Allowance, Assignment, Gather, PullerOptions, Sign};
pub use pull_queue::{Held, Wanted};
pub use state::{Request, State};
