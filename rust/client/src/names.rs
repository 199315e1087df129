//! Rules for names of topics and groups, and the namespace prefix.
//!
//! Source: `Validators`, `NamespaceUtil`.

use crate::error::{Error, Result};
use rmqfast_store::format::names::{FORBIDDEN_TOPICS, RETRY_PREFIX, Rule, SYSTEM_TOPICS};

const DEFAULT_PRODUCER_GROUP: &str = "DEFAULT_PRODUCER";
const DEFAULT_CONSUMER_GROUP: &str = "DEFAULT_CONSUMER";
const DLQ_PREFIX: &str = "%DLQ%";
// Prefixes of names without a namespace.
const SYSTEM_PREFIXES: [&str; 2] = ["rmq_sys_", "CID_RMQ_SYS_"];

/// Checks the name of a topic.
///
/// # Errors
/// [`Error::Client`] if it is blank, longer than 127 characters, or has illegal characters.
pub fn check_topic(topic: &str) -> Result<()> {
    Rule::Topic.check(topic).map_err(|problem| Error::client(problem, "", ""))
}

/// Checks the name of a group.
///
/// # Errors
/// [`Error::Client`] if it is blank, longer than 255 characters, or has illegal characters.
pub fn check_group(group: &str) -> Result<()> {
    Rule::Group.check(group).map_err(|problem| Error::client(problem, "", ""))
}

/// Checks the group of a producer.
///
/// # Errors
/// The reason for the refusal.
pub fn check_producer_group(group: &str) -> Result<(), String> {
    check_own_group(group, "producerGroup", DEFAULT_PRODUCER_GROUP)
}

/// Checks the group of a consumer.
///
/// # Errors
/// The reason for the refusal.
pub fn check_consumer_group(group: &str) -> Result<(), String> {
    check_own_group(group, "consumerGroup", DEFAULT_CONSUMER_GROUP)
}

/// Checks a group. Refuses Java's default group, which all clients that set no group would share.
fn check_own_group(group: &str, what: &str, default: &str) -> Result<(), String> {
    Rule::Group.check(group)?;
    let other = || format!("{what} can not equal {group}, please specify another one.");
    if group == default { Err(other()) } else { Ok(()) }
}

/// Checks the topic of a message to send.
///
/// # Errors
/// The reason for the refusal.
pub fn check_sent_topic(topic: &str) -> Result<(), String> {
    Rule::Topic.check(topic)?;
    let forbidden = || format!("Sending message to topic[{topic}] is forbidden.");
    if FORBIDDEN_TOPICS.contains(&topic) { Err(forbidden()) } else { Ok(()) }
}

/// Checks the topic of a batch to send. Refuses retry topics, too.
///
/// # Errors
/// The reason for the refusal.
pub fn check_sendable_topic(topic: &str) -> Result<(), String> {
    if topic.starts_with(RETRY_PREFIX) {
        return Err("Failed to initiate the MessageBatch: Retry Group is not supported for batching".into());
    }
    check_sent_topic(topic)
}

/// Adds the namespace to the name of a topic or group. Changes nothing if the namespace is empty, or if the name is
/// internal or already has the namespace.
///
/// Source: `NamespaceUtil.wrapNamespace`.
pub fn wrap(namespace: &str, resource: &str) -> String {
    let (prefix, name) = cut(resource);
    if namespace.is_empty() || resource.is_empty() || is_system(resource) || without(namespace, name).is_some() {
        return resource.to_owned();
    }
    format!("{prefix}{namespace}%{name}")
}

/// Removes the namespace from the name of a topic or group.
///
/// Source: `NamespaceUtil.withoutNamespace`.
pub fn unwrap(namespace: &str, resource: &str) -> String {
    let (prefix, name) = cut(resource);
    let bare = if namespace.is_empty() { None } else { without(namespace, name) };
    format!("{prefix}{}", bare.unwrap_or(name))
}

/// Removes any namespace from the name of a topic or group.
///
/// Source: `NamespaceUtil.withoutNamespace` of one argument.
pub fn without_namespace(resource: &str) -> String {
    if is_system(resource) {
        return resource.to_owned();
    }
    let (prefix, name) = cut(resource);
    let bare = name.split_once('%').filter(|(namespace, _)| !namespace.is_empty()).map(|(_, bare)| bare);
    format!("{prefix}{}", bare.unwrap_or(name))
}

/// Splits a name into the prefix `%RETRY%` or `%DLQ%`, if it has one, and the rest. The namespace stands after the
/// prefix.
fn cut(resource: &str) -> (&'static str, &str) {
    let mut prefixes = [RETRY_PREFIX, DLQ_PREFIX].into_iter();
    prefixes.find_map(|prefix| Some((prefix, resource.strip_prefix(prefix)?))).unwrap_or(("", resource))
}

fn without<'a>(namespace: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(namespace)?.strip_prefix('%')
}

/// Returns whether a topic or group is internal to RocketMQ. Internal names have no namespace.
pub fn is_system(resource: &str) -> bool {
    SYSTEM_TOPICS.contains(&resource) || SYSTEM_PREFIXES.iter().any(|prefix| resource.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_stands_before_a_name_once_and_is_taken_off_again() {
        let names = ["t", "%RETRY%g", "%DLQ%g", "TBW102", "rmq_sys_x", "CID_RMQ_SYS_TRANS", ""];
        let wrapped = names.map(|name| wrap("ns", name));
        let expected = ["ns%t", "%RETRY%ns%g", "%DLQ%ns%g", "TBW102", "rmq_sys_x", "CID_RMQ_SYS_TRANS", ""];
        assert_eq!(wrapped, expected);
        assert_eq!(expected.map(|name| wrap("ns", name)), expected);
        assert_eq!(expected.map(|name| unwrap("ns", name)), names);
        assert_eq!(expected.map(without_namespace), names);
        assert_eq!((wrap("", "t"), unwrap("", "ns%t")), ("t".to_owned(), "ns%t".to_owned()));
        assert_eq!((unwrap("ns", "other%t"), without_namespace("%t")), ("other%t".to_owned(), "%t".to_owned()));
    }

    #[test]
    fn names_that_are_not_allowed_say_why() {
        assert_eq!(check_sendable_topic("a|b%c-1_x"), Ok(()));
        for (topic, why) in [
            (" ", "The specified topic is blank"),
            ("%RETRY%g", "Retry Group is not supported for batching"),
            ("SELF_TEST_TOPIC", "Sending message to topic[SELF_TEST_TOPIC] is forbidden."),
        ] {
            assert!(check_sendable_topic(topic).expect_err("refused").contains(why), "{topic}");
        }
        assert_eq!(check_producer_group("DEFAULT_CONSUMER"), Ok(()));
        let default = check_consumer_group("DEFAULT_CONSUMER").expect_err("refused");
        assert_eq!(default, "consumerGroup can not equal DEFAULT_CONSUMER, please specify another one.");
        assert!(check_producer_group("DEFAULT_PRODUCER").is_err() && check_producer_group("a b").is_err());
    }
}
