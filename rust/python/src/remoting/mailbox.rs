//! Requests that Python answers.
use super::call::Call;
use super::channel::Channel;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rmqfast_remoting::{Answer, Command, Connection, Error, Event, Handler, Header, Outgoing};
use std::sync::Arc;
use std::time::Duration;

/// `RemotingSysResponseCode.SYSTEM_BUSY`, and what Java says with it.
const SYSTEM_BUSY: i32 = 2;
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";

/// Requests that Python answers, and connections that ended.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Mailbox(pub Arc<Post>);

/// The mailbox as a server's handler.
pub struct Post(Arc<rmqfast_remoting::Mailbox>);

impl Post {
    /// The mailbox, for who puts requests in itself.
    pub fn mailbox(&self) -> Arc<rmqfast_remoting::Mailbox> {
        self.0.clone()
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new(capacity: usize) -> Self {
        Self(Arc::new(Post(rmqfast_remoting::Mailbox::new(capacity).into())))
    }

    /// A call, a channel that is gone and why, or a warning; `None` after `timeout` seconds, or once it is closed and empty.
    fn take<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        match py.detach(|| self.0.0.take(timeout)) {
            None => Ok(None),
            Some(Event::Request(request, answer)) => Call { request: *request, answer }.into_bound_py_any(py).map(Some),
            Some(Event::Closed(connection, reason)) => (Channel(connection), reason).into_bound_py_any(py).map(Some),
            Some(Event::Warning(text)) => text.into_bound_py_any(py).map(Some),
        }
    }

    /// Counts a one-way request that is not done: a warning says how many there were.
    fn dropped(&self) {
        self.0.0.dropped();
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.0.0.is_closed()
    }

    fn __len__(&self) -> usize {
        self.0.0.len()
    }

    fn close(&self) {
        self.0.0.close();
    }
}

impl Handler for Post {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        if !self.0.request(request, Answer::to(connection, request)) && !request.is_oneway() {
            let header = Header {
                code: SYSTEM_BUSY,
                remark: Some(OVERLOAD),
                opaque: request.opaque,
                ..Header::response(request.serialize_type)
            };
            header.write(b"", out.frames());
        }
    }

    fn closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.0.connection_closed(connection, reason);
    }

    fn warned(&self, error: &Error) {
        self.0.warned(error);
    }
}
