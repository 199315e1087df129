//! The offsets in a checkpoint, as JSON. Spark compares offsets as strings, so each position must have exactly one
//! form, in Python and in the JVM: the form of Python's `json.dumps`.
use crate::error::{Error, Result};
use crate::request::offsets::{FORM, checkpoint_json, foreign};
use crate::request::text::{json_quoted, quote};
use crate::topic::offsets::{StoreTimes, by_topic, member_name, of_member_name};
use crate::topic::topics::Topics;
use rmqfast_client::puller::Queue;
use serde_json::Value;
use std::collections::BTreeMap;

/// The next offset of each queue.
pub type StreamOffsets = BTreeMap<Queue, i64>;

/// The position of a stream of topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPosition {
    /// The next offset of each queue.
    pub offsets: StreamOffsets,
    /// Store time of the message before the next offset, by queue.
    pub stored: StoreTimes,
}

impl TopicPosition {
    /// Parses a position. It must have offsets, unless topics are selected by a pattern, which may have matched no
    /// topic.
    ///
    /// # Errors
    /// See [`topic_offsets`]. Also a string without offsets.
    pub fn of_text(topics: &Topics, text: &str) -> Result<Self> {
        let position = Self::of_task(topics, text)?;
        // without offsets every queue would be read again from its beginning; only a pattern can have matched no topic
        if position.offsets.is_empty() && topics.names().is_some() {
            let text = format!("checkpoint: expected offsets of {topics} as {FORM}, got none: {}", quote(text));
            return Err(foreign(Error::argument(text)));
        }
        Ok(position)
    }

    /// Parses a position of one task, which may have no queues.
    ///
    /// # Errors
    /// See [`topic_offsets`].
    pub fn of_task(topics: &Topics, text: &str) -> Result<Self> {
        let value = checkpoint_json(text, FORM)?;
        let offsets = offsets_of(topics, &value)?;
        let mut stored = times_of(&value);
        // a user may have removed queues from a copied offset
        stored.retain(|queue, _| offsets.contains_key(queue));
        Ok(Self { offsets, stored })
    }

    /// Sets the next offset of a queue; `stored` is the store time of the message before this offset, if known.
    pub fn place(&mut self, queue: &Queue, offset: i64, stored: Option<i64>) {
        self.offsets.insert(queue.clone(), offset);
        self.stored.remove(queue);
        self.stored.extend(stored.map(|time| (queue.clone(), time)));
    }

    /// Adds the queues of another position. A queue that is in both positions gets the values of `other`.
    pub fn extend(&mut self, other: Self) {
        self.offsets.extend(other.offsets);
        self.stored.extend(other.stored);
    }

    /// Formats the position as JSON, sorted by topic, broker and queue id.
    pub fn to_text(&self) -> String {
        let offsets = by_broker(&self.offsets);
        let times = by_broker(&self.stored);
        let topic = |(topic, brokers): (&&str, &ByBroker<'_>)| {
            let offsets = brokers.iter().map(|(broker, queues)| {
                let queues: Vec<String> = queues.iter().map(|(id, offset)| format!("\"{id}\": {offset}")).collect();
                format!("{}: {{{}}}", json_quoted(broker), queues.join(", "))
            });
            let times = times.get(topic).into_iter().flatten();
            let times = times.map(|(broker, times)| member_name(broker, times.iter().copied()));
            let members: Vec<String> =
                offsets.chain(times.map(|name| format!("{}: {{}}", json_quoted(&name)))).collect();
            format!("{}: {{{}}}", json_quoted(topic), members.join(", "))
        };
        format!("{{{}}}", offsets.iter().map(topic).collect::<Vec<_>>().join(", "))
    }
}

/// A number for each queue id, by broker.
type ByBroker<'a> = BTreeMap<&'a str, Vec<(i32, i64)>>;

fn by_broker(numbers: &BTreeMap<Queue, i64>) -> BTreeMap<&str, ByBroker<'_>> {
    let mut by_topic: BTreeMap<&str, ByBroker<'_>> = BTreeMap::new();
    for (Queue { topic, broker_name, queue_id }, number) in numbers {
        by_topic.entry(topic).or_default().entry(broker_name).or_default().push((*queue_id, *number));
    }
    by_topic
}

/// Formats offsets without store times.
pub fn topic_text(offsets: &StreamOffsets) -> String {
    TopicPosition { offsets: offsets.clone(), stored: StoreTimes::new() }.to_text()
}

/// Parses the next offset of each queue, without store times.
///
/// # Errors
/// The offsets are of a topic that is not read, or of another source.
pub fn topic_offsets(topics: &Topics, text: &str) -> Result<StreamOffsets> {
    offsets_of(topics, &checkpoint_json(text, FORM)?)
}

fn offsets_of(topics: &Topics, value: &Value) -> Result<StreamOffsets> {
    // same form as `startingOffsets`, so that users may copy offsets from a checkpoint into that option
    let by_topic = by_topic("checkpoint", value, topics).map_err(foreign)?;
    let mut offsets = StreamOffsets::new();
    for (topic, by_broker) in by_topic {
        for (broker, by_queue) in by_broker {
            for (id, offset) in by_queue {
                let queue_id = i32::try_from(id).map_err(|_| {
                    foreign(Error::argument(format!("checkpoint: expected a queue id as \"0\", got '{id}'")))
                })?;
                // -1 and -2 stand for the ends in options only
                if offset < 0 {
                    let place = format!("checkpoint: topic {topic}, broker {broker}, queue {id}");
                    return Err(foreign(Error::argument(format!("{place}: expected an offset, got {offset}"))));
                }
                let broker_name = broker.as_str().into();
                offsets.insert(Queue { topic: topic.clone(), broker_name, queue_id }, offset);
            }
        }
    }
    Ok(offsets)
}

fn times_of(value: &Value) -> StoreTimes {
    let mut stored = StoreTimes::new();
    for (topic, brokers) in value.as_object().into_iter().flatten() {
        let members = brokers.as_object().into_iter().flatten();
        for (member, _) in members.filter(|(_, queues)| queues.as_object().is_some_and(serde_json::Map::is_empty)) {
            let Some((broker, times)) = of_member_name(member) else { continue };
            let queue = |queue_id| Queue { topic: topic.clone(), broker_name: broker.into(), queue_id };
            stored.extend(times.into_iter().map(|(queue_id, time)| (queue(queue_id), time)));
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn orders() -> Topics {
        Topics::of_names(["orders".to_owned()]).expect("a name")
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
        let all = Topics::of_names(["orders", "bills", "a"].map(str::to_owned)).expect("names");
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

    #[test]
    fn times_of_the_last_messages_stand_beside_the_offsets() {
        let position = TopicPosition {
            offsets: offsets(&[("orders", "b", 0, 20), ("orders", "b", 1, 7), ("orders", "a", 0, 3)]),
            stored: offsets(&[("orders", "b", 0, 1_700_000_000_000), ("orders", "b", 1, 1_700_000_000_001)]),
        };
        let text = position.to_text();
        let expected =
            r#"{"orders": {"a": {"0": 3}, "b": {"0": 20, "1": 7}, "b stored 0:1700000000000 1:1700000000001": {}}}"#;
        assert_eq!(text, expected);
        assert_eq!(TopicPosition::of_text(&orders(), &text).expect("a position"), position);
        assert_eq!(topic_offsets(&orders(), &text).expect("offsets"), position.offsets);
        // a broker whose name looks like a member with store times, but which has offsets
        let odd = r#"{"orders": {"b stored 0:1": {"0": 20}}}"#;
        let odd = TopicPosition::of_text(&orders(), odd).expect("a position");
        assert_eq!((odd.offsets, odd.stored), (offsets(&[("orders", "b stored 0:1", 0, 20)]), StoreTimes::new()));
        // store times of queues without an offset are ignored
        let alone = r#"{"orders": {"b": {"0": 20}, "b stored 1:5": {}, "c stored 0:5": {}}}"#;
        assert_eq!(TopicPosition::of_text(&orders(), alone).expect("a position").stored, StoreTimes::new());
    }

    #[test]
    fn a_position_without_an_offset_is_refused_unless_a_pattern_may_match_nothing() {
        for text in ["{}", r#"{"orders": {}}"#, r#"{"orders": {"b": {}}}"#, r#"{"orders": {"b stored 0:1": {}}}"#] {
            let error = TopicPosition::of_text(&orders(), text).expect_err(text).to_string();
            let expected =
                "checkpoint: expected offsets of topic orders as {\"topic\": {\"broker\": {\"0\": 23}}}, got none: ";
            let end = "; give this stream a checkpointLocation of its own";
            assert_eq!(error, format!("{expected}{}{end}", quote(text)));
        }
        let pairs = [("nameServer", "a:1"), ("subscribePattern", "orders.*")];
        let pairs: Vec<_> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let options = crate::Options::of(crate::Kind::TopicStream, &pairs).expect("options");
        let pattern = Topics::of(&options).expect("a pattern");
        assert_eq!(TopicPosition::of_text(&pattern, "{}").expect("a position"), TopicPosition::default());
    }

    proptest! {
        #[test]
        fn each_offset_has_one_text(
            queues in proptest::collection::btree_map(("[ab]", "[ab]", 0..12), 0i64.., 0..9)
        ) {
            let all = Topics::of_names(["a", "b"].map(str::to_owned)).expect("names");
            let queues: Vec<_> = queues.iter().map(|((t, b, id), offset)| (t.as_str(), b.as_str(), *id, *offset)).collect();
            let some = offsets(&queues);
            prop_assert_eq!(topic_offsets(&all, &topic_text(&some)).expect("offsets"), some);
        }
    }

    #[test]
    fn a_text_in_another_order_is_the_same_offset() {
        let text = r#"{ "orders" : {"b":{"10":3,"02":7,"2":7},"a":{}} }"#;
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
            (r#"{"orders": {"b": {"0": -1, "00": 5}}}"#, "queue 0: expected one offset, got -1 and 5".into()),
            (r#"{"orders": {"b": {"0": -1}}}"#, "topic orders, broker b, queue 0: expected an offset, got -1".into()),
        ] {
            let error = topic_offsets(&orders(), text).expect_err(text).to_string();
            assert!(error.starts_with("checkpoint: "), "{error}");
            assert!(error.ends_with(&format!("{got}; give this stream a checkpointLocation of its own")), "{error}");
        }
    }
}
