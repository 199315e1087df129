//! The topics of a producer: validates messages, and finds the queues of their topics.
//!
//! Source: `DefaultMQProducerImpl.topicPublishInfoTable`, `tryToFindTopicPublishInfo`.
use super::outgoing::Outgoing;
use crate::client::message_queue::{PulledQueue, message_queue};
use crate::client::routes::RouteTable;
use crate::error::{ArgumentError, client, client_error};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString, PyTuple};
use rmqfast_client::cluster::RouteData;
use rmqfast_client::names::{unwrap, wrap};
use rmqfast_client::producer::{self, Choice, broker_not_exist};
use rmqfast_client::puller::Queue;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const TIMERS: [&str; 3] = ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"];
/// `MQVersion.Version.V5_0_0`, the number by which a broker reports this version.
const V5_0_0: i32 = 413;

/// The queues of a topic, with their Python objects.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct PublishQueues {
    pub core: producer::PublishQueues,
    /// Topic with its namespace.
    pub topic: PyBackedStr,
    /// Topic without its namespace, for the application.
    shown_topic: Py<PyString>,
    queues: Py<PyTuple>,
}

#[pymethods]
impl PublishQueues {
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    #[getter]
    fn queues(&self, py: Python<'_>) -> Py<PyTuple> {
        self.queues.clone_ref(py)
    }
}

impl PublishQueues {
    fn of(py: Python<'_>, namespace: &str, topic: &str, route: &RouteData) -> PyResult<Self> {
        let core = producer::PublishQueues::of(topic, route);
        let shown_topic = unwrap(namespace, topic);
        let shown = |queue: &Queue| message_queue(py, &Queue { topic: shown_topic.clone(), ..queue.clone() });
        let queues = core.queues.iter().map(shown).collect::<PyResult<Vec<_>>>()?;
        Ok(Self {
            core,
            topic: PyString::new(py, topic).try_into()?,
            queues: PyTuple::new(py, queues)?.unbind(),
            shown_topic: PyString::new(py, &shown_topic).unbind(),
        })
    }

    /// Returns the Python object of a queue.
    pub fn queue<'py>(&self, py: Python<'py>, choice: &Choice) -> PyResult<Bound<'py, PyAny>> {
        match choice {
            Choice::Listed(index) => self.queues.bind(py).get_item(*index),
            Choice::Named(broker_name, queue_id) => {
                let topic = self.shown_topic.bind(py).extract()?;
                message_queue(py, &Queue { topic, broker_name: broker_name.clone(), queue_id: *queue_id })
            }
        }
    }
}

/// The queue that the application chose; or its selector, and the selector's argument.
pub type Selection<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

pub struct PublishTopics {
    pub instance: Py<PyAny>,
    routes: Py<RouteTable>,
    namespace: String,
    create_topic_key: String,
    default_topic_queues: i32,
    max_message_size: usize,
    /// Whether the producer sends heartbeats. If so, one is sent as soon as a topic is used for the first time, so that
    /// brokers know the producer.
    is_registered: bool,
    /// Keyed by the topic names that applications use, with or without the namespace.
    topics: Mutex<HashMap<String, Topic>>,
}

#[derive(Default)]
struct Topic {
    is_name_checked: bool,
    /// Whether messages were sent to the topic. The routes of used topics are refreshed regularly.
    is_used: bool,
    known: Option<Known>,
}

struct Known {
    queues: Py<PublishQueues>,
    route: Arc<RouteData>,
    /// Version of the route table when the queues were looked up.
    version: u64,
}

impl PublishTopics {
    pub fn new(
        instance: &Bound<'_, PyAny>,
        options: &Bound<'_, PyAny>,
        namespace: String,
        is_registered: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            routes: instance.getattr("routes")?.cast_into::<RouteTable>()?.unbind(),
            instance: instance.clone().unbind(),
            namespace,
            create_topic_key: options.getattr("create_topic_key")?.extract()?,
            default_topic_queues: options.getattr("default_topic_queue_nums")?.extract()?,
            max_message_size: options.getattr("max_message_size")?.extract()?,
            is_registered,
            topics: Mutex::default(),
        })
    }

    /// Returns the topics to which messages were sent, with their namespace, and `create_topic_key`: the topic whose
    /// settings brokers use to create a missing topic.
    pub fn names(&self) -> BTreeSet<String> {
        let topics = self.lock();
        let used = topics.iter().filter(|(_, topic)| topic.is_used).map(|(name, _)| wrap(&self.namespace, name));
        used.chain([self.create_topic_key.clone()]).collect()
    }

    /// Whether the queues of a topic are known, so that no name server has to be asked.
    pub fn is_known(&self, name: &str) -> bool {
        self.lock().get(name).is_some_and(|topic| topic.is_used && topic.known.is_some())
    }

    /// Validates a message, and returns the queues of its topic.
    pub fn queues_for(&self, message: &Bound<'_, PyAny>) -> PyResult<Py<PublishQueues>> {
        let py = message.py();
        if let Ok(outgoing) = message.cast::<Outgoing>() {
            return self.queues_of(py, &outgoing.get().topic);
        }
        let topic: PyBackedStr = message.getattr(intern!(py, "topic"))?.extract()?;
        let size = message.getattr(intern!(py, "body"))?.len().unwrap_or(0);
        // an empty or large body needs the full validation, which reports it
        let may_be_large = size == 0 || size > self.max_message_size;
        // fast path: the topic was validated before, and no route has changed
        let queues = match self.fresh(py, &topic).filter(|_| !may_be_large) {
            Some(queues) => queues,
            None => {
                self.check(py, &topic, message, may_be_large)?;
                self.queues_of(py, &topic)?
            }
        };
        if is_timed(message)? {
            self.check_timers(py, queues.get())?;
        }
        Ok(queues)
    }

    /// Returns the queues of a topic. If it does not exist, returns the queues that a broker will create for it.
    ///
    /// Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
    pub fn queues_of(&self, py: Python<'_>, name: &str) -> PyResult<Py<PublishQueues>> {
        let is_used = self.lock().get(name).is_some_and(|topic| topic.is_used);
        let open = |queues: &Py<PublishQueues>| !queues.get().core.queues.is_empty();
        if (is_used || !self.is_registered)
            && let Some(queues) = self.newest(py, name)?.filter(open)
        {
            return Ok(queues);
        }
        self.lock().entry(name.to_owned()).or_default().is_used = true;
        let (instance, wrapped) = (self.instance.bind(py), wrap(&self.namespace, name));
        // brokers create a topic that does not exist with its first message, after the default topic
        let default = (&self.create_topic_key, self.default_topic_queues);
        instance.call_method1(intern!(py, "update_route"), (&wrapped, default))?;
        let queues = self.newest(py, name)?.filter(open);
        let queues = queues.ok_or_else(|| self.routes.get().no_route(&wrapped))?;
        if self.is_registered {
            // Java's producers send this heartbeat a second later, too late for a broker that must check a transaction
            instance.call_method0(intern!(py, "send_heartbeats"))?;
        }
        Ok(queues)
    }

    /// Returns the queues from the newest known route of a topic; `None` without a route.
    pub fn newest(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PublishQueues>>> {
        let routes = self.routes.get().core();
        // read before the route, so that a concurrent update causes another lookup
        let version = routes.version();
        let wrapped = wrap(&self.namespace, name);
        let Some(route) = routes.get(&wrapped) else { return Ok(None) };
        let known = |topic: &Topic| topic.known.as_ref().map(|known| (known.queues.clone_ref(py), known.route.clone()));
        // queues of an unchanged route are reused, so that `MessageQueue` objects are made once
        let known = self.lock().get(name).and_then(known).filter(|(_, of)| Arc::ptr_eq(of, &route));
        let queues = match known {
            Some((queues, _)) => queues,
            None => Py::new(py, PublishQueues::of(py, &self.namespace, &wrapped, &route)?)?,
        };
        let known = Known { queues: queues.clone_ref(py), route, version };
        self.lock().entry(name.to_owned()).or_default().known = Some(known);
        Ok(Some(queues))
    }

    /// Returns the queue that the application selected; `None` if the producer shall choose it.
    pub fn chosen<'py>(
        &self,
        queues: &PublishQueues,
        message: &Bound<'py, PyAny>,
        (queue, selector, argument): Selection<'py>,
    ) -> PyResult<Option<(Choice, Bound<'py, PyAny>)>> {
        let py = message.py();
        let queue = match (queue, selector) {
            (None, None) => return Ok(None),
            (Some(queue), None) => queue,
            (Some(_), Some(_)) => return Err(ArgumentError::new_err("expected a queue or a selector, got both")),
            (None, Some(selector)) => {
                let queue = selector.call1((queues.queues.bind(py), message, argument))?;
                if queue.is_none() {
                    return Err(client_error(py, "select message queue return null.".to_owned(), -1)?);
                }
                queue
            }
        };
        let PulledQueue(Queue { topic, broker_name, queue_id }) = queue.extract()?;
        let choice = Choice::Named(broker_name, queue_id);
        let shown = queues.shown_topic.bind(py).extract::<PyBackedStr>()?;
        if topic == *shown {
            return Ok(Some((choice, queue)));
        }
        // the application may have named the topic with its namespace
        if unwrap(&self.namespace, &topic) != *shown {
            return Err(client_error(py, "message's topic not equal mq's topic".to_owned(), -1)?);
        }
        let queue = queues.queue(py, &choice)?;
        Ok(Some((choice, queue)))
    }

    /// Returns the address of a broker's master; `None` if it is unknown.
    pub fn known_address(&self, broker_name: &str) -> Option<Arc<str>> {
        self.routes.get().core().publish_address(broker_name)
    }

    /// Returns the address of a broker's master. If it is unknown, fetches the topic's route again.
    pub fn address_of(&self, py: Python<'_>, topic: &str, broker_name: &str) -> PyResult<Arc<str>> {
        if let Some(address) = self.known_address(broker_name) {
            return Ok(address);
        }
        self.instance.bind(py).call_method1(intern!(py, "update_route"), (topic,))?;
        self.known_address(broker_name).ok_or_else(|| client(broker_not_exist(broker_name)))
    }

    /// Returns the known queues of a topic. Returns `None` if they are unknown, or if any route has changed since they
    /// were looked up.
    fn fresh(&self, py: Python<'_>, name: &str) -> Option<Py<PublishQueues>> {
        let topics = self.lock();
        let topic = topics.get(name).filter(|topic| topic.is_name_checked && topic.is_used)?;
        let known = topic.known.as_ref().filter(|known| known.version == self.routes.get().core().version())?;
        Some(known.queues.clone_ref(py)).filter(|queues| !queues.get().core.queues.is_empty())
    }

    fn check(&self, py: Python<'_>, topic: &str, message: &Bound<'_, PyAny>, may_be_large: bool) -> PyResult<()> {
        if may_be_large || !self.lock().get(topic).is_some_and(|topic| topic.is_name_checked) {
            let named = PyDict::new(py);
            named.set_item("max_message_size", self.max_message_size)?;
            let validators = py.import("rmqfast.client.instance.validators")?;
            validators.call_method("check_message", (message,), Some(&named))?;
            self.lock().entry(topic.to_owned()).or_default().is_name_checked = true;
        }
        Ok(())
    }

    /// Refuses a message with a timer if a broker of its topic is older than 5.0, since such a broker would deliver the
    /// message at once.
    fn check_timers(&self, py: Python<'_>, queues: &PublishQueues) -> PyResult<()> {
        let names: BTreeSet<_> = queues.core.queues.iter().map(|queue| &queue.broker_name).collect();
        for name in names {
            let Some(address) = self.known_address(name) else { continue };
            let release = self.routes.get().core().release(name, &address);
            // 0 means that the broker has not told its release yet
            if 0 < release && release < V5_0_0 {
                let text = format!(
                    "a message with a timer needs a broker of RocketMQ 5.0 or later, but {name} at {address} is older \
                     (version {release}): it would deliver the message at once\ngive a delay_level, which every broker \
                     has, in place of delay or deliver_at"
                );
                return Err(client_error(py, text, -1)?);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Topic>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message has a timer of RocketMQ 5. A message with a delay level ignores its timer.
///
/// Source: `HookUtils.checkIfTimerMessage`.
#[pyfunction]
pub fn is_timed(message: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = message.py();
    let properties = message.getattr(intern!(py, "properties"))?;
    if properties.len()? == 0 {
        return Ok(false);
    }
    let mut has_timer = false;
    for name in TIMERS {
        has_timer |= properties.contains(name)?;
    }
    let is_delayed = || Ok::<_, PyErr>(message.getattr("delay_level")?.is_truthy()? || properties.contains("DELAY")?);
    Ok(has_timer && !is_delayed()?)
}
