use super::message_queue::message_queue;
use crate::error::{RemotingConnectError, RemotingError, ResponseError, client, object};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use rmqfast_client::cluster::{self, AskError, BrokerData, QueueData, RouteData, RouteRefusal};
use rmqfast_client::producer::DEFAULT_TOPIC;
use rmqfast_remoting::code::{request, response};

/// The name servers of an instance. Requests go to the same name server until it does not answer.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct NameServers {
    core: cluster::NameServers,
    /// `rmqfast.remoting.Connections`, which also signs requests.
    connections: Py<PyAny>,
    /// Callable that logs a warning.
    warn: Py<PyAny>,
}

#[pymethods]
impl NameServers {
    #[new]
    fn new(addresses: Vec<String>, connections: Py<PyAny>, warn: Py<PyAny>) -> Self {
        Self { core: cluster::NameServers::new(addresses), connections, warn }
    }

    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.core.addresses().to_vec()
    }

    #[getter]
    fn chosen(&self) -> Option<&str> {
        self.core.chosen()
    }

    fn check(&self) -> PyResult<()> {
        self.core.check().map_err(client)
    }

    #[pyo3(signature = (code, ext_fields=None, *, timeout=3.0))]
    fn request<'py>(
        &self,
        py: Python<'py>,
        code: i32,
        ext_fields: Option<Bound<'py, PyAny>>,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check()?;
        let named = PyDict::new(py);
        named.set_item("timeout", timeout)?;
        let request = |address: &str| {
            let arguments = (address, code, &ext_fields);
            let answer = self.connections.bind(py).call_method(intern!(py, "request"), arguments, Some(&named));
            answer.map_err(|error| match error.is_instance_of::<RemotingError>(py) {
                true => AskError::NoAnswer(object(py, error).to_string()),
                false => AskError::Other(error),
            })
        };
        // logged at once: the next name server may take as long as the one before
        let mut unlogged = None;
        let asked = self.core.ask(request, |text| {
            if let Err(error) = self.warn.call1(py, (text,)) {
                unlogged.get_or_insert(error);
            }
        });
        unlogged.map_or(Ok(()), Err)?;
        asked?.map_err(|failures| RemotingConnectError::new_err(failures.join("; ")))
    }

    fn route<'py>(&self, py: Python<'py>, topic: &str, timeout: f64) -> PyResult<Bound<'py, PyAny>> {
        topic_route(py, &self.fetch(py, topic, timeout)?.map_err(refusal_error)?)
    }

    fn readable_queues<'py>(&self, py: Python<'py>, topic: &str, timeout: f64) -> PyResult<Bound<'py, PyTuple>> {
        readable_queues(py, topic, &self.fetch(py, topic, timeout)?.map_err(refusal_error)?)
    }

    fn ping(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        // any topic will do: a refusal is an answer, too
        self.fetch(py, DEFAULT_TOPIC, timeout).map(drop).map_err(|error| unreachable(py, error))
    }
}

impl NameServers {
    /// Fetches the route of a topic. Returns the route, or the name server's refusal. A malformed route counts as a
    /// refusal.
    pub fn fetch(&self, py: Python<'_>, topic: &str, timeout: f64) -> PyResult<Result<RouteData, RouteRefusal>> {
        let fields = PyDict::new(py);
        fields.set_item("topic", topic)?;
        let answer = self.request(py, request::GET_ROUTEINFO_BY_TOPIC, Some(fields.into_any()), timeout)?;
        let code = answer.getattr("code")?.extract()?;
        if code != response::SUCCESS {
            let remark: Option<String> = answer.getattr("remark")?.extract()?;
            return Ok(Err((code, remark.unwrap_or_default())));
        }
        let body: PyBackedBytes = answer.getattr("body")?.extract()?;
        Ok(RouteData::of_body(&body).map_err(|problem| (response::SYSTEM_ERROR, problem)))
    }
}

pub fn refusal_error((code, remark): RouteRefusal) -> PyErr {
    ResponseError::new_err((code, remark))
}

/// Converts the error of a request that no name server answered to an error that also tells the user's next step.
/// Returns other errors unchanged.
pub fn unreachable(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<RemotingError>(py) {
        return client(cluster::unreachable(object(py, error).to_string()));
    }
    error
}

pub fn readable_queues<'py>(py: Python<'py>, topic: &str, route: &RouteData) -> PyResult<Bound<'py, PyTuple>> {
    let queues = cluster::readable_queues(topic, route);
    let queues = queues.iter().map(|queue| message_queue(py, queue)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, queues)
}

pub fn topic_route<'py>(py: Python<'py>, route: &RouteData) -> PyResult<Bound<'py, PyAny>> {
    static QUEUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static BROKER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ROUTE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let queue_class = QUEUE.import(py, "rmqfast.remoting.protocol.queue_data", "QueueData")?;
    let broker_class = BROKER.import(py, "rmqfast.remoting.protocol.broker_data", "BrokerData")?;
    let route_class = ROUTE.import(py, "rmqfast.remoting.protocol.topic_route_data", "TopicRouteData")?;
    let queue = |data: &QueueData| {
        let QueueData { broker_name, read_queues, write_queues, perm, topic_sys_flag } = data;
        queue_class.call1((&**broker_name, read_queues, write_queues, perm, topic_sys_flag))
    };
    let broker = |data: &BrokerData| {
        let addresses = PyDict::new(py);
        data.addresses.iter().try_for_each(|(id, address)| addresses.set_item(id, &**address))?;
        broker_class.call1((&data.cluster, &*data.broker_name, addresses))
    };
    let queues = PyTuple::new(py, route.queues.iter().map(queue).collect::<PyResult<Vec<_>>>()?)?;
    let brokers = PyTuple::new(py, route.brokers.iter().map(broker).collect::<PyResult<Vec<_>>>()?)?;
    let order = Some(&route.order_topic_conf).filter(|conf| !conf.is_empty());
    route_class.call1((queues, brokers, PyDict::new(py), order))
}
