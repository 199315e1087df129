//! What a broker's answer to a send says, as the classes of `rmqfast.client.producer`.
//!
//! Source: `MQClientAPIImpl.processSendResponse`.
use crate::error::{RemotingProtocolError, ResponseError, object};
use crate::remoting::command::dict;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use rmqfast_remoting::OwnedCommand;

/// A send that was answered, or failed.
#[derive(Clone, Copy)]
pub struct Sent<'a, 'py> {
    /// The id that the producer gave, or all ids.
    pub unique_id: &'a str,
    /// Where the message went, a `MessageQueue`.
    pub queue: &'a Bound<'py, PyAny>,
    /// The broker, for errors.
    pub address: &'a str,
}

/// The number of a `MessageQueue`.
pub fn queue_id(queue: &Bound<'_, PyAny>) -> PyResult<i32> {
    queue.getattr(intern!(queue.py(), "queue_id"))?.extract()
}

impl<'py> Sent<'_, 'py> {
    /// The `SendResult` where the message is stored, otherwise the error that says why not.
    pub fn ended(&self, answer: &OwnedCommand) -> PyResult<Result<Bound<'py, PyAny>, Bound<'py, PyAny>>> {
        let py = self.queue.py();
        let classes = Classes::get(py)?;
        // a flush or a slave that was too late counts as sent: the message is stored (`SendStatus`)
        let Some(status) = classes.status(answer.code) else {
            let remark = answer.remark.clone().unwrap_or_default();
            let refused = ResponseError::new_err((answer.code, remark, self.address.to_owned()));
            return Ok(Err(object(py, refused).into_any()));
        };
        let fields = Fields::of(answer);
        let (Some(id), Some(number), Some(offset)) = (fields.id, fields.queue_id, fields.queue_offset) else {
            let fields = dict(py, &answer.fields)?;
            let text = format!(
                "{}: expected msgId, queueId and queueOffset in the answer to a send, got {fields}",
                self.address
            );
            return Ok(Err(object(py, RemotingProtocolError::new_err(text)).into_any()));
        };
        // `processSendResponse`: an empty region is the default one
        let region = match fields.region.filter(|region| !region.is_empty()) {
            None => classes.default_region.bind(py).clone(),
            Some(region) => PyString::new(py, region).into_any(),
        };
        let queue = self.queue_of(number)?;
        let values = (status, self.unique_id, id, queue, offset, fields.transaction_id, region, !fields.is_not_traced);
        classes.new.call1(py, (&classes.result, values)).map(|result| Ok(result.into_bound(py)))
    }

    /// The queue, where a broker that was to choose says which of its own it is.
    fn queue_of(&self, number: i32) -> PyResult<Bound<'py, PyAny>> {
        // mostly it is the one that was asked for, and no object has to be made
        if number == queue_id(self.queue)? {
            return Ok(self.queue.clone());
        }
        let py = self.queue.py();
        let named =
            (self.queue.getattr(intern!(py, "topic"))?, self.queue.getattr(intern!(py, "broker_name"))?, number);
        self.queue.get_type().call1(named)
    }
}

/// What an answer says of a message that is stored.
#[derive(Default)]
struct Fields<'a> {
    id: Option<&'a str>,
    queue_id: Option<i32>,
    queue_offset: Option<i64>,
    transaction_id: Option<&'a str>,
    region: Option<&'a str>,
    is_not_traced: bool,
}

impl<'a> Fields<'a> {
    /// In one walk: there are few, and each look-up would be a walk of its own.
    fn of(answer: &'a OwnedCommand) -> Self {
        let mut fields = Self::default();
        for (name, value) in answer.fields.iter() {
            match name {
                "msgId" => fields.id = Some(value),
                "queueId" => fields.queue_id = value.parse().ok(),
                "queueOffset" => fields.queue_offset = value.parse().ok(),
                "transactionId" => fields.transaction_id = Some(value),
                "MSG_REGION" => fields.region = Some(value),
                // all but "false" is on, as in `processSendResponse`
                "TRACE_ON" => fields.is_not_traced = value == "false",
                _ => {}
            }
        }
        fields
    }
}

/// What a `SendResult` is made with: as its class does it, in a part of the time.
struct Classes {
    result: Py<PyType>,
    new: Py<PyAny>,
    /// The status of each code that says that the message is stored.
    statuses: Vec<(i32, Py<PyAny>)>,
    default_region: Py<PyAny>,
}

impl Classes {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let module = py.import("rmqfast.client.producer.send")?;
            Ok(Self {
                result: module.getattr("SendResult")?.cast_into::<PyType>()?.unbind(),
                // a named tuple's own constructor is Python code, and this is not
                new: py.get_type::<PyTuple>().getattr("__new__")?.unbind(),
                statuses: module
                    .getattr("STATUSES")?
                    .call_method0("items")?
                    .try_iter()?
                    .map(|item| item?.extract())
                    .collect::<PyResult<_>>()?,
                default_region: module.getattr("DEFAULT_REGION")?.unbind(),
            })
        })
    }

    fn status(&self, code: i32) -> Option<&Py<PyAny>> {
        self.statuses.iter().find(|(other, _)| *other == code).map(|(_, status)| status)
    }
}
