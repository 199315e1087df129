//! Makes remarks of brokers readable: without Java's stack frames and packages, and with a next step.
use std::borrow::Cow;

// Brokers append this link to many remarks, but the page no longer exists.
const FAQ_LINK: (&str, &str) = ("rocketmq.apache.org/", " for further details");

// Longer remarks are not changed. RocketMQ's remarks are shorter.
const LONG: usize = 10_000;

// Next steps, by a part of the remark.
const STEPS: [(&str, &str); 12] = [
    ("for the topic: %RETRY%", "no member of that group was ever online: see that its name is right"),
    ("for the topic: %DLQ%", "that group has no dead letters: see that its name is right"),
    ("No topic route info in name server", "create the topic, or see that its brokers use this name server"),
    ("not exist, apply first please", "create the topic, or set autoCreateTopicEnable=true in broker.conf"),
    ("subscription group not exist", "create the group, or set autoCreateSubscriptionGroup=true in broker.conf"),
    ("consumer's group info not exist", "the broker waits for a heartbeat of the group: that passes by itself"),
    ("No accessKey is configured", "an account is asked for: give access_key and secret_key"),
    ("No acl config for", "the broker knows no such access_key: see its plain_acl.yml"),
    ("Check signature failed", "the secret_key is not that of the account: see the broker's plain_acl.yml"),
    ("Need admin permission", "take an account with admin: true, or have it set in plain_acl.yml"),
    (
        "filter message by SQL92",
        "set enablePropertyFilter=true in its broker.conf; or read all messages and filter by properties['...']",
    ),
    ("No default permission", "take another account, or have the right added in plain_acl.yml"),
];

/// Returns the next step for a remark, or `None` for unknown remarks.
pub fn step_after(remark: &str) -> Option<&'static str> {
    STEPS.iter().find(|(part, _)| remark.contains(part)).map(|(_, step)| *step)
}

/// Removes Java's stack frames, exception classes and packages from a remark, and the dead link to RocketMQ's FAQ.
pub fn plain_remark(remark: &str) -> Cow<'_, str> {
    if remark.chars().nth(LONG).is_some() {
        return Cow::Borrowed(remark);
    }
    let remark =
        without(without(without(without(remark.to_owned(), faq_link), java_frame), java_exception), java_class);
    Cow::Owned(remark.trim().to_owned())
}

/// Returns the text without the ranges that `find` returns. `find` gets the text and the position at which to search.
fn without(text: String, find: impl Fn(&str, usize) -> Option<(usize, usize)>) -> String {
    let mut text_left = String::new();
    let mut at = 0;
    while let Some((start, end)) = find(&text, at) {
        text_left.push_str(&text[at..start]);
        at = end;
    }
    // most remarks need no change, so avoid the copy
    if at == 0 { text } else { text_left + &text[at..] }
}

/// Finds `See http://rocketmq.apache.org/docs/faq/ for further details.`, with the white space before it.
fn faq_link(text: &str, from: usize) -> Option<(usize, usize)> {
    let (site, words) = FAQ_LINK;
    text[from..].match_indices("See http").find_map(|(at, see)| {
        let link = &text[from + at + see.len()..];
        let page = link.strip_prefix('s').unwrap_or(link).strip_prefix("://")?.strip_prefix(site)?;
        let rest = page[word_end(page, |c| !c.is_whitespace())?..].strip_prefix(words)?;
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        Some((from + text[from..from + at].trim_end().len(), text.len() - rest.len()))
    })
}

/// Finds a Java stack frame such as `, org.apache.rocketmq.acl.Plain.validate(Plain.java:683)`.
fn java_frame(text: &str, from: usize) -> Option<(usize, usize)> {
    text[from..].match_indices('(').find_map(|(at, _)| {
        let (before, behind) = (&text[from..from + at], &text[from + at + 1..]);
        let line = behind[word_end(behind, is_word)?..].strip_prefix(".java:")?;
        let rest = line[word_end(line, |c| c.is_ascii_digit())?..].strip_prefix(')')?;
        let class = before.trim_end_matches(|c| is_word(c) || "<>".contains(c));
        if class.len() == before.len() || !class.ends_with('.') {
            return None;
        }
        let mut words = class;
        while let Some(word) = words.strip_suffix('.') {
            let shorter = word.trim_end_matches(is_word);
            if shorter.len() == word.len() {
                break;
            }
            words = shorter;
        }
        if words.len() == class.len() {
            return None;
        }
        let before = words.strip_suffix("at ").unwrap_or(words).trim_end();
        Some((from + before.strip_suffix(',').unwrap_or(before).len(), text.len() - rest.len()))
    })
}

/// Finds the class of an exception before the text of the exception, such as `java.lang.IllegalStateException: `.
fn java_exception(text: &str, from: usize) -> Option<(usize, usize)> {
    packages(text, from).find_map(|(start, class)| {
        let end = class + word_end(&text[class..], is_word)?;
        let name = &text[class..end];
        let kind = name.strip_suffix("Exception").or_else(|| name.strip_suffix("Error"))?;
        let is_said = !kind.is_empty() && text[end..].starts_with(": ");
        is_said.then_some((start, end + 2))
    })
}

/// Finds the package before the name of a Java class.
fn java_class(text: &str, from: usize) -> Option<(usize, usize)> {
    packages(text, from).next()
}

/// Finds Java package names of two or more words. Returns the position of each package, and of the class name after it.
fn packages(text: &str, from: usize) -> impl Iterator<Item = (usize, usize)> {
    text[from..].match_indices(|c: char| c.is_ascii_lowercase()).filter_map(move |(at, _)| {
        let start = from + at;
        let (mut end, mut words) = (start, 0);
        while text[end..].starts_with(|c: char| c.is_ascii_lowercase()) {
            let behind = end + word_end(&text[end..], is_word)?;
            if !text[behind..].starts_with('.') {
                return None;
            }
            (end, words) = (behind + 1, words + 1);
        }
        (words >= 2 && text[end..].starts_with(|c: char| c.is_ascii_uppercase())).then_some((start, end))
    })
}

/// Returns the length of the leading characters that `is_one` accepts, or `None` if there are none.
fn word_end(text: &str, is_one: impl Fn(char) -> bool) -> Option<usize> {
    let end = text.find(|c| !is_one(c)).unwrap_or(text.len());
    (end > 0).then_some(end)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_java_adds_is_left_out() {
        for (remark, plain) in [
            ("  no disk ", "no disk"),
            ("java.lang.IllegalStateException: no disk, org.example.Store.put(Store.java:12)", "no disk"),
            ("no disk at org.example.Store.<init>(Store.java:1)\n\tat org.example.A.b(A.java:22)", "no disk"),
            (
                "the topic is not there\nSee http://rocketmq.apache.org/docs/faq/ for further details.",
                "the topic is not there",
            ),
            ("a See https://rocketmq.apache.org/x for further details, b", "a, b"),
            ("org.apache.rocketmq.acl.AclException: Check signature", "Check signature"),
            ("a java.lang.Thread b", "a Thread b"),
            ("java.Thread", "java.Thread"),
            ("a.b.Exception: c", "Exception: c"),
            (
                "see rocketmq.apache.org and f(X.java:1) and .f(X.java:1) and a.f(X.java:)",
                "see rocketmq.apache.org and f(X.java:1) and .f(X.java:1) and a.f(X.java:)",
            ),
            ("é.a.b.C(ü.java:7)", ""),
        ] {
            assert_eq!(plain_remark(remark), plain, "{remark}");
        }
        let long = format!("{} java.lang.Thread", "x".repeat(LONG));
        assert_eq!(plain_remark(&long), long);
    }

    #[test]
    fn what_helps_is_known_by_a_part() {
        let step = step_after("topic[t] not exist, apply first please!");
        assert_eq!(step, Some("create the topic, or set autoCreateTopicEnable=true in broker.conf"));
        assert_eq!(step_after("no disk"), None);
    }
}
