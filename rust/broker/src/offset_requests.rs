//! How far a group is, how far a queue goes.
//!
//! Source: `ConsumerManageProcessor.queryConsumerOffset`, `updateConsumerOffset`, `AdminBrokerProcessor.getMaxOffset`, `getMinOffset`.
use crate::code::{request, response};
use crate::ground::Ground;
use crate::reply::Reply;
use crate::send_header::{missing_field, number};
use rmqfast_remoting::{Command, Outgoing, Value};

const NOT_FOUND: &str = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first";

/// Answers a request about offsets.
pub fn answer(ground: &Ground, request: &Command<'_>, out: &mut Outgoing) {
    let mut reply = Reply::to(request, out);
    match found(ground, request) {
        Err(remark) => reply.end(response::SYSTEM_ERROR, &remark),
        Ok(Found::Offset(offset)) => reply.write(response::SUCCESS, None, &[("offset", Value::Number(offset))], b""),
        Ok(Found::Committed) => reply.write(response::SUCCESS, None, &[], b""),
        Ok(Found::None) => reply.end(response::QUERY_NOT_FOUND, NOT_FOUND),
    }
}

enum Found {
    Offset(i64),
    Committed,
    None,
}

fn found(ground: &Ground, request: &Command<'_>) -> Result<Found, String> {
    let text = |name: &str| request.field(name).ok_or_else(|| missing_field(name));
    let (topic, queue_id) = (text("topic")?, number("queueId", text("queueId")?)?);
    Ok(match request.code {
        request::GET_MAX_OFFSET => Found::Offset(ground.bounds(topic, queue_id).1),
        request::GET_MIN_OFFSET => Found::Offset(ground.bounds(topic, queue_id).0),
        request::UPDATE_CONSUMER_OFFSET => {
            let offset = number("commitOffset", text("commitOffset")?)?;
            ground.offsets.commit(text("consumerGroup")?, topic, queue_id, offset);
            Found::Committed
        }
        _ => match ground.offsets.get(text("consumerGroup")?, topic, queue_id).filter(|offset| *offset >= 0) {
            Some(offset) => Found::Offset(offset),
            // a group that begins anew gets all messages of a queue that still has the first one in memory
            None if ground.is_young(topic, queue_id) && request.field("setZeroIfNotFound") != Some("false") => {
                Found::Offset(0)
            }
            None => Found::None,
        },
    })
}
