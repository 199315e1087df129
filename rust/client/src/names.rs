//! Names that topics and groups may have.
//!
//! Source: `Validators`, `TopicValidator`.
use crate::error::{Error, Result};

const MAX_GROUP: usize = 255;
const MAX_TOPIC: usize = 127;
const ALLOWED: &str = "allowing only ^[%|a-zA-Z0-9_-]+$";

/// Checks the name of a topic.
///
/// # Errors
/// [`Error::Client`]: it is blank, longer than 127 characters, or has illegal characters.
pub fn check_topic(topic: &str) -> Result<()> {
    check("The specified topic", "topic", MAX_TOPIC, topic)
}

/// Checks the name of a group.
///
/// # Errors
/// [`Error::Client`]: it is blank, longer than 255 characters, or has illegal characters.
pub fn check_group(group: &str) -> Result<()> {
    check("the specified group", "group", MAX_GROUP, group)
}

fn check(what: &str, noun: &str, most: usize, name: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "%|_-".contains(c);
    // the texts are Java's, which users look for
    let problem = if name.trim().is_empty() {
        format!("{what} is blank")
    } else if name.chars().count() > most {
        format!("{what} is longer than {noun} max length {most}.")
    } else if !name.chars().all(is_allowed) {
        format!("{what}[{name}] contains illegal characters, {ALLOWED}")
    } else {
        return Ok(());
    };
    Err(Error::client(problem, "", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_java_takes() {
        assert!(check_topic("%RETRY%a-b_C|9").is_ok() && check_topic(&"t".repeat(127)).is_ok());
        for (name, problem) in [
            (" ", "The specified topic is blank"),
            ("a b", "The specified topic[a b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
            (&"t".repeat(128), "The specified topic is longer than topic max length 127."),
        ] {
            assert!(check_topic(name).is_err_and(|error| error.to_string().starts_with(problem)), "{name}");
        }
        assert!(check_group(&"g".repeat(256)).is_err() && check_group(&"g".repeat(255)).is_ok());
    }
}
