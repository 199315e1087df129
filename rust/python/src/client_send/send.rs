//! A send whose attempts an event loop starts one by one. No method blocks, unless the caller allows it.
use super::outgoing::Outgoing;
use super::result::{SentMessage, queue_id};
use super::sender::{ASYNC, MessageSender, SendState, result_or_raise};
use crate::error::{ClientError, RemotingTimeoutError, TooManyRequestsError, object, remoting};
use crate::remoting::callback_table::{Callback, Invocation};
use pyo3::intern;
use pyo3::prelude::*;
use rmqfast_client::producer::Room;
use rmqfast_remoting::{OwnedCommand, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[pyclass(frozen, name = "Send", module = "rmqfast._native._rmqfast")]
pub struct PySend {
    sender: Py<MessageSender>,
    state: Mutex<State>,
}

struct State {
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
        let (queue, broker_name) = state.send.begin(py, self.sender.get().strategy())?;
        state.place = Some((queue.unbind(), broker_name));
        Ok(())
    }

    /// Makes the attempt that has begun. `on_end` is called with the outcome, on any thread. Returns false if `waits`
    /// is false and the attempt needs a wait for a route, a connection or room.
    fn attempt(&self, py: Python<'_>, on_end: Py<PyAny>, waits: bool) -> PyResult<bool> {
        let sender = self.sender.get();
        let (queue, broker_name, topic, deadline) = {
            let state = self.lock();
            let (queue, broker_name) = state.place.as_ref().ok_or_else(no_attempt)?;
            let topic = state.send.queues.get().topic.clone_ref(py);
            (queue.bind(py).clone(), broker_name.clone(), topic, state.send.progress.deadline())
        };
        if !waits && sender.topics_of().known_address(&broker_name).is_none() {
            return Ok(false);
        }
        let address = sender.topics_of().address_of(py, &topic, &broker_name)?;
        let (number, has_hooks) = (queue_id(&queue)?, sender.has_hooks(py)?);
        // the lock is released again before hooks run, which are Python code
        let (made, shown, queues) = {
            let send = &mut self.lock().send;
            let made = send.encode(py, sender)?;
            (made, send.hook_messages(py), send.queues.clone())
        };
        let size = made.get().bytes().len();
        let room = if waits {
            sender.enter(py, size, deadline)?
        } else {
            // hooks run once, so they are called only if the attempt will not have to wait
            let is_open = || sender.shared().bind(py).call_method1(intern!(py, "is_open"), (&*address,))?.extract();
            if has_hooks && !is_open()? {
                return Ok(false);
            }
            let Some(room) = sender.in_flight.try_enter(size) else { return Ok(false) };
            room
        };
        let (context, outgoing) = if has_hooks {
            sender.before(made.as_any(), || Ok(shown), queues.get(), &queue, &address, ASYNC)?
        } else {
            (None, made)
        };
        let attempt = Box::new(Attempt {
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
        match requested {
            Ok(()) => Ok(true),
            Err(error) => {
                let may_come_later = !waits && error.is_instance_of::<TooManyRequestsError>(py);
                let error = sender.failed_before(py, context.as_ref(), error)?;
                // the caller tries again with `waits`
                if may_come_later { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Records the outcome of the attempt. Returns whether to make another attempt.
    fn record(&self, end: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.lock().send.progress.record(end, self.sender.get().strategy(), None)
    }

    /// Returns the `SendResult`, or raises the error of the send.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.lock();
        result_or_raise(state.send.progress.end(py, state.send.queues.get())?)
    }
}

impl PySend {
    pub fn new(sender: &Bound<'_, MessageSender>, send: SendState) -> Self {
        Self { sender: sender.clone().unbind(), state: Mutex::new(State { send, place: None }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_attempt() -> PyErr {
    ClientError::new_err("no attempt has begun")
}

struct Attempt {
    sender: Py<MessageSender>,
    outgoing: Py<Outgoing>,
    queue: Py<PyAny>,
    address: Arc<str>,
    room: Room,
    context: Option<Py<PyAny>>,
    on_end: Py<PyAny>,
}

impl Callback for Attempt {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Option<Invocation<'_>>> {
        let sent = SentMessage {
            unique_id: self.outgoing.get().texts.unique_id(),
            queue: self.queue.bind(py),
            address: &self.address,
        };
        let end = match outcome {
            Ok(answer) => sent.outcome(&answer)?,
            Err(error) => object(py, remoting(error)).into_any(),
        };
        let sender = self.sender.get();
        drop(self.room);
        sender.after(self.context.as_ref().map(|context| context.bind(py)), &end)?;
        Ok(Some((self.on_end.into_bound(py), end)))
    }
}
