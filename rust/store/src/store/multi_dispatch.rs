//! Multi-dispatch: one record in several queues, as for light message queues (LMQ).
//!
//! The message names the queues in a property, and the store adds a property with its offset in each queue. Both stay in the
//! record, so that the queues can be rebuilt from the log. A 4.9.4 broker forgets the next offsets when it restarts; here the
//! offsets continue at the ends of the queues.
//!
//! Source: `MultiDispatch.wrapMultiDispatch`, `ConsumeQueue.multiDispatchLmqQueue`, `MixAll.isLmq`.
use crate::format::message::Message;
use crate::format::properties::MULTI_QUEUE_OFFSET;

pub use crate::format::properties::MULTI_DISPATCH as PROPERTY;

pub const LMQ: &str = "%LMQ%";

/// Returns the name and the queue id of each additional queue that the property names.
pub fn queues(names: &str, queue_id: i32) -> impl Iterator<Item = (&str, i32)> {
    // A light queue always has id 0 (`multiDispatchLmqQueue`).
    names.split(',').map(move |name| (name, if name.starts_with(LMQ) { 0 } else { queue_id }))
}

/// Returns name, queue id and offset of a stored message in each of its additional queues.
pub fn extra_queues<'a>(message: &Message<'a>) -> Vec<(&'a str, i32, i64)> {
    let text = |name| message.property(name).and_then(|value| std::str::from_utf8(value).ok());
    let (Some(names), Some(offsets)) = (text(PROPERTY), text(MULTI_QUEUE_OFFSET)) else { return Vec::new() };
    let offsets: Vec<i64> = offsets.split(',').map_while(|offset| offset.parse().ok()).collect();
    let queues: Vec<_> = queues(names, message.queue_id()).collect();
    if queues.len() != offsets.len() {
        return Vec::new(); // A broker ignores such a message, too.
    }
    queues.into_iter().zip(offsets).map(|((name, queue_id), offset)| (name, queue_id, offset)).collect()
}
