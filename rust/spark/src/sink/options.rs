//! The parsed options of a sink.
use crate::error::{Error, Result};
use crate::request::cluster::{cluster_options, namespace_of_endpoint};
use crate::request::options::{Kind, Options};
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::names::{check_producer_group, check_sendable_topic, wrap};
use std::time::Duration;

/// Options of the sink, with the defaults of the data source `rocketmq`.
///
/// Source: `RocketMQConfig` of rocketmq-spark for the names, `DefaultMQProducer` for the defaults.
#[derive(Clone, Debug)]
pub struct SinkOptions {
    pub cluster: ClusterOptions,
    /// Topic of all rows; `None` if the column `topic` names it.
    pub topic: Option<String>,
    /// Producer group, prefixed with the namespace.
    pub group: String,
    /// Prefix of topics; empty without a namespace.
    pub namespace: String,
    /// Maximum number of rows in a request.
    pub batch_size: usize,
    /// Maximum number of bytes in a request. Brokers have their own limit, by default 4 MiB.
    pub max_message_size: usize,
    pub send_timeout: Duration,
    /// Maximum time for retries while no broker accepts a request.
    pub retry_timeout: Duration,
    /// Number of requests that a task has in flight at the same time.
    pub in_flight: usize,
}

impl SinkOptions {
    /// Parses options. Also checks in the driver what would otherwise fail in every task.
    ///
    /// # Errors
    /// An invalid option, a missing name server, one half of an account, an invalid topic or group, or TLS without
    /// `tlsTrust`.
    pub fn of(pairs: &[(String, String)]) -> Result<Self> {
        let options = Options::of(Kind::Sink, pairs)?;
        let cluster = cluster_options(&options)?;
        let named = |text| Error::argument(format!("option group or topic: {text}"));
        let (group, topic) = (options.text("group").unwrap_or("rmqfast_spark"), options.text("topic"));
        check_producer_group(group).map_err(named)?;
        topic.map_or(Ok(()), check_sendable_topic).map_err(named)?;
        let endpoint = options.text("nameServer").and_then(namespace_of_endpoint);
        let namespace = options.text("namespace").or(endpoint).unwrap_or_default();
        let number = |name, usual| options.number(name).unwrap_or(usual).unsigned_abs();
        Ok(Self {
            group: wrap(namespace, group),
            topic: topic.map(str::to_owned),
            namespace: namespace.to_owned(),
            batch_size: number("batchSize", 256) as usize,
            max_message_size: number("maxMessageSize", 4 << 20) as usize,
            send_timeout: Duration::from_millis(number("sendTimeoutMs", 3000)),
            retry_timeout: Duration::from_millis(number("retryTimeoutMs", 60_000)),
            in_flight: number("inFlight", 4) as usize,
            cluster,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(more: &[(&str, &str)]) -> Result<SinkOptions> {
        let texts = [&[("nameServer", "http://MQ_INST_1_x.host:80")], more].concat();
        let texts: Vec<_> = texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        SinkOptions::of(&texts)
    }

    #[test]
    fn numbers_are_the_usual_ones_unless_they_are_given() {
        let options = of(&[("checkpointLocation", "/c")]).expect("usual");
        assert_eq!((options.batch_size, options.max_message_size, options.in_flight), (256, 4 << 20, 4));
        assert_eq!((options.send_timeout.as_secs(), options.retry_timeout.as_secs()), (3, 60));
        assert_eq!((options.group.as_str(), &options.topic), ("MQ_INST_1_x%rmqfast_spark", &None));
        let options = of(&[("namespace", "ns"), ("retryTimeoutMs", "0"), ("topic", "orders")]).expect("given");
        assert_eq!((options.namespace.as_str(), options.retry_timeout.as_millis()), ("ns", 0));
    }

    #[test]
    fn names_that_are_not_allowed_are_refused() {
        let text = of(&[("topic", "a b")]).expect_err("refused").to_string();
        let prefix = "option group or topic: The specified topic[a b] contains illegal characters";
        assert!(text.starts_with(prefix), "{text}");
        assert!(of(&[("group", "DEFAULT_PRODUCER")]).is_err());
    }
}
