//! Parts that all kinds of sends use: requests, hooks, and the limit of sends in flight.
//!
//! Source: `DefaultMQProducerImpl.sendKernelImpl`, `MQClientAPIImpl.sendMessage`.
use super::encoder::MessageEncoder;
use super::outgoing::Outgoing;
use super::publish_topics::PublishTopics;
use crate::error::{RemotingError, RemotingTimeoutError, object, remoting};
use crate::pairs::pairs;
use crate::remoting::callback_table::Callback;
use crate::remoting::command::{Fields, interruptible};
use crate::remoting::connections::Connections;
use crate::signals;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDictMethods, PyMapping};
use rmqfast_client::producer::{FaultStrategy, InFlight, RetryRules, Room};
use rmqfast_remoting::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names of `CommunicationMode`, which say what the caller of a send gets: a callback (ASYNC), the answer (SYNC), or no
/// answer (ONEWAY).
pub const ASYNC: &str = "ASYNC";
pub const SYNC: &str = "SYNC";
pub const ONEWAY: &str = "ONEWAY";

/// Sends the messages of a producer. Methods accept a message or an encoded `Outgoing`.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageSender {
    pub connections: Py<Connections>,
    /// `rmqfast.remoting.Connections`, which owns the threads that run callbacks.
    pub shared: Py<PyAny>,
    /// Callable that returns additional header fields for access control. Its arguments are the code, fields and body
    /// of a request.
    pub sign: Option<Py<PyAny>>,
    pub encoder: Py<MessageEncoder>,
    pub in_flight: Arc<InFlight>,
    pub topics: PublishTopics,
    /// Python's `Hooks` object. `hooked` holds its `HookedSends`.
    pub hooks: Py<PyAny>,
    pub hooked: Py<PyAny>,
    pub sync_rules: Rules,
    pub async_rules: Rules,
    pub strategy: Option<FaultStrategy>,
}

/// Retry rules: `any` if the producer chooses the queue, `selected` if the application does.
pub struct Rules {
    pub any: Arc<RetryRules>,
    pub selected: Arc<RetryRules>,
}

impl MessageSender {
    pub fn has_hooks(&self, py: Python<'_>) -> PyResult<bool> {
        self.hooks.bind(py).getattr(intern!(py, "are_there"))?.extract()
    }

    /// Calls the hooks before an attempt. Returns the hooks' context and the request to send.
    pub fn before<'py>(
        &self,
        messages: Bound<'py, PyAny>,
        outgoing: Bound<'py, Outgoing>,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let hooked = self.hooked.bind(messages.py());
        let prepared =
            hooked.call_method1(intern!(hooked.py(), "before"), (messages, outgoing, queue, address, mode))?;
        let (context, outgoing): (Bound<'py, PyAny>, Bound<'py, PyAny>) = prepared.extract()?;
        Ok((Some(context), outgoing.cast_into()?))
    }

    /// Calls the hooks after an attempt. Does nothing if they were not called before the attempt.
    pub fn after(&self, context: Option<&Bound<'_, PyAny>>, end: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(context) = context else { return Ok(()) };
        let py = context.py();
        self.hooked.bind(py).call_method1(intern!(py, "after"), (context, end)).map(drop)
    }

    /// Calls the hooks after a connection has failed. Returns the error to raise.
    pub fn failed_before(&self, py: Python<'_>, context: Option<&Bound<'_, PyAny>>, error: PyErr) -> PyResult<PyErr> {
        if context.is_none() || !error.is_instance_of::<RemotingError>(py) {
            return Ok(error);
        }
        let error = object(py, error).into_any();
        self.after(context, &error)?;
        Ok(PyErr::from_value(error))
    }

    /// Adds an asynchronous send of `size` bytes to those in flight, until the returned value is dropped. While there
    /// are too many, waits until `deadline`, then raises a timeout error.
    pub fn enter(&self, py: Python<'_>, size: usize, deadline: Instant) -> PyResult<Room> {
        // the GIL is kept in the usual case that there is room
        if let Some(room) = self.in_flight.try_enter(size) {
            return Ok(room);
        }
        let timeout = deadline.saturating_duration_since(Instant::now());
        let room = py.detach(|| self.in_flight.enter(size, timeout, signals::check)).map_err(remoting)?;
        room.ok_or_else(|| RemotingTimeoutError::new_err(self.in_flight.full_text(timeout)))
    }

    /// Sends a request if that needs no waiting. Otherwise sends nothing and returns `callback` to the caller.
    pub fn try_request(
        &self,
        outgoing: &Bound<'_, Outgoing>,
        queue_id: i32,
        address: &str,
        timeout: Duration,
        callback: Box<dyn Callback>,
    ) -> PyResult<Result<(), Box<dyn Callback>>> {
        self.with_fields(outgoing, queue_id, |code, fields| {
            let ask = interruptible(code, fields, outgoing.get().bytes(), timeout);
            self.connections.get().try_submit(address, ask, callback)
        })
    }

    /// Sends a request, and opens a connection if there is none. `callback` gets the outcome, unless this call fails.
    pub fn request(
        &self,
        outgoing: &Bound<'_, Outgoing>,
        queue_id: i32,
        address: &str,
        timeout: Duration,
        callback: Box<dyn Callback>,
        waits: bool,
    ) -> PyResult<()> {
        let py = outgoing.py();
        self.with_fields(outgoing, queue_id, |code, fields| {
            let ask = interruptible(code, fields, outgoing.get().bytes(), timeout);
            self.connections.get().submit_for(py, address, ask, callback, waits)
        })??;
        self.shared.bind(py).call_method1(intern!(py, "note_open"), (address,)).map(drop)
    }

    /// Whether this thread may wait until fewer sends are in flight. Threads that run callbacks must not.
    pub fn may_wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.bind(py).call_method0(intern!(py, "may_wait"))?.extract()
    }

    /// Calls `call` with the code and the fields of a request. The fields include the signature if the client has an
    /// account.
    pub fn with_fields<T>(
        &self,
        outgoing: &Bound<'_, Outgoing>,
        queue_id: i32,
        call: impl FnOnce(i32, &[(&str, Value<'_>)]) -> T,
    ) -> PyResult<T> {
        let (py, request) = (outgoing.py(), outgoing.get());
        let header = request.header(queue_id);
        // without ACL no Python dict is made of the header
        let Some(sign) = &self.sign else { return Ok(call(header.code(), &header.fields())) };
        let fields = request.fields(py, queue_id)?;
        // the signature covers all other fields, so it is added last
        let more = sign.bind(py).call1((header.code(), &fields, request.body(py)?))?;
        fields.update(more.cast::<PyMapping>()?)?;
        Ok(call(header.code(), &Fields(pairs(&fields)?).values()))
    }
}
