//! Where a read of queues starts and ends: earliest, latest, or JSON by topic, broker and queue.
use crate::failure::{Failure, Result, quoted};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Means the first offset of a queue.
pub const EARLIEST: i64 = -2;
/// Means behind the last offset of a queue.
pub const LATEST: i64 = -1;

/// Queue offsets by queue id.
pub type Bounds = BTreeMap<i32, i64>;
/// Each queue's first offset, and the one behind its last.
pub type Queues = BTreeMap<i32, (i64, i64)>;

/// What an option says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// Of every queue.
    Earliest,
    /// Of every queue.
    Latest,
    /// [`LATEST`] and [`EARLIEST`] may be among them.
    ByQueue(Bounds),
}

impl Offsets {
    /// Reads an option's text.
    ///
    /// # Errors
    /// Another text, another topic, another broker, an offset below -2.
    pub fn parse(name: &str, text: &str, topic: Option<&str>, broker_name: Option<&str>) -> Result<Self> {
        match text.trim().to_lowercase().as_str() {
            "earliest" => return Ok(Self::Earliest),
            "latest" => return Ok(Self::Latest),
            _ => {}
        }
        let Some(topic) = topic else {
            return Err(Failure::argument(format!("{name}: offsets by queue need the option topic")));
        };
        let value = serde_json::from_str(text).map_err(|_| {
            let form = r#"{"topic": {"broker": {"0": 23}}}"#;
            Failure::argument(format!("{name}: expected earliest, latest or JSON as {form}, got {}", quoted(text)))
        })?;
        let by_broker = only(name, "topic", &value, &[topic])?;
        let mut brokers = vec!["*", broker_name.unwrap_or("*")];
        brokers.dedup();
        let by_queue = only(name, "broker", by_broker, &brokers)?;
        let Value::Object(queues) = by_queue else {
            return Err(Failure::argument(format!("{name}: expected an object below the broker, got {by_queue}")));
        };
        queues
            .iter()
            .map(|(key, value)| Ok((queue_id(name, key)?, offset(name, key, value)?)))
            .collect::<Result<_>>()
            .map(Self::ByQueue)
    }

    /// The bounds of a scan that these mean in queues as they are now; a queue that is read to its `open` edge has none.
    ///
    /// # Errors
    /// A queue that the topic does not have.
    pub fn bounds(&self, name: &str, queues: &Queues, open: i64) -> Result<Bounds> {
        let every = |offset| queues.keys().map(|id| (*id, offset)).collect();
        let offsets = match self {
            Self::Earliest => every(EARLIEST),
            Self::Latest => every(LATEST),
            Self::ByQueue(bounds) => bounds.clone(),
        };
        let mut bounds = Bounds::new();
        for (id, offset) in offsets {
            let Some((first, behind_last)) = queues.get(&id) else {
                let known: Vec<String> = queues.keys().map(i32::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Failure::argument(format!("{name}: no queue {id}; the topic's queues are {known}")));
            };
            match offset {
                _ if offset == open => continue,
                EARLIEST => bounds.insert(id, *first),
                LATEST => bounds.insert(id, *behind_last),
                _ => bounds.insert(id, offset),
            };
        }
        Ok(bounds)
    }
}

/// The text that [`Offsets::parse`] reads as these bounds.
pub fn told(topic: &str, bounds: &Bounds) -> String {
    let queues: Map<String, Value> = bounds.iter().map(|(id, offset)| (id.to_string(), json!(offset))).collect();
    json!({ topic: { "*": queues } }).to_string()
}

/// Refuses to start behind messages that retention has deleted, as if they had never been.
///
/// # Errors
/// A queue begins behind its bound.
pub fn check_not_expired(name: &str, bounds: &Bounds, queues: &Queues) -> Result<()> {
    for (id, offset) in bounds {
        let (first, _) = queues.get(id).copied().unwrap_or_default();
        if *offset < first {
            return Err(Failure::corrupt(format!(
                "{name}: queue {id}: offset {offset} has expired, the queue begins at {first}; \
                 on_damage=\"warn\" (failOnDataLoss=false) starts there"
            )));
        }
    }
    Ok(())
}

/// The one member of a JSON object; it must be one of `allowed`.
fn only<'a>(name: &str, what: &str, value: &'a Value, allowed: &[&str]) -> Result<&'a Value> {
    let wanted: Vec<String> = allowed.iter().map(|word| quoted(word)).collect();
    let refuse =
        |got: String| Failure::argument(format!("{name}: expected one {what}, {}, got {got}", wanted.join(" or ")));
    let Value::Object(object) = value else { return Err(refuse(value.to_string())) };
    let keys: Vec<String> = object.keys().map(|key| quoted(key)).collect();
    match (object.len(), allowed.iter().find_map(|word| object.get(*word))) {
        (1, Some(member @ Value::Object(_))) => Ok(member),
        (1, Some(member)) => {
            Err(Failure::argument(format!("{name}: expected an object below the {what}, got {member}")))
        }
        _ => Err(refuse(format!("[{}]", keys.join(", ")))),
    }
}

fn queue_id(name: &str, key: &str) -> Result<i32> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| key.parse().ok())
        .flatten()
        .ok_or_else(|| Failure::argument(format!("{name}: expected a queue id as \"0\", got {}", quoted(key))))
}

fn offset(name: &str, key: &str, value: &Value) -> Result<i64> {
    value.as_i64().filter(|offset| *offset >= EARLIEST).ok_or_else(|| {
        Failure::argument(format!("{name}: queue {key}: expected an offset, -1 (latest) or -2 (earliest), got {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_by_queue_become_bounds_and_bounds_become_the_text_again() {
        let text = r#"{"orders": {"*": {"0": 5, "1": -1, "2": -2}}}"#;
        let offsets = Offsets::parse("startingOffsets", text, Some("orders"), None).expect("parses");
        let queues = Queues::from([(0, (0, 9)), (1, (0, 7)), (2, (3, 4))]);
        let bounds = offsets.bounds("startingOffsets", &queues, EARLIEST).expect("known queues");
        assert_eq!(bounds, Bounds::from([(0, 5), (1, 7)]));
        let again =
            Offsets::parse("startingOffsets", &told("orders", &bounds), Some("orders"), Some("b")).expect("parses");
        assert_eq!(again, Offsets::ByQueue(bounds));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("soon", "expected earliest, latest or JSON as {\"topic\": {\"broker\": {\"0\": 23}}}, got 'soon'"),
            (r#"{"other": {}}"#, "expected one topic, 'orders', got ['other']"),
            (r#"{"orders": {"b": {}}}"#, "expected one broker, '*', got ['b']"),
            (r#"{"orders": {"*": {"0": -3}}}"#, "queue 0: expected an offset, -1 (latest) or -2 (earliest), got -3"),
            (r#"{"orders": {"*": {"x": 3}}}"#, "expected a queue id as \"0\", got 'x'"),
        ];
        for (text, said) in cases {
            let error = Offsets::parse("endingOffsets", text, Some("orders"), None).expect_err(text).to_string();
            assert_eq!(error, format!("ArgumentError: endingOffsets: {said}"));
        }
    }
}
