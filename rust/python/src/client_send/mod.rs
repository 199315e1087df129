//! What a producer sends, made of `rmqfast.Message` objects or of rows of Arrow.
pub mod common;
pub mod encoder;
pub mod in_flight;
pub mod outgoing;
mod result;
mod rows;
pub mod sender;
mod taken;
pub mod unique_ids;
