//! Offsets as a checkpoint has them. Spark compares their texts, so that each offset has one text: that of Python's
//! `json.dumps`, whichever engine writes it.
use crate::admission::StreamOffsets;
use crate::error::{Error, Result};
use crate::offsets::FORM;
use crate::text::{json_quoted, quoted, shown};
use crate::topic_offsets::by_broker;
use rmqfast_client::puller::Queue;
use serde_json::Value;
use std::fmt::Write;

/// What offsets of a store look like.
const POSITION: &str = r#"{"log": 123}"#;
const NEXT_STEP: &str = "give this stream a checkpointLocation of its own";

/// The text of a topic's offsets: brokers in their order, and queues by number.
pub fn topic_text(topic: &str, offsets: &StreamOffsets) -> String {
    let mut text = format!("{{{}: {{", json_quoted(topic));
    let mut last_broker: Option<&str> = None;
    for (Queue { broker_name, queue_id, .. }, offset) in offsets {
        let _ = match last_broker {
            Some(last) if *last == **broker_name => write!(text, ", \"{queue_id}\": {offset}"),
            last => {
                let end = if last.is_some() { "}, " } else { "" };
                write!(text, "{end}{}: {{\"{queue_id}\": {offset}", json_quoted(broker_name))
            }
        };
        last_broker = Some(broker_name);
    }
    text.push_str(if last_broker.is_some() { "}}}" } else { "}}" });
    text
}

/// The offsets that a text says.
///
/// # Errors
/// They are of another topic, or of another source.
pub fn topic_offsets(topic: &str, text: &str) -> Result<StreamOffsets> {
    // the form of `startingOffsets`, so that a user may copy it from there
    let by_broker = by_broker("checkpoint", &json(text, FORM)?, topic).map_err(foreign)?;
    let mut offsets = StreamOffsets::new();
    for (broker, by_queue) in by_broker {
        for (id, offset) in by_queue {
            let queue_id = i32::try_from(id).map_err(|_| {
                foreign(Error::argument(format!("checkpoint: expected a queue id as \"0\", got '{id}'")))
            })?;
            offsets.insert(Queue { topic: topic.to_owned(), broker_name: broker.as_str().into(), queue_id }, offset);
        }
    }
    Ok(offsets)
}

/// The text of a position in the log of a store.
pub fn store_text(position: u64) -> String {
    format!("{{\"log\": {position}}}")
}

/// The position that a text says.
///
/// # Errors
/// It is the offset of another source.
pub fn store_position(text: &str) -> Result<u64> {
    let value = json(text, POSITION)?;
    let only = value.as_object().filter(|members| members.len() == 1);
    let position = only.and_then(|members| members.get("log")).and_then(Value::as_u64);
    position.ok_or_else(|| foreign(Error::argument(format!("checkpoint: expected {POSITION}, got {}", shown(&value)))))
}

fn json(text: &str, form: &str) -> Result<Value> {
    let value = serde_json::from_str(text);
    value.map_err(|_| foreign(Error::argument(format!("checkpoint: expected {form}, got {}", quoted(text)))))
}

fn foreign(error: Error) -> Error {
    Error::argument(format!("{error}; {NEXT_STEP}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(queues: &[(&str, i32, i64)]) -> StreamOffsets {
        let queue = |broker: &str, queue_id| Queue { topic: "orders".into(), broker_name: broker.into(), queue_id };
        queues.iter().map(|(broker, id, offset)| (queue(broker, *id), *offset)).collect()
    }

    #[test]
    fn a_topics_offsets_have_the_text_of_python() {
        let some = offsets(&[("broker-b", 0, 1), ("broker-a", 10, 3), ("broker-a", 2, 7)]);
        let text = topic_text("orders", &some);
        assert_eq!(text, r#"{"orders": {"broker-a": {"2": 7, "10": 3}, "broker-b": {"0": 1}}}"#);
        assert_eq!(topic_offsets("orders", &text).expect("offsets"), some);
        let odd = offsets(&[("a\"\\\u{7f}\n\u{1}é😀", 0, 5)]);
        let text = topic_text("orders", &odd);
        assert_eq!(text, r#"{"orders": {"a\"\\\u007f\n\u0001\u00e9\ud83d\ude00": {"0": 5}}}"#);
        assert_eq!(topic_offsets("orders", &text).expect("offsets"), odd);
        assert_eq!(topic_text("orders", &StreamOffsets::new()), r#"{"orders": {}}"#);
    }

    #[test]
    fn a_text_in_another_order_is_the_same_offset() {
        let text = r#"{ "orders" : {"b":{"10":3,"02":1,"2":7},"a":{}} }"#;
        assert_eq!(topic_offsets("orders", text).expect("offsets"), offsets(&[("b", 2, 7), ("b", 10, 3)]));
    }

    #[test]
    fn the_offsets_of_others_are_refused() {
        for (text, got) in [
            (
                r#"{"bills": {}}"#,
                "expected one topic, 'orders', as {\"topic\": {\"broker\": {\"0\": 23}}}, got ['bills']",
            ),
            (r#"{"orders": {}, "bills": {}}"#, "got ['bills', 'orders']"),
            (r#"{"log": 7}"#, "got ['log']"),
            ("[]", "got []"),
            ("latest", "got 'latest'"),
            (r#"{"orders": {"b": 7}}"#, "expected brokers with offsets by queue below the topic, got {'b': 7}"),
            (r#"{"orders": {"b": {"x": 1}}}"#, "expected a queue id as \"0\", got 'x'"),
            (r#"{"orders": {"b": {"4294967296": 1}}}"#, "expected a queue id as \"0\", got '4294967296'"),
            (
                r#"{"orders": {"b": {"0": true}}}"#,
                "queue 0: expected an offset, -1 (latest) or -2 (earliest), got True",
            ),
            (r#"{"orders": {"b": {"0": 1.5}}}"#, "got 1.5"),
        ] {
            let error = topic_offsets("orders", text).expect_err(text).to_string();
            assert!(error.starts_with("checkpoint: "), "{error}");
            assert!(error.ends_with(&format!("{got}; give this stream a checkpointLocation of its own")), "{error}");
        }
    }
    #[test]
    fn a_position_has_the_text_of_python_and_those_of_others_are_refused() {
        assert_eq!(store_text(1 << 40), r#"{"log": 1099511627776}"#);
        assert_eq!(store_position(r#" {"log":1099511627776}"#).expect("a position"), 1 << 40);
        for (text, got) in [
            (r#"{"orders": {"b": {"0": 7}}}"#, "{'orders': {'b': {'0': 7}}}"),
            (r#"{"log": 7, "more": 8}"#, "{'log': 7, 'more': 8}"),
            (r#"{"log": true}"#, "{'log': True}"),
            (r#"{"log": -1}"#, "{'log': -1}"),
            (r#"{"log": 1.5}"#, "{'log': 1.5}"),
            ("[7]", "[7]"),
            ("latest", "'latest'"),
        ] {
            let error = store_position(text).expect_err(text).to_string();
            let expected = r#"checkpoint: expected {"log": 123}, got "#;
            assert_eq!(error, format!("{expected}{got}; give this stream a checkpointLocation of its own"));
        }
    }
}
