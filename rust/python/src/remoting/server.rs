//! Exposes a server. Its requests go to Python or to a data plane.
use super::mailbox::Mailbox;
use super::tls::PyTlsOptions;
use crate::broker::DataPlane;
use crate::error::remoting;
use pyo3::prelude::*;
use rmqfast_remoting::{Handler, Limits, Server, ServerOptions};
use std::sync::Arc;
use std::time::Duration;

/// A socket that listens for connections. Requests go to a mailbox, or to a data plane, which puts requests that it
/// cannot answer into the mailbox.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct RemotingServer(Server);

#[derive(FromPyObject)]
pub struct PyServerOptions {
    max_frame_size: usize,
    max_connections: usize,
    max_outgoing: usize,
    max_idle: f64,
    max_frame_time: f64,
    max_write_time: f64,
    max_handshake_time: f64,
    tls: Option<PyTlsOptions>,
}

impl PyServerOptions {
    pub fn into_options(self) -> PyResult<ServerOptions> {
        // infinity is not a duration, and means no limit
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Ok(ServerOptions {
            limits: Limits { frame: self.max_frame_size, ..Limits::default() },
            max_connections: self.max_connections,
            max_outgoing: self.max_outgoing,
            max_idle: seconds(self.max_idle),
            max_frame_time: seconds(self.max_frame_time),
            max_write_time: seconds(self.max_write_time),
            max_handshake_time: seconds(self.max_handshake_time),
            tls: self.tls.map(PyTlsOptions::into_server).transpose()?,
            ..ServerOptions::default()
        })
    }
}

#[derive(FromPyObject)]
enum Service<'py> {
    Mailbox(PyRef<'py, Mailbox>),
    DataPlane(PyRef<'py, DataPlane>),
}

impl Service<'_> {
    fn into_handler(self) -> Arc<dyn Handler> {
        match self {
            Self::Mailbox(mailbox) => mailbox.0.clone(),
            Self::DataPlane(plane) => plane.inner.clone(),
        }
    }
}

#[pymethods]
impl RemotingServer {
    #[staticmethod]
    fn bind(py: Python<'_>, address: &str, handler: Service<'_>, options: PyServerOptions) -> PyResult<Self> {
        let (options, handler) = (options.into_options()?, handler.into_handler());
        // released because the server's threads may call Python before `bind` returns
        py.detach(|| Server::bind(address, options, handler)).map(Self).map_err(remoting)
    }

    #[getter]
    fn address(&self) -> String {
        self.0.address().to_string()
    }

    #[getter]
    fn connections(&self) -> usize {
        self.0.connections()
    }

    fn close(&self, py: Python<'_>) {
        // released because closing waits for threads that may wait for the GIL
        py.detach(|| self.0.close());
    }
}
