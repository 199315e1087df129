//! State of a send: its message, and its attempts with their outcomes as Python objects.
use super::outgoing::Outgoing;
use super::publish_topics::PublishQueues;
use super::result::{is_result, is_safe};
use super::sender::MessageSender;
use crate::error::{
    ClientError, RemotingConnectError, RemotingError, RemotingProtocolError, RemotingTimeoutError, ResponseError,
    client_error, object,
};
use crate::pairs::Pairs;
use crate::remoting::command::LONGEST;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rmqfast_client::producer::{AttemptEnd, Attempts, Choice, FaultStrategy, RetryRules};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct SendState {
    pub progress: Progress,
    message: Py<PyAny>,
    /// The messages that hooks get; `None` if that is `message` alone, or if they get none.
    messages: Option<Py<PyAny>>,
    /// The encoded message. It is kept for all attempts, so that each has the same message id.
    outgoing: Option<Py<Outgoing>>,
}

impl SendState {
    pub fn new(progress: Progress, message: Bound<'_, PyAny>, messages: Option<Bound<'_, PyAny>>) -> Self {
        Self { progress, message: message.unbind(), messages: messages.map(Bound::unbind), outgoing: None }
    }

    /// Returns the encoded message. Encodes it at the first call.
    pub fn encode<'py>(&mut self, py: Python<'py>, sender: &MessageSender) -> PyResult<Bound<'py, Outgoing>> {
        if let Some(outgoing) = &self.outgoing {
            return Ok(outgoing.bind(py).clone());
        }
        let message = self.message.bind(py);
        let outgoing = match message.cast::<Outgoing>() {
            Ok(outgoing) => outgoing.clone(),
            Err(_) => {
                let topic = self.progress.queues.get().topic.clone_ref(py);
                Bound::new(py, sender.encoder.get().encode(message, topic, Pairs::new(), 0)?)?
            }
        };
        self.outgoing = Some(outgoing.clone().unbind());
        Ok(outgoing)
    }

    /// Returns the messages for hooks. The tuple is empty for Arrow rows.
    pub fn hook_messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let message = self.message.bind(py);
        Ok(match &self.messages {
            Some(messages) => messages.bind(py).clone(),
            None if message.cast::<Outgoing>().is_ok() => PyTuple::empty(py).into_any(),
            None => PyTuple::new(py, [message])?.into_any(),
        })
    }

    /// Calls the hooks, if any, before an attempt. Returns their context, and the request to send.
    pub fn before<'py>(
        &mut self,
        py: Python<'py>,
        sender: &MessageSender,
        queue: &Bound<'py, PyAny>,
        address: &str,
        mode: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Bound<'py, Outgoing>)> {
        let outgoing = self.encode(py, sender)?;
        if sender.has_hooks(py)? {
            sender.before(self.hook_messages(py)?, outgoing, queue, address, mode)
        } else {
            Ok((None, outgoing))
        }
    }
}

pub struct Progress {
    pub queues: Py<PublishQueues>,
    attempts: Attempts,
    /// The queue that the application selected.
    chosen: Option<Py<PyAny>>,
    result: Option<Py<PyAny>>,
    failure: Option<Py<PyAny>>,
}

impl Progress {
    /// Creates the state of a send that began at `began`; `timeout` is in seconds.
    pub fn new(
        queues: Py<PublishQueues>,
        rules: &Arc<RetryRules>,
        chosen: Option<(Choice, Bound<'_, PyAny>)>,
        began: Instant,
        timeout: f64,
    ) -> Self {
        let (choice, chosen) = chosen.map(|(choice, queue)| (choice, queue.unbind())).unzip();
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default().min(LONGEST);
        let attempts = Attempts::new(rules.clone(), choice, began, timeout);
        Self { queues, attempts, chosen, result: None, failure: None }
    }

    /// Deadline of all attempts together.
    pub fn deadline(&self) -> Instant {
        self.attempts.deadline()
    }

    /// Begins the next attempt. Returns its queue as a Python object, and the name of the broker.
    pub fn begin<'py>(
        &mut self,
        py: Python<'py>,
        strategy: Option<&FaultStrategy>,
    ) -> PyResult<(Bound<'py, PyAny>, Arc<str>)> {
        let queues = self.queues.get();
        match self.attempts.begin(&queues.core, strategy, Instant::now()) {
            Ok(choice) => {
                let queue = match &self.chosen {
                    Some(queue) => queue.bind(py).clone(),
                    None => queues.queue(py, &choice)?,
                };
                Ok((queue, choice.broker_name(&queues.core).clone()))
            }
            Err(over) => {
                let error = RemotingTimeoutError::new_err(over.0);
                // the failure of the last attempt explains the timeout
                error.set_cause(py, self.failure.as_ref().map(|failure| PyErr::from_value(failure.bind(py).clone())));
                Err(error)
            }
        }
    }

    /// Records the outcome of an attempt: a `SendResult` or an error. Returns whether another attempt follows.
    pub fn record(
        &mut self,
        end: &Bound<'_, PyAny>,
        strategy: Option<&FaultStrategy>,
        latency: Option<Duration>,
    ) -> PyResult<bool> {
        let kind = kind_of(end)?;
        let place = if matches!(kind, AttemptEnd::Stored { .. }) { &mut self.result } else { &mut self.failure };
        *place = Some(end.clone().unbind());
        Ok(self.attempts.record(kind, strategy, Instant::now(), latency))
    }

    /// Returns the outcome of the send: the last `SendResult`, or an error.
    pub fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(result) = &self.result {
            return Ok(result.bind(py).clone());
        }
        let failure = self.failure.as_ref().map(|failure| failure.bind(py).clone());
        if let Some(failure) = failure.clone().filter(|_| self.attempts.ends_with_last_error()) {
            return Ok(failure);
        }
        let text = self.attempts.failed_text(&self.queues.get().topic, Instant::now());
        let last = failure.as_ref().map(|failure| failure.to_string()).unwrap_or_default();
        let error = client_error(py, format!("{text}\nthe last broker: {last}"), self.attempts.failed_code())?;
        error.set_cause(py, failure.map(PyErr::from_value));
        Ok(object(py, error).into_any())
    }

    /// Returns the `SendResult`, or raises the error of the send.
    pub fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let end = self.end(py)?;
        if self.result.is_some() { Ok(end) } else { Err(PyErr::from_value(end)) }
    }
}

fn kind_of(end: &Bound<'_, PyAny>) -> PyResult<AttemptEnd> {
    if is_result(end)? {
        return Ok(AttemptEnd::Stored { is_safe: is_safe(end)? });
    }
    Ok(if end.is_instance_of::<ResponseError>() {
        AttemptEnd::Response(end.getattr("code")?.extract()?)
    } else if end.is_instance_of::<RemotingConnectError>() {
        AttemptEnd::Connect
    } else if end.is_instance_of::<RemotingTimeoutError>() {
        AttemptEnd::Timeout
    } else if end.is_instance_of::<RemotingProtocolError>() {
        AttemptEnd::Malformed
    } else if end.is_instance_of::<RemotingError>() {
        AttemptEnd::Remoting
    } else if end.is_instance_of::<ClientError>() {
        AttemptEnd::Client
    } else {
        AttemptEnd::Other
    })
}
