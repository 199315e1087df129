//! Exposes the connections of a client, for blocking and asynchronous requests.
use super::callback_table::{Callable, Callback, CallbackTable, CompletedRequests};
use super::command::{Answered, Fields, answer_to_python, answer_with_body, interruptible, seconds};
use super::mailbox::Mailbox;
use super::tls::PyTlsOptions;
use crate::error::remoting;
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rmqfast_remoting::{Ask, Completions, ConnectionsOptions, OwnedCommand};
use std::sync::Arc;
use std::time::Duration;

// longest wait of a oneway request for room in the queued output
const ONEWAY: Duration = Duration::from_secs(3);

/// All connections of a client, by address. Requests that arrive over them are put into a mailbox.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Connections {
    inner: rmqfast_remoting::Connections,
    callbacks: Arc<CallbackTable>,
}

#[pymethods]
impl Connections {
    #[new]
    fn new(
        mailbox: PyRef<'_, Mailbox>,
        tls: Option<PyTlsOptions>,
        connect_timeout: f64,
        max_in_flight: usize,
        takers: usize,
    ) -> PyResult<Self> {
        let tls = tls.map(PyTlsOptions::into_client).transpose()?;
        let options =
            ConnectionsOptions { tls, connect_timeout: seconds(connect_timeout), ..ConnectionsOptions::default() };
        let completions = Arc::new(Completions::new(max_in_flight, takers));
        let inner = rmqfast_remoting::Connections::new(options, mailbox.0.clone(), completions);
        Ok(Self { inner, callbacks: Arc::default() })
    }

    /// Sends a request over a connection of its own, which the calling thread reads, and waits for the answer.
    fn request<'py>(
        &self,
        py: Python<'py>,
        address: &str,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        timeout: f64,
    ) -> PyResult<Answered<'py>> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        let answer = py.detach(|| self.inner.request_with(address, ask));
        let (client, received) = answer.map_err(remoting)?;
        // copied into Python's memory first, since giving the connection back frees its buffer
        let body = PyBytes::new(py, client.body(&received));
        self.inner.give_back(client).map_err(remoting)?;
        answer_with_body(py, received.head, body)
    }

    /// Sends a request over the connection that all threads share, and waits for the answer.
    fn control<'py>(
        &self,
        py: Python<'py>,
        address: &str,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        timeout: f64,
    ) -> PyResult<Answered<'py>> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        let answer = py.detach(|| self.inner.control(address, ask));
        answer_to_python(py, answer.map_err(remoting)?)
    }

    /// Sends a request over the connection that all threads share. `take` later returns `on_done` with the outcome.
    #[allow(clippy::too_many_arguments, reason = "those of a request, and who asks")]
    fn submit(
        &self,
        py: Python<'_>,
        address: &str,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        timeout: f64,
        on_done: Py<PyAny>,
        waits: bool,
    ) -> PyResult<()> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        self.submit_for(py, address, ask, Box::new(Callable(on_done)), waits)
    }

    /// Called when threads are started that call `take`.
    fn expect_takers(&self) {
        self.callbacks.expect_takers();
    }

    /// Sends a oneway request over the connection that all threads share.
    fn send_oneway(
        &self,
        py: Python<'_>,
        address: &str,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        waits: bool,
    ) -> PyResult<()> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, ONEWAY);
        py.detach(|| self.inner.send_oneway(address, ask, waits)).map_err(remoting)
    }

    /// Waits for ended requests, and returns them as an iterator of `(on_done, answer or error)`. The iterator is empty
    /// if none ended within `timeout` seconds. Returns `None` when all connections are closed.
    fn take(&self, py: Python<'_>, max_count: usize, timeout: f64) -> Option<CompletedRequests> {
        let completions = self.inner.completions();
        // tried with the GIL first, since getting it back is expensive while other threads send
        let mut ended = completions.take_ready(max_count);
        if ended.is_empty() {
            if !py.detach(|| completions.wait(seconds(timeout))) {
                return None;
            }
            // includes completions that arrived while this thread waited for the GIL
            ended = completions.take_ready(max_count);
        }
        Some(CompletedRequests::new(ended, self.callbacks.clone()))
    }

    /// Number of requests of `submit` whose outcome `take` has not returned yet.
    #[getter]
    fn in_flight(&self) -> usize {
        self.inner.completions().in_flight()
    }

    /// Refuses new requests. Waits until queued oneway requests are written, but not for servers that do not read.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.drain(&signals::check)).map_err(remoting)
    }

    /// Closes all connections. Returns for each address how many oneway requests were not written.
    fn close(&self, py: Python<'_>) -> Vec<(String, u64)> {
        py.detach(|| self.inner.close())
    }
}

impl Connections {
    /// Sends a request over a connection of its own, and waits for the answer without the GIL. Drops the answer's body.
    pub fn ask(&self, py: Python<'_>, address: &str, ask: Ask<'_>) -> rmqfast_remoting::Result<OwnedCommand> {
        py.detach(|| {
            let (client, received) = self.inner.request_with(address, ask)?;
            self.inner.give_back(client)?;
            Ok(received.head)
        })
    }

    /// Sends a request over the connection that all threads share. `callback` gets the outcome, unless this call fails.
    pub fn submit_for(
        &self,
        py: Python<'_>,
        address: &str,
        ask: Ask<'_>,
        callback: Box<dyn Callback>,
        waits: bool,
    ) -> PyResult<()> {
        let token = self.callbacks.add(callback);
        // tried with the GIL first: getting it back takes longer than sending
        let submitted = match self.inner.try_submit(address, ask, token) {
            Ok(false) => py.detach(|| self.inner.submit(address, ask, token, waits)),
            tried => tried.map(drop),
        };
        // the caller gets the error, so the callback must not run too
        submitted.map_err(|error| {
            self.callbacks.remove(token);
            remoting(error)
        })
    }

    /// Sends a request if that needs no waiting. Otherwise returns `callback`.
    pub fn try_submit(
        &self,
        address: &str,
        ask: Ask<'_>,
        callback: Box<dyn Callback>,
    ) -> Result<(), Box<dyn Callback>> {
        // without threads that take completions the sender would wait forever
        if !self.callbacks.has_takers() {
            return Err(callback);
        }
        let token = self.callbacks.add(callback);
        // on an error the caller sends again with a wait, and gets the error there
        let is_asked = self.inner.try_submit(address, ask, token).unwrap_or(false);
        if is_asked { Ok(()) } else { self.callbacks.remove(token).map_or(Ok(()), Err) }
    }
}
