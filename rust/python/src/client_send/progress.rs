//! Counts the attempts of a send, and keeps their outcomes as Python objects.
use super::publish_topics::PublishQueues;
use super::result::{is_result, is_safe};
use crate::error::{
    ClientError, RemotingConnectError, RemotingError, RemotingProtocolError, RemotingTimeoutError, ResponseError,
    client_error,
};
use crate::remoting::command::LONGEST;
use pyo3::prelude::*;
use rmqfast_client::producer::{AttemptEnd, Attempts, Choice, FaultStrategy, RetryRules};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Progress {
    attempts: Attempts,
    /// The queue that the application selected.
    chosen: Option<Py<PyAny>>,
    result: Option<Py<PyAny>>,
    failure: Option<Py<PyAny>>,
}

impl Progress {
    /// Creates the state of a send that began at `began`; `timeout` is in seconds.
    pub fn new(
        rules: &Arc<RetryRules>,
        chosen: Option<(Choice, Bound<'_, PyAny>)>,
        began: Instant,
        timeout: f64,
    ) -> Self {
        let (choice, chosen) = chosen.map(|(choice, queue)| (choice, queue.unbind())).unzip();
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default().min(LONGEST);
        let attempts = Attempts::new(rules.clone(), choice, began, timeout);
        Self { attempts, chosen, result: None, failure: None }
    }

    /// Deadline of all attempts together.
    pub fn deadline(&self) -> Instant {
        self.attempts.deadline()
    }

    /// Begins the next attempt. Returns its queue as a Python object, and the name of the broker.
    pub fn begin<'py>(
        &mut self,
        py: Python<'py>,
        queues: &PublishQueues,
        strategy: Option<&FaultStrategy>,
    ) -> PyResult<(Bound<'py, PyAny>, Arc<str>)> {
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
    pub fn end<'py>(&self, py: Python<'py>, queues: &PublishQueues) -> PyResult<Bound<'py, PyAny>> {
        if let Some(result) = &self.result {
            return Ok(result.bind(py).clone());
        }
        let failure = self.failure.as_ref().map(|failure| failure.bind(py).clone());
        if let Some(failure) = failure.clone().filter(|_| self.attempts.ends_with_last_error()) {
            return Ok(failure);
        }
        let text = self.attempts.failed_text(&queues.topic, Instant::now());
        let last = failure.as_ref().map(|failure| failure.to_string()).unwrap_or_default();
        let error = client_error(py, format!("{text}\nthe last broker: {last}"), self.attempts.failed_code())?;
        error.set_cause(py, failure.map(PyErr::from_value));
        Ok(crate::error::object(py, error).into_any())
    }
}

/// Whether an error only ends the attempt. Any other error ends the whole send.
pub fn ends_attempt(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<RemotingError>(py) || error.is_instance_of::<ClientError>(py)
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
