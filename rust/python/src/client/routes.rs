//! Exposes the routes that all clients of an instance share.
use super::message_queue::message_queue;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use rmqfast_client::cluster::{self, BrokerData, QueueData, RouteData, readable_queues};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct RouteTable {
    core: cluster::RouteTable,
    translate: Option<Py<PyAny>>,
}

#[pymethods]
impl RouteTable {
    #[new]
    #[pyo3(signature = (translate=None))]
    fn new(translate: Option<Py<PyAny>>) -> Self {
        Self { core: cluster::RouteTable::default(), translate }
    }

    /// Stores the route of a topic. Returns whether it differs from the known route.
    #[pyo3(signature = (topic, route, *, new_topic_queues=None))]
    fn put(&self, topic: &str, route: &Bound<'_, PyAny>, new_topic_queues: Option<i32>) -> PyResult<bool> {
        let mut data = route_data(route)?;
        if let Some(queues) = new_topic_queues {
            data = data.for_new_topic(queues);
        }
        // an equal route keeps the table's version, so that cached queues stay valid
        if self.core.get(topic).is_some_and(|before| data.says_as(&before)) {
            return Ok(false);
        }
        let py = route.py();
        self.core.put(topic, data, |address| match &self.translate {
            Some(translate) => translate.call1(py, (&**address,))?.extract::<String>(py).map(Into::into),
            None => Ok(address.clone()),
        })?;
        Ok(true)
    }

    fn get<'py>(&self, py: Python<'py>, topic: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.core.get(topic).map(|route| topic_route(py, &route)).transpose()
    }

    fn brokers(&self) -> BTreeMap<String, BTreeMap<i64, String>> {
        let texts =
            |addresses: cluster::Addresses| addresses.into_iter().map(|(id, at)| (id, at.to_string())).collect();
        self.core.brokers().into_iter().map(|(name, addresses)| (name.to_string(), texts(addresses))).collect()
    }

    fn publish_address(&self, broker_name: &str) -> Option<String> {
        self.core.publish_address(broker_name).map(|address| address.to_string())
    }

    #[pyo3(signature = (broker_name, broker_id=0, *, only_this=false))]
    fn subscribe_address<'py>(
        &self,
        py: Python<'py>,
        broker_name: &str,
        broker_id: i64,
        only_this: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let Some(found) = self.core.subscribe_address(broker_name, broker_id, only_this) else { return Ok(None) };
        let class = CLASS.import(py, "rmqfast.client.instance.routes", "FoundBroker")?;
        class.call1((&*found.address, found.is_slave, found.release)).map(Some)
    }

    fn any_address(&self, topic: &str) -> Option<String> {
        // a random broker, so that clients spread their requests
        let chance = RandomState::new();
        let address = self.core.any_address(topic, |count| chance.hash_one(count) as usize % count);
        address.map(|address| address.to_string())
    }

    fn set_version(&self, broker_name: &str, address: &str, version: i32) {
        self.core.set_release(broker_name, address, version);
    }

    fn version(&self, broker_name: &str, address: &str) -> i32 {
        self.core.release(broker_name, address)
    }

    fn clean_offline_brokers(&self) -> Vec<String> {
        self.core.clean_offline_brokers().iter().map(ToString::to_string).collect()
    }
}

impl RouteTable {
    pub fn core(&self) -> &cluster::RouteTable {
        &self.core
    }
}

/// Returns the readable queues of a `TopicRouteData`, sorted.
#[pyfunction]
pub fn subscribe_queues<'py>(topic: &str, route: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = route.py();
    let queues = readable_queues(topic, &route_data(route)?);
    let queues = queues.iter().map(|queue| message_queue(py, queue)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, queues)
}

/// Reads Python's `TopicRouteData`, attribute by attribute.
fn route_data(route: &Bound<'_, PyAny>) -> PyResult<RouteData> {
    let text = |of: &Bound<'_, PyAny>, name| of.getattr(name)?.extract::<String>();
    let queue = |data: PyResult<Bound<'_, PyAny>>| {
        let data = data?;
        Ok(QueueData {
            broker_name: text(&data, "broker_name")?.into(),
            read_queues: data.getattr("read_queue_nums")?.extract()?,
            write_queues: data.getattr("write_queue_nums")?.extract()?,
            perm: data.getattr("perm")?.extract()?,
            topic_sys_flag: data.getattr("topic_sys_flag")?.extract()?,
        })
    };
    let broker = |data: PyResult<Bound<'_, PyAny>>| {
        let data = data?;
        let addresses = data.getattr("addresses")?.cast_into::<PyDict>()?;
        let address =
            |(id, at): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((id.extract()?, at.extract::<String>()?.into()));
        Ok(BrokerData {
            cluster: text(&data, "cluster")?,
            broker_name: text(&data, "broker_name")?.into(),
            addresses: addresses.iter().map(address).collect::<PyResult<_>>()?,
            may_act_as_master: false,
        })
    };
    let order_topic_conf: Option<String> = route.getattr("order_topic_conf")?.extract()?;
    Ok(RouteData {
        queues: route.getattr("queue_datas")?.try_iter()?.map(queue).collect::<PyResult<_>>()?,
        brokers: route.getattr("broker_datas")?.try_iter()?.map(broker).collect::<PyResult<_>>()?,
        order_topic_conf: order_topic_conf.unwrap_or_default(),
    })
}

fn topic_route<'py>(py: Python<'py>, route: &Arc<RouteData>) -> PyResult<Bound<'py, PyAny>> {
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
