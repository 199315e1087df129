//! Converts queues to and from Python's `MessageQueue`.
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rmqfast_client::puller::Queue;

/// A queue that Python passed as `MessageQueue`.
pub struct PulledQueue(pub Queue);

impl FromPyObject<'_, '_> for PulledQueue {
    type Error = PyErr;

    fn extract(queue: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let py = queue.py();
        // read by attribute, so that subclasses and similar objects are accepted
        let broker_name = queue.getattr(intern!(py, "broker_name"))?.extract::<PyBackedStr>()?;
        let topic = queue.getattr(intern!(py, "topic"))?.extract()?;
        let queue_id = queue.getattr(intern!(py, "queue_id"))?.extract()?;
        Ok(Self(Queue { topic, broker_name: (*broker_name).into(), queue_id }))
    }
}

pub fn message_queue<'py>(py: Python<'py>, queue: &Queue) -> PyResult<Bound<'py, PyAny>> {
    // cached, since each answer needs the class
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "rmqfast.message", "MessageQueue")?;
    class.call1((&queue.topic, &*queue.broker_name, queue.queue_id))
}
