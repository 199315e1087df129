//! Asynchronous sends. Those with a callback repeat failed attempts themselves; for the others an event loop makes each
//! attempt.
//!
//! Source: `MQClientAPIImpl.sendMessageAsync`, `onExceptionImpl`.
use super::outgoing::Outgoing;
use super::result::{SentMessage, queue_id};
use super::send_state::{Progress, SendState};
use super::sender::{ASYNC, MessageSender};
use crate::error::{ClientError, RemotingError, RemotingTimeoutError, RmqError, TooManyRequestsError, object};
use crate::remoting::callback_table::{Callback, Invocation};
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::producer::Room;
use rmqfast_remoting::{OwnedCommand, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The latency that is recorded for a broker if an asynchronous send could not reach it.
const NOT_SENT_LATENCY: Duration = Duration::from_secs(3);

/// A send with a callback. It counts as in flight until it ends, or until nobody refers to it any more.
pub struct CallbackSend {
    sender: Py<MessageSender>,
    outgoing: Py<Outgoing>,
    state: Mutex<CallbackState>,
    callback: Py<PyAny>,
    /// The context that the send hooks returned.
    context: Option<Py<PyAny>>,
}

struct CallbackState {
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
        outgoing: Bound<'_, Outgoing>,
        progress: Progress,
        room: Room,
        callback: Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
    ) -> Arc<Self> {
        let (sender, outgoing) = (sender.clone().unbind(), outgoing.unbind());
        let state = Mutex::new(CallbackState { progress, room: Some(room) });
        let (callback, context) = (callback.unbind(), context.map(Bound::unbind));
        Arc::new(Self { sender, outgoing, state, callback, context })
    }

    /// Makes attempts until a request is in flight, then returns `None`. If all attempts fail, returns the callback and
    /// the outcome.
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
        let (outgoing, number) = (self.outgoing.bind(py), queue_id(queue)?);
        let timeout = self.lock().progress.deadline().saturating_duration_since(Instant::now());
        if timeout.is_zero() {
            // encoding, waiting for room or earlier attempts used up the timeout
            return Err(RemotingTimeoutError::new_err("invokeAsync call timeout"));
        }
        let attempt = CallbackAttempt { send: self.clone(), queue: queue.clone().unbind(), address: address.clone() };
        match sender.try_request(outgoing, number, address, timeout, Box::new(attempt))? {
            Ok(()) => Ok(()),
            Err(attempt) => {
                // a thread that runs callbacks must not wait: the room that it waits for is freed by callbacks
                let waits = sender.may_wait(py)?;
                sender.request(outgoing, number, address, timeout, attempt, waits)
            }
        }
    }

    /// Records the outcome of an attempt. Returns the next attempt, or the outcome of the send.
    fn next<'py>(&self, end: &Bound<'py, PyAny>, latency: Option<Duration>) -> PyResult<Next<'py>> {
        let (py, sender) = (end.py(), self.sender.get());
        let strategy = sender.strategy.as_ref();
        let mut state = self.lock();
        if state.progress.record(end, strategy, latency)? {
            let (queue, broker_name) = state.progress.begin(py, strategy)?;
            // this thread also runs other callbacks, so it must not wait for a name server
            if let Some(address) = sender.topics.known_address(&broker_name) {
                return Ok(Next::Attempt(queue, address));
            }
        }
        let end = state.progress.end(py)?;
        // freed before the callback runs, which may send the next message
        drop(state.room.take());
        // unlocked before hooks run, which are Python code
        drop(state);
        sender.after(self.context.as_ref().map(|context| context.bind(py)), &end)?;
        Ok(Next::End((self.callback.bind(py).clone(), end)))
    }

    fn lock(&self) -> MutexGuard<'_, CallbackState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CallbackAttempt {
    send: Arc<CallbackSend>,
    queue: Py<PyAny>,
    address: Arc<str>,
}

impl Callback for CallbackAttempt {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        let queue = self.queue.bind(py);
        let sent = SentMessage { unique_id: self.send.outgoing.get().texts.unique_id(), queue, address: &self.address };
        match self.send.next(&sent.outcome(outcome)?, None)? {
            Next::Attempt(queue, address) => self.send.request_until_in_flight(py, queue, address),
            Next::End(end) => Ok(Some(end)),
        }
    }
}

/// A send whose attempts an event loop makes one by one. No method waits unless the caller allows it.
#[pyclass(frozen, name = "Send", module = "rmqfast._native._rmqfast")]
pub struct PySend {
    sender: Py<MessageSender>,
    state: Mutex<LoopState>,
}

struct LoopState {
    send: SendState,
    /// The queue and the broker name of the attempt that has begun.
    place: Option<(Py<PyAny>, Arc<str>)>,
}

#[pymethods]
impl PySend {
    /// Encodes the message before its first attempt, since compressing a large body takes milliseconds.
    fn encode(&self, py: Python<'_>) -> PyResult<()> {
        self.lock().send.encode(py, self.sender.get()).map(drop)
    }

    /// Begins the next attempt.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock();
        let (queue, broker_name) = state.send.progress.begin(py, self.sender.get().strategy.as_ref())?;
        state.place = Some((queue.unbind(), broker_name));
        Ok(())
    }

    /// Makes the attempt that has begun. `on_end` is called with the outcome, on any thread. Returns false if `waits`
    /// is false and the attempt would have to wait for a route, for a connection, or until fewer requests are in
    /// flight.
    fn attempt(&self, py: Python<'_>, on_end: Py<PyAny>, waits: bool) -> PyResult<bool> {
        let sender = self.sender.get();
        let (queue, broker_name, topic, deadline) = {
            let state = self.lock();
            let no_attempt = || ClientError::new_err("no attempt has begun");
            let (queue, broker_name) = state.place.as_ref().ok_or_else(no_attempt)?;
            let progress = &state.send.progress;
            let topic = progress.queues.get().topic.clone_ref(py);
            (queue.bind(py).clone(), broker_name.clone(), topic, progress.deadline())
        };
        let address = match sender.topics.known_address(&broker_name) {
            Some(address) => address,
            None if waits => sender.topics.address_of(py, &topic, &broker_name)?,
            None => return Ok(false),
        };
        let (number, has_hooks) = (queue_id(&queue)?, sender.has_hooks(py)?);
        // the lock is released again before hooks run, which are Python code
        let (outgoing, messages) = {
            let send = &mut self.lock().send;
            let outgoing = send.encode(py, sender)?;
            (outgoing, if has_hooks { Some(send.hook_messages(py)?) } else { None })
        };
        let size = outgoing.get().bytes().len();
        let room = if waits {
            sender.enter(py, size, deadline)?
        } else {
            // hooks run once, so they are called only if the attempt will not have to wait
            let is_open = || sender.shared.bind(py).call_method1(intern!(py, "is_open"), (&*address,))?.extract();
            if has_hooks && !is_open()? {
                return Ok(false);
            }
            let Some(room) = sender.in_flight.try_enter(size) else { return Ok(false) };
            room
        };
        let (context, outgoing) = match messages {
            Some(messages) => sender.before(messages, outgoing, &queue, &address, ASYNC)?,
            None => (None, outgoing),
        };
        let attempt = Box::new(LoopAttempt {
            sender: self.sender.clone_ref(py),
            outgoing: outgoing.clone().unbind(),
            queue: queue.unbind(),
            address: address.clone(),
            room,
            context: context.as_ref().map(|context| context.clone().unbind()),
            on_end,
        });
        let timeout = deadline.saturating_duration_since(Instant::now());
        let requested = if timeout.is_zero() {
            Err(RemotingTimeoutError::new_err("invokeAsync call timeout"))
        } else {
            let Err(attempt) = sender.try_request(&outgoing, number, &address, timeout, attempt)? else {
                return Ok(true);
            };
            if !(waits || has_hooks) {
                return Ok(false);
            }
            let waits = sender.may_wait(py)? && waits;
            sender.request(&outgoing, number, &address, timeout, attempt, waits)
        };
        let Err(error) = requested else { return Ok(true) };
        let may_come_later = !waits && error.is_instance_of::<TooManyRequestsError>(py);
        let error = sender.failed_before(py, context.as_ref(), error)?;
        // the caller tries again with `waits`
        if may_come_later { Ok(false) } else { Err(error) }
    }

    /// Records the outcome of the attempt. Returns whether to make another attempt.
    fn record(&self, end: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.lock().send.progress.record(end, self.sender.get().strategy.as_ref(), None)
    }

    /// Returns the `SendResult`, or raises the error of the send.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock().send.progress.result(py)
    }
}

impl PySend {
    pub fn new(sender: &Bound<'_, MessageSender>, send: SendState) -> Self {
        Self { sender: sender.clone().unbind(), state: Mutex::new(LoopState { send, place: None }) }
    }

    fn lock(&self) -> MutexGuard<'_, LoopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LoopAttempt {
    sender: Py<MessageSender>,
    outgoing: Py<Outgoing>,
    queue: Py<PyAny>,
    address: Arc<str>,
    room: Room,
    context: Option<Py<PyAny>>,
    on_end: Py<PyAny>,
}

impl Callback for LoopAttempt {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        let (queue, unique_id) = (self.queue.bind(py), self.outgoing.get().texts.unique_id());
        let end = SentMessage { unique_id, queue, address: &self.address }.outcome(outcome)?;
        drop(self.room);
        self.sender.get().after(self.context.as_ref().map(|context| context.bind(py)), &end)?;
        Ok(Some((self.on_end.into_bound(py), end)))
    }
}
