//! The topics of a read: topics by name, all topics that match a pattern, or single queues.
//!
//! Source: `ConsumerStrategy` of Spark's Kafka source, which has the same options.
use crate::error::{Error, Result};
use crate::request::options::Options;
use crate::request::text::{is_digits, python_text, quote};
use regex_lite::Regex;
use rmqfast_client::cluster::{TopicCluster, TopicRoute};
use rmqfast_client::names::check_topic;
use rmqfast_client::puller::Queue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Example of the option `assign`, shown in errors.
const FORM: &str = r#"{"topic": {"broker": [0, 1]}}"#;
/// Prefixes of the retry and dead-letter topics of groups. A pattern matches these topics only if the pattern contains
/// the prefix.
const GROUP_MARKS: [&str; 2] = ["%RETRY%", "%DLQ%"];
/// Prefix of light topics. Their queues list messages of other topics, but number them with their own offsets.
const LIGHT_QUEUE: &str = "%LMQ%";

/// The topics of a read.
#[derive(Clone, Debug)]
pub enum Topics {
    Named(Vec<String>),
    /// All topics that match the pattern at the time when the cluster is asked.
    Matching(TopicPattern),
    /// Queue ids, by topic and broker.
    Assigned(BTreeMap<String, BTreeMap<String, Vec<i32>>>),
}

/// A regular expression that must match a whole topic name.
///
/// It has no look-around and no back references, so that a match takes time linear in the name's length.
#[derive(Clone, Debug)]
pub struct TopicPattern {
    text: String,
    regex: Regex,
}

/// The current queues of topics, and the addresses of their brokers.
#[derive(Debug, Default)]
pub struct TopicQueues {
    pub queues: Vec<Queue>,
    pub addresses: BTreeMap<String, String>,
}

impl Topics {
    /// Parses the options that select topics.
    ///
    /// # Errors
    /// A name that no topic may have, or a value that does not parse.
    pub fn of(options: &Options) -> Result<Self> {
        if let Some(names) = options.texts("subscribe") {
            return Self::of_names(names.iter().cloned());
        }
        if let Some(pattern) = options.text("subscribePattern") {
            return TopicPattern::new(pattern).map(Self::Matching);
        }
        match options.text("assign") {
            Some(queues) => parse_assign(queues),
            None => Self::of_names(options.text("topic").map(str::to_owned)),
        }
    }

    /// Creates the topics from their names.
    ///
    /// # Errors
    /// A name that no topic may have.
    pub fn of_names(names: impl IntoIterator<Item = String>) -> Result<Self> {
        let names: BTreeSet<String> = names.into_iter().collect();
        names.iter().try_for_each(|name| check_topic(name))?;
        Ok(Self::Named(names.into_iter().collect()))
    }

    /// Returns whether the read includes the topic.
    pub fn has(&self, topic: &str) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|name| name == topic),
            Self::Matching(pattern) => pattern.matches(topic),
            Self::Assigned(queues) => queues.contains_key(topic),
        }
    }

    /// Returns the topics' names; `None` for a pattern.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::Named(names) => Some(names.clone()),
            Self::Matching(_) => None,
            Self::Assigned(queues) => Some(queues.keys().cloned().collect()),
        }
    }

    /// Returns whether the topics can include light queues. `false` for a pattern: it only matches topics that name
    /// servers list, and name servers do not list light queues.
    pub fn may_be_light(&self) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|name| name.starts_with(LIGHT_QUEUE)),
            Self::Matching(_) => false,
            Self::Assigned(queues) => queues.keys().any(|name| name.starts_with(LIGHT_QUEUE)),
        }
    }

    /// Fetches the current queues of the topics. `only` limits the topics. `spares` decides whether a topic without a
    /// route is skipped or an error.
    ///
    /// # Errors
    /// No name server answers, or a topic is unknown or not readable and `spares` refuses. Topics of a pattern may
    /// always be missing.
    pub fn find(
        &self,
        cluster: &TopicCluster,
        only: Option<&[String]>,
        mut spares: impl FnMut(&str, &rmqfast_client::Error) -> bool,
    ) -> Result<TopicQueues> {
        let mut names = match self {
            Self::Matching(pattern) => cluster.topics()?.into_iter().filter(|name| pattern.matches(name)).collect(),
            _ => self.names().unwrap_or_default(),
        };
        names.retain(|name| only.is_none_or(|only| only.contains(name)));
        let routes = cluster.routes(&names)?;
        let mut all = TopicQueues::default();
        for (name, route) in names.iter().zip(routes) {
            match route {
                Ok(TopicRoute { queues, addresses, .. }) => {
                    all.queues.extend(queues);
                    all.addresses.extend(addresses);
                }
                // deleted since it was listed, or not readable by this account
                Err(error) if matches!(self, Self::Matching(_)) && is_no_topic(&error) => {}
                Err(error) if spares(name, &error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }

    /// Drops queues that are not assigned. With `is_strict`, every assigned queue must exist.
    ///
    /// # Errors
    /// A broker or a queue does not exist.
    pub fn keep(&self, queues: &mut Vec<Queue>, is_strict: bool) -> Result<()> {
        let Self::Assigned(assigned) = self else { return Ok(()) };
        for (topic, brokers) in assigned.iter().filter(|_| is_strict) {
            for (broker, ids) in brokers {
                let of_broker = |queue: &&Queue| queue.topic == *topic && *queue.broker_name == **broker;
                let numbers: BTreeSet<i32> = queues.iter().filter(of_broker).map(|queue| queue.queue_id).collect();
                if let Some(id) = ids.iter().find(|id| !numbers.contains(id)) {
                    let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
                    let numbers = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
                    let place = format!("topic {topic}: no queue {id} on broker {broker}");
                    return Err(Error::argument(format!("assign: {place}; its queues are {numbers}")));
                }
            }
        }
        // also without `is_strict` only assigned queues are read
        queues.retain(|queue| {
            let ids = assigned.get(&queue.topic).and_then(|brokers| brokers.get(&*queue.broker_name));
            ids.is_some_and(|ids| ids.contains(&queue.queue_id))
        });
        Ok(())
    }
}

impl fmt::Display for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(names) => match &names[..] {
                [name] => write!(f, "topic {name}"),
                names => write!(f, "topics {}", names.join(", ")),
            },
            Self::Matching(pattern) => write!(f, "topics like {}", quote(&pattern.text)),
            Self::Assigned(queues) => {
                f.write_str("queues")?;
                for (number, (topic, brokers)) in queues.iter().enumerate() {
                    write!(f, "{} {topic}", if number == 0 { " of" } else { "," })?;
                    for (broker, ids) in brokers {
                        let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
                        write!(f, " {broker}: {}", ids.join(" "))?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl TopicPattern {
    /// Compiles the regular expression of a pattern.
    ///
    /// # Errors
    /// The text is not a regular expression.
    pub fn new(text: &str) -> Result<Self> {
        // compiled alone first, since `a)|(b` is invalid but would be valid between the brackets
        let regex = Regex::new(text).and_then(|_| Regex::new(&format!(r"\A(?:{text})\z"))).map_err(|error| {
            let got = quote(text);
            Error::argument(format!("option subscribePattern: expected a regular expression, got {got}: {error}"))
        })?;
        Ok(Self { text: text.to_owned(), regex })
    }

    pub fn matches(&self, topic: &str) -> bool {
        // `.*` should not match topics of consumer groups, whose messages no producer sent
        let is_meant = !topic.starts_with('%')
            || GROUP_MARKS.iter().any(|mark| topic.starts_with(mark) && self.text.contains(mark));
        is_meant && self.regex.is_match(topic)
    }
}

fn parse_assign(text: &str) -> Result<Topics> {
    let refused = |got: String| Error::argument(format!("option assign: expected JSON as {FORM}, got {got}"));
    let value: Value = serde_json::from_str(text).map_err(|_| refused(quote(text)))?;
    let parsed = (|| {
        let mut topics = BTreeMap::new();
        for (topic, brokers) in value.as_object()? {
            let mut by_broker = BTreeMap::new();
            for (broker, ids) in brokers.as_object()? {
                let ids: Option<BTreeSet<i32>> = ids.as_array()?.iter().map(queue_id).collect();
                by_broker.insert(broker.clone(), ids?.into_iter().collect());
            }
            topics.insert(topic.clone(), by_broker);
        }
        Some(topics)
    })();
    let topics: BTreeMap<String, BTreeMap<String, Vec<i32>>> = parsed.ok_or_else(|| refused(python_text(&value)))?;
    // selecting no queues is a mistake
    if topics.is_empty() || topics.values().any(|brokers| brokers.is_empty() || brokers.values().any(Vec::is_empty)) {
        return Err(refused(python_text(&value)));
    }
    topics.keys().try_for_each(|topic| check_topic(topic))?;
    Ok(Topics::Assigned(topics))
}

fn queue_id(value: &Value) -> Option<i32> {
    // offsets have queue ids as strings, so strings are accepted
    match value {
        Value::String(text) if is_digits(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64().and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0),
        _ => None,
    }
}

fn is_no_topic(error: &rmqfast_client::Error) -> bool {
    use rmqfast_remoting::code::response::NO_PERMISSION;
    match error {
        rmqfast_client::Error::UnknownTopic(_) => true,
        rmqfast_client::Error::Client { code, .. } => *code == NO_PERMISSION,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::options::Kind;

    fn topics(pairs: &[(&str, &str)]) -> Result<Topics> {
        let pairs = [&[("nameServer", "a:1")], pairs].concat();
        let pairs: Vec<_> = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Topics::of(&Options::of(Kind::TopicBatch, &pairs)?)
    }

    fn refused(pairs: &[(&str, &str)]) -> String {
        topics(pairs).expect_err("no topics").to_string()
    }

    fn queues(places: &[(&str, &str, i32)]) -> Vec<Queue> {
        let queue = |(topic, broker, queue_id): &(&str, &str, i32)| Queue {
            topic: (*topic).to_owned(),
            broker_name: (*broker).into(),
            queue_id: *queue_id,
        };
        places.iter().map(queue).collect()
    }

    #[test]
    fn topics_are_those_that_one_option_says() {
        for (option, text, shown) in [
            ("topic", " orders ", "topic orders"),
            ("subscribe", "orders", "topic orders"),
            ("subscribe", "orders, bills,orders", "topics bills, orders"),
            ("SUBSCRIBE", r#"["orders", "bills"]"#, "topics bills, orders"),
            ("subscribePattern", "orders-.*", "topics like 'orders-.*'"),
            (
                "assign",
                r#"{"orders": {"b": ["1", 0, 1], "a": [2]}, "bills": {"a": [0]}}"#,
                "queues of bills a: 0, orders a: 2 b: 0 1",
            ),
        ] {
            assert_eq!(topics(&[(option, text)]).expect(text).to_string(), shown);
        }
    }

    #[test]
    fn a_read_without_topics_or_with_two_kinds_of_them_is_refused() {
        let expected = "options topic, subscribe, subscribePattern, assign: expected one of them, got ";
        assert_eq!(refused(&[]), format!("{expected}none"));
        assert_eq!(refused(&[("subscribe", "a"), ("topic", "b")]), format!("{expected}topic, subscribe"));
        let assign = r#"{"orders": {"a": [0]}}"#;
        let both = refused(&[("assign", assign), ("subscribePattern", "b")]);
        assert_eq!(both, format!("{expected}subscribePattern, assign"));
        let both = refused(&[("assign", assign), ("queueIds", "0")]);
        assert_eq!(both, "option queueIds: the option assign says which queues are read");
    }

    #[test]
    fn texts_that_say_no_topics_are_refused() {
        assert!(refused(&[("topic", "a,b")]).ends_with("got 'a,b'; several are the option subscribe"));
        assert!(refused(&[("subscribe", "a,,b")]).contains("words between commas"));
        assert!(refused(&[("subscribe", "a,b c")]).contains("topic[b c] contains illegal characters"));
        for text in
            ["[]", "{}", r#"{"a": {}}"#, r#"{"a": {"b": []}}"#, r#"{"a": {"b": [-1]}}"#, r#"{"a": [0]}"#, "orders"]
        {
            let error = refused(&[("assign", text)]);
            assert!(
                error.starts_with(r#"option assign: expected JSON as {"topic": {"broker": [0, 1]}}, got "#),
                "{error}"
            );
        }
        assert!(refused(&[("assign", r#"{"a b": {"b": [0]}}"#)]).contains("illegal characters"));
    }

    #[test]
    fn a_pattern_is_for_whole_names() {
        for (pattern, matching, others) in [
            ("orders", &["orders"][..], &["orders2", "my-orders", "ORDERS"][..]),
            ("orders|orders2", &["orders", "orders2"], &["orders22"]),
            (r"(?i)order\w-\d+", &["orders-17", "ORDERS-1"], &["orders-x"]),
            (".*", &["orders", "a%b"], &["%RETRY%lake", "%DLQ%lake", "%LMQ%lake", "%x"]),
            ("%DLQ%.*", &["%DLQ%lake"], &["%RETRY%lake", "orders"]),
            ("orders|%RETRY%.*", &["orders", "%RETRY%lake"], &["%DLQ%lake"]),
        ] {
            let topics = topics(&[("subscribePattern", pattern)]).expect(pattern);
            for name in matching {
                assert!(topics.has(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!topics.has(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn what_is_no_regular_expression_is_refused_with_the_reason() {
        for (pattern, reason) in [
            ("a(", "found open group without closing ')'"),
            ("a)|(b", "found closing ')' without matching '('"),
            ("*", "uncounted repetition operator must be applied to a sub-expression"),
            ("(?=a)b", "look-around is not supported"),
            (r"(a)\1", "backreferences are not supported"),
        ] {
            let expected =
                format!("option subscribePattern: expected a regular expression, got {}: {reason}", quote(pattern));
            assert_eq!(refused(&[("subscribePattern", pattern)]), expected);
        }
    }

    #[test]
    fn a_pattern_that_grows_without_end_is_refused_and_one_that_others_choke_on_is_not() {
        assert!(refused(&[("subscribePattern", "(((a{100}){100}){100}){100}")]).contains("exceeded size limit"));
        let name = "a".repeat(127);
        assert!(topics(&[("subscribePattern", "(a|aa)+$x?")]).expect("linear").has(&name));
    }

    #[test]
    fn queues_that_are_assigned_are_kept_and_each_must_be_there() {
        let all = queues(&[("a", "x", 0), ("a", "x", 1), ("a", "y", 0), ("b", "x", 0)]);
        let assigned = topics(&[("assign", r#"{"a": {"x": [1], "y": [0]}}"#)]).expect("queues");
        let mut kept = all.clone();
        assigned.keep(&mut kept, true).expect("all are there");
        assert_eq!(kept, queues(&[("a", "x", 1), ("a", "y", 0)]));
        let error = assigned.keep(&mut queues(&[("a", "x", 1)]), true).expect_err("a broker is away").to_string();
        assert_eq!(error, "assign: topic a: no queue 0 on broker y; its queues are none");
        let mut kept = queues(&[("a", "x", 1)]);
        assigned.keep(&mut kept, false).expect("the broker may come back");
        assert_eq!(kept.len(), 1);
        let mut kept = all.clone();
        topics(&[("subscribe", "a,b")]).expect("topics").keep(&mut kept, true).expect("all");
        assert_eq!(kept, all);
    }
}
