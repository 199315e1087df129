//! Offsets as a checkpoint has them. Spark compares their texts, so that each offset has one text: that of Python's
//! `json.dumps`, whichever engine writes it.
use crate::admission::StreamOffsets;
use crate::error::{Error, Result};
use crate::offsets::FORM;
use crate::text::{json_quoted, quoted, shown};
use crate::topic_offsets::by_topic;
use crate::topics::Topics;
use rmqfast_client::puller::Queue;
use serde_json::Value;
use std::fmt::Write;

/// What offsets of a store look like.
const POSITION: &str = r#"{"log": 123}"#;
const NEXT_STEP: &str = "give this stream a checkpointLocation of its own";

/// The text of offsets: topics and brokers in their order, and queues by number.
pub fn topic_text(offsets: &StreamOffsets) -> String {
    let mut text = String::from("{");
    let mut last: Option<(&str, &str)> = None;
    for (Queue { topic, broker_name, queue_id }, offset) in offsets {
        let begin = match last {
            Some((topic_before, broker)) if topic_before == topic && *broker == **broker_name => ", ".to_owned(),
            Some((topic_before, _)) if topic_before == topic => format!("}}, {}: {{", json_quoted(broker_name)),
            before => {
                let end = if before.is_some() { "}}, " } else { "" };
                format!("{end}{}: {{{}: {{", json_quoted(topic), json_quoted(broker_name))
            }
        };
        let _ = write!(text, "{begin}\"{queue_id}\": {offset}");
        last = Some((topic, broker_name));
    }
    text.push_str(if last.is_some() { "}}}" } else { "}" });
    text
}

/// The offsets that a text says.
///
/// # Errors
/// They are of a topic that is not read, or of another source.
pub fn topic_offsets(topics: &Topics, text: &str) -> Result<StreamOffsets> {
    // the form of `startingOffsets`, so that a user may copy it from there
    let by_topic = by_topic("checkpoint", &json(text, FORM)?, topics).map_err(foreign)?;
    let mut offsets = StreamOffsets::new();
    for (topic, by_broker) in by_topic {
        for (broker, by_queue) in by_broker {
            for (id, offset) in by_queue {
                let queue_id = i32::try_from(id).map_err(|_| {
                    foreign(Error::argument(format!("checkpoint: expected a queue id as \"0\", got '{id}'")))
                })?;
                let broker_name = broker.as_str().into();
                offsets.insert(Queue { topic: topic.clone(), broker_name, queue_id }, offset);
            }
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
    use proptest::prelude::*;

    fn orders() -> Topics {
        Topics::named(["orders".to_owned()]).expect("a name")
    }

    fn offsets(queues: &[(&str, &str, i32, i64)]) -> StreamOffsets {
        let queue =
            |topic: &str, broker: &str, queue_id| Queue { topic: topic.into(), broker_name: broker.into(), queue_id };
        queues.iter().map(|(topic, broker, id, offset)| (queue(topic, broker, *id), *offset)).collect()
    }

    #[test]
    fn offsets_have_the_text_of_python() {
        let of = |broker, id, offset| ("orders", broker, id, offset);
        let some = offsets(&[of("broker-b", 0, 1), of("broker-a", 10, 3), of("broker-a", 2, 7)]);
        let text = topic_text(&some);
        assert_eq!(text, r#"{"orders": {"broker-a": {"2": 7, "10": 3}, "broker-b": {"0": 1}}}"#);
        assert_eq!(topic_offsets(&orders(), &text).expect("offsets"), some);
        let odd = offsets(&[of("a\"\\\u{7f}\n\u{1}é😀", 0, 5)]);
        let text = topic_text(&odd);
        assert_eq!(text, r#"{"orders": {"a\"\\\u007f\n\u0001\u00e9\ud83d\ude00": {"0": 5}}}"#);
        assert_eq!(topic_offsets(&orders(), &text).expect("offsets"), odd);
    }

    #[test]
    fn offsets_of_several_topics_have_one_text_and_those_of_one_go_on_with_more() {
        let all = Topics::named(["orders", "bills", "a"].map(str::to_owned)).expect("names");
        let some = offsets(&[("orders", "b", 0, 1), ("bills", "b", 0, 2), ("bills", "a", 3, 4), ("bills", "a", 2, 5)]);
        let text = topic_text(&some);
        assert_eq!(text, r#"{"bills": {"a": {"2": 5, "3": 4}, "b": {"0": 2}}, "orders": {"b": {"0": 1}}}"#);
        assert_eq!(topic_offsets(&all, &text).expect("offsets"), some);
        let one = offsets(&[("orders", "b", 0, 1)]);
        assert_eq!(topic_offsets(&all, &topic_text(&one)).expect("offsets"), one);
        for none in ["{}", r#"{"orders": {}}"#] {
            assert_eq!(topic_offsets(&all, none).expect("offsets"), StreamOffsets::new());
        }
        assert_eq!(topic_text(&StreamOffsets::new()), "{}");
    }

    proptest! {
        #[test]
        fn each_offset_has_one_text(
            queues in proptest::collection::btree_map(("[ab]", "[ab]", 0..12), 0i64.., 0..9)
        ) {
            let all = Topics::named(["a", "b"].map(str::to_owned)).expect("names");
            let queues: Vec<_> = queues.iter().map(|((t, b, id), offset)| (t.as_str(), b.as_str(), *id, *offset)).collect();
            let some = offsets(&queues);
            prop_assert_eq!(topic_offsets(&all, &topic_text(&some)).expect("offsets"), some);
        }
    }

    #[test]
    fn a_text_in_another_order_is_the_same_offset() {
        let text = r#"{ "orders" : {"b":{"10":3,"02":1,"2":7},"a":{}} }"#;
        let some = offsets(&[("orders", "b", 2, 7), ("orders", "b", 10, 3)]);
        assert_eq!(topic_offsets(&orders(), text).expect("offsets"), some);
    }

    #[test]
    fn the_offsets_of_others_are_refused() {
        let expected = "expected offsets of topic orders as {\"topic\": {\"broker\": {\"0\": 23}}}";
        for (text, got) in [
            (r#"{"bills": {}}"#, format!("checkpoint: 'bills' is not read; {expected}")),
            (r#"{"orders": {}, "bills": {}}"#, format!("checkpoint: 'bills' is not read; {expected}")),
            (r#"{"log": 7}"#, format!("checkpoint: 'log' is not read; {expected}")),
            ("[]", "got []".into()),
            ("latest", "got 'latest'".into()),
            (r#"{"orders": {"b": 7}}"#, "expected brokers with offsets by queue below the topic, got {'b': 7}".into()),
            (r#"{"orders": {"b": {"x": 1}}}"#, "expected a queue id as \"0\", got 'x'".into()),
            (r#"{"orders": {"b": {"4294967296": 1}}}"#, "expected a queue id as \"0\", got '4294967296'".into()),
            (
                r#"{"orders": {"b": {"0": true}}}"#,
                "queue 0: expected an offset, -1 (latest) or -2 (earliest), got True".into(),
            ),
            (r#"{"orders": {"b": {"0": 1.5}}}"#, "got 1.5".into()),
        ] {
            let error = topic_offsets(&orders(), text).expect_err(text).to_string();
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
