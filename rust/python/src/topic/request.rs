//! Converts Python's `ClientConfig` to cluster options.
use crate::client::puller::{seconds, signer};
use crate::remoting::tls::PyTlsOptions;
use crate::signals;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::Error;
use rmqfast_client::cluster::{ClusterOptions, Translate};
use std::sync::Arc;

pub fn cluster_options(config: &Bound<'_, PyAny>) -> PyResult<ClusterOptions> {
    let py = config.py();
    let tls: Option<PyTlsOptions> = config.getattr(intern!(py, "tls"))?.extract()?;
    // Python signs the requests, so the secret key is not passed to Rust
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

/// Wraps a Python callable that translates brokers' addresses.
fn translator(callable: Py<PyAny>) -> Arc<Translate> {
    Arc::new(move |address| {
        // `try_attach`, since a Rust thread may call while the interpreter ends
        let translated = Python::try_attach(|py| {
            let translated = callable.bind(py).call1((address,)).and_then(|address| address.extract::<String>());
            translated.map_err(|error| match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // a Ctrl-C during the call interrupts the request; it is not an error of the address
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
