//! An asynchronous send. The callback of each attempt starts the next attempt.
//!
//! Source: `MQClientAPIImpl.sendMessageAsync`, `onExceptionImpl`.
use super::outgoing::Outgoing;
use super::progress::Progress;
use super::publish_topics::PublishQueues;
use super::result::{SentMessage, queue_id};
use super::sender::MessageSender;
use crate::error::{RemotingError, RemotingTimeoutError, RmqError, object, remoting};
use crate::remoting::callback_table::{Callback, Invocation};
use pyo3::prelude::*;
use rmqfast_client::producer::Room;
use rmqfast_remoting::{OwnedCommand, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The latency that a broker gets if an asynchronous send could not reach it.
const NOT_SENT_LATENCY: Duration = Duration::from_secs(3);

/// An asynchronous send. Its room is free again when it ends, or when nobody refers to it any more.
pub struct CallbackSend {
    sender: Py<MessageSender>,
    made: Py<Outgoing>,
    queues: Arc<Py<PublishQueues>>,
    state: Mutex<State>,
    callback: Py<PyAny>,
    /// The context that the send hooks returned.
    context: Option<Py<PyAny>>,
}

struct State {
    progress: Progress,
    room: Option<Room>,
}

/// The next step of a send: another attempt with its queue and broker address, or the callback with its argument.
enum Next<'py> {
    Attempt(Bound<'py, PyAny>, Arc<str>),
    End(Invocation<'py>),
}

impl CallbackSend {
    pub fn new(
        sender: &Bound<'_, MessageSender>,
        made: Bound<'_, Outgoing>,
        queues: Arc<Py<PublishQueues>>,
        progress: Progress,
        room: Room,
        callback: Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
    ) -> Arc<Self> {
        let (sender, made) = (sender.clone().unbind(), made.unbind());
        let (callback, context) = (callback.unbind(), context.map(Bound::unbind));
        let state = Mutex::new(State { progress, room: Some(room) });
        Arc::new(Self { sender, made, queues, state, callback, context })
    }

    /// Makes attempts until a request is in flight. If all attempts fail, returns the callback and the outcome.
    pub fn request_until_in_flight<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        mut queue: Bound<'py, PyAny>,
        mut address: Arc<str>,
    ) -> PyResult<Option<Invocation<'py>>> {
        loop {
            let (error, latency) = match self.request(py, &queue, &address) {
                Ok(()) => return Ok(None),
                Err(error) if error.is_instance_of::<RemotingError>(py) => (error, Some(NOT_SENT_LATENCY)),
                Err(error) if error.is_instance_of::<RmqError>(py) => (error, None), // such as `ForkError`
                Err(error) => return Err(error),
            };
            match self.next(&object(py, error).into_any(), latency)? {
                Next::Attempt(next_queue, next_address) => (queue, address) = (next_queue, next_address),
                Next::End(end) => return Ok(Some(end)),
            }
        }
    }

    fn request(self: &Arc<Self>, py: Python<'_>, queue: &Bound<'_, PyAny>, address: &Arc<str>) -> PyResult<()> {
        let sender = self.sender.get();
        let (made, number) = (self.made.bind(py), queue_id(queue)?);
        let left = self.lock().progress.deadline().saturating_duration_since(Instant::now());
        if left.is_zero() {
            // encoding, waiting for room or earlier attempts used up the timeout
            return Err(RemotingTimeoutError::new_err("invokeAsync call timeout"));
        }
        let attempt = Attempt { send: self.clone(), queue: queue.clone().unbind(), address: address.clone() };
        let Err(attempt) = sender.try_request(made, number, address, left, Box::new(attempt))? else { return Ok(()) };
        // a thread that runs callbacks must not wait: the room that it waits for is freed by callbacks
        let waits = sender.may_wait(py)?;
        sender.request(made, number, address, left, attempt, waits)
    }

    /// Records the outcome of an attempt. Returns the next attempt, or the outcome of the send.
    fn next<'py>(&self, end: &Bound<'py, PyAny>, latency: Option<Duration>) -> PyResult<Next<'py>> {
        let (py, sender) = (end.py(), self.sender.get());
        let mut state = self.lock();
        let progress = &mut state.progress;
        if progress.record(end, sender.strategy(), latency)? {
            let (queue, broker_name) = progress.begin(py, self.queues.get(), sender.strategy())?;
            // this thread also runs other callbacks, so it must not wait for a name server
            if let Some(address) = sender.topics_of().known_address(&broker_name) {
                return Ok(Next::Attempt(queue, address));
            }
        }
        let end = progress.end(py, self.queues.get())?;
        // freed before the callback runs, which may send the next message
        drop(state.room.take());
        // unlocked before hooks run, which are Python code
        drop(state);
        sender.after(self.context.as_ref().map(|context| context.bind(py)), &end)?;
        Ok(Next::End((self.callback.bind(py).clone(), end)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Attempt {
    send: Arc<CallbackSend>,
    queue: Py<PyAny>,
    address: Arc<str>,
}

impl Callback for Attempt {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        let queue = self.queue.bind(py);
        let sent = SentMessage { unique_id: self.send.made.get().texts.unique_id(), queue, address: &self.address };
        let end = match outcome {
            Ok(answer) => sent.outcome(&answer)?,
            Err(error) => object(py, remoting(error)).into_any(),
        };
        match self.send.next(&end, None)? {
            Next::Attempt(queue, address) => self.send.request_until_in_flight(py, queue, address),
            Next::End(end) => Ok(Some(end)),
        }
    }
}
