//! Converts a broker's answer to a send into objects of `rmqfast.client.producer`.
//!
//! Source: `MQClientAPIImpl.processSendResponse`.
use crate::error::{RemotingProtocolError, ResponseError, object, remoting};
use crate::remoting::command::dict;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use rmqfast_client::producer::{Refusal, SendStatus, StoredMessage};
use rmqfast_remoting::{OwnedCommand, Result};

/// Names of `SendStatus`, in the order of the Rust enum.
const STATUSES: [&str; 4] = ["SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"];

/// A message and the attempt to send it, which has ended.
#[derive(Clone, Copy)]
pub struct SentMessage<'a, 'py> {
    /// The message id. For a batch, the ids of all messages.
    pub unique_id: &'a str,
    /// The `MessageQueue` of the attempt.
    pub queue: &'a Bound<'py, PyAny>,
    /// The broker's address, for errors.
    pub address: &'a str,
}

/// Returns the id of a Python `MessageQueue`.
pub fn queue_id(queue: &Bound<'_, PyAny>) -> PyResult<i32> {
    queue.getattr(intern!(queue.py(), "queue_id"))?.extract()
}

impl<'py> SentMessage<'_, 'py> {
    /// Returns the `SendResult` of a stored message, or the error as an object.
    pub fn outcome(&self, answer: Result<OwnedCommand>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.queue.py();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(object(py, remoting(error)).into_any()),
        };
        let classes = Classes::get(py)?;
        let stored = match StoredMessage::of(&answer) {
            Ok(stored) => stored,
            Err(Refusal::Code(code)) => {
                let remark = answer.remark.clone().unwrap_or_default();
                let refused = ResponseError::new_err((code, remark, self.address.to_owned()));
                return Ok(object(py, refused).into_any());
            }
            Err(Refusal::Incomplete) => {
                let fields = dict(py, &answer.fields)?;
                let text = format!(
                    "{}: expected msgId, queueId and queueOffset in the answer to a send, got {fields}",
                    self.address
                );
                return Ok(object(py, RemotingProtocolError::new_err(text)).into_any());
            }
        };
        let region = match stored.region {
            // as in Java, an answer without a region stands for the default region
            None => classes.default_region.bind(py).clone(),
            Some(region) => PyString::new(py, region).into_any(),
        };
        let queue = self.queue_of(stored.queue_id)?;
        let values = (
            classes.status(stored.status),
            self.unique_id,
            stored.offset_id,
            queue,
            stored.queue_offset,
            stored.transaction_id,
            region,
            stored.is_traced,
        );
        classes.new.call1(py, (&classes.result, values)).map(|result| result.into_bound(py))
    }

    /// Returns the queue with id `number`, in which the broker stored the message. It may differ from the requested
    /// queue.
    fn queue_of(&self, number: i32) -> PyResult<Bound<'py, PyAny>> {
        // mostly it is the queue of the request, whose object is reused
        if number == queue_id(self.queue)? {
            return Ok(self.queue.clone());
        }
        let py = self.queue.py();
        let named =
            (self.queue.getattr(intern!(py, "topic"))?, self.queue.getattr(intern!(py, "broker_name"))?, number);
        self.queue.get_type().call1(named)
    }
}

/// Whether an outcome is a `SendResult`.
pub fn is_result(end: &Bound<'_, PyAny>) -> PyResult<bool> {
    end.is_instance(Classes::get(end.py())?.result.bind(end.py()))
}

/// Whether the status of a message is `SEND_OK`.
pub fn is_safe(result: &Bound<'_, PyAny>) -> PyResult<bool> {
    let safe = Classes::get(result.py())?.status(SendStatus::SendOk);
    Ok(result.getattr(intern!(result.py(), "status"))?.is(safe))
}

/// Python objects from which a `SendResult` is created. This is faster than calling its class.
struct Classes {
    result: Py<PyType>,
    new: Py<PyAny>,
    /// The members of `SendStatus`, in the order of the Rust enum.
    statuses: Vec<Py<PyAny>>,
    default_region: Py<PyAny>,
}

impl Classes {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let module = py.import("rmqfast.client.producer.send_result")?;
            let status = module.getattr("SendStatus")?;
            Ok(Self {
                result: module.getattr("SendResult")?.cast_into::<PyType>()?.unbind(),
                // the constructor of a named tuple is Python code; `tuple.__new__` is not
                new: py.get_type::<PyTuple>().getattr("__new__")?.unbind(),
                statuses: STATUSES.iter().map(|name| Ok(status.getattr(*name)?.unbind())).collect::<PyResult<_>>()?,
                default_region: module.getattr("DEFAULT_REGION")?.unbind(),
            })
        })
    }

    fn status(&self, status: SendStatus) -> &Py<PyAny> {
        &self.statuses[status as usize]
    }
}
