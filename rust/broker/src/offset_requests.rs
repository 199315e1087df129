//! Answers requests for consumer offsets and for the bounds of queues.
//!
//! Source: `ConsumerManageProcessor.queryConsumerOffset`, `updateConsumerOffset`, `AdminBrokerProcessor.getMaxOffset`, `getMinOffset`.
use crate::broker_state::BrokerState;
use crate::group_commit::Reply;
use crate::headers::{missing_field, number};
use crate::ledger::Place;
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{Command, Connection, Outgoing, Value};
use rmqfast_store::format::names::Rule;
use std::time::Instant;

const NOT_FOUND: &str = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first";

pub fn answer(state: &BrokerState, connection: &Connection, request: &Command<'_>, out: &mut Outgoing) {
    let mut reply = Reply::to(request, out);
    match outcome(state, connection, request) {
        Err(Refusal::Wrong(remark)) => reply.end(response::SYSTEM_ERROR, &remark),
        // Java's clients commit with oneway requests, so only the broker's log can report the refusal
        Err(Refusal::TooMany(_)) if request.is_oneway() => state.control.note_dropped(),
        Err(Refusal::TooMany(remark)) => reply.end(response::SYSTEM_BUSY, &remark),
        Ok(Outcome::Offset(offset)) => reply.write(response::SUCCESS, None, &[("offset", Value::Number(offset))], b""),
        Ok(Outcome::Committed) => reply.write(response::SUCCESS, None, &[], b""),
        // exactly this code: 5.x clients treat any other code as a failure and do not start the queue
        Ok(Outcome::None) => reply.end(response::QUERY_NOT_FOUND, NOT_FOUND),
    }
}

enum Outcome {
    Offset(i64),
    Committed,
    None,
}

enum Refusal {
    Wrong(String),
    /// The limit of pairs of group and topic, per connection or per broker, is reached. Holds the remark for the
    /// client.
    TooMany(String),
}

impl From<String> for Refusal {
    fn from(remark: String) -> Self {
        Self::Wrong(remark)
    }
}

fn outcome(state: &BrokerState, connection: &Connection, request: &Command<'_>) -> Result<Outcome, Refusal> {
    let text = |name: &str| request.field(name).ok_or_else(|| missing_field(name));
    let (topic, queue_id) = (text("topic")?, number("queueId", text("queueId")?)?);
    Ok(match request.code {
        request::GET_MAX_OFFSET => Outcome::Offset(state.bounds(topic, queue_id).1),
        request::GET_MIN_OFFSET => Outcome::Offset(state.bounds(topic, queue_id).0),
        request::UPDATE_CONSUMER_OFFSET => {
            let offset = number("commitOffset", text("commitOffset")?)?;
            let group = text("consumerGroup")?;
            // commits are frequent: only a new pair of group and topic is checked and counted
            if !state.offsets.has(group, topic) {
                admit(state, connection, group, topic)?;
            }
            state.commit(Place { group, topic, queue_id }, connection, request.field("clientId"), offset);
            Outcome::Committed
        }
        // QUERY_CONSUMER_OFFSET; a negative offset counts as none
        _ => match state.offsets.get(text("consumerGroup")?, topic, queue_id).filter(|offset| *offset >= 0) {
            Some(offset) => Outcome::Offset(offset),
            // a new group starts at 0 if the queue still has its first message in memory
            None if state.is_young(topic, queue_id) && request.field("setZeroIfNotFound") != Some("false") => {
                Outcome::Offset(0)
            }
            None => Outcome::None,
        },
    })
}

/// Checks the first offset that a group commits for a topic against the limits, since the offsets of a group and
/// topic are kept for ever.
fn admit(state: &BrokerState, connection: &Connection, group: &str, topic: &str) -> Result<(), Refusal> {
    Rule::Group.check(group)?;
    Rule::NamedTopic.check(topic)?;
    let (count, most) = (state.offsets.len(), state.options.max_offsets);
    if count >= most {
        let remark =
            format!("[QUOTA] consumer offsets of a broker: expected at most {most} groups and topics, got more");
        return Err(Refusal::TooMany(remark));
    }
    if state.new_offsets.take(connection.id(), Instant::now()) {
        return Ok(());
    }
    let limits = state.new_offsets.limits();
    let remark = format!("[QUOTA] new consumer offsets of a connection: expected at most {limits}, got more");
    Err(Refusal::TooMany(remark))
}
