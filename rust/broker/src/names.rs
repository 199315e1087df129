//! Which names topics and groups may have: they become names of files, and parts of keys.
//!
//! Source: `Validators`, `TopicValidator`.

/// The longest name of a group.
const GROUP: usize = 255;
/// The longest name of a topic: that of a group's retries.
const TOPIC: usize = "%RETRY%".len() + GROUP;

/// Why a group cannot have this name, in RocketMQ's words.
pub fn check_group(name: &str) -> Result<(), String> {
    check("group", name, GROUP)
}

/// Why a topic cannot have this name.
pub fn check_topic(name: &str) -> Result<(), String> {
    check("topic", name, TOPIC)
}

fn check(what: &str, name: &str, most: usize) -> Result<(), String> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"%|-_".contains(&byte);
    if name.len() > most {
        return Err(format!("the specified {what} is longer than {what} max length {most}."));
    }
    if name.is_empty() {
        return Err(format!("the specified {what} is blank"));
    }
    match name.bytes().all(is_legal) {
        true => Ok(()),
        false => {
            Err(format!("the specified {what}[{name}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"))
        }
    }
}
