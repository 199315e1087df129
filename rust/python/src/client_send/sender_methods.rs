//! Sends the messages of a producer. A typical send is one call from Python to Rust, and an asynchronous send needs
//! only one call back to Python.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, `MQClientAPIImpl.sendMessageAsync`.
use super::async_send::{CallbackSend, PySend};
use super::encoder::MessageEncoder;
use super::publish_topics::{PublishQueues, PublishTopics, Selection};
use super::result::{SentMessage, queue_id};
use super::send_state::{Progress, SendState};
use super::sender::{ASYNC, MessageSender, ONEWAY, Rules, SYNC};
use crate::error::{ClientError, RemotingError, object, remoting};
use crate::remoting::command::{interruptible, seconds};
use crate::remoting::connections::Connections;
use crate::signals;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};
use rmqfast_client::producer::{FaultStrategy, InFlight, RetryRules};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[pymethods]
impl MessageSender {
    #[new]
    #[pyo3(signature = (connections, shared, sign, *, instance, options, namespace, is_registered, encoder, hooks, hooked))]
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
        hooks: Py<PyAny>,
        hooked: Py<PyAny>,
    ) -> PyResult<Self> {
        let number = |name: &str| options.getattr(name)?.extract::<usize>();
        let flag = |name: &str| options.getattr(name)?.extract::<bool>();
        let codes = options.getattr("retry_response_codes")?.try_iter()?;
        let sync_any = RetryRules {
            retries: number("retries")?,
            response_codes: codes.map(|code| code?.extract()).collect::<PyResult<HashSet<i32>>>()?,
            retry_another_broker: flag("retry_another_broker")?,
            ..RetryRules::once().moving()
        };
        let async_any = RetryRules { retries: number("async_retries")?, is_async: true, ..RetryRules::once().moving() };
        let async_selected = RetryRules { moves: false, ..async_any.clone() };
        Ok(Self {
            connections,
            shared,
            sign,
            encoder,
            in_flight: InFlight::new(number("max_in_flight")?, number("max_in_flight_bytes")?).into(),
            topics: PublishTopics::new(&instance, &options, namespace, is_registered)?,
            hooks,
            hooked,
            // a blocking send to a selected queue is not retried
            sync_rules: Rules { any: sync_any.into(), selected: RetryRules::once().into() },
            async_rules: Rules { any: async_any.into(), selected: async_selected.into() },
            strategy: flag("leaves_slow_brokers")?.then(FaultStrategy::default),
        })
    }

    /// Sends a message, with retries. Returns the `SendResult` or raises an error. `messages` is the argument of hooks.
    #[pyo3(signature = (message, queue, timeout, selector=None, argument=None, messages=None))]
    fn send<'py>(
        &self,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        timeout: f64,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
        messages: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, strategy) = (message.py(), self.strategy.as_ref());
        let mut send = self.start(message, (queue, selector, argument), timeout, messages, &self.sync_rules)?;
        loop {
            let (queue, broker_name) = send.progress.begin(py, strategy)?;
            let end = match self.attempt(py, &mut send, &queue, &broker_name) {
                // another attempt may succeed; other errors are raised at once
                Err(error) if error.is_instance_of::<RemotingError>(py) || error.is_instance_of::<ClientError>(py) => {
                    object(py, error).into_any()
                }
                outcome => outcome?,
            };
            if !send.progress.record(&end, strategy, None)? {
                return send.progress.result(py);
            }
        }
    }

    /// Sends a message asynchronously. `callback` is called exactly once with the `SendResult` or the error, unless
    /// this call raises.
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
        let mut send = this.start(message, (queue, selector, argument), timeout, messages, &this.async_rules)?;
        let (queue, address) = this.first_place(py, &mut send)?;
        let (context, outgoing) = send.before(py, this, &queue, &address, ASYNC)?;
        let room = match this.enter(py, outgoing.get().bytes().len(), send.progress.deadline()) {
            Ok(room) => room,
            // hooks were called before, so they get the failure
            Err(error) => return Err(this.failed_before(py, context.as_ref(), error)?),
        };
        let send = CallbackSend::new(slf, outgoing, send.progress, room, callback, context);
        match send.request_until_in_flight(py, queue, address)? {
            Some((callback, end)) => callback.call1((end,)).map(drop),
            None => Ok(()),
        }
    }

    /// Sends a message once, without an answer.
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
        let mut send = self.start(message, (queue, selector, argument), timeout, None, &self.sync_rules)?;
        let (queue, address) = self.first_place(py, &mut send)?;
        let (context, outgoing) = send.before(py, self, &queue, &address, ONEWAY)?;
        let request = outgoing.get();
        let (code, fields) = (request.header(0).code(), request.fields(py, queue_id(&queue)?)?);
        let shared = self.shared.bind(py);
        match shared.call_method1(intern!(py, "send_oneway"), (&*address, code, fields, request.body(py)?)) {
            Ok(_) => self.after(context.as_ref(), &py.None().into_bound(py)),
            Err(error) => Err(self.failed_before(py, context.as_ref(), error)?),
        }
    }

    /// Starts a send whose attempts an event loop makes one by one.
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
        let this = slf.get();
        let send = this.start(message, (queue, selector, argument), timeout, messages, &this.sync_rules)?;
        Ok(PySend::new(slf, send))
    }

    /// Validates a message, and returns the queues of its topic.
    fn queues_for(&self, message: Bound<'_, PyAny>) -> PyResult<Py<PublishQueues>> {
        self.topics.queues_for(&message)
    }

    /// Returns the queues of a topic. If it does not exist, returns the queues that a broker will create for it.
    fn queues_of(&self, py: Python<'_>, topic: &str) -> PyResult<Py<PublishQueues>> {
        self.topics.queues_of(py, topic)
    }

    /// Returns the queues from the newest known route of a topic.
    fn newest_queues(&self, py: Python<'_>, topic: &str) -> PyResult<Option<Py<PublishQueues>>> {
        self.topics.newest(py, topic)
    }

    /// Returns the queue that the application selected; `None` if the producer shall choose it.
    #[pyo3(signature = (message, queue=None, selector=None, argument=None))]
    fn chosen_queue<'py>(
        &self,
        message: Bound<'py, PyAny>,
        queue: Option<Bound<'py, PyAny>>,
        selector: Option<Bound<'py, PyAny>>,
        argument: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let queues = self.topics.queues_for(&message)?;
        Ok(self.topics.chosen(queues.get(), &message, (queue, selector, argument))?.map(|(_, queue)| queue))
    }

    /// Returns the address of a broker's master.
    fn address_of(&self, py: Python<'_>, topic: &str, broker_name: &str) -> PyResult<String> {
        Ok(self.topics.address_of(py, topic, broker_name)?.to_string())
    }

    /// Number of asynchronous sends in flight.
    #[getter]
    fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Waits until no asynchronous sends are in flight. Returns false after `timeout` seconds.
    fn wait_until_sent(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        py.detach(|| self.in_flight.wait_until_empty(seconds(timeout), signals::check)).map_err(remoting)
    }

    /// Whether the queues of a topic are known, so that no name server has to be asked.
    fn knows(&self, topic: &str) -> bool {
        self.topics.is_known(topic)
    }

    /// Returns the topics to which messages were sent, with their namespace, and `create_topic_key`: the topic whose
    /// settings brokers use to create a missing topic.
    fn topics(&self) -> Vec<String> {
        self.topics.names().into_iter().collect()
    }

    /// Lets the garbage collector find reference cycles: the client instance and the hooks may refer to the producer,
    /// which refers to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.topics.instance)?;
        visit.call(&self.shared)?;
        visit.call(self.sign.as_ref())?;
        visit.call(&self.hooks)?;
        visit.call(&self.hooked)
    }
}

impl MessageSender {
    fn start<'py>(
        &self,
        message: Bound<'py, PyAny>,
        selection: Selection<'py>,
        timeout: f64,
        messages: Option<Bound<'py, PyAny>>,
        rules: &Rules,
    ) -> PyResult<SendState> {
        // read first, since the lookup of the route counts towards the timeout
        let began = Instant::now();
        let queues = self.topics.queues_for(&message)?;
        let chosen = self.topics.chosen(queues.get(), &message, selection)?;
        let rules = if chosen.is_some() { &rules.selected } else { &rules.any };
        Ok(SendState::new(Progress::new(queues, rules, chosen, began, timeout), message, messages))
    }

    /// Begins the first attempt. Returns its queue and the address of its broker.
    fn first_place<'py>(&self, py: Python<'py>, send: &mut SendState) -> PyResult<(Bound<'py, PyAny>, Arc<str>)> {
        let (queue, broker_name) = send.progress.begin(py, self.strategy.as_ref())?;
        Ok((queue, self.topics.address_of(py, &send.progress.queues.get().topic, &broker_name)?))
    }

    /// Makes a blocking attempt. Returns the `SendResult`, or the error object of a broker's refusal.
    fn attempt<'py>(
        &self,
        py: Python<'py>,
        send: &mut SendState,
        queue: &Bound<'py, PyAny>,
        broker_name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let address = self.topics.address_of(py, &send.progress.queues.get().topic, broker_name)?;
        let (context, outgoing) = send.before(py, self, queue, &address, SYNC)?;
        let deadline = send.progress.deadline();
        let answer = self.with_fields(&outgoing, queue_id(queue)?, |code, fields| {
            // at least 1 ms, so that the connection reports the timeout with its own text
            let timeout = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.connections.get().ask(py, &address, interruptible(code, fields, outgoing.get().bytes(), timeout))
        })?;
        if let Err(error) = answer {
            return Err(self.failed_before(py, context.as_ref(), remoting(error))?);
        }
        let sent = SentMessage { unique_id: outgoing.get().texts.unique_id(), queue, address: &address };
        let end = sent.outcome(answer)?;
        self.after(context.as_ref(), &end)?;
        Ok(end)
    }
}
