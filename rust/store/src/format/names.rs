//! Rules for the names of topics and groups. Names become parts of file names and keys.
//!
//! Clients and brokers of RocketMQ allow the same characters, but differ in maximum lengths and error messages:
//!
//! | rule | maximum characters | source |
//! |---|---|---|
//! | [`Group`](Rule::Group) | 255 | `Validators.checkGroup`; a 4.9.4 broker accepts any length |
//! | [`Topic`](Rule::Topic) | 127 | `Validators.checkTopic` |
//! | [`NewTopic`](Rule::NewTopic) | 127 | `TopicValidator.validateTopic` |
//! | [`NamedTopic`](Rule::NamedTopic) | 262 | none: brokers accept any length |

/// Maximum length of a topic. A record of 4.9 stores the length in a signed byte.
pub const MAX_TOPIC: usize = i8::MAX as usize;
pub const MAX_GROUP: usize = 255;
pub const RETRY_PREFIX: &str = "%RETRY%";
/// Maximum length of a topic that a client's request names. It may be the retry topic of a group.
pub const MAX_NAMED_TOPIC: usize = RETRY_PREFIX.len() + MAX_GROUP;
/// System topics. They are the same in all namespaces (`TopicValidator.isSystemTopic`).
pub const SYSTEM_TOPICS: [&str; 9] = [
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];
/// Topics to which clients cannot send (`TopicValidator.isNotAllowedSendTopic`).
pub const FORBIDDEN_TOPICS: [&str; 6] = [
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];
const ALLOWED: &str = "allowing only ^[%|a-zA-Z0-9_-]+$";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Group,
    /// A topic to which a client sends, or which a client consumes.
    Topic,
    NewTopic,
    /// A topic that a client names in a request that neither sends nor consumes, such as a lock or a heartbeat. It may
    /// be a retry topic, whose name is longer than that of its group.
    NamedTopic,
}

impl Rule {
    /// Checks a name. The error has the text of RocketMQ's error, since users search for it.
    pub fn check(self, name: &str) -> Result<(), String> {
        let (what, noun, most) = match self {
            Self::Group => ("the specified group", "group", MAX_GROUP),
            Self::Topic | Self::NewTopic => ("The specified topic", "topic", MAX_TOPIC),
            Self::NamedTopic => ("the specified topic", "topic", MAX_NAMED_TOPIC),
        };
        let (is_blank, is_long) = (name.trim().is_empty(), name.chars().count() > most);
        let is_legal = is_legal(name.as_bytes());
        let problem = match self {
            // Brokers check in another order than clients, and do not repeat the name.
            Self::NewTopic if is_blank => " is blank.".to_owned(),
            Self::NewTopic if !is_legal => format!(" contains illegal characters, {ALLOWED}"),
            Self::NewTopic if is_long => " is longer than topic max length.".to_owned(),
            // Clients check the length before the characters.
            _ if is_blank => " is blank".to_owned(),
            _ if is_long => format!(" is longer than {noun} max length {most}."),
            _ if !is_legal => format!("[{name}] contains illegal characters, {ALLOWED}"),
            _ => return Ok(()),
        };
        Err(format!("{what}{problem}"))
    }
}

/// Returns whether a name has at least one character and only allowed characters
/// (`TopicValidator.isTopicOrGroupIllegal`).
#[inline]
pub fn is_legal(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'|' | b'_' | b'-');
    !name.is_empty() && name.iter().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rule: Rule, name: &str) -> String {
        rule.check(name).expect_err("refused")
    }

    #[test]
    fn each_rule_has_its_length() {
        for (rule, most) in
            [(Rule::Group, 255), (Rule::Topic, 127), (Rule::NewTopic, 127), (Rule::NamedTopic, MAX_NAMED_TOPIC)]
        {
            assert_eq!(rule.check(&"x".repeat(most)), Ok(()));
            assert_eq!(rule.check("%RETRY%a|b-C_9"), Ok(()));
            assert!(refused(rule, &"x".repeat(most + 1)).contains("longer than"), "{rule:?}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_refused_in_the_words_of_who_checks_it() {
        for rule in [Rule::Group, Rule::Topic, Rule::NamedTopic] {
            assert!(refused(rule, " ").ends_with(" is blank"));
        }
        assert_eq!(refused(Rule::Group, ""), "the specified group is blank");
        assert_eq!(refused(Rule::Group, &"x".repeat(256)), "the specified group is longer than group max length 255.");
        let illegal = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$";
        assert_eq!(refused(Rule::Topic, "tä g\n"), format!("The specified topic[tä g\n] {illegal}"));
        assert_eq!(refused(Rule::NamedTopic, "../t"), format!("the specified topic[../t] {illegal}"));
        assert_eq!(refused(Rule::NewTopic, "\t"), "The specified topic is blank.");
        assert_eq!(refused(Rule::NewTopic, &"a.b".repeat(99)), format!("The specified topic {illegal}"));
        let long = "The specified topic is longer than topic max length.";
        assert_eq!(refused(Rule::NewTopic, &"x".repeat(128)), long);
    }
}
