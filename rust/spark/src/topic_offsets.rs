//! Where a read of a topic's queues starts and ends, on each of its brokers.
use crate::error::{Error, Result};
use crate::offsets::{ByQueue, EARLIEST, FORM, LATEST, Offsets, by_queue, json_of, sorted_keys};
use crate::text::{quoted, shown};
use serde_json::Value;
use std::collections::BTreeSet;

/// Offsets by broker, and by queue of it; the broker `*` is each that is not named.
pub type ByBroker = Vec<(String, ByQueue)>;

/// A queue as it is: broker, number, first offset, the one behind the last.
pub type QueueBounds = (String, i32, i64, i64);

/// What to do about an offset that a queue does not have.
const NEXT_STEP: &str = "on_damage=\"warn\" (failOnDataLoss=false) takes the nearest that is there";

/// Which end of the read an offset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Where it begins.
    Start,
    /// Where it ends.
    End,
}

/// Reads the text of an option.
///
/// # Errors
/// Another text, another topic, an offset below -2.
pub fn parse(name: &str, text: &str, topic: &str) -> Result<Offsets<ByBroker>> {
    Offsets::word_or(text, || by_broker(name, &json_of(name, text)?, topic))
}

/// The offsets that a JSON object has by topic, broker and queue.
///
/// # Errors
/// Another form or another topic.
pub fn by_broker(name: &str, members: &Value, topic: &str) -> Result<ByBroker> {
    let brokers = match members {
        // a second topic would be passed over in silence
        Value::Object(members) if members.len() == 1 && members.contains_key(topic) => &members[topic],
        _ => {
            let got = members.as_object().map_or_else(|| shown(members), sorted_keys);
            let expected = quoted(topic);
            return Err(Error::argument(format!("{name}: expected one topic, {expected}, as {FORM}, got {got}")));
        }
    };
    let by_broker: Option<Vec<_>> = brokers
        .as_object()
        .and_then(|brokers| brokers.iter().map(|(broker, queues)| Some((broker, queues.as_object()?))).collect());
    let Some(by_broker) = by_broker else {
        let got = shown(brokers);
        let text = format!("{name}: expected brokers with offsets by queue below the topic, got {got}");
        return Err(Error::argument(text));
    };
    by_broker.into_iter().map(|(broker, queues)| Ok((broker.clone(), by_queue(name, queues)?))).collect()
}

/// The offset of each queue, in their order; one that is not named begins at its first message, or ends behind its last.
/// Besides, what to warn of: offsets that a queue does not have, where that is no error, become the nearest that it has.
///
/// # Errors
/// A broker or a queue that the topic does not have; an offset that a queue does not have, if the read `is_strict`.
pub fn resolve(
    name: &str,
    offsets: &Offsets<ByBroker>,
    queues: &[QueueBounds],
    edge: Edge,
    is_strict: bool,
) -> Result<(Vec<i64>, Vec<String>)> {
    let named = ByBroker::new();
    let (usual, by_broker) = match (offsets, edge) {
        (Offsets::Earliest, _) => (EARLIEST, &named),
        (Offsets::Latest, _) => (LATEST, &named),
        // a queue that appeared since the offsets were noted is read from its first message on
        (Offsets::Named(by_broker), Edge::Start) => (EARLIEST, by_broker),
        (Offsets::Named(by_broker), Edge::End) => (LATEST, by_broker),
    };
    // a wrong number is an error even in a read that is not strict: nothing is lost, somebody mistyped
    check_known(name, by_broker, queues)?;
    let of_broker = |wanted: &str| by_broker.iter().find(|(broker, _)| broker == wanted);
    let (mut resolved, mut warnings) = (Vec::new(), Vec::new());
    for (broker, id, first, last) in queues {
        // a broker's own offsets, where it has any, replace those of `*` as a whole
        let by_queue = of_broker(broker).or_else(|| of_broker("*")).map_or(&[][..], |(_, by_queue)| by_queue);
        let named = by_queue.iter().find(|(queue, _)| *queue == i64::from(*id)).map_or(usual, |(_, offset)| *offset);
        let offset = match named {
            EARLIEST => *first,
            LATEST => *last,
            _ => named,
        };
        if !(*first..=*last).contains(&offset) {
            let what = if offset < *first { "has expired" } else { "is not there yet" };
            let place = format!("{name}: broker {broker}, queue {id}: offset {offset}");
            let text = format!("{place} {what}, the queue has {first} to {last}");
            if is_strict {
                return Err(Error::DataLoss(format!("{text}\n{NEXT_STEP}")));
            }
            warnings.push(text);
        }
        resolved.push(offset.min(*last).max(*first));
    }
    Ok((resolved, warnings))
}

fn check_known(name: &str, offsets: &ByBroker, queues: &[QueueBounds]) -> Result<()> {
    let brokers: BTreeSet<&str> = queues.iter().map(|(broker, ..)| broker.as_str()).collect();
    for (broker, by_queue) in offsets {
        if broker != "*" && !brokers.contains(broker.as_str()) {
            let known = or_none(brokers.iter().map(|broker| (*broker).to_owned()));
            return Err(Error::argument(format!("{name}: no broker {broker}; the topic's brokers are {known}")));
        }
        let of_broker = queues.iter().filter(|(other, ..)| broker == "*" || other == broker);
        let known: BTreeSet<i32> = of_broker.map(|(_, id, ..)| *id).collect();
        for (id, _) in by_queue {
            if !known.iter().any(|queue| i64::from(*queue) == *id) {
                let known = or_none(known.iter().map(i32::to_string));
                return Err(Error::argument(format!(
                    "{name}: no queue {id} on broker {broker}; its queues are {known}"
                )));
            }
        }
    }
    Ok(())
}

fn or_none(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
