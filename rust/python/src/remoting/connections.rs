//! Hands all connections of a client to Python: requests that block, and asynchronous ones.
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

// A oneway request waits this long for room behind others.
const ONEWAY: Duration = Duration::from_secs(3);

/// All connections of a client, by address; what peers ask by themselves goes to a mailbox.
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

    /// Asks over a connection that this thread drives.
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
        // from the connection's buffer into Python's memory: one copy; then the connection is free
        let body = PyBytes::new(py, client.body(&received));
        self.inner.give_back(client).map_err(remoting)?;
        answer_with_body(py, received.head, body)
    }

    /// Asks over the connection that both sides use.
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

    /// Asks over the connection that both sides use; `take` gives `on_done` and how it ended.
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

    /// There are threads that `take`.
    fn expect_takers(&self) {
        self.callbacks.expect_takers();
    }

    /// Sends a request that is not answered over the connection that both sides use.
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

    /// Requests that have ended, as `(on_done, answer or error)`: none after `timeout` seconds, `None` once all is over.
    fn take(&self, py: Python<'_>, max_count: usize, timeout: f64) -> Option<CompletedRequests> {
        let completions = self.inner.completions();
        // first without letting go of the GIL, which is dear to get back while others send
        let mut ended = completions.take_ready(max_count);
        if ended.is_empty() {
            if !py.detach(|| completions.wait(seconds(timeout))) {
                return None;
            }
            // those as well that came while this thread waited for the GIL
            ended = completions.take_ready(max_count);
        }
        Some(CompletedRequests::new(ended, self.callbacks.clone()))
    }

    /// Requests of `submit` whose end was not taken.
    #[getter]
    fn in_flight(&self) -> usize {
        self.inner.completions().in_flight()
    }

    /// Takes no further requests, and waits until those are written that nobody waits for, as long as peers take of them.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.drain(&signals::check)).map_err(remoting)
    }

    /// Ends all; gives how many requests that are not answered were never written, by address.
    fn close(&self, py: Python<'_>) -> Vec<(String, u64)> {
        py.detach(|| self.inner.close())
    }
}

impl Connections {
    /// Asks over a connection that this thread drives, and waits without the GIL; what comes with the answer's body is passed over.
    pub fn ask(&self, py: Python<'_>, address: &str, ask: Ask<'_>) -> rmqfast_remoting::Result<OwnedCommand> {
        py.detach(|| {
            let (client, received) = self.inner.request_with(address, ask)?;
            self.inner.give_back(client)?;
            Ok(received.head)
        })
    }

    /// Asks over the connection that both sides use; `callback` is told how it ended, unless this fails.
    pub fn submit_for(
        &self,
        py: Python<'_>,
        address: &str,
        ask: Ask<'_>,
        callback: Box<dyn Callback>,
        waits: bool,
    ) -> PyResult<()> {
        let token = self.callbacks.add(callback);
        // who lets go of the GIL here waits for it longer than for the connection
        let submitted = match self.inner.try_submit(address, ask, token) {
            Ok(false) => py.detach(|| self.inner.submit(address, ask, token, waits)),
            tried => tried.map(drop),
        };
        submitted.map_err(|error| {
            self.callbacks.remove(token);
            remoting(error)
        })
    }

    /// Asks, if that needs no waiting; otherwise nothing was asked, and `callback` is dropped.
    pub fn try_submit(&self, address: &str, ask: Ask<'_>, callback: Box<dyn Callback>) -> bool {
        // without takers the answer would lie there, and its sender would wait
        if !self.callbacks.has_takers() {
            return false;
        }
        let token = self.callbacks.add(callback);
        // the caller then asks again and waits, and gets the error
        let is_asked = self.inner.try_submit(address, ask, token).unwrap_or(false);
        if !is_asked {
            self.callbacks.remove(token);
        }
        is_asked
    }
}
