//! Sends the messages of a producer: a usual send crosses the border once, and a usual end of an asynchronous one costs Python no more
//! than the call of the callback.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`, `MQClientAPIImpl.sendMessage`, `sendMessageAsync`.
use super::callback_send::CallbackSend;
use super::encoder::MessageEncoder;
use super::in_flight::InFlight;
use super::outgoing::Outgoing;
use super::progress::{Progress, ends_attempt};
use super::publish_topics::{PublishQueues, PublishTopics};
use super::result::{Sent, queue_id};
use super::send::PySend;
use crate::error::{RemotingError, object, remoting};
use crate::pairs::{Pairs, pairs};
use crate::remoting::callback_table::Callback;
use crate::remoting::command::{Fields, interruptible};
use crate::remoting::connections::Connections;
use pyo3::prelude::*;
use pyo3::types::{PyDictMethods, PyMapping, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use rmqfast_client::producer::{FaultStrategy, RetryRules};
use rmqfast_remoting::{OwnedCommand, Result, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who waits for the answer, by the names of `CommunicationMode`.
pub const SYNC: &str = "SYNC";
pub const ASYNC: &str = "ASYNC";
const ONEWAY: &str = "ONEWAY";

/// Sends the messages of a producer, and what was made of messages before; `message` is either of them.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageSender {
    connections: Py<Connections>,
    /// `rmqfast.remoting.Connections`, which has the threads that call back.
    shared: Py<PyAny>,
    /// Gives further header fields of a request, by its code, its fields and its body: ACL.
    sign: Option<Py<PyAny>>,
    encoder: Py<MessageEncoder>,
    in_flight: Py<InFlight>,
    topics: PublishTopics,
    /// Python's `Hooks` and `HookedSends`.
    hooks: Py<PyAny>,
    hooked: Py<PyAny>,
    rules: Rules,
    strategy: Option<FaultStrategy>,
}

/// When sends are tried again.
struct Rules {
    waited: Arc<RetryRules>,
    /// Of a queue that the application chose, for whoever waits.
    once: Arc<RetryRules>,
    in_callbacks: Arc<RetryRules>,
    /// Of a queue that the application chose.
    in_callbacks_there: Arc<RetryRules>,
}

impl Rules {
    fn of(options: &Bound<'_, PyAny>) -> PyResult<Self> {
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

#[pymethods]
impl MessageSender {
    #[new]
    #[pyo3(signature = (connections, shared, sign, *, instance, options, namespace, is_registered, encoder, in_flight, hooks, hooked))]
    #[allow(clippy::too_many_arguments, reason = "all that a producer has")]
    fn new(
        connections: Py<Connections>,
        shared: Py<PyAny>,
        sign: Option<Py<PyAny>>,
        instance: Bound<'_, PyAny>,
        options: Bound<'_, PyAny>,
        namespace: String,
        is_registered: bool,
        encoder: Py<MessageEncoder>,
        in_flight: Py<InFlight>,
        hooks: Py<PyAny>,
        hooked: Py<PyAny>,
    ) -> PyResult<Self> {
        let topics = PublishTopics::new(&instance, &options, namespace, is_registered)?;
        let leaves_slow_brokers: bool = options.getattr("leaves_slow_brokers")?.extract()?;
        let strategy = leaves_slow_brokers.then(FaultStrategy::default);
        let rules = Rules::of(&options)?;
        Ok(Self { connections, shared, sign, encoder, in_flight, topics, hooks, hooked, rules, strategy })
    }

    /// Sends, and makes attempts until one has stored the message; `messages` are those that hooks see.
    #[pyo3(signature = (message, queue, timeout, selector=None, argument=None, messages=None))]
    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
        messages: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let mut send = this.start(message, queue, timeout, selector, argument, messages)?;
        let end = loop {
            let (queue, broker_name) = send.begin(py, this.strategy())?;
            let end = match this.attempt(py, &mut send, &queue, &broker_name) {
                Err(error) if ends_attempt(py, &error) => object(py, error).into_any(),
                ended => ended?,
            };
            if !send.progress.record(&end, this.strategy(), None)? {
                break send.progress.end(py, send.queues.get())?;
            }
        };
        raised(end)
    }

    /// Sends, and calls `callback` with the `SendResult` or the error, exactly once, unless this raises.
    #[pyo3(signature = (message, queue, timeout, callback, selector=None, argument=None, messages=None))]
    #[allow(clippy::too_many_arguments, reason = "all that a send consists of")]
    fn submit<'py>(
        slf: &Bound<'py, Self>,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        callback: Bound<'py, PyAny>,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
        messages: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let queues = this.topics.queues_for(py, &message)?;
        let chosen = this.topics.chosen(queues.get(), &message, queue, selector, argument)?;
        let began = Instant::now();
        let rules = if chosen.is_some() { &this.rules.in_callbacks_there } else { &this.rules.in_callbacks };
        let mut progress = Progress::new(rules, chosen, began, timeout);
        let (queue, broker_name) = progress.begin(py, queues.get(), this.strategy())?;
        let address = this.topics.address_of(py, &queues.get().topic, &broker_name)?;
        let shown = || messages.map_or_else(|| shown_as(&message), Ok);
        let (context, outgoing) = this.before(&message, shown, queues.get(), &queue, &address, ASYNC)?;
        let left = progress.deadline().saturating_duration_since(Instant::now()).as_secs_f64();
        if let Err(error) = this.in_flight.get().take(py, outgoing.get().bytes().len(), left.max(0.0)) {
            return Err(this.failed_before(py, context.as_ref(), error)?);
        }
        let send = CallbackSend::new(slf, outgoing, queues, progress, callback, context);
        match send.request_until_in_flight(py, queue, address)? {
            Some((callback, end)) => callback.call1((end,)).map(drop),
            None => Ok(()),
        }
    }

    /// Sends once, without an answer.
    #[pyo3(signature = (message, queue, timeout, selector=None, argument=None))]
    fn send_oneway<'py>(
        &self,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = message.py();
        let mut send = self.start(message, queue, timeout, selector, argument, None)?;
        let (queue, broker_name) = send.begin(py, self.strategy())?;
        let address = self.topics.address_of(py, &send.queues.get().topic, &broker_name)?;
        let (context, outgoing) = send.before(py, self, &queue, &address, ONEWAY)?;
        let request = outgoing.get();
        let (code, fields) = (request.header(0).code(), request.fields(py, queue_id(&queue)?)?);
        let shared = self.shared.bind(py);
        match shared.call_method1(intern!(py, "send_oneway"), (&*address, code, fields, request.body(py)?)) {
            Ok(_) => self.after(context.as_ref(), &py.None().into_bound(py)),
            Err(error) => Err(self.failed_before(py, context.as_ref(), error)?),
        }
    }

    /// A send whose attempts are made one by one, for an event loop.
    #[pyo3(signature = (message, queue, timeout, selector=None, argument=None, messages=None))]
    fn begin_send<'py>(
        slf: &Bound<'py, Self>,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
        messages: Option<Bound<'py, PyAny>>,
    ) -> PyResult<PySend> {
        Ok(PySend::new(slf, slf.get().start(message, queue, timeout, selector, argument, messages)?))
    }

    /// Checks a message, and gives the queues that it may go to.
    fn queues_for(&self, message: Bound<'_, PyAny>) -> PyResult<Py<PublishQueues>> {
        let py = message.py();
        Ok(self.topics.queues_for(py, &message)?.clone_ref(py))
    }

    /// The queues of a topic; of one that is not there those that it would get.
    fn queues_of(&self, py: Python<'_>, topic: &str) -> PyResult<Py<PublishQueues>> {
        Ok(self.topics.queues_of(py, topic)?.clone_ref(py))
    }

    /// The queues of a topic as its newest route has them.
    fn newest_queues(&self, py: Python<'_>, topic: &str) -> PyResult<Option<Py<PublishQueues>>> {
        Ok(self.topics.newest(py, topic)?.map(|queues| queues.clone_ref(py)))
    }

    /// The queue that the application wants; `None` where it leaves the choice.
    #[pyo3(signature = (message, queue=None, selector=None, argument=None))]
    fn chosen_queue<'py>(
        &self,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let queues = self.topics.queues_for(message.py(), &message)?;
        Ok(self.topics.chosen(queues.get(), &message, queue, selector, argument)?.map(|(_, queue)| queue))
    }

    /// The address of a broker's master.
    fn address_of(&self, py: Python<'_>, topic: &str, broker_name: &str) -> PyResult<String> {
        Ok(self.topics.address_of(py, topic, broker_name)?.to_string())
    }

    /// Whether the queues of a topic are known, so that nobody has to be asked.
    fn knows(&self, topic: &str) -> bool {
        self.topics.is_known(topic)
    }

    /// The topics that messages go to, as brokers know them.
    fn topics(&self) -> Vec<String> {
        self.topics.names().into_iter().collect()
    }

    /// Instances and hooks may refer to the producer, and so to this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self.topics.instance())?;
        visit.call(&self.shared)?;
        visit.call(self.sign.as_ref())?;
        visit.call(&self.hooks)?;
        visit.call(&self.hooked)
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
    fn before<'py>(
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

    fn start<'py>(
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
    fn attempt<'py>(
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
fn shown_as<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
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
