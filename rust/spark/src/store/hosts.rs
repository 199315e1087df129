//! The hosts on which a store lies: where its tasks run best.
use crate::error::{Error, Result};
use crate::request::options::Options;
use crate::request::text::{python_text, quote, quoted_list, trim, trim_start};
use serde_json::Value;

/// The option of hosts.
pub const OPTION: &str = "storeHosts";
const FORM: &str = "hosts as 10.0.0.1,10.0.0.2, or by broker as {\"broker-a\": [\"10.0.0.1\"]}";

/// Returns the hosts of one store; none if the option is not given.
///
/// # Errors
/// The text has no hosts, or has hosts by broker.
pub fn hosts_of(options: &Options) -> Result<Vec<String>> {
    options.text(OPTION).map_or(Ok(Vec::new()), parse)
}

fn parse(text: &str) -> Result<Vec<String>> {
    let refuse = || Error::argument(format!("option {OPTION}: expected {FORM}, got {}", quote(text)));
    if trim_start(text).starts_with('{') {
        let instead = "expected hosts as 10.0.0.1,10.0.0.2 for one store, got hosts by broker";
        return Err(Error::argument(format!("option {OPTION}: {instead}: {}", quote(text))));
    }
    let hosts: Option<Vec<String>> = if trim_start(text).starts_with('[') {
        serde_json::from_str(text).ok()
    } else {
        Some(text.split(',').map(|host| trim(host).to_owned()).collect())
    };
    hosts.filter(|hosts| !hosts.is_empty() && !hosts.iter().any(String::is_empty)).ok_or_else(refuse)
}

/// Returns the hosts of one broker's store as the option of a read of this store. `None` if it has none of its own.
/// Without `brokers`, any name may stand in the text.
///
/// # Errors
/// A text that is not JSON, or a broker that has no store.
pub fn option_of_broker(text: &str, broker: &str, brokers: Option<&[&str]>) -> Result<Option<String>> {
    if !trim_start(text).starts_with('{') {
        parse(text)?;
        return Ok(Some(text.to_owned()));
    }
    let refuse = |got: &str| Error::argument(format!("option {OPTION}: expected {FORM}, got {got}"));
    let Ok(Value::Object(hosts)) = serde_json::from_str(text) else { return Err(refuse(&quote(text))) };
    if let Some(unknown) = hosts.keys().find(|name| brokers.is_some_and(|known| !known.contains(&name.as_str()))) {
        let names = quoted_list(brokers.unwrap_or_default().iter().copied());
        return Err(Error::argument(format!("option {OPTION}: expected brokers of {names}, got {}", quote(unknown))));
    }
    let own = match hosts.get(broker) {
        None => return Ok(None),
        Some(Value::String(host)) => host.clone(),
        Some(hosts @ Value::Array(_)) => hosts.to_string(),
        Some(other) => return Err(refuse(&python_text(other))),
    };
    parse(&own)?;
    Ok(Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::options::Kind;

    fn hosts(text: &str) -> Result<Vec<String>> {
        let pairs = [("path", "/s"), (OPTION, text)].map(|(name, text)| (name.to_owned(), text.to_owned()));
        hosts_of(&Options::of(Kind::Columnar, &pairs)?)
    }

    #[test]
    fn hosts_are_words_or_json() {
        assert_eq!(hosts("10.0.0.1, node-2").expect("hosts"), ["10.0.0.1", "node-2"]);
        assert_eq!(hosts(r#"["a", "b"]"#).expect("hosts"), ["a", "b"]);
        for text in ["a,", "[]", "[1]", r#"{"x": "a"}"#] {
            let error = hosts(text).expect_err(text).to_string();
            assert!(error.starts_with("option storeHosts: expected hosts as 10.0.0.1,10.0.0.2"), "{error}");
        }
    }

    #[test]
    fn each_broker_has_its_own_or_the_same() {
        let text = r#"{"a": "host-1", "b": ["host-2", "host-3"]}"#;
        let of = |broker: &str| option_of_broker(text, broker, Some(&["a", "b", "c"])).expect("hosts");
        assert_eq!(of("a").as_deref(), Some("host-1"));
        assert_eq!(of("b").as_deref(), Some(r#"["host-2","host-3"]"#));
        assert_eq!(of("c"), None);
        assert_eq!(option_of_broker("host-1", "c", Some(&["c"])).expect("hosts").as_deref(), Some("host-1"));
        let error = option_of_broker(text, "a", Some(&["a"])).expect_err("unknown").to_string();
        assert_eq!(error, "option storeHosts: expected brokers of ['a'], got 'b'");
        assert!(option_of_broker(r#"{"a": 5}"#, "a", None).is_err());
        assert!(option_of_broker("{", "a", None).is_err());
    }
}
