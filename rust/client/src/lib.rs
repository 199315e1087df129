//! The data path of a client.
//!
//! Read in this order: a [`pull_body`] is what a broker answers to a pull, a [`Message`] one record of it with the values
//! of the row. A [`puller`] has many pulls under way; [`fetched`] makes columns of what came; [`send`] is what a producer
//! makes of a message.
mod error;
pub mod fetched;
mod message;
pub mod pull_body;
pub mod puller;
pub mod send;

pub use error::{Error, Result};
pub use message::Message;
