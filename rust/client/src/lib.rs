//! The data path of a client.
//!
//! Read in this order: a [`pull_body`] is what a broker answers to a pull, a [`Message`] one record of it with the values
//! of the row. A [`puller`] has many pulls in flight; [`fetched`] makes columns of what came; [`ranges`] reads fixed ranges of
//! queues, and [`cluster`] asks name servers and brokers what a job must know of a topic; [`send`] encodes messages, [`producer`]
//! decides where each goes and when it is sent again, and [`remark`] makes a peer's remarks readable.
#![allow(missing_docs, reason = "the crate is not published")]

pub mod cluster;
mod error;
pub mod fetched;
mod message;
pub mod names;
pub mod producer;
pub mod pull_body;
pub mod puller;
pub mod ranges;
pub mod remark;
pub mod send;

pub use error::{Error, Result};
pub use message::Message;
pub use remark::{plain_remark, step_after};
