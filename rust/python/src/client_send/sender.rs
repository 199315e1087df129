//! Sends messages over the connections of a client: a usual send crosses the border once, and a usual end of an asynchronous one costs
//! Python no more than the call of the callback.
use super::encoder::MessageEncoder;
use super::in_flight::InFlight;
use super::outgoing::Outgoing;
use super::result::{Sent, queue_id};
use crate::error::{RemotingError, RemotingTimeoutError, object, remoting};
use crate::pairs::{Pairs, pairs};
use crate::remoting::callback_table::{Callback, Invocation};
use crate::remoting::command::{Fields, interruptible, seconds};
use crate::remoting::connections::Connections;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDictMethods, PyMapping};
use rmqfast_remoting::{OwnedCommand, Result, Value};
use std::time::{Duration, Instant};

/// Sends messages, and what was made of messages before; `message` is either of them.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageSender {
    connections: Py<Connections>,
    encoder: Py<MessageEncoder>,
    in_flight: Py<InFlight>,
    /// Gives further header fields of a request, by its code, its fields and its body: ACL.
    sign: Option<Py<PyAny>>,
}

#[pymethods]
impl MessageSender {
    #[new]
    fn new(
        connections: Py<Connections>,
        encoder: Py<MessageEncoder>,
        in_flight: Py<InFlight>,
        sign: Option<Py<PyAny>>,
    ) -> Self {
        Self { connections, encoder, in_flight, sign }
    }

    /// Sends, and waits for the answer. Returns the `SendResult`, or what was made of the message and the error.
    fn send<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        topic: PyBackedStr,
        queue: &Bound<'py, PyAny>,
        address: &str,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, began) = (message.py(), Instant::now());
        let made = self.made(message, topic)?;
        let outgoing = made.get();
        // the time runs from before the message was encoded: compressing counts
        let asked = self.with_fields(&made, queue_id(queue)?, |code, fields| {
            let ask = interruptible(code, fields, outgoing.bytes(), left(began, timeout));
            self.connections.get().ask(py, address, ask)
        })?;
        let sent = Sent { unique_id: outgoing.texts.unique_id(), queue, address };
        match ended(py, &sent, asked)? {
            Ok(result) => Ok(result),
            // the request comes back with the error, so that a retry keeps its id and is not compressed again
            Err(error) => Ok((made, error).into_pyobject(py)?.into_any()),
        }
    }

    /// Takes room for a send, and sends where that needs no waiting. Otherwise returns what was made of the message, and nothing is taken.
    /// `callback` gets the `SendResult`; where there is none, `resume` gives who gets the error, and the room is still taken.
    #[allow(clippy::too_many_arguments, reason = "all that a send consists of")]
    fn submit<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        topic: PyBackedStr,
        queue: &Bound<'py, PyAny>,
        address: PyBackedStr,
        timeout: f64,
        callback: Py<PyAny>,
        resume: Py<PyAny>,
        context: Py<PyAny>,
        waits: bool,
    ) -> PyResult<Option<Bound<'py, Outgoing>>> {
        let (py, began, number) = (message.py(), Instant::now(), queue_id(queue)?);
        let made = self.made(message, topic)?;
        let (size, in_flight) = (made.get().bytes().len(), self.in_flight.get());
        if waits {
            in_flight.take(py, size, timeout)?;
        } else if !in_flight.try_take(size) {
            // an event loop must not wait here; it comes back with what was made
            return Ok(Some(made));
        }
        let room = Room { in_flight: self.in_flight.clone_ref(py), size };
        let left = seconds(timeout).saturating_sub(began.elapsed());
        if left.is_zero() {
            // encoding or waiting for room took all the time
            room.give_back();
            return Ok(Some(made));
        }
        let later = Some(Later { resume, context, room, until: began + seconds(timeout) });
        let send = AsyncSend { made: made.clone().unbind(), queue: queue.clone().unbind(), address, callback, later };
        let address = send.address.clone_ref(py);
        let is_sent = self.with_fields(&made, number, |code, fields| {
            let ask = interruptible(code, fields, made.get().bytes(), left);
            self.connections.get().try_submit(&address, ask, Box::new(send))
        });
        match is_sent {
            // the room is the callback's now, who gives it back
            Ok(true) => Ok(None),
            other => {
                in_flight.give_back(size);
                other.map(|_| Some(made))
            }
        }
    }

    /// Sends what was made of a message, and opens a connection where there is none; `on_end` gets the `SendResult` or the error.
    #[allow(clippy::too_many_arguments, reason = "as above")]
    fn resubmit(
        &self,
        outgoing: Bound<'_, Outgoing>,
        queue: Bound<'_, PyAny>,
        address: PyBackedStr,
        timeout: f64,
        on_end: Py<PyAny>,
        waits: bool,
    ) -> PyResult<()> {
        if timeout <= 0.0 {
            return Err(RemotingTimeoutError::new_err("invokeAsync call timeout"));
        }
        let (py, queue_id) = (outgoing.py(), queue_id(&queue)?);
        let (made, queue) = (outgoing.clone().unbind(), queue.unbind());
        let send = AsyncSend { made, queue, address: address.clone_ref(py), callback: on_end, later: None };
        self.with_fields(&outgoing, queue_id, |code, fields| {
            let ask = interruptible(code, fields, outgoing.get().bytes(), seconds(timeout));
            self.connections.get().submit_for(py, &address, ask, Box::new(send), waits)
        })?
    }
}

impl MessageSender {
    /// What is sent of a message, or was made of one before.
    fn made<'py>(&self, message: &Bound<'py, PyAny>, topic: PyBackedStr) -> PyResult<Bound<'py, Outgoing>> {
        if let Ok(made) = message.cast::<Outgoing>() {
            return Ok(made.clone());
        }
        Bound::new(message.py(), self.encoder.get().encode(message, topic, Pairs::new(), 0)?)
    }

    /// Calls with the code and the fields of a request, which are signed where they have to be.
    fn with_fields<T>(
        &self,
        made: &Bound<'_, Outgoing>,
        queue_id: i32,
        call: impl FnOnce(i32, &[(&str, Value<'_>)]) -> T,
    ) -> PyResult<T> {
        let (py, outgoing) = (made.py(), made.get());
        let header = outgoing.header(queue_id);
        // without ACL no dictionary of Python's is made of the header
        let Some(sign) = &self.sign else { return Ok(call(header.code(), &header.fields())) };
        let fields = outgoing.fields(py, queue_id)?;
        // a signature covers all other fields, so it comes last
        let more = sign.bind(py).call1((header.code(), &fields, outgoing.body(py)?))?;
        fields.update(more.cast::<PyMapping>()?)?;
        Ok(call(header.code(), &Fields(pairs(&fields)?).values()))
    }
}

/// What is left of `timeout` seconds that began at `began`.
fn left(began: Instant, timeout: f64) -> Duration {
    // never nothing: the connection tells a time that is over itself, with its own words
    seconds(timeout).saturating_sub(began.elapsed()).max(Duration::from_millis(1))
}

/// The `SendResult`, or the error of a connection, after which a send may be tried again; other errors are raised.
fn ended<'py>(
    py: Python<'py>,
    sent: &Sent<'_, 'py>,
    asked: Result<OwnedCommand>,
) -> PyResult<std::result::Result<Bound<'py, PyAny>, Bound<'py, PyAny>>> {
    match asked {
        Ok(answer) => sent.ended(&answer),
        Err(error) => {
            let error = remoting(error);
            if error.is_instance_of::<RemotingError>(py) { Ok(Err(object(py, error).into_any())) } else { Err(error) }
        }
    }
}

/// Room that a send has taken.
struct Room {
    in_flight: Py<InFlight>,
    size: usize,
}

impl Room {
    fn give_back(&self) {
        self.in_flight.get().give_back(self.size);
    }
}

/// Who goes on with a send whose end is not the usual one.
struct Later {
    resume: Py<PyAny>,
    context: Py<PyAny>,
    room: Room,
    until: Instant,
}

/// One asynchronous send on its way.
struct AsyncSend {
    made: Py<Outgoing>,
    queue: Py<PyAny>,
    address: PyBackedStr,
    callback: Py<PyAny>,
    later: Option<Later>,
}

impl Callback for AsyncSend {
    fn invocation(self: Box<Self>, py: Python<'_>, outcome: Result<OwnedCommand>) -> PyResult<Invocation<'_>> {
        let ended = {
            let sent = Sent {
                unique_id: self.made.get().texts.unique_id(),
                queue: self.queue.bind(py),
                address: &self.address,
            };
            match outcome {
                Ok(answer) => sent.ended(&answer)?,
                Err(error) => Err(object(py, remoting(error)).into_any()),
            }
        };
        let callback = self.callback.into_bound(py);
        match (ended, self.later) {
            (Ok(result), Some(later)) => {
                // before the callback runs, which may send the next message
                later.room.give_back();
                Ok((callback, result))
            }
            (Err(error), Some(later)) => {
                let left = later.until.saturating_duration_since(Instant::now()).as_secs_f64();
                // the room stays taken while a driver of sends tries again
                let go_on = later.resume.bind(py).call1((later.context, self.made, self.queue, callback, left))?;
                Ok((go_on, error))
            }
            (Ok(end) | Err(end), None) => Ok((callback, end)),
        }
    }
}
