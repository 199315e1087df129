//! Sends the messages of a producer. A typical send is one call from Python to Rust, and an asynchronous send needs
//! only one call back to Python.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`, `MQClientAPIImpl.sendMessage`, `sendMessageAsync`.
use super::encoder::MessageEncoder;
use super::outgoing::Outgoing;
use super::progress::Progress;
use super::publish_topics::{PublishQueues, PublishTopics};
use super::result::{SentMessage, queue_id};
use crate::error::{RemotingError, RemotingTimeoutError, object, remoting};
use crate::pairs::{Pairs, pairs};
use crate::remoting::callback_table::Callback;
use crate::remoting::command::{Fields, interruptible};
use crate::remoting::connections::Connections;
use crate::signals;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDictMethods, PyMapping, PyTuple};
use rmqfast_client::producer::{FaultStrategy, InFlight, RetryRules, Room};
use rmqfast_remoting::{OwnedCommand, Result, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The names of `CommunicationMode`: the caller of a send waits for the answer, gets a callback, or gets no answer.
pub const SYNC: &str = "SYNC";
pub const ASYNC: &str = "ASYNC";
pub const ONEWAY: &str = "ONEWAY";

/// Sends the messages of a producer. Methods accept a message or an encoded `Outgoing`.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageSender {
    pub(super) connections: Py<Connections>,
    /// `rmqfast.remoting.Connections`, which owns the threads that run callbacks.
    pub(super) shared: Py<PyAny>,
    /// Callable that returns additional header fields for access control. Its arguments are the code, fields and body
    /// of a request.
    pub(super) sign: Option<Py<PyAny>>,
    pub(super) encoder: Py<MessageEncoder>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) topics: PublishTopics,
    /// Python's `Hooks` object. `hooked` holds its `HookedSends`.
    pub(super) hooks: Py<PyAny>,
    pub(super) hooked: Py<PyAny>,
    pub(super) rules: Rules,
    pub(super) strategy: Option<FaultStrategy>,
}

/// Retry rules for each kind of send. They differ by who selects the queue: the producer ("any") or the application
/// ("selected").
pub struct Rules {
    pub(super) sync_any: Arc<RetryRules>,
    pub(super) sync_selected: Arc<RetryRules>,
    pub(super) async_any: Arc<RetryRules>,
    pub(super) async_selected: Arc<RetryRules>,
}

impl Rules {
    pub fn of(options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let codes = options.getattr("retry_response_codes")?.try_iter()?;
        let sync_any = RetryRules {
            retries: options.getattr("retries")?.extract()?,
            response_codes: codes.map(|code| code?.extract()).collect::<PyResult<HashSet<i32>>>()?,
            retry_another_broker: options.getattr("retry_another_broker")?.extract()?,
            ..RetryRules::once().moving()
        };
        let retries = options.getattr("async_retries")?.extract()?;
        let async_any = RetryRules { retries, is_async: true, ..RetryRules::once().moving() };
        Ok(Self {
            sync_selected: RetryRules::once().into(),
            async_selected: RetryRules { moves: false, ..async_any.clone() }.into(),
            sync_any: sync_any.into(),
            async_any: async_any.into(),
        })
    }
}

/// The state of a send that has not ended yet.
pub struct SendState {
    pub queues: Arc<Py<PublishQueues>>,
    /// The message. It is replaced by its `Outgoing` when it is encoded, so that all attempts have the same id.
    message: Py<PyAny>,
    messages: Option<Py<PyAny>>,
    pub progress: Progress,
}

impl SendState {
    pub fn begin<'py>(
        &mut self,
        py: Python<'py>,
        strategy: Option<&FaultStrategy>,
    ) -> PyResult<(Bound<'py, PyAny>, Arc<str>)> {
        self.progress.begin(py, self.queues.get(), strategy)
    }

    /// Returns the encoded message. Encodes it at the first call.
    pub fn encode<'py>(&mut self, py: Python<'py>, sender: &MessageSender) -> PyResult<Bound<'py, Outgoing>> {
        let message = self.message.bind(py);
        if let Ok(made) = message.cast::<Outgoing>() {
            return Ok(made.clone());
        }
        // hooks get the original message
        if self.messages.is_none() {
            self.messages = Some(hook_messages_of(message)?.unbind());
        }
        let made = sender.encode(message, self.queues.get())?;
        self.message = made.clone().into_any().unbind();
        Ok(made)
    }

    /// Returns the messages for hooks. The list is empty for Arrow rows.
    pub fn hook_messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.messages.as_ref().map_or_else(|| PyTuple::empty(py).into_any(), |messages| messages.bind(py).clone())
    }

    /// Calls the hooks before an attempt. Returns the hooks' context and the request to send.
    pub fn before<'py>(
        &mut self,
        py: Python<'py>,
        sender: &MessageSender,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let made = self.encode(py, sender)?;
        let shown = self.hook_messages(py);
        sender.before(made.as_any(), || Ok(shown), self.queues.get(), queue, address, mode)
    }
}

impl MessageSender {
    pub fn topics_of(&self) -> &PublishTopics {
        &self.topics
    }

    pub fn strategy(&self) -> Option<&FaultStrategy> {
        self.strategy.as_ref()
    }

    pub fn shared(&self) -> &Py<PyAny> {
        &self.shared
    }

    /// Takes room for an asynchronous send of `size` bytes. Waits for it until `deadline`, then raises a timeout error.
    pub fn enter(&self, py: Python<'_>, size: usize, deadline: Instant) -> PyResult<Room> {
        // the GIL is kept in the usual case that there is room
        if let Some(room) = self.in_flight.try_enter(size) {
            return Ok(room);
        }
        let timeout = deadline.saturating_duration_since(Instant::now());
        let room = py.detach(|| self.in_flight.enter(size, timeout, signals::check)).map_err(remoting)?;
        room.ok_or_else(|| RemotingTimeoutError::new_err(self.in_flight.full_text(timeout)))
    }

    pub fn connections(&self) -> &Connections {
        self.connections.get()
    }

    pub fn has_hooks(&self, py: Python<'_>) -> PyResult<bool> {
        self.hooks.bind(py).getattr(intern!(py, "are_there"))?.extract()
    }

    pub fn start<'py>(
        &self,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
        messages: Option<Bound<'py, PyAny>>,
    ) -> PyResult<SendState> {
        // taken first, since the lookup of the route counts towards the timeout
        let began = Instant::now();
        let queues = self.topics.queues_for(message.py(), &message)?;
        let chosen = self.topics.chosen(queues.get(), &message, queue, selector, argument)?;
        // a send to a selected queue is not retried
        let rules = if chosen.is_some() { &self.rules.sync_selected } else { &self.rules.sync_any };
        let progress = Progress::new(rules, chosen, began, timeout);
        Ok(SendState { queues, message: message.unbind(), messages: messages.map(Bound::unbind), progress })
    }

    /// Makes a blocking attempt. Returns the `SendResult` or the error as an object.
    pub fn attempt<'py>(
        &self,
        py: Python<'py>,
        send: &mut SendState,
        queue: &Bound<'py, PyAny>,
        broker_name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let address = self.topics.address_of(py, &send.queues.get().topic, broker_name)?;
        let (context, outgoing) = if self.has_hooks(py)? {
            send.before(py, self, queue, &address, SYNC)?
        } else {
            (None, send.encode(py, self)?)
        };
        let deadline = send.progress.deadline();
        let asked = self.with_fields(&outgoing, queue_id(queue)?, |code, fields| {
            // at least 1 ms, so that the connection reports the timeout with its own text
            let timeout = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.connections.get().ask(py, &address, interruptible(code, fields, outgoing.get().bytes(), timeout))
        })?;
        let sent = SentMessage { unique_id: outgoing.get().texts.unique_id(), queue, address: &address };
        let end = outcome_of(py, &sent, asked)?;
        self.after(context.as_ref(), &end)?;
        Ok(end)
    }

    /// Returns the request of a message, which is encoded now unless it was encoded before.
    pub fn encode<'py>(&self, message: &Bound<'py, PyAny>, queues: &PublishQueues) -> PyResult<Bound<'py, Outgoing>> {
        if let Ok(made) = message.cast::<Outgoing>() {
            return Ok(made.clone());
        }
        let topic = queues.topic.clone_ref(message.py());
        Bound::new(message.py(), self.encoder.get().encode(message, topic, Pairs::new(), 0)?)
    }

    /// Calls the hooks before a send, if there are any. Returns their context and the request to send.
    pub fn before<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        messages: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        queues: &PublishQueues,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let (py, made) = (message.py(), self.encode(message, queues)?);
        if !self.has_hooks(py)? {
            return Ok((None, made));
        }
        let prepared =
            self.hooked.bind(py).call_method1(intern!(py, "before"), (messages()?, made, queue, address, mode))?;
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
        if !error.is_instance_of::<RemotingError>(py) {
            return Ok(error);
        }
        let error = object(py, error).into_any();
        self.after(context, &error)?;
        Ok(PyErr::from_value(error))
    }

    /// Sends a request if that needs no waiting. Otherwise returns `callback`.
    pub fn try_request(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        address: &str,
        timeout: Duration,
        callback: Box<dyn Callback>,
    ) -> PyResult<std::result::Result<(), Box<dyn Callback>>> {
        self.with_fields(made, queue_id, |code, fields| {
            let ask = interruptible(code, fields, made.get().bytes(), timeout);
            self.connections.get().try_submit(address, ask, callback)
        })
    }

    /// Sends a request, and opens a connection if there is none. `callback` gets the outcome, unless this call fails.
    pub fn request(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        address: &str,
        timeout: Duration,
        callback: Box<dyn Callback>,
        waits: bool,
    ) -> PyResult<()> {
        let py = made.py();
        self.with_fields(made, queue_id, |code, fields| {
            let ask = interruptible(code, fields, made.get().bytes(), timeout);
            self.connections.get().submit_for(py, address, ask, callback, waits)
        })??;
        self.shared.bind(py).call_method1(intern!(py, "note_open"), (address,)).map(drop)
    }

    /// Whether this thread may wait for room. Threads that run callbacks must not.
    pub fn may_wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.bind(py).call_method0(intern!(py, "may_wait"))?.extract()
    }

    /// Calls `call` with the code and the fields of a request. The fields include the signature if the client has an
    /// account.
    fn with_fields<T>(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        call: impl FnOnce(i32, &[(&str, Value<'_>)]) -> T,
    ) -> PyResult<T> {
        let (py, outgoing) = (made.py(), made.get());
        let header = outgoing.header(queue_id);
        // without ACL no Python dict is made of the header
        let Some(sign) = &self.sign else { return Ok(call(header.code(), &header.fields())) };
        let fields = outgoing.fields(py, queue_id)?;
        // the signature covers all other fields, so it is added last
        let more = sign.bind(py).call1((header.code(), &fields, outgoing.body(py)?))?;
        fields.update(more.cast::<PyMapping>()?)?;
        Ok(call(header.code(), &Fields(pairs(&fields)?).values()))
    }
}

/// Returns the messages that hooks get for a send: the message, or an empty tuple for Arrow rows.
pub fn hook_messages_of<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    let is_made = message.cast::<Outgoing>().is_ok();
    Ok(if is_made { PyTuple::empty(py) } else { PyTuple::new(py, [message])? }.into_any())
}

/// Returns a `SendResult`, or raises an error object.
pub fn result_or_raise(end: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if super::result::is_result(&end)? { Ok(end) } else { Err(PyErr::from_value(end)) }
}

/// Returns a `SendResult`, or a connection error as an object, since the send may be retried. Raises other errors.
pub fn outcome_of<'py>(
    py: Python<'py>,
    sent: &SentMessage<'_, 'py>,
    asked: Result<OwnedCommand>,
) -> PyResult<Bound<'py, PyAny>> {
    match asked {
        Ok(answer) => sent.outcome(&answer),
        Err(error) => {
            let error = remoting(error);
            if error.is_instance_of::<RemotingError>(py) { Ok(object(py, error).into_any()) } else { Err(error) }
        }
    }
}
