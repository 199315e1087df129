//! Checks the types of the members of configuration files against RocketMQ's classes.
//!
//! A file without its table, or with a table of another type, counts as unreadable. If it were read as an empty
//! table, the next save would overwrite it. Members that are not listed here may have any type. Members of objects
//! may be missing or null.
//!
//! Source: `TopicConfigSerializeWrapper`, `SubscriptionGroupManager`, `ConsumerOffsetManager`,
//! `DelayOffsetSerializeWrapper`, `ConsumerFilterManager`.
use serde_json::{Map, Value};

enum Shape {
    Int,
    Long,
    Bool,
    Text,
    List(&'static Self),
    ByName(&'static Self),
    /// A map whose keys are queue ids or delay levels.
    ByNumber(&'static Self),
    Object(&'static [(&'static str, Self)]),
}
use Shape::{Bool, ByName, ByNumber, Int, List, Long, Object, Text};

/// For each file: its name, the member that must exist, and its type.
const FILES: [(&str, &str, Shape); 7] = [
    ("topics.json", "topicConfigTable", Object(&[("dataVersion", VERSION), ("topicConfigTable", ByName(&TOPIC))])),
    (
        "subscriptionGroup.json",
        "subscriptionGroupTable",
        Object(&[("dataVersion", VERSION), ("subscriptionGroupTable", ByName(&GROUP))]),
    ),
    ("consumerOffset.json", "offsetTable", Object(&[("offsetTable", ByName(&ByNumber(&Long)))])),
    ("delayOffset.json", "offsetTable", Object(&[("offsetTable", ByNumber(&Long))])),
    ("consumerFilter.json", "filterDataByTopic", Object(&[("filterDataByTopic", ByName(&FILTERS))])),
    // These are files of this project. RocketMQ ignores them.
    ("removedTopics.json", "removedTopics", Object(&[("removedTopics", ByName(&REMOVAL))])),
    ("lostMessages.json", "lostMessages", Object(&[("lostMessages", ByName(&ByNumber(&List(&LOSS))))])),
];
/// For each table, the member in which each entry repeats its own key.
const OWN_NAMES: [(&str, &str); 2] = [("topicConfigTable", "topicName"), ("subscriptionGroupTable", "groupName")];
const LOSS: Shape = Object(&[("at", Long), ("begin", Long), ("end", Long)]);
const REMOVAL: Shape = Object(&[("at", Long), ("before", Long)]);
const VERSION: Shape = Object(&[("counter", Long), ("timestamp", Long)]);
const TOPIC: Shape = Object(&[
    ("order", Bool),
    ("perm", Int),
    ("readQueueNums", Int),
    ("topicFilterType", Text),
    ("topicName", Text),
    ("topicSysFlag", Int),
    ("writeQueueNums", Int),
]);
const GROUP: Shape = Object(&[
    ("brokerId", Long),
    ("consumeBroadcastEnable", Bool),
    ("consumeEnable", Bool),
    ("consumeFromMinEnable", Bool),
    ("groupName", Text),
    ("notifyConsumerIdsChangedEnable", Bool),
    ("retryMaxTimes", Int),
    ("retryQueueNums", Int),
    ("whichBrokerWhenConsumeSlowly", Long),
]);
const FILTERS: Shape = Object(&[("groupFilterData", ByName(&FILTER)), ("topic", Text)]);
const FILTER: Shape = Object(&[
    ("bloomFilterData", Object(&[("bitNum", Int), ("bitPos", List(&Int))])),
    ("bornTime", Long),
    ("clientVersion", Long),
    ("consumerGroup", Text),
    ("deadTime", Long),
    ("expression", Text),
    ("expressionType", Text),
    ("topic", Text),
]);

pub const NAMES: [&str; 7] = [FILES[0].0, FILES[1].0, FILES[2].0, FILES[3].0, FILES[4].0, FILES[5].0, FILES[6].0];

/// Checks the content of the file `name`. A file that is not in `FILES` passes with any content. The error names the
/// member, the expected type and the found value.
pub fn check(name: &str, value: &Value) -> Result<(), String> {
    let Some((_, table, shape)) = FILES.iter().find(|(file, ..)| *file == name) else { return Ok(()) };
    if value.as_object().is_some_and(|members| !members.contains_key(*table)) {
        return Err(format!("expected the member {table}, got none"));
    }
    if value.get(table).is_some_and(Value::is_null) {
        return Err(format!("{table}: expected a map, got null"));
    }
    // The path of the root is empty, so its message begins with the separator.
    shape.check(value).map_err(|reason| reason.trim_start_matches(['.', ':', ' ']).to_owned())?;
    check_names(table, value)
}

/// Checks that each entry contains its own key. Otherwise a bit flip in the key would move the entry to another
/// topic.
fn check_names(table: &str, value: &Value) -> Result<(), String> {
    let Some((_, own)) = OWN_NAMES.iter().find(|(of, _)| *of == table) else { return Ok(()) };
    for (key, entry) in value.get(table).and_then(Value::as_object).into_iter().flatten() {
        if let Some(name) = entry.get(own).and_then(Value::as_str).filter(|name| name != key) {
            return Err(format!("{table}.{key}.{own}: expected {key:?}, got {name:?}"));
        }
    }
    Ok(())
}

impl Shape {
    fn check(&self, value: &Value) -> Result<(), String> {
        let is_of_it = match self {
            Int => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            Long => value.is_i64(),
            Bool => value.is_boolean(),
            Text => value.is_string(),
            List(item) => match value.as_array() {
                Some(items) => return items.iter().try_for_each(|value| item.check(value)),
                None => false,
            },
            ByName(_) | ByNumber(_) | Object(_) => match value.as_object() {
                Some(map) => return self.check_members(map),
                None => false,
            },
        };
        if is_of_it { Ok(()) } else { Err(format!(": expected {}, got {}", self.words(), describe(value))) }
    }

    fn check_members(&self, map: &Map<String, Value>) -> Result<(), String> {
        for (key, value) in map {
            let shape = match self {
                // Queue ids and delay levels are ints in Java.
                ByNumber(_) if key.parse::<i32>().is_err() => return Err(format!(".{key}: expected a number as key")),
                ByName(shape) | ByNumber(shape) => shape,
                // Unknown members may have any type, and null stands for a missing member.
                Object(fields) => match fields.iter().find(|(name, _)| name == key) {
                    Some((_, shape)) if !value.is_null() => shape,
                    _ => continue,
                },
                _ => continue,
            };
            shape.check(value).map_err(|reason| format!(".{key}{reason}"))?;
        }
        Ok(())
    }

    fn words(&self) -> &'static str {
        match self {
            Int => "an integer of 32 bits",
            Long => "an integer of 64 bits",
            Bool => "true or false",
            Text => "a text",
            List(_) => "a list",
            ByName(_) | ByNumber(_) | Object(_) => "a map",
        }
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::config::parse;

    fn checked(name: &str, text: &str) -> Result<(), String> {
        check(name, &parse(text.as_bytes()).expect(text))
    }

    #[test]
    fn what_a_broker_would_take_for_an_empty_table_is_refused() {
        for text in ["{}", "null", "[]", "7", r#"{"offsetTabld":{"t@g":{0:5}}}"#, r#"{"offsetTable":null}"#] {
            assert!(checked("consumerOffset.json", text).is_err(), "{text}");
        }
        assert_eq!(checked("consumerOffset.json", r#"{"offsetTable":{},"dataVersion":5}"#), Ok(()));
        assert_eq!(checked("consumerOrderInfo.json", "7"), Ok(()));
    }

    #[test]
    fn a_member_of_another_type_is_named() {
        let error = |name: &str, text: &str| checked(name, text).expect_err(text);
        for (value, words) in [
            ("5.5", "got 5.5"),
            ("\"5\"", "got \"5\""),
            ("null", "got null"),
            ("99999999999999999999", "64 bits, got 1"),
        ] {
            let reason = error("consumerOffset.json", &format!(r#"{{"offsetTable":{{"t@g":{{0:5,7:{value}}}}}}}"#));
            assert!(
                reason.starts_with("offsetTable.t@g.7: expected an integer of 64 bits") && reason.contains(words),
                "{reason}"
            );
        }
        let reason = error("delayOffset.json", r#"{"offsetTable":{"a":1}}"#);
        assert_eq!(reason, "offsetTable.a: expected a number as key");
        let reason = error("topics.json", r#"{"topicConfigTable":{"t":{"perm":4294967296}}}"#);
        assert!(reason.contains("topicConfigTable.t.perm: expected an integer of 32 bits"), "{reason}");
    }

    #[test]
    fn an_entry_stands_at_its_own_name() {
        for (file, table, own) in [
            ("topics.json", "topicConfigTable", "topicName"),
            ("subscriptionGroup.json", "subscriptionGroupTable", "groupName"),
        ] {
            let text = |name: &str| format!(r#"{{"{table}":{{"orders":{{"{own}":{name}}}}}}}"#);
            let reason = checked(file, &text("\"orderr\"")).expect_err("another name");
            assert_eq!(reason, format!(r#"{table}.orders.{own}: expected "orders", got "orderr""#));
            for name in ["null", "\"orders\""] {
                assert_eq!(checked(file, &text(name)), Ok(()));
            }
        }
    }

    #[test]
    fn fields_may_be_missing_null_or_unknown() {
        let topic = r#"{"topicConfigTable":{"t":{"perm":null,"attributes":{"a":[1]}}}}"#;
        assert_eq!(checked("topics.json", topic), Ok(()));
        let filter = r#"{"filterDataByTopic":{"t":{"groupFilterData":{"g":{"bloomFilterData":{"bitPos":[1,2]}}}}}}"#;
        assert_eq!(checked("consumerFilter.json", filter), Ok(()));
    }
}
