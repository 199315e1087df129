//! Topics of a store or a cluster as tables of a catalog.
//!
//! The options of a catalog are those of its tables, without a topic.
use crate::error::{Error, Result};
use crate::read::batch_kind;
use crate::request::cluster::cluster_options;
use crate::request::options::{Kind, Options, Pairs, TOPICS, has_option, names_a_cluster, replace_options};
use crate::request::row_columns::RowColumns;
use crate::store::brokers::StoreOptions;
use crate::store::read::StoreRead;
use rmqfast_client::cluster::{CheckInterrupt, TopicCluster};
use rmqfast_client::names::is_system;
use std::sync::Arc;

/// Options that nobody is shown.
const SECRETS: [&str; 4] = ["accessKey", "secretKey", "securityToken", "tlsKey"];

/// Returns the names of a catalog's topics in their order, without RocketMQ's own.
///
/// # Errors
/// An option that no read has, options that name neither a store nor a cluster, a store that cannot be read, or a name
/// server that does not answer.
pub fn topics(pairs: &[(String, String)], interrupt: Arc<CheckInterrupt>) -> Result<Vec<String>> {
    check(pairs)?;
    let pairs = read_options(pairs);
    let mut topics: Vec<String> = if names_a_cluster(&pairs) {
        // the parser asks for topics
        let all = replace_options(&pairs, &[("subscribePattern", ".*".to_owned())]);
        let mut cluster = cluster_options(&Options::of(Kind::ColumnarTopic, &all)?)?;
        cluster.interrupt = interrupt;
        TopicCluster::new(cluster)?.topics()?
    } else {
        let mut topics = Vec::new();
        for store in StoreOptions::of(Kind::Columnar, &pairs)? {
            let options = Options::of(Kind::Columnar, &store.pairs)?;
            topics.extend(StoreRead::without_bounds(&options, RowColumns::default())?.open()?.topics()?.into_keys());
        }
        topics
    };
    topics.retain(|topic| !is_system(topic));
    topics.sort();
    topics.dedup();
    Ok(topics)
}

/// Returns the options of a topic's table.
///
/// # Errors
/// See [`topics`].
pub fn table_options(pairs: &[(String, String)], topic: &str) -> Result<Pairs> {
    check(pairs)?;
    Ok(replace_options(pairs, &[("topic", topic.to_owned())]))
}

/// Returns the options of a table with those of one query, which come first.
pub fn with_options(pairs: &[(String, String)], given: &[(String, String)]) -> Pairs {
    let given: Vec<(&str, String)> = given.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    replace_options(pairs, &given)
}

/// Returns the options of a read: those of the table that a sink alone has are left out.
pub fn read_options(pairs: &[(String, String)]) -> Pairs {
    options_of(batch_kind(pairs), pairs)
}

/// Returns the options of a write: those of the table that reads alone have are left out.
pub fn write_options(pairs: &[(String, String)]) -> Pairs {
    options_of(Kind::Sink, pairs)
}

/// Returns the options that people may see.
pub fn shown_options(pairs: &[(String, String)]) -> Pairs {
    let is_secret = |name: &str| SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(name));
    // the session catalog of Spark also passes each option with a prefix
    let is_shown = |name: &str| !is_secret(name.rsplit('.').next().unwrap_or(name));
    pairs.iter().filter(|(name, _)| is_shown(name)).cloned().collect()
}

/// Leaves out options that another kind has, but not this one. Unknown options stay, so that the parser refuses them.
fn options_of(kind: Kind, pairs: &[(String, String)]) -> Pairs {
    let others = if kind == Kind::Sink { [Kind::Columnar, Kind::ColumnarTopic] } else { [Kind::Sink; 2] };
    let is_kept = |name: &str| has_option(kind, name) || !others.iter().any(|other| has_option(*other, name));
    pairs.iter().filter(|(name, _)| is_kept(name)).cloned().collect()
}

/// Refuses options of a catalog that choose topics, as its tables do, and options without a place.
fn check(pairs: &[(String, String)]) -> Result<()> {
    let has = |wanted: &str| pairs.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if let Some(name) = TOPICS.iter().find(|name| has(name)) {
        return Err(Error::argument(format!("option {name}: expected none in a catalog, whose tables are the topics")));
    }
    if !["nameServer", "storePath", "path"].iter().any(|name| has(name)) {
        let text =
            "catalog: expected the option nameServer, a live cluster, or storePath, store directories, got neither";
        return Err(Error::argument(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn names(pairs: Pairs) -> Vec<String> {
        pairs.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_read_and_a_write_have_their_own_options_and_the_unknown_ones() {
        let given = pairs(&[("nameServer", "a:1"), ("batchSize", "5"), ("startingoffsets", "latest"), ("tpic", "x")]);
        assert_eq!(names(read_options(&given)), ["nameServer", "startingoffsets", "tpic"]);
        assert_eq!(names(write_options(&given)), ["nameServer", "batchSize", "tpic"]);
    }

    #[test]
    fn secrets_are_not_shown() {
        let given = pairs(&[
            ("nameServer", "a:1"),
            ("SECRETKEY", "s"),
            ("accessKey", "k"),
            ("securitytoken", "t"),
            ("option.secretKey", "s"),
        ]);
        assert_eq!(names(shown_options(&given)), ["nameServer"]);
    }

    #[test]
    fn a_catalog_has_a_place_and_no_topic() {
        for given in [&[("topic", "a"), ("storePath", "/s")][..], &[("via", "pull")]] {
            assert!(table_options(&pairs(given), "orders").is_err());
        }
        let options = pairs(&[("storePath", "/s"), ("topic", "orders")]);
        assert_eq!(table_options(&pairs(&[("storePath", "/s")]), "orders").ok(), Some(options.clone()));
        let options = with_options(&options, &pairs(&[("TOPIC", "b"), ("tags", "paid")]));
        assert_eq!(options, pairs(&[("storePath", "/s"), ("TOPIC", "b"), ("tags", "paid")]));
    }
}
