//! Sends `rmqfast.Message` objects and Arrow rows.
mod callback_send;
pub mod common;
pub mod encoder;
mod message_fields;
pub mod outgoing;
mod progress;
pub mod publish_topics;
mod result;
mod rows;
pub mod send;
pub mod sender;
mod sender_methods;
pub mod unique_ids;
