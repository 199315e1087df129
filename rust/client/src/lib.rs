//! The data path of a client: connections, pulls, sends, and columns of messages.
//!
//! Read in this order. [`pull_body`] parses the body of a broker's answer to a pull; a [`Message`] is one record of it.
//! [`puller`] keeps many pulls in flight, and [`fetched`] makes columns of their answers. [`ranges`] reads fixed ranges
//! of queues. [`cluster`] asks name servers and brokers for routes and offsets of topics. [`send`] encodes messages,
//! [`producer`] chooses their queues and retries, and [`remark`] shortens remarks of brokers for logs.
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
