//! Exposes a single connection of a client.
use super::command::{Answered, Fields, answer_to_python, interruptible, seconds};
use super::tls::PyTlsOptions;
use crate::error::remoting;
use crate::signals;
use pyo3::prelude::*;
use rmqfast_remoting::{Client, OwnedCommand};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection that this process opened. Only one thread can use it at a time; other threads wait.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct RemotingClient(Mutex<Client>);

#[pymethods]
impl RemotingClient {
    /// Connects to `host:port`. Uses TLS if TLS options are given.
    #[staticmethod]
    fn connect(py: Python<'_>, address: &str, timeout: f64, tls: Option<PyTlsOptions>) -> PyResult<Self> {
        let tls = tls.map(PyTlsOptions::into_client).transpose()?;
        let connected = py.detach(|| Client::open(address, tls.as_ref(), seconds(timeout), &signals::check));
        connected.map(|client| Self(client.into())).map_err(remoting)
    }

    fn request<'py>(
        &self,
        py: Python<'py>,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        timeout: f64,
    ) -> PyResult<Answered<'py>> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        let answer = py.detach(|| {
            // locked without the GIL, since the lock's holder takes the GIL to check for Ctrl-C
            let mut client = self.lock();
            let received = client.ask(ask)?;
            // copied because the next caller reuses the buffer
            let body = client.body(&received).to_vec();
            Ok(OwnedCommand { body, ..received.head })
        });
        answer_to_python(py, answer.map_err(remoting)?)
    }

    fn send_oneway(&self, py: Python<'_>, code: i32, ext_fields: Fields, body: &[u8], timeout: f64) -> PyResult<()> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        py.detach(|| self.lock().tell(ask)).map_err(remoting)
    }
}

impl RemotingClient {
    fn lock(&self) -> MutexGuard<'_, Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
