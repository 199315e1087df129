//! `RangeRequest` and `ClientConfig` of Python, read attribute by attribute.
use crate::client::puller::{seconds, signer, subscription};
use crate::remoting::tls::PyTlsOptions;
use crate::request::{columns, property_names, time_unit};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::Error;
use rmqfast_client::cluster::{ClusterOptions, Translate};
use rmqfast_client::puller::PullerOptions;
use rmqfast_client::ranges::RangeRequest;
use rmqfast_store::scan::ScanRequest;
use std::collections::HashSet;
use std::sync::Arc;

/// `rmqfast.client.ranges.RangeRequest`.
#[derive(FromPyObject)]
pub struct PyRangeRequest<'py> {
    config: Bound<'py, PyAny>,
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
            puller,
            subscription: subscription(&sub_string, &expression_type, sub_version, self.wanted_tags).into(),
            scan,
            patience: seconds(self.patience),
            is_strict: self.on_damage == "fail",
        };
        Ok((request, cluster))
    }
}

/// How a `ClientConfig` says that its cluster is reached.
pub fn cluster_options(config: &Bound<'_, PyAny>) -> PyResult<ClusterOptions> {
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
        let translated = Python::try_attach(|py| {
            let translated = callable.bind(py).call1((address,)).and_then(|address| address.extract::<String>());
            translated.map_err(|error| match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // Ctrl-C that came meanwhile ends what asks: it is no fault of the address
                true => {
                    error.restore(py);
                    rmqfast_remoting::Error::Interrupted.into()
                }
                false => Error::Argument(format!("translate_address: {error}")),
            })
        });
        translated.unwrap_or_else(|| Err(Error::Argument("the interpreter ends".to_owned())))
    })
}
