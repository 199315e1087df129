//! Sends the messages of a producer: a usual send crosses the border once, and a usual end of an asynchronous one costs Python no more
//! than the call of the callback.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`, `MQClientAPIImpl.sendMessage`, `sendMessageAsync`.
use super::encoder::MessageEncoder;
use super::in_flight::InFlight;
use super::outgoing::Outgoing;
use super::progress::Progress;
use super::publish_topics::{PublishQueues, PublishTopics};
use super::result::{Sent, queue_id};
use crate::error::{RemotingError, object, remoting};
use crate::pairs::{Pairs, pairs};
use crate::remoting::callback_table::Callback;
use crate::remoting::command::{Fields, interruptible};
use crate::remoting::connections::Connections;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDictMethods, PyMapping, PyTuple};
use rmqfast_client::producer::{FaultStrategy, RetryRules};
use rmqfast_remoting::{OwnedCommand, Result, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who waits for the answer, by the names of `CommunicationMode`.
pub const SYNC: &str = "SYNC";
pub const ASYNC: &str = "ASYNC";
pub const ONEWAY: &str = "ONEWAY";

/// Sends the messages of a producer, and what was made of messages before; `message` is either of them.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageSender {
    pub(super) connections: Py<Connections>,
    /// `rmqfast.remoting.Connections`, which has the threads that call back.
    pub(super) shared: Py<PyAny>,
    /// Gives further header fields of a request, by its code, its fields and its body: ACL.
    pub(super) sign: Option<Py<PyAny>>,
    pub(super) encoder: Py<MessageEncoder>,
    pub(super) in_flight: Py<InFlight>,
    pub(super) topics: PublishTopics,
    /// Python's `Hooks` and `HookedSends`.
    pub(super) hooks: Py<PyAny>,
    pub(super) hooked: Py<PyAny>,
    pub(super) rules: Rules,
    pub(super) strategy: Option<FaultStrategy>,
}

/// When sends are tried again.
pub struct Rules {
    pub(super) waited: Arc<RetryRules>,
    /// Of a queue that the application chose, for whoever waits.
    pub(super) once: Arc<RetryRules>,
    pub(super) in_callbacks: Arc<RetryRules>,
    /// Of a queue that the application chose.
    pub(super) in_callbacks_there: Arc<RetryRules>,
}

impl Rules {
    pub fn of(options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let codes = options.getattr("retry_response_codes")?.try_iter()?;
        let waited = RetryRules {
            retries: options.getattr("retries")?.extract()?,
            response_codes: codes.map(|code| code?.extract()).collect::<PyResult<HashSet<i32>>>()?,
            retry_another_broker: options.getattr("retry_another_broker")?.extract()?,
            ..RetryRules::once().moving()
        };
        let retries = options.getattr("async_retries")?.extract()?;
        let in_callbacks = RetryRules { retries, is_async: true, ..RetryRules::once().moving() };
        Ok(Self {
            once: RetryRules::once().into(),
            in_callbacks_there: RetryRules { moves: false, ..in_callbacks.clone() }.into(),
            waited: waited.into(),
            in_callbacks: in_callbacks.into(),
        })
    }
}

/// One send, before its end.
pub struct SendState {
    pub queues: Arc<Py<PublishQueues>>,
    /// What was made of it takes a message's place, so that each attempt has the same id.
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

    /// What is sent, made of its message unless it is made already.
    pub fn made<'py>(&mut self, py: Python<'py>, sender: &MessageSender) -> PyResult<Bound<'py, Outgoing>> {
        let message = self.message.bind(py);
        if let Ok(made) = message.cast::<Outgoing>() {
            return Ok(made.clone());
        }
        // hooks see it as it was
        if self.messages.is_none() {
            self.messages = Some(shown_as(message)?.unbind());
        }
        let made = sender.made(message, self.queues.get())?;
        self.message = made.clone().into_any().unbind();
        Ok(made)
    }

    /// The messages that hooks see; none of rows of Arrow.
    pub fn shown<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.messages.as_ref().map_or_else(|| PyTuple::empty(py).into_any(), |messages| messages.bind(py).clone())
    }

    /// Tells hooks that an attempt begins; the context, and what is sent then.
    pub fn before<'py>(
        &mut self,
        py: Python<'py>,
        sender: &MessageSender,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let made = self.made(py, sender)?;
        let shown = self.shown(py);
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

    pub fn in_flight(&self) -> &InFlight {
        self.in_flight.get()
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
        // before the route is looked up: that is part of the timeout, too
        let began = Instant::now();
        let queues = self.topics.queues_for(message.py(), &message)?;
        let chosen = self.topics.chosen(queues.get(), &message, queue, selector, argument)?;
        let rules = if chosen.is_some() { &self.rules.once } else { &self.rules.waited };
        let progress = Progress::new(rules, chosen, began, timeout);
        Ok(SendState { queues, message: message.unbind(), messages: messages.map(Bound::unbind), progress })
    }

    /// One attempt that is waited for: the `SendResult` or the error.
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
            (None, send.made(py, self)?)
        };
        let deadline = send.progress.deadline();
        let asked = self.with_fields(&outgoing, queue_id(queue)?, |code, fields| {
            // never nothing: the connection tells a time that is over itself, with its own words
            let timeout = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.connections.get().ask(py, &address, interruptible(code, fields, outgoing.get().bytes(), timeout))
        })?;
        let sent = Sent { unique_id: outgoing.get().texts.unique_id(), queue, address: &address };
        let end = ended(py, &sent, asked)?;
        self.after(context.as_ref(), &end)?;
        Ok(end)
    }

    /// What is sent of a message, or was made of one before.
    pub fn made<'py>(&self, message: &Bound<'py, PyAny>, queues: &PublishQueues) -> PyResult<Bound<'py, Outgoing>> {
        if let Ok(made) = message.cast::<Outgoing>() {
            return Ok(made.clone());
        }
        let topic = queues.topic.clone_ref(message.py());
        Bound::new(message.py(), self.encoder.get().encode(message, topic, Pairs::new(), 0)?)
    }

    /// Tells hooks, where there are any, that a message is about to be sent: the context, and what is sent then.
    pub fn before<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        messages: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        queues: &PublishQueues,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let (py, made) = (message.py(), self.made(message, queues)?);
        if !self.has_hooks(py)? {
            return Ok((None, made));
        }
        let told =
            self.hooked.bind(py).call_method1(intern!(py, "before"), (messages()?, made, queue, address, mode))?;
        let (context, outgoing): (Bound<'py, PyAny>, Bound<'py, PyAny>) = told.extract()?;
        Ok((Some(context), outgoing.cast_into()?))
    }

    /// Tells hooks how an attempt ended, if they were told that it began.
    pub fn after(&self, context: Option<&Bound<'_, PyAny>>, end: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(context) = context else { return Ok(()) };
        let py = context.py();
        self.hooked.bind(py).call_method1(intern!(py, "after"), (context, end)).map(drop)
    }

    /// Tells hooks that a connection kept a message from being sent; the error, to be raised.
    pub fn failed_before(&self, py: Python<'_>, context: Option<&Bound<'_, PyAny>>, error: PyErr) -> PyResult<PyErr> {
        if !error.is_instance_of::<RemotingError>(py) {
            return Ok(error);
        }
        let error = object(py, error).into_any();
        self.after(context, &error)?;
        Ok(PyErr::from_value(error))
    }

    /// Asks, if that needs no waiting; otherwise nothing was asked, and `callback` is dropped.
    pub fn try_request(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        address: &str,
        timeout: Duration,
        callback: Box<dyn Callback>,
    ) -> PyResult<bool> {
        self.with_fields(made, queue_id, |code, fields| {
            let ask = interruptible(code, fields, made.get().bytes(), timeout);
            self.connections.get().try_submit(address, ask, callback)
        })
    }

    /// Asks, and opens a connection where there is none; `callback` is told how it ended, unless this fails.
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

    /// Whether this thread may wait for room: those that call back may not.
    pub fn may_wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.bind(py).call_method0(intern!(py, "may_wait"))?.extract()
    }

    /// Calls with the code and the fields of a request, which are signed where they have to be.
    fn with_fields<T>(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        call: impl FnOnce(i32, &[(&str, Value<'_>)]) -> T,
    ) -> PyResult<T> {
        let (py, outgoing) = (made.py(), made.get());
        let header = outgoing.header(queue_id);
        // without ACL no dictionary of Python's is made of the header
        let Some(sign) = &self.sign else { return Ok(call(header.code(), &header.fields())) };
        let fields = outgoing.fields(py, queue_id)?;
        // a signature covers all other fields, so it comes last
        let more = sign.bind(py).call1((header.code(), &fields, outgoing.body(py)?))?;
        fields.update(more.cast::<PyMapping>()?)?;
        Ok(call(header.code(), &Fields(pairs(&fields)?).values()))
    }
}

/// What hooks are shown of a message: itself, and nothing of rows.
pub fn shown_as<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    let is_made = message.cast::<Outgoing>().is_ok();
    Ok(if is_made { PyTuple::empty(py) } else { PyTuple::new(py, [message])? }.into_any())
}

/// A `SendResult`; an error is raised.
pub fn raised(end: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if super::result::is_result(&end)? { Ok(end) } else { Err(PyErr::from_value(end)) }
}

/// The `SendResult`, or the error of a connection, after which a send may be tried again; other errors are raised.
pub fn ended<'py>(py: Python<'py>, sent: &Sent<'_, 'py>, asked: Result<OwnedCommand>) -> PyResult<Bound<'py, PyAny>> {
    match asked {
        Ok(answer) => sent.ended(&answer),
        Err(error) => {
            let error = remoting(error);
            if error.is_instance_of::<RemotingError>(py) { Ok(object(py, error).into_any()) } else { Err(error) }
        }
    }
}
