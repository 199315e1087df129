//! Sends `rmqfast.Message` objects and Arrow rows.
mod async_send;
mod encoder;
mod outgoing;
mod publish_topics;
mod result;
mod rows;
mod send_state;
mod sender;
mod sender_methods;

pub use async_send::PySend;
pub use encoder::MessageEncoder;
pub use outgoing::{Outgoing, UniqueIds};
pub use publish_topics::{PublishQueues, is_timed};
pub use sender::MessageSender;
