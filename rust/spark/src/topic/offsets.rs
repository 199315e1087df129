//! Start and end offsets of topics, by broker and queue.
use crate::error::{Error, Result};
use crate::request::offsets::{ByQueue, EARLIEST, FORM, LATEST, Offsets, by_queue, json_of};
use crate::request::text::{python_text, quote};
use crate::topic::topics::Topics;
use rmqfast_client::cluster::Bounds;
use rmqfast_client::puller::Queue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub type ByTopic = Vec<(String, ByBroker)>;

/// Offsets by broker and queue. The broker name `*` stands for all brokers that are not named.
pub type ByBroker = Vec<(String, ByQueue)>;

/// Advice for an offset that a queue does not have.
const NEXT_STEP: &str = "on_damage=\"warn\" (failOnDataLoss=false) takes the nearest that is there";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Start,
    End,
}

/// Parses an option's value.
///
/// # Errors
/// The value is not offsets, names a topic that is not read, or has an offset below -2.
pub fn parse(name: &str, text: &str, topics: &Topics) -> Result<Offsets<ByTopic>> {
    Offsets::word_or(text, || by_topic(name, &json_of(name, text)?, topics))
}

/// Parses a JSON object with offsets by topic, broker and queue.
///
/// # Errors
/// The JSON has another form, or names a topic that is not read.
pub fn by_topic(name: &str, members: &Value, topics: &Topics) -> Result<ByTopic> {
    let Value::Object(members) = members else {
        let got = python_text(members);
        return Err(Error::argument(format!("{name}: expected offsets of {topics} as {FORM}, got {got}")));
    };
    // offsets of a topic that is not read would be ignored silently
    if let Some(other) = members.keys().find(|topic| !topics.has(topic)) {
        let other = quote(other);
        return Err(Error::argument(format!("{name}: {other} is not read; expected offsets of {topics} as {FORM}")));
    }
    members.iter().map(|(topic, brokers)| Ok((topic.clone(), by_broker(name, brokers)?))).collect()
}

fn by_broker(name: &str, brokers: &Value) -> Result<ByBroker> {
    let by_broker: Option<Vec<_>> = brokers
        .as_object()
        .and_then(|brokers| brokers.iter().map(|(broker, queues)| Some((broker, queues.as_object()?))).collect());
    let Some(by_broker) = by_broker else {
        let got = python_text(brokers);
        let text = format!("{name}: expected brokers with offsets by queue below the topic, got {got}");
        return Err(Error::argument(text));
    };
    // a copied checkpoint also has members with store times, which are not offsets
    let by_broker = by_broker.into_iter().filter(|(broker, queues)| !queues.is_empty() || !is_of_times(broker));
    by_broker.map(|(broker, queues)| Ok((broker.clone(), by_queue(name, queues)?))).collect()
}

/// Returns the offset of each queue, in the order of `queues`, and warnings.
///
/// A queue that is not named begins at its first message, or ends behind its last. Offsets outside a queue become the
/// nearest offset that it has, with a warning.
///
/// # Errors
/// A topic, broker or queue that does not exist. If the read `is_strict`, also an offset outside its queue.
pub fn resolve(
    name: &str,
    offsets: &Offsets<ByTopic>,
    queues: &[(Queue, Bounds)],
    edge: Edge,
    is_strict: bool,
) -> Result<(Vec<i64>, Vec<String>)> {
    let none = ByTopic::new();
    let (usual, by_topic) = match (offsets, edge) {
        (Offsets::Earliest, _) => (EARLIEST, &none),
        (Offsets::Latest, _) => (LATEST, &none),
        // a queue that appeared after the offsets were noted is read from its first message
        (Offsets::Named(by_topic), Edge::Start) => (EARLIEST, by_topic),
        (Offsets::Named(by_topic), Edge::End) => (LATEST, by_topic),
    };
    // an unknown queue is an error even if losses are allowed, since it is a typing error and not a loss
    by_topic.iter().try_for_each(|(topic, by_broker)| check_known(name, topic, by_broker, queues))?;
    let (mut resolved, mut warnings) = (Vec::new(), Vec::new());
    for (queue, (first, last)) in queues {
        let Queue { topic, broker_name, queue_id } = queue;
        let offset = match named_offset(by_topic, queue).unwrap_or(usual) {
            EARLIEST => *first,
            LATEST => *last,
            // checked below
            named => named,
        };
        if !(*first..=*last).contains(&offset) {
            let what = if offset < *first { "has expired" } else { "is not there yet" };
            let place = format!("{name}: topic {topic}, broker {broker_name}, queue {queue_id}: offset {offset}");
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

/// Refuses a start offset that is larger than the end offset of the same queue, since the read would silently return
/// nothing. -1 and -2 are not compared.
///
/// # Errors
/// There is such a queue.
pub fn check_order(start: &Offsets<ByTopic>, end: &Offsets<ByTopic>, queues: &[(Queue, Bounds)]) -> Result<()> {
    let (Offsets::Named(start), Offsets::Named(end)) = (start, end) else { return Ok(()) };
    for (queue, _) in queues {
        let number = |by_topic| named_offset(by_topic, queue).filter(|offset| *offset >= 0);
        if let (Some(start), Some(end)) = (number(start), number(end))
            && start > end
        {
            let Queue { topic, broker_name, queue_id } = queue;
            let place = format!("startingOffsets: topic {topic}, broker {broker_name}, queue {queue_id}");
            let text = format!("{place}: expected {end} at most, which endingOffsets says, got {start}");
            return Err(Error::argument(text));
        }
    }
    Ok(())
}

/// Returns the offset that the option gives for a queue, or `None` if it gives none. If the option names the queue's
/// broker, the entry `*` is ignored.
fn named_offset(by_topic: &ByTopic, queue: &Queue) -> Option<i64> {
    let (_, by_broker) = by_topic.iter().find(|(topic, _)| *topic == queue.topic)?;
    let of_broker = |wanted: &str| by_broker.iter().find(|(broker, _)| broker == wanted);
    // offsets of the broker itself hide all offsets of `*`
    let (_, by_queue) = of_broker(&queue.broker_name).or_else(|| of_broker("*"))?;
    by_queue.iter().find(|(id, _)| *id == i64::from(queue.queue_id)).map(|(_, offset)| *offset)
}

fn is_of_times(member: &str) -> bool {
    of_member_name(member).is_some()
}

fn check_known(name: &str, topic: &str, offsets: &ByBroker, queues: &[(Queue, Bounds)]) -> Result<()> {
    let all = queues.iter().map(|(queue, _)| queue);
    let queues = all.clone().filter(|queue| queue.topic == topic);
    let brokers: BTreeSet<&str> = queues.clone().map(|queue| &*queue.broker_name).collect();
    // a topic that matches the pattern need not exist
    if brokers.is_empty() {
        let names: BTreeSet<&str> = all.map(|queue| queue.topic.as_str()).collect();
        let names = or_none(names.into_iter().map(str::to_owned));
        return Err(Error::argument(format!("{name}: no topic {topic}; the topics are {names}")));
    }
    for (broker, by_queue) in offsets {
        if broker != "*" && !brokers.contains(broker.as_str()) {
            let names = or_none(brokers.iter().map(|broker| (*broker).to_owned()));
            let place = format!("{name}: topic {topic}: no broker {broker}");
            return Err(Error::argument(format!("{place}; the topic's brokers are {names}")));
        }
        let of_broker = queues.clone().filter(|queue| broker == "*" || *queue.broker_name == **broker);
        let names: BTreeSet<i32> = of_broker.map(|queue| queue.queue_id).collect();
        for (id, _) in by_queue {
            if !names.iter().any(|queue| i64::from(*queue) == *id) {
                let names = or_none(names.iter().map(i32::to_string));
                let place = format!("{name}: topic {topic}: no queue {id} on broker {broker}");
                return Err(Error::argument(format!("{place}; its queues are {names}")));
            }
        }
    }
    Ok(())
}

fn or_none(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The store time in milliseconds of the message before the stream's offset, by queue. Unknown times are left out.
pub type StoreTimes = BTreeMap<Queue, i64>;

/// Separates the broker's name from the store times in a JSON key.
const MARK: &str = " stored ";

/// Formats the JSON key with the store times of a broker's queues: `broker-a stored 0:1700000000000 1:1700000000001`.
pub fn member_name(broker_name: &str, times: impl IntoIterator<Item = (i32, i64)>) -> String {
    let mut name = format!("{broker_name}{MARK}");
    for (number, (queue_id, time)) in times.into_iter().enumerate() {
        let _ = write!(name, "{}{queue_id}:{time}", if number == 0 { "" } else { " " });
    }
    name
}

/// Parses a JSON key into broker name and store times; `None` if the key is just a broker name.
pub fn of_member_name(name: &str) -> Option<(&str, Vec<(i32, i64)>)> {
    let (broker_name, times) = name.rsplit_once(MARK)?;
    let time = |text: &str| {
        let (queue_id, time) = text.split_once(':')?;
        Some((queue_id.parse().ok()?, time.parse().ok()?))
    };
    Some((broker_name, times.split(' ').map(time).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics() -> Topics {
        Topics::of_names(["orders".to_owned(), "bills".to_owned()]).expect("names")
    }

    fn queues() -> Vec<(Queue, Bounds)> {
        let queue =
            |topic: &str, broker: &str, queue_id| Queue { topic: topic.into(), broker_name: broker.into(), queue_id };
        vec![
            (queue("bills", "a", 0), (0, 5)),
            (queue("orders", "a", 0), (3, 9)),
            (queue("orders", "a", 1), (0, 4)),
            (queue("orders", "b", 0), (0, 7)),
        ]
    }

    fn resolved(text: &str, edge: Edge) -> Result<Vec<i64>> {
        let offsets = parse("startingOffsets", text, &topics())?;
        resolve("startingOffsets", &offsets, &queues(), edge, true).map(|(offsets, _)| offsets)
    }

    #[test]
    fn each_topic_has_offsets_of_its_own_and_one_that_is_not_named_the_usual_ones() {
        for (text, edge, expected) in [
            ("earliest", Edge::Start, [0, 3, 0, 0]),
            ("Latest", Edge::Start, [5, 9, 4, 7]),
            (r#"{"orders": {"a": {"0": 5}, "*": {"0": 6}}}"#, Edge::Start, [0, 5, 0, 6]),
            (r#"{"bills": {"*": {"0": 2}}, "orders": {"b": {"0": -2}}}"#, Edge::End, [2, 9, 4, 0]),
            ("{}", Edge::End, [5, 9, 4, 7]),
        ] {
            assert_eq!(resolved(text, edge).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn a_queue_that_begins_behind_its_end_is_refused() {
        let order = |start: &str, end: &str| {
            let [start, end] = [start, end].map(|text| parse("offsets", text, &topics()).expect("offsets"));
            check_order(&start, &end, &queues())
        };
        let at = |offset: i64| format!(r#"{{"orders": {{"a": {{"0": {offset}}}}}}}"#);
        for (start, end) in
            [(at(5), at(5)), (at(5), at(-1)), (at(-1), at(5)), (at(9), "latest".into()), ("latest".into(), at(3))]
        {
            order(&start, &end).expect("in order");
        }
        let all = r#"{"orders": {"*": {"0": 8}}}"#.to_owned();
        for (start, end, first, last) in [(at(8), at(5), 8, 5), (all, at(5), 8, 5), (at(9), at(0), 9, 0)] {
            let expected = format!("expected {last} at most, which endingOffsets says, got {first}");
            let error = order(&start, &end).expect_err("out of order").to_string();
            assert_eq!(error, format!("startingOffsets: topic orders, broker a, queue 0: {expected}"));
        }
    }

    #[test]
    fn what_is_not_read_and_what_is_not_there_is_refused() {
        for (text, problem) in [
            (
                r#"{"orders": {}, "bill": {}}"#,
                r#"'bill' is not read; expected offsets of topics bills, orders as {"topic": {"broker": {"0": 23}}}"#,
            ),
            ("[]", r#"expected offsets of topics bills, orders as {"topic": {"broker": {"0": 23}}}, got []"#),
            (r#"{"bills": {"b": {"0": 1}}}"#, "topic bills: no broker b; the topic's brokers are a"),
            (r#"{"bills": {"*": {"1": 1}}}"#, "topic bills: no queue 1 on broker *; its queues are 0"),
            (
                r#"{"orders": {"a": {"1": 8}}}"#,
                "topic orders, broker a, queue 1: offset 8 is not there yet, the queue has 0 to 4",
            ),
        ] {
            let error = resolved(text, Edge::Start).expect_err(text).to_string();
            assert_eq!(error.lines().next(), Some(&*format!("startingOffsets: {problem}")));
        }
        let bills: Vec<_> = queues().into_iter().take(1).collect();
        let offsets = parse("endingOffsets", r#"{"orders": {}}"#, &topics()).expect("offsets");
        let error = resolve("endingOffsets", &offsets, &bills, Edge::End, false).expect_err("no such topic");
        assert_eq!(error.to_string(), "endingOffsets: no topic orders; the topics are bills");
    }

    #[test]
    fn times_come_back_from_the_name_of_their_member() {
        for broker in ["broker-a", "a stored b", "a stored 0:7", ""] {
            let name = member_name(broker, [(0, 1_700_000_000_000), (17, -5)]);
            assert_eq!(of_member_name(&name), Some((broker, vec![(0, 1_700_000_000_000), (17, -5)])), "{name}");
        }
        assert_eq!(member_name("broker-a", [(0, 5), (1, 7)]), "broker-a stored 0:5 1:7");
    }

    #[test]
    fn the_name_of_a_broker_has_no_times() {
        for name in ["broker-a", " stored ", "a stored b", "a stored 0:1 ", "a stored 0:x", "a stored 4294967296:1"] {
            assert_eq!(of_member_name(name), None, "{name}");
        }
    }
}
