//! Cluster options of a `ClientConfig` of Python, attribute by attribute.
use crate::client::puller::{seconds, signer};
use crate::remoting::tls::PyTlsOptions;
use crate::signals;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::Error;
use rmqfast_client::cluster::{ClusterOptions, Translate};
use std::sync::Arc;

/// The cluster options of a `ClientConfig`.
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
        interrupt: Arc::new(signals::check),
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
