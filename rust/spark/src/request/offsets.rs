//! Offsets of a store's queues: earliest, latest, or JSON by topic, broker and queue.
use crate::error::{Error, Result};
use crate::request::options::Options;
use crate::request::text::{is_digits, python_text, quote, quoted_list, trim};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Stands for the first offset of a queue.
pub const EARLIEST: i64 = -2;
/// Stands for the offset after a queue's last message.
pub const LATEST: i64 = -1;
/// Example of offsets, shown in errors.
pub const FORM: &str = r#"{"topic": {"broker": {"0": 23}}}"#;

/// Queue offsets, by queue id.
pub type Bounds = BTreeMap<i32, i64>;
/// The first offset of each queue and the offset after its last message, by queue id.
pub type Queues = BTreeMap<i32, (i64, i64)>;
/// Offsets by queue id, as the user wrote them. Ids have 64 bits, since the user may write any number.
pub type ByQueue = Vec<(i64, i64)>;

/// The value of an offset option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offsets<Named> {
    Earliest,
    Latest,
    /// Offsets by queue; they may be [`LATEST`] or [`EARLIEST`].
    Named(Named),
}

impl<Named> Offsets<Named> {
    /// Parses `earliest` and `latest` in any case, and leaves any other text to `other`.
    pub(crate) fn word_or(text: &str, other: impl FnOnce() -> Result<Named>) -> Result<Self> {
        match trim(text).to_lowercase().as_str() {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            _ => other().map(Self::Named),
        }
    }
}

/// The start and end offsets of a read of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOffsets {
    start: Offsets<ByQueue>,
    end: Offsets<ByQueue>,
    /// Whether a start offset that has expired is an error.
    is_strict: bool,
}

impl StoreOffsets {
    /// Parses the options `startingOffsets` and `endingOffsets`.
    ///
    /// # Errors
    /// A text that is not offsets, another topic or broker, an offset below -2, or offsets without the option `topic`.
    pub fn of(options: &Options) -> Result<Self> {
        let parse = |name| {
            let text = options.text(name).unwrap_or_default();
            Offsets::word_or(text, || by_queue_of_store(name, text, options.text("topic"), options.text("brokerName")))
        };
        let (start, end) = (parse("startingOffsets")?, parse("endingOffsets")?);
        let both = Self { start, end, is_strict: options.flag("failOnDataLoss") };
        // queue ids mean nothing without a topic
        if !both.are_whole() && options.text("topic").is_none() {
            return Err(Error::argument("startingOffsets and endingOffsets need the option topic"));
        }
        Ok(both)
    }

    /// Whether the offsets are `earliest` and `latest`, so that the bounds of queues need not be looked up.
    pub fn are_whole(&self) -> bool {
        (&self.start, &self.end) == (&Offsets::Earliest, &Offsets::Latest)
    }

    /// Returns the start and end offsets by queue id, without looking at the queues. All offsets must be numbers, as
    /// they are after [`resolve`](crate::read::resolve).
    pub fn by_number(&self) -> (Bounds, Bounds) {
        let numbers = |offsets: &Offsets<ByQueue>| match offsets {
            Offsets::Named(named) => {
                named.iter().filter_map(|(id, offset)| Some((i32::try_from(*id).ok()?, *offset))).collect()
            }
            _ => Bounds::new(),
        };
        (numbers(&self.start), numbers(&self.end))
    }

    /// Resolves the offsets with the current bounds of the queues. A queue without a start offset is read from its
    /// first message, and a queue without an end offset to its last message.
    ///
    /// # Errors
    /// The topic does not have a queue, a start is behind its end, or a start offset has expired or lies behind the
    /// last message.
    pub fn bounds(&self, queues: &Queues) -> Result<(Bounds, Bounds)> {
        let first = bounds("startingOffsets", &self.start, queues, EARLIEST)?;
        // an expired end reads nothing, but an expired start would skip messages silently
        if self.is_strict {
            check_not_expired("startingOffsets", &first, queues)?;
            check_there("startingOffsets", &first, queues)?;
        }
        let last = bounds("endingOffsets", &self.end, queues, LATEST)?;
        check_order(&self.start, &self.end)?;
        Ok((first, last))
    }
}

/// Refuses a start offset that retention has removed, so that no messages are skipped silently.
///
/// # Errors
/// A queue begins behind its start offset.
pub fn check_not_expired(name: &str, bounds: &Bounds, queues: &Queues) -> Result<()> {
    for (id, offset) in bounds {
        // a queue that does not exist has no expired offsets
        let (first, _) = queues.get(id).copied().unwrap_or_default();
        if *offset < first {
            return Err(Error::Corrupt(format!(
                "{name}: queue {id}: offset {offset} has expired, the queue begins at {first}; \
                 on_damage=\"warn\" (failOnDataLoss=false) starts there"
            )));
        }
    }
    Ok(())
}

/// Refuses a start offset that the queue has not reached yet, since the read would silently return nothing.
fn check_there(name: &str, bounds: &Bounds, queues: &Queues) -> Result<()> {
    for (id, offset) in bounds {
        let (_, last) = queues.get(id).copied().unwrap_or_default();
        if *offset > last {
            return Err(Error::Corrupt(format!(
                "{name}: queue {id}: offset {offset} is not there yet, the queue ends at {last}; \
                 on_damage=\"warn\" (failOnDataLoss=false) reads nothing of it"
            )));
        }
    }
    Ok(())
}

/// Refuses a start offset that is larger than the end offset of the same queue. -1 and -2 are not compared.
fn check_order(start: &Offsets<ByQueue>, end: &Offsets<ByQueue>) -> Result<()> {
    let (Offsets::Named(start), Offsets::Named(end)) = (start, end) else { return Ok(()) };
    for (id, start) in start {
        if let Some((_, end)) = end.iter().find(|(other, end)| other == id && (0..*start).contains(end)) {
            let text =
                format!("startingOffsets: queue {id}: expected {end} at most, which endingOffsets says, got {start}");
            return Err(Error::argument(text));
        }
    }
    Ok(())
}

/// Formats bounds as the JSON of an offset option.
pub fn bounds_text(topic: &str, bounds: &Bounds) -> String {
    let queues: Map<String, Value> = bounds.iter().map(|(id, offset)| (id.to_string(), json!(offset))).collect();
    // `*` because a store does not record its broker's name
    json!({ topic: { "*": queues } }).to_string()
}

/// Parses JSON; an error shows the expected form.
pub(crate) fn json_of(name: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|_| {
        Error::argument(format!("{name}: expected earliest, latest or JSON as {FORM}, got {}", quote(text)))
    })
}

/// Parses the offsets of one broker's queues.
pub(crate) fn by_queue(name: &str, queues: &Map<String, Value>) -> Result<ByQueue> {
    let mut by_queue = ByQueue::new();
    for (key, value) in queues {
        let (id, offset) = (queue_id(name, key)?, offset(name, key, value)?);
        // "1" and "01" are the same queue
        match by_queue.iter().find(|(other, _)| *other == id) {
            Some((_, same)) if *same != offset => {
                return Err(Error::argument(format!(
                    "{name}: queue {id}: expected one offset, got {same} and {offset}"
                )));
            }
            Some(_) => {}
            None => by_queue.push((id, offset)),
        }
    }
    Ok(by_queue)
}

fn by_queue_of_store(name: &str, text: &str, topic: Option<&str>, broker_name: Option<&str>) -> Result<ByQueue> {
    let Some(topic) = topic else {
        return Err(Error::argument(format!("{name}: offsets by queue need the option topic")));
    };
    let value = json_of(name, text)?;
    let by_broker = Value::Object(only(name, "topic", &value, &[topic])?.clone());
    let mut brokers = vec!["*", broker_name.unwrap_or("*")];
    brokers.sort_unstable();
    // without a broker name both are `*`
    brokers.dedup();
    by_queue(name, only(name, "broker", &by_broker, &brokers)?)
}

fn bounds(name: &str, offsets: &Offsets<ByQueue>, queues: &Queues, open: i64) -> Result<Bounds> {
    let every = |offset| queues.keys().map(|id| (i64::from(*id), offset)).collect();
    let offsets = match offsets {
        Offsets::Earliest => every(EARLIEST),
        Offsets::Latest => every(LATEST),
        Offsets::Named(offsets) => offsets.clone(),
    };
    let queue_of = |id: i64| i32::try_from(id).ok().and_then(|id| queues.get_key_value(&id));
    if let Some((unknown, _)) = offsets.iter().find(|(id, _)| queue_of(*id).is_none()) {
        let ids: Vec<String> = queues.keys().map(i32::to_string).collect();
        let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        return Err(Error::argument(format!("{name}: no queue {unknown}; the topic's queues are {ids}")));
    }
    // without a bound a scan reads on to the queue's end, including later messages
    let bounded = offsets.into_iter().filter(|(_, offset)| *offset != open);
    let resolved = bounded.filter_map(|(id, offset)| {
        queue_of(id).map(|(id, (first, behind_last))| match offset {
            EARLIEST => (*id, *first),
            LATEST => (*id, *behind_last),
            _ => (*id, offset),
        })
    });
    Ok(resolved.collect())
}

/// Returns the value of the only key of a JSON object. The key must be in `allowed`.
fn only<'a>(name: &str, what: &str, value: &'a Value, allowed: &[&str]) -> Result<&'a Map<String, Value>> {
    let names: Vec<String> = allowed.iter().map(|word| quote(word)).collect();
    let refuse =
        |got: String| Error::argument(format!("{name}: expected one {what}, {}, got {got}", names.join(" or ")));
    let Value::Object(object) = value else { return Err(refuse(python_text(value))) };
    match (object.len(), allowed.iter().find_map(|word| object.get(*word))) {
        (1, Some(Value::Object(member))) => Ok(member),
        (1, Some(member)) => {
            Err(Error::argument(format!("{name}: expected an object below the {what}, got {}", python_text(member))))
        }
        _ => Err(refuse(sorted_keys(object))),
    }
}

/// Formats the sorted keys of an object as a Python list.
pub(crate) fn sorted_keys(object: &Map<String, Value>) -> String {
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    quoted_list(keys)
}

fn queue_id(name: &str, key: &str) -> Result<i64> {
    let id = if is_digits(key) { key.parse().ok() } else { None };
    id.ok_or_else(|| Error::argument(format!("{name}: expected a queue id as \"0\", got {}", quote(key))))
}

fn offset(name: &str, key: &str, value: &Value) -> Result<i64> {
    // -1 and -2 mean the same in Spark's Kafka source
    value.as_i64().filter(|offset| *offset >= EARLIEST).ok_or_else(|| {
        let got = python_text(value);
        Error::argument(format!("{name}: queue {key}: expected an offset, -1 (latest) or -2 (earliest), got {got}"))
    })
}

const OWN_CHECKPOINT: &str = "give this stream a checkpointLocation of its own";

/// Parses the JSON of a checkpoint's offset; `form` is the expected form for errors.
pub fn checkpoint_json(text: &str, form: &str) -> Result<Value> {
    let value = serde_json::from_str(text);
    value.map_err(|_| foreign(Error::argument(format!("checkpoint: expected {form}, got {}", quote(text)))))
}

/// Adds advice to the error for a checkpoint that another stream wrote: to give this stream a checkpoint of its own.
pub fn foreign(error: Error) -> Error {
    Error::argument(format!("{error}; {OWN_CHECKPOINT}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::options::Kind;

    #[test]
    fn bounds_become_the_text_that_says_them() {
        let bounds = Bounds::from([(0, 5), (1, 7)]);
        let pairs = [("path", "/s"), ("topic", "orders"), ("startingOffsets", &bounds_text("orders", &bounds))];
        let pairs: Vec<_> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let offsets = StoreOffsets::of(&Options::of(Kind::StoreBatch, &pairs).expect("options")).expect("offsets");
        let queues = Queues::from([(0, (0, 9)), (1, (0, 9))]);
        assert_eq!(offsets.bounds(&queues).expect("known queues"), (bounds, Bounds::new()));
    }

    #[test]
    fn a_start_behind_the_last_message_and_one_behind_the_end_are_refused() {
        let found = |start: i64, end: i64, strict: &str| {
            let at = |offset: i64| format!(r#"{{"orders": {{"*": {{"0": {offset}}}}}}}"#);
            let (start, end) = (at(start), at(end));
            let pairs = [("path", "/s"), ("topic", "orders"), ("startingOffsets", &start), ("endingOffsets", &end)];
            let pairs = pairs.into_iter().chain([("failOnDataLoss", strict)]);
            let pairs: Vec<_> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
            let offsets = StoreOffsets::of(&Options::of(Kind::StoreBatch, &pairs).expect("options")).expect("offsets");
            offsets.bounds(&Queues::from([(0, (3, 9))])).map_err(|error| error.to_string())
        };
        assert!(found(9, -1, "true").is_ok() && found(3, 9, "true").is_ok() && found(5, 5, "true").is_ok());
        let error = found(1 << 62, -1, "true").expect_err("not there");
        assert!(error.starts_with(
            "startingOffsets: queue 0: offset 4611686018427387904 is not there yet, the queue ends at 9; "
        ));
        assert!(found(1 << 62, -1, "false").is_ok());
        let error = "startingOffsets: queue 0: expected 5 at most, which endingOffsets says, got 6";
        assert_eq!([found(6, 5, "true"), found(6, 5, "false")], [Err(error.to_owned()), Err(error.to_owned())]);
    }
}
