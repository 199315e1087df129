//! Multi-dispatch: one record in several queues, as for light message queues (LMQ).
//!
//! The message names the queues, the store adds its offset in each; both stay in its properties, so that a walk over the log
//! can list it again. A broker of 4.9.4 forgets the next offsets when it restarts; here they go on where the queues end.
//!
//! Source: `MultiDispatch.wrapMultiDispatch`, `ConsumeQueue.multiDispatchLmqQueue`, `MixAll.isLmq`.
use crate::format::message::Message;
use crate::format::properties::MULTI_QUEUE_OFFSET;

pub use crate::format::properties::MULTI_DISPATCH as PROPERTY;

/// How the name of a light message queue begins.
pub const LMQ: &str = "%LMQ%";

/// The names of further queues that a property lists, and the number of each.
pub fn queues(names: &str, queue_id: i32) -> impl Iterator<Item = (&str, i32)> {
    // a light queue is always number 0 (`multiDispatchLmqQueue`)
    names.split(',').map(move |name| (name, if name.starts_with(LMQ) { 0 } else { queue_id }))
}

/// The further queues that list a stored message, and its offset in each.
pub fn listed_in<'a>(message: &Message<'a>) -> Vec<(&'a str, i32, i64)> {
    let text = |name| message.property(name).and_then(|value| std::str::from_utf8(value).ok());
    let (Some(names), Some(offsets)) = (text(PROPERTY), text(MULTI_QUEUE_OFFSET)) else { return Vec::new() };
    let offsets: Vec<i64> = offsets.split(',').map_while(|offset| offset.parse().ok()).collect();
    let queues: Vec<_> = queues(names, message.queue_id()).collect();
    if queues.len() != offsets.len() {
        return Vec::new(); // as a broker does
    }
    queues.into_iter().zip(offsets).map(|((name, queue_id), offset)| (name, queue_id, offset)).collect()
}
