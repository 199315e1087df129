//! The Python methods of `MessageSender`.
use super::callback_send::CallbackSend;
use super::encoder::MessageEncoder;
use super::progress::{Progress, ends_attempt};
use super::publish_topics::{PublishQueues, PublishTopics};
use super::result::queue_id;
use super::send::PySend;
use super::sender::{ASYNC, MessageSender, ONEWAY, Rules, hook_messages_of, result_or_raise};
use crate::error::{object, remoting};
use crate::remoting::command::seconds;
use crate::remoting::connections::Connections;
use crate::signals;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};
use rmqfast_client::producer::{FaultStrategy, InFlight};
use std::time::Instant;

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
        let topics = PublishTopics::new(&instance, &options, namespace, is_registered)?;
        let leaves_slow_brokers: bool = options.getattr("leaves_slow_brokers")?.extract()?;
        let strategy = leaves_slow_brokers.then(FaultStrategy::default);
        let rules = Rules::of(&options)?;
        let limit = |name: &str| options.getattr(name)?.extract::<usize>();
        let in_flight = InFlight::new(limit("max_in_flight")?, limit("max_in_flight_bytes")?).into();
        Ok(Self { connections, shared, sign, encoder, in_flight, topics, hooks, hooked, rules, strategy })
    }

    /// Sends a message, with retries. Returns the `SendResult` or raises. `messages` is the argument of hooks.
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
        result_or_raise(end)
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
        let queues = this.topics.queues_for(py, &message)?;
        let chosen = this.topics.chosen(queues.get(), &message, queue, selector, argument)?;
        let began = Instant::now();
        let rules = if chosen.is_some() { &this.rules.async_selected } else { &this.rules.async_any };
        let mut progress = Progress::new(rules, chosen, began, timeout);
        let (queue, broker_name) = progress.begin(py, queues.get(), this.strategy())?;
        let address = this.topics.address_of(py, &queues.get().topic, &broker_name)?;
        let shown = || messages.map_or_else(|| hook_messages_of(&message), Ok);
        let (context, outgoing) = this.before(&message, shown, queues.get(), &queue, &address, ASYNC)?;
        let room = match this.enter(py, outgoing.get().bytes().len(), progress.deadline()) {
            Ok(room) => room,
            // hooks were called before, so they get the failure
            Err(error) => return Err(this.failed_before(py, context.as_ref(), error)?),
        };
        let send = CallbackSend::new(slf, outgoing, queues, progress, room, callback, context);
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
        Ok(PySend::new(slf, slf.get().start(message, queue, timeout, selector, argument, messages)?))
    }

    /// Validates a message, and returns the queues of its topic.
    fn queues_for(&self, message: Bound<'_, PyAny>) -> PyResult<Py<PublishQueues>> {
        let py = message.py();
        Ok(self.topics.queues_for(py, &message)?.clone_ref(py))
    }

    /// Returns the queues of a topic. If it does not exist, returns the queues that a broker will create for it.
    fn queues_of(&self, py: Python<'_>, topic: &str) -> PyResult<Py<PublishQueues>> {
        Ok(self.topics.queues_of(py, topic)?.clone_ref(py))
    }

    /// Returns the queues from the newest known route of a topic.
    fn newest_queues(&self, py: Python<'_>, topic: &str) -> PyResult<Option<Py<PublishQueues>>> {
        Ok(self.topics.newest(py, topic)?.map(|queues| queues.clone_ref(py)))
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
        let queues = self.topics.queues_for(message.py(), &message)?;
        Ok(self.topics.chosen(queues.get(), &message, queue, selector, argument)?.map(|(_, queue)| queue))
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

    /// Returns the topics to which messages were sent, with their namespace, and the template of new topics.
    fn topics(&self) -> Vec<String> {
        self.topics.names().into_iter().collect()
    }

    /// Lets the garbage collector find reference cycles, since instances and hooks may refer to the producer and so to
    /// this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self.topics.instance())?;
        visit.call(&self.shared)?;
        visit.call(self.sign.as_ref())?;
        visit.call(&self.hooks)?;
        visit.call(&self.hooked)
    }
}
