//! The data path of a client.
//!
//! Read in this order: a [`pull_body`] is what a broker answers to a pull, a [`Message`] one record of it with the values
//! of the row. A [`puller`] has many pulls in flight; [`fetched`] makes columns of what came; [`ranges`] reads fixed ranges of
//! queues, and [`cluster`] asks name servers and brokers what a job must know of a topic; [`send`] is what a producer makes of
//! a message, and [`remark`] what people read of a peer's remarks.
pub mod cluster;
mod error;
pub mod fetched;
mod message;
pub mod names;
pub mod pull_body;
pub mod puller;
pub mod ranges;
pub mod remark;
pub mod send;

pub use error::{Error, Result};
pub use message::Message;
pub use remark::{plain_remark, step_after};
