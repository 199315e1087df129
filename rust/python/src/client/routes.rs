//! Exposes the routes that all clients of an instance share.
use super::name_servers::{NameServers, readable_queues, refusal_error, topic_route, unreachable};
use crate::error::{client, object};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use rmqfast_client::cluster;
use rmqfast_client::producer::no_route;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct RouteTable {
    core: cluster::RouteTable,
    name_servers: Py<NameServers>,
    timeout: f64,
    translate: Option<Py<PyAny>>,
}

#[pymethods]
impl RouteTable {
    #[new]
    #[pyo3(signature = (name_servers, timeout, translate=None))]
    fn new(name_servers: Py<NameServers>, timeout: f64, translate: Option<Py<PyAny>>) -> Self {
        Self { core: cluster::RouteTable::default(), name_servers, timeout, translate }
    }

    /// Fetches the route of a topic. Returns whether it differs from the known route. After an error the known route
    /// stays in use.
    #[pyo3(signature = (topic, default=None))]
    fn update(&self, py: Python<'_>, topic: &str, default: Option<(PyBackedStr, i32)>) -> PyResult<bool> {
        let fetch = |topic: &str| self.name_servers.get().fetch(py, topic, self.timeout);
        let default = default.as_ref().map(|(topic, queues)| (&**topic, *queues));
        match self.core.fetch(topic, default, fetch).map_err(|error| unreachable(py, error))? {
            Ok(route) => self.core.put(topic, route, |address| match &self.translate {
                Some(translate) => translate.call1(py, (&**address,))?.extract::<String>(py).map(Into::into),
                None => Ok(address.clone()),
            }),
            Err(refusal) => {
                self.core.refuse(topic, refusal.clone());
                Err(refusal_error(refusal))
            }
        }
    }

    /// Returns the error for a topic without a route, with the last refusal of a name server.
    fn no_route_error<'py>(&self, py: Python<'py>, topic: &str) -> Bound<'py, PyBaseException> {
        object(py, self.no_route(topic))
    }

    fn get<'py>(&self, py: Python<'py>, topic: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.core.get(topic).map(|route| topic_route(py, &route)).transpose()
    }

    /// Returns the readable queues of a topic, sorted. Includes the queues of brokers that have no master now.
    fn readable_queues<'py>(&self, py: Python<'py>, topic: &str) -> PyResult<Bound<'py, PyTuple>> {
        readable_queues(py, topic, &self.core.get(topic).unwrap_or_default())
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

    pub fn no_route(&self, topic: &str) -> PyErr {
        client(no_route(topic, self.core.refusal(topic)))
    }
}
