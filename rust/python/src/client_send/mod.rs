//! What a producer sends, made of `rmqfast.Message` objects or of rows of Arrow.
pub mod async_sender;
pub mod encoder;
pub mod in_flight;
pub mod outgoing;
mod rows;
mod taken;
pub mod unique_ids;
