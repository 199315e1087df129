//! `RangeRequest`, `TopicRead` and `ClientConfig` of Python, read attribute by attribute.
use crate::client::puller::{seconds, signer, subscription};
use crate::remoting::tls::PyTlsOptions;
use crate::request::{columns, property_names, time_unit};
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::Error;
use rmqfast_client::cluster::{ClusterOptions, Translate};
use rmqfast_client::puller::PullerOptions;
use rmqfast_client::ranges::RangeRequest;
use rmqfast_spark::offsets::Offsets;
use rmqfast_spark::topic_offsets::ByBroker;
use rmqfast_spark::topic_read::{RangeCut, TopicRead};
use rmqfast_store::scan::ScanRequest;
use std::collections::HashSet;
use std::sync::Arc;

/// `rmqfast.client.ranges.RangeRequest`.
#[derive(FromPyObject)]
pub struct PyRangeRequest<'py> {
    config: Bound<'py, PyAny>,
    topic: String,
    group: String,
    keys: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    property_names: Option<Vec<String>>,
    start_time: Option<i64>,
    end_time: Option<i64>,
    microseconds: bool,
    verify_crc: bool,
    on_damage: String,
    batch: i64,
    depth: usize,
    timeout: f64,
    patience: f64,
    max_body_bytes: usize,
    subscription: PySubscription,
    wanted_tags: Option<HashSet<String>>,
}

/// `SubscriptionData`.
#[derive(FromPyObject)]
struct PySubscription {
    sub_string: String,
    expression_type: String,
    sub_version: i64,
}

impl PyRangeRequest<'_> {
    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The request, and how its cluster is reached.
    pub fn into_request(self) -> PyResult<(RangeRequest, ClusterOptions)> {
        let cluster = cluster_options(&self.config)?;
        let PySubscription { sub_string, expression_type, sub_version } = self.subscription;
        let scan = ScanRequest {
            keys: self.keys,
            start_time: self.start_time,
            end_time: self.end_time,
            columns: columns(self.columns)?,
            property_names: property_names(self.property_names)?,
            time_unit: time_unit(self.microseconds),
            verify_crc: self.verify_crc,
            max_body_bytes: self.max_body_bytes,
            ..ScanRequest::default()
        };
        let puller = PullerOptions {
            tls: cluster.tls.clone(),
            consumer_group: self.group,
            depth: self.depth.max(1),
            batch: self.batch.max(1),
            timeout: seconds(self.timeout),
            connect_timeout: cluster.connect_timeout,
            sign: cluster.sign.clone(),
            ..PullerOptions::default()
        };
        let request = RangeRequest {
            topic: self.topic,
            puller,
            subscription: subscription(&sub_string, &expression_type, sub_version, self.wanted_tags).into(),
            scan,
            patience: seconds(self.patience),
            is_strict: self.on_damage == "fail",
        };
        Ok((request, cluster))
    }
}

/// `rmqfast.spark.live.topic_read.TopicRead`.
#[derive(FromPyObject)]
pub struct PyTopicRead<'py> {
    request: PyRangeRequest<'py>,
    start: PyTopicOffsets,
    end: PyTopicOffsets,
    queue_ids: Option<Vec<i32>>,
    min_partitions: Option<i64>,
    max_rows: i64,
    cut: PyRangeCut,
}

/// `rmqfast.spark.live.topic_read.RangeCut`.
#[derive(FromPyObject)]
struct PyRangeCut {
    broker_names: Option<HashSet<String>>,
    queue_ids: Option<HashSet<i32>>,
    start: Option<i64>,
    end: Option<i64>,
}

impl PyTopicRead<'_> {
    /// The read.
    pub fn into_read(self) -> PyResult<TopicRead> {
        let (request, cluster) = self.request.into_request()?;
        let PyRangeCut { broker_names, queue_ids, start, end } = self.cut;
        Ok(TopicRead {
            cluster,
            request,
            start: self.start.0,
            end: self.end.0,
            queue_ids: self.queue_ids,
            min_pieces: self.min_partitions.unwrap_or(1),
            max_rows: self.max_rows,
            cut: RangeCut {
                broker_names: broker_names.map(|names| names.into_iter().collect()),
                queue_ids: queue_ids.map(|ids| ids.into_iter().collect()),
                offsets: (start, end),
            },
            is_empty: false,
            planned: None,
            pool_key: None,
        })
    }
}

/// "earliest", "latest", or offsets by broker and queue, in the order of the mapping, in which errors find what is wrong.
pub struct PyTopicOffsets(pub Offsets<ByBroker>);

impl FromPyObject<'_, '_> for PyTopicOffsets {
    type Error = PyErr;

    fn extract(offsets: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match offsets.extract::<&str>() {
            Ok("earliest") => return Ok(Self(Offsets::Earliest)),
            // `TopicOffsets` of Python has these two words only
            Ok(_) => return Ok(Self(Offsets::Latest)),
            Err(_) => {}
        }
        let brokers = offsets.call_method0("items")?.try_iter()?.map(|item| {
            let (broker, queues): (String, Bound<'_, PyAny>) = item?.extract()?;
            let by_queue = queues.call_method0("items")?.try_iter()?.map(|item| item?.extract());
            Ok((broker, by_queue.collect::<PyResult<_>>()?))
        });
        Ok(Self(Offsets::Named(brokers.collect::<PyResult<_>>()?)))
    }
}

/// How a `ClientConfig` says that its cluster is reached.
fn cluster_options(config: &Bound<'_, PyAny>) -> PyResult<ClusterOptions> {
    let py = config.py();
    let tls: Option<PyTlsOptions> = config.getattr(intern!(py, "tls"))?.extract()?;
    // Python signs: the account does not cross
    let sign = config.call_method0(intern!(py, "signer"))?;
    let translate: Option<Py<PyAny>> = config.getattr(intern!(py, "translate_address"))?.extract()?;
    Ok(ClusterOptions {
        name_servers: config.getattr(intern!(py, "name_servers"))?.extract()?,
        tls: tls.map(PyTlsOptions::into_client).transpose()?,
        sign: (!sign.is_none()).then(|| signer(sign.unbind())),
        translate: translate.map(translator),
        connect_timeout: seconds(config.getattr(intern!(py, "connect_timeout"))?.extract()?),
        timeout: seconds(config.getattr(intern!(py, "request_timeout"))?.extract()?),
    })
}

/// A Python callable that maps addresses.
fn translator(callable: Py<PyAny>) -> Arc<Translate> {
    Arc::new(move |address| {
        // a thread of Rust asks, maybe while the interpreter ends
        let translated = Python::try_attach(|py| callable.bind(py).call1((address,))?.extract::<String>());
        match translated {
            Some(Ok(address)) => Ok(address),
            Some(Err(error)) => Err(Error::Argument(format!("translate_address: {error}"))),
            None => Err(Error::Argument("the interpreter ends".to_owned())),
        }
    })
}
