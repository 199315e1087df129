//! Names of topics and groups: which are allowed, and how a namespace stands before them.
//!
//! Source: `Validators`, `TopicValidator`, `NamespaceUtil`.

use crate::error::{Error, Result};

/// Characters that a group may have.
const MAX_GROUP: usize = 255;
/// Characters that a topic may have.
const MAX_TOPIC: usize = 127;
const ALLOWED: &str = "allowing only ^[%|a-zA-Z0-9_-]+$";
const DEFAULT_PRODUCER_GROUP: &str = "DEFAULT_PRODUCER";
const RETRY_PREFIX: &str = "%RETRY%";
const DLQ_PREFIX: &str = "%DLQ%";
/// Topics that only brokers write to.
const FORBIDDEN_TOPICS: [&str; 6] = [
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];
/// Further names that are the same in all namespaces.
const SYSTEM_TOPICS: [&str; 3] = ["TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"];
const SYSTEM_PREFIXES: [&str; 2] = ["rmq_sys_", "CID_RMQ_SYS_"];

/// Checks the name of a topic.
///
/// # Errors
/// [`Error::Client`]: it is blank, longer than 127 characters, or has illegal characters.
pub fn check_topic(topic: &str) -> Result<()> {
    refuse(topic_problem(topic))
}

/// Checks the name of a group.
///
/// # Errors
/// [`Error::Client`]: it is blank, longer than 255 characters, or has illegal characters.
pub fn check_group(group: &str) -> Result<()> {
    refuse(group_problem(group))
}

/// Whether a producer may have a group.
///
/// # Errors
/// Why not.
pub fn check_producer_group(group: &str) -> Result<(), String> {
    let is_default = group == DEFAULT_PRODUCER_GROUP;
    let default = || is_default.then(|| format!("producerGroup can not equal {group}, please specify another one."));
    group_problem(group).or_else(default).map_or(Ok(()), Err)
}

/// Whether a batch may go to a topic.
///
/// # Errors
/// Why not.
pub fn check_sendable_topic(topic: &str) -> Result<(), String> {
    if topic.starts_with(RETRY_PREFIX) {
        return Err("Failed to initiate the MessageBatch: Retry Group is not supported for batching".into());
    }
    let is_forbidden = FORBIDDEN_TOPICS.contains(&topic);
    let forbidden = || is_forbidden.then(|| format!("Sending message to topic[{topic}] is forbidden."));
    topic_problem(topic).or_else(forbidden).map_or(Ok(()), Err)
}

fn refuse(problem: Option<String>) -> Result<()> {
    problem.map_or(Ok(()), |problem| Err(Error::client(problem, "", "")))
}

fn topic_problem(topic: &str) -> Option<String> {
    problem_of("The specified topic", "topic", MAX_TOPIC, topic)
}

fn group_problem(group: &str) -> Option<String> {
    problem_of("the specified group", "group", MAX_GROUP, group)
}

/// The texts are Java's, which users look for.
fn problem_of(what: &str, noun: &str, most: usize, name: &str) -> Option<String> {
    if is_blank(name) {
        Some(format!("{what} is blank"))
    } else if name.chars().count() > most {
        Some(format!("{what} is longer than {noun} max length {most}."))
    } else if !is_allowed(name) {
        Some(format!("{what}[{name}] contains illegal characters, {ALLOWED}"))
    } else {
        None
    }
}

/// The name of a topic or group as brokers know it; it may have the namespace already, which is empty for none.
pub fn wrap(namespace: &str, resource: &str) -> String {
    let (prefix, name) = [RETRY_PREFIX, DLQ_PREFIX]
        .into_iter()
        .find_map(|prefix| Some((prefix, resource.strip_prefix(prefix)?)))
        .unwrap_or(("", resource));
    let has_namespace = name.strip_prefix(namespace).is_some_and(|name| name.starts_with('%'));
    if namespace.is_empty() || resource.is_empty() || is_system(resource) || has_namespace {
        return resource.to_owned();
    }
    format!("{prefix}{namespace}%{name}")
}

/// Whether a topic or a group is RocketMQ's own, the same in all clusters and namespaces.
pub fn is_system(resource: &str) -> bool {
    FORBIDDEN_TOPICS.contains(&resource)
        || SYSTEM_TOPICS.contains(&resource)
        || SYSTEM_PREFIXES.iter().any(|prefix| resource.starts_with(prefix))
}

fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

fn is_allowed(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"%|_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_stands_before_a_name_once() {
        let wrapped = ["t", "ns%t", "%RETRY%g", "TBW102", "rmq_sys_x", ""].map(|name| wrap("ns", name));
        assert_eq!(wrapped, ["ns%t", "ns%t", "%RETRY%ns%g", "TBW102", "rmq_sys_x", ""]);
        assert_eq!(wrap("", "t"), "t");
    }

    #[test]
    fn names_that_are_not_allowed_say_why() {
        assert_eq!(check_sendable_topic("a|b%c-1_x"), Ok(()));
        for (topic, why) in [
            (" ", "blank"),
            ("a b", "The specified topic[a b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
            ("%RETRY%g", "Retry Group is not supported for batching"),
            ("SELF_TEST_TOPIC", "Sending message to topic[SELF_TEST_TOPIC] is forbidden."),
        ] {
            assert!(check_sendable_topic(topic).expect_err("refused").contains(why), "{topic}");
        }
        assert!(check_sendable_topic(&"t".repeat(128)).is_err());
        assert_eq!(check_producer_group("rmqfast_spark"), Ok(()));
        for group in ["", "a b", "DEFAULT_PRODUCER", &"g".repeat(256)] {
            assert!(check_producer_group(group).is_err(), "{group}");
        }
    }
}
