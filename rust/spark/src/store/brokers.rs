//! The stores of several brokers in one read. Each gets the options of a read of one store.
use crate::error::{Error, Result};
use crate::request::offsets::{FORM, json_of, sorted_keys};
use crate::request::options::{Kind, Options, Pairs, replace_options};
use crate::request::text::{python_text, quote, quoted_list, trim_start};
use crate::store::hosts;
use crate::store::read::local;
use rmqfast_store::store::{BrokerStores, find_broker_stores};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Option of a resolved read: for each broker, options that replace those of the read.
pub const STORES: &str = "stores";
const OFFSETS: [&str; 2] = ["startingOffsets", "endingOffsets"];

/// A store of a read. A read of one store has no name for it, unless the option `brokerName` gives one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The broker, in a read of several.
    pub broker_name: Option<String>,
    /// The options of a read of this store alone.
    pub pairs: Pairs,
}

impl StoreOptions {
    /// Returns the options of each store that `storePath` names: a store, a directory that has several, a pattern, or
    /// JSON as `{"broker-a": "/data/a"}`.
    ///
    /// # Errors
    /// See [`Options::of`] and [`find_broker_stores`]. Also an option that only one store may have, or offsets of a broker
    /// that has no store.
    pub fn of(kind: Kind, pairs: &[(String, String)]) -> Result<Vec<Self>> {
        let options = Options::of(kind, pairs)?;
        if let Some(text) = options.text(STORES) {
            return parse_stores(pairs, text);
        }
        let Some(stores) = stores_at(options.text("storePath").unwrap_or_default())? else {
            hosts::hosts_of(&options)?;
            return Ok(vec![Self { broker_name: None, pairs: pairs.to_vec() }]);
        };
        for (name, instead) in [("brokerName", "the stores have names"), ("commitLogDirs", "each has commitlog/")] {
            if options.is_given(name) {
                let names = quoted_list(stores.keys().map(String::as_str));
                return Err(Error::argument(format!(
                    "option {name}: expected none with the stores of {names}: {instead}"
                )));
            }
        }
        let names: Vec<&str> = stores.keys().map(String::as_str).collect();
        let of_broker = |(name, path): (&String, &PathBuf)| {
            let path = path.to_str().ok_or_else(|| {
                Error::argument(format!("option storePath: expected a path in UTF-8, got {}", path.display()))
            })?;
            Self::of_broker(&options, pairs, (name, path), Some(&names))
        };
        stores.iter().map(of_broker).collect()
    }

    /// Returns the options of a store that a piece names.
    ///
    /// # Errors
    /// See [`of`](Self::of).
    pub fn of_piece(kind: Kind, pairs: &[(String, String)], broker_name: &str, path: &str) -> Result<Self> {
        let options = Options::of(kind, pairs)?;
        if let Some(text) = options.text(STORES) {
            let mut stores = parse_stores(pairs, text)?;
            stores.retain(|store| store.broker_name.as_deref() == Some(broker_name));
            return stores
                .pop()
                .ok_or_else(|| Error::argument(format!("piece: expected a store of {text}, got {broker_name}")));
        }
        Self::of_broker(&options, pairs, (broker_name, path), None)
    }

    fn of_broker(
        options: &Options,
        pairs: &[(String, String)],
        (name, path): (&str, &str),
        names: Option<&[&str]>,
    ) -> Result<Self> {
        let mut own = vec![("storePath", path.to_owned()), ("brokerName", name.to_owned())];
        for option in OFFSETS.into_iter().filter(|option| options.is_given(option)) {
            if let Some(text) = offsets_of(option, options.text(option).unwrap_or_default(), name, names)? {
                own.push((option, text));
            }
        }
        let mut shared = pairs.to_vec();
        if let Some(text) = options.text(hosts::OPTION) {
            shared.retain(|(name, _)| !name.eq_ignore_ascii_case(hosts::OPTION));
            own.extend(hosts::option_of_broker(text, name, names)?.map(|hosts| (hosts::OPTION, hosts)));
        }
        Ok(Self { broker_name: Some(name.to_owned()), pairs: replace_path(&shared, &own) })
    }

    /// Returns the options of a read of all these stores.
    pub fn join(pairs: &[(String, String)], stores: &[Self]) -> Pairs {
        let by_broker: Map<String, Value> = stores
            .iter()
            .filter_map(|store| {
                let changed = store.pairs.iter().filter(|pair| !pairs.contains(pair));
                let own: Map<String, Value> =
                    changed.map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect();
                Some((store.broker_name.clone()?, Value::Object(own)))
            })
            .collect();
        replace_options(pairs, &[(STORES, Value::Object(by_broker).to_string())])
    }
}

/// Parses the option `stores`.
fn parse_stores(pairs: &[(String, String)], text: &str) -> Result<Vec<StoreOptions>> {
    let refuse = || Error::argument(format!("option {STORES}: expected options by broker, got {}", quote(text)));
    let Ok(Value::Object(stores)) = serde_json::from_str(text) else { return Err(refuse()) };
    let others: Pairs = pairs.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(STORES)).cloned().collect();
    stores
        .into_iter()
        .map(|(name, own)| {
            let Value::Object(own) = own else { return Err(refuse()) };
            let own: Option<Vec<(&str, String)>> =
                own.iter().map(|(name, text)| Some((name.as_str(), text.as_str()?.to_owned()))).collect();
            Ok(StoreOptions { broker_name: Some(name), pairs: replace_path(&others, &own.ok_or_else(refuse)?) })
        })
        .collect()
}

/// Returns the stores of several brokers that the option `storePath` names; `None` for one store.
fn stores_at(text: &str) -> Result<Option<BrokerStores>> {
    if !trim_start(text).starts_with('{') {
        return Ok(find_broker_stores(&local("storePath", text)?)?);
    }
    let refuse = || {
        let form = "paths by broker as {\"broker-a\": \"/data/a\"}";
        Error::argument(format!("option storePath: expected {form}, got {}", quote(text)))
    };
    let Ok(Value::Object(paths)) = serde_json::from_str(text) else { return Err(refuse()) };
    if paths.is_empty() {
        return Err(refuse());
    }
    let path = |(name, path): (String, Value)| -> Result<(String, PathBuf)> {
        let path = local("storePath", path.as_str().filter(|_| !name.is_empty()).ok_or_else(refuse)?)?;
        Ok((name, path))
    };
    paths.into_iter().map(path).collect::<Result<_>>().map(Some)
}

fn replace_path(pairs: &[(String, String)], own: &[(&str, String)]) -> Pairs {
    // `path` is the other name of `storePath`
    let others: Pairs = pairs.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("path")).cloned().collect();
    replace_options(&others, own)
}

/// Returns the part of an offset option that is about one broker: its own, or that of `*`. `None` if it is a word, which
/// is the same for all. Without `brokers`, any name may stand there.
fn offsets_of(option: &str, text: &str, broker: &str, brokers: Option<&[&str]>) -> Result<Option<String>> {
    if !trim_start(text).starts_with('{') {
        return Ok(None);
    }
    let value = json_of(option, text)?;
    let refuse = |value: &Value| Error::argument(format!("{option}: expected {FORM}, got {}", python_text(value)));
    let topics = value.as_object().ok_or_else(|| refuse(&value))?;
    let mut own = Map::new();
    for (topic, by_broker) in topics {
        let by_broker = by_broker.as_object().ok_or_else(|| refuse(&value))?;
        let is_unknown = |name: &str| brokers.is_some_and(|brokers| name != "*" && !brokers.contains(&name));
        if by_broker.keys().any(|name| is_unknown(name)) {
            let (names, got) = (quoted_list(brokers.unwrap_or_default().iter().copied()), sorted_keys(by_broker));
            return Err(Error::argument(format!("{option}: expected brokers of {names}, got {got}")));
        }
        if let Some(queues) = by_broker.get(broker).or_else(|| by_broker.get("*")) {
            own.insert(topic.clone(), serde_json::json!({ "*": queues }));
        }
    }
    let word = if option == OFFSETS[0] { "earliest" } else { "latest" };
    Ok(Some(if own.is_empty() { word.to_owned() } else { Value::Object(own).to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn value(store: &StoreOptions, name: &str) -> Option<String> {
        Options::of(Kind::Columnar, &store.pairs).expect("options").text(name).map(str::to_owned)
    }

    fn of(given: &[(&str, &str)]) -> Result<Vec<StoreOptions>> {
        StoreOptions::of(Kind::Columnar, &pairs(given))
    }

    fn error(given: &[(&str, &str)]) -> String {
        of(given).expect_err("refused").to_string()
    }

    const BOTH: &str = r#"{"a": "/data/a", "b": "/data/b"}"#;

    #[test]
    fn each_store_has_its_path_its_name_and_its_offsets() {
        let start = r#"{"orders": {"a": {"0": 5}}}"#;
        let end = r#"{"orders": {"*": {"0": 9}, "b": {"0": 7}}}"#;
        let given = [("path", BOTH), ("topic", "orders"), ("startingOffsets", start), ("endingOffsets", end)];
        let stores = of(&given).expect("stores");
        let values = |name: &str| stores.iter().map(|store| value(store, name).unwrap_or_default()).collect::<Vec<_>>();
        assert_eq!(values("storePath"), ["/data/a", "/data/b"]);
        assert_eq!(values("brokerName"), ["a", "b"]);
        assert_eq!(values("startingOffsets"), [r#"{"orders":{"*":{"0":5}}}"#, "earliest"]);
        assert_eq!(values("endingOffsets"), [r#"{"orders":{"*":{"0":9}}}"#, r#"{"orders":{"*":{"0":7}}}"#]);
        let joined = StoreOptions::join(&pairs(&given), &stores);
        assert_eq!(StoreOptions::of(Kind::Columnar, &joined).expect("the same"), stores);
        let one = StoreOptions::of_piece(Kind::Columnar, &joined, "b", "/data/b").expect("the store");
        assert_eq!(one, stores[1]);
        let one = StoreOptions::of_piece(Kind::StoreStream, &pairs(&[("path", "/data/*")]), "b", "/data/b");
        assert_eq!(value(&one.expect("a store"), "brokerName").as_deref(), Some("b"));
    }

    #[test]
    fn one_store_keeps_its_options() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("commitlog")).expect("made");
        let path = dir.path().to_string_lossy();
        let given = [("storePath", &*path), ("brokerName", "a")];
        assert_eq!(of(&given).expect("a store"), [StoreOptions { broker_name: None, pairs: pairs(&given) }]);
    }

    #[test]
    fn a_directory_has_its_stores() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["x", "y"] {
            std::fs::create_dir_all(dir.path().join(name).join("commitlog")).expect("made");
        }
        let paths = |path: &Path| {
            let stores = of(&[("path", &path.to_string_lossy())]).expect("stores");
            stores.into_iter().map(|store| store.broker_name.unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(paths(dir.path()), ["x", "y"]);
        assert_eq!(paths(&dir.path().join("[y]")), ["y"]);
    }

    #[test]
    fn what_only_one_store_may_have_and_unknown_brokers_are_refused() {
        for name in ["brokerName", "commitLogDirs"] {
            let text = error(&[("path", BOTH), (name, "x")]);
            assert!(text.starts_with(&format!("option {name}: expected none with the stores of ['a', 'b']")), "{text}");
        }
        for path in ["{}", "{", r#"{"a": 1}"#, r#"{"": "/a"}"#] {
            let text = error(&[("path", path)]);
            assert!(text.starts_with("option storePath: expected paths by broker as "), "{text}");
        }
        let start = r#"{"orders": {"c": {"0": 5}}}"#;
        let text = error(&[("path", BOTH), ("topic", "orders"), ("startingOffsets", start)]);
        assert_eq!(text, "startingOffsets: expected brokers of ['a', 'b'], got ['c']");
        assert!(error(&[("path", BOTH), ("stores", "[]")]).starts_with("option stores: expected options by broker"));
    }
}
