//! The brokers of a topic, as the driver of a stream asks them again and again.
use super::request::PyTopicRead;
use super::warnings::log;
use crate::client::message_queue::{PulledQueue, message_queue};
use crate::error::{client, spark};
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_client::cluster::{self, Bounds};
use rmqfast_client::puller::Queue;
use rmqfast_spark::topic_read::{TopicRead, wanted_queues};
use std::collections::BTreeMap;

const LOGGER: &str = "rmqfast.spark";

/// The brokers of a topic.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct TopicCluster {
    read: TopicRead,
    cluster: cluster::TopicCluster,
}

#[pymethods]
impl TopicCluster {
    #[new]
    fn new(read: PyTopicRead<'_>) -> PyResult<Self> {
        let read = read.into_read()?;
        let cluster = read.open_cluster().map_err(spark)?;
        Ok(Self { read, cluster })
    }

    fn look_up(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let route = py.detach(|| self.cluster.route(&mut signals::waiting())).map_err(client)?;
        log(py, LOGGER, self.cluster.take_warnings())?;
        Ok(route.addresses)
    }

    #[pyo3(signature = (only=None, *, is_patient=false))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        only: Option<Vec<PulledQueue>>,
        is_patient: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        // of the last `look_up`: a batch and the offsets it began with are of one route
        let queues = py.detach(|| self.cluster.last_route(&mut signals::waiting())).map_err(client)?.queues;
        let queues = match only {
            None => wanted_queues(queues, self.read.queue_ids.as_deref()).map_err(spark)?,
            Some(only) => only.into_iter().map(|queue| queue.0).filter(|queue| queues.contains(queue)).collect(),
        };
        let bounds = py.detach(|| self.cluster.bounds(&queues, is_patient, &mut signals::waiting())).map_err(client)?;
        log(py, LOGGER, self.cluster.take_warnings())?;
        by_queue(py, bounds)
    }

    fn initial<'py>(&self, py: Python<'py>, bounds: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let bounds = pairs::<Bounds>(&bounds)?;
        let initial = py.detach(|| self.read.initial(&self.cluster, bounds, &mut signals::waiting()));
        let (initial, warnings) = initial.map_err(spark)?;
        log(py, LOGGER, warnings)?;
        by_queue(py, initial)
    }

    fn commit(&self, py: Python<'_>, group: &str, offsets: Bound<'_, PyDict>) -> PyResult<()> {
        let offsets = pairs::<i64>(&offsets)?;
        py.detach(|| self.cluster.commit(group, &offsets, &mut signals::waiting())).map_err(client)?;
        log(py, LOGGER, self.cluster.take_warnings())
    }

    fn close(&self) {
        self.cluster.close();
    }
}

fn by_queue<'py, T: IntoPyObject<'py>>(py: Python<'py>, values: Vec<(Queue, T)>) -> PyResult<Bound<'py, PyDict>> {
    let by_queue = PyDict::new(py);
    values.into_iter().try_for_each(|(queue, value)| by_queue.set_item(message_queue(py, &queue)?, value))?;
    Ok(by_queue)
}

fn pairs<'py, T>(by_queue: &Bound<'py, PyDict>) -> PyResult<Vec<(Queue, T)>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    by_queue.iter().map(|(queue, value)| Ok((queue.extract::<PulledQueue>()?.0, value.extract::<T>()?))).collect()
}
