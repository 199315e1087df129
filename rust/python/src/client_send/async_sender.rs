//! Sends that nobody waits for: what usually becomes of them costs Python no more than the call of the callback.
use super::in_flight::InFlight;
use super::outgoing::Outgoing;
use crate::remoting::askers::{Asker, Told, as_it_is};
use crate::remoting::command::seconds;
use crate::remoting::connections::Connections;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use rmqfast_remoting::{Ask, OwnedCommand, Result};
use std::time::{Duration, Instant};

/// Sends requests of a producer, as long as nothing about them is unusual; what is, `sends` goes on with.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct AsyncSender {
    connections: Py<Connections>,
    in_flight: Py<InFlight>,
}

#[pymethods]
impl AsyncSender {
    #[new]
    fn new(connections: Py<Connections>, in_flight: Py<InFlight>) -> Self {
        Self { connections, in_flight }
    }

    /// Takes room for a send, and sends where that needs no waiting. Returns how many seconds are left where it was not sent.
    #[allow(clippy::too_many_arguments, reason = "all that a send consists of")]
    fn submit(
        &self,
        sends: Py<PyAny>,
        outgoing: Bound<'_, Outgoing>,
        queue: Bound<'_, PyAny>,
        queues: Py<PyAny>,
        callback: Py<PyAny>,
        timeout: f64,
        address: PyBackedStr,
    ) -> PyResult<Option<f64>> {
        let (py, began) = (outgoing.py(), Instant::now());
        let queue_id: i32 = queue.getattr(intern!(py, "queue_id"))?.extract()?;
        let request = outgoing.get();
        self.in_flight.get().take(py, request.bytes().len(), timeout)?;
        let left = seconds(timeout).saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(Some(0.0));
        }
        let header = request.header(queue_id);
        let ask = Ask { code: header.code(), fields: &header.fields(), body: request.bytes(), timeout: left };
        let send = AsyncSend {
            sends,
            in_flight: self.in_flight.clone_ref(py),
            outgoing: outgoing.clone().unbind(),
            queue: queue.unbind(),
            queue_id,
            queues,
            callback,
            address: address.clone_ref(py),
            began,
            timeout: seconds(timeout),
        };
        let is_sent = self.connections.get().try_submit(&address, ask, Box::new(send));
        Ok((!is_sent).then_some(left.as_secs_f64()))
    }
}

/// One send on its way.
struct AsyncSend {
    sends: Py<PyAny>,
    in_flight: Py<InFlight>,
    outgoing: Py<Outgoing>,
    queue: Py<PyAny>,
    queue_id: i32,
    queues: Py<PyAny>,
    callback: Py<PyAny>,
    address: PyBackedStr,
    began: Instant,
    timeout: Duration,
}

impl Asker for AsyncSend {
    fn told(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Told<'_>> {
        if let Ok(answer) = &outcome
            && let Some(result) = self.result(py, answer)?
        {
            self.in_flight.get().give_back(self.outgoing.get().bytes().len());
            return Ok((self.callback.into_bound(py), result));
        }
        let left = self.timeout.saturating_sub(self.began.elapsed()).as_secs_f64();
        let address = PyString::new(py, &self.address);
        let send = (self.outgoing, self.queue, self.queues, self.callback, left, address);
        let on_done = self.sends.bind(py).call_method1(intern!(py, "resumed"), send)?;
        Ok((on_done, as_it_is(py, outcome)?))
    }
}

impl AsyncSend {
    /// What the answer says where the message is stored as it was sent.
    ///
    /// Source: `MQClientAPIImpl.processSendResponse`.
    fn result<'py>(&self, py: Python<'py>, answer: &OwnedCommand) -> PyResult<Option<Bound<'py, PyAny>>> {
        let field = |name| answer.fields.get(name);
        let numbers = (field("queueId").map(str::parse::<i32>), field("queueOffset").map(str::parse::<i64>));
        let (Some(id), (Some(Ok(queue_id)), Some(Ok(offset)))) = (field("msgId"), numbers) else { return Ok(None) };
        if answer.code != 0 || queue_id != self.queue_id {
            return Ok(None);
        }
        let class = ResultClass::get(py)?;
        let region = match field("MSG_REGION").filter(|region| !region.is_empty()) {
            None => class.default_region.bind(py).clone(),
            Some(region) => PyString::new(py, region).into_any(),
        };
        let unique_id = PyString::new(py, self.outgoing.get().texts.unique_id());
        let is_traced = field("TRACE_ON") != Some("false");
        let values = (&class.stored, unique_id, id, &self.queue, offset, field("transactionId"), region, is_traced);
        class.new.call1(py, (&class.class, values)).map(|result| Some(result.into_bound(py)))
    }
}

/// What a `SendResult` is made with: as its class does it, in a part of the time.
struct ResultClass {
    class: Py<PyType>,
    new: Py<PyAny>,
    stored: Py<PyAny>,
    default_region: Py<PyAny>,
}

impl ResultClass {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        static CLASS: PyOnceLock<ResultClass> = PyOnceLock::new();
        CLASS.get_or_try_init(py, || {
            let module = py.import("rmqfast.client.producer.send_result")?;
            Ok(Self {
                class: module.getattr("SendResult")?.cast_into::<PyType>()?.unbind(),
                new: py.get_type::<PyTuple>().getattr("__new__")?.unbind(),
                stored: module.getattr("SendStatus")?.getattr("SEND_OK")?.unbind(),
                default_region: module.getattr("DEFAULT_REGION")?.unbind(),
            })
        })
    }
}
