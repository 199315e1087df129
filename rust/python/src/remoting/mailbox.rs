//! Passes requests to the Python threads that answer them.
use super::call::Call;
use super::channel::Channel;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Answer, Command, Connection, Error, Event, Handler, Header, Outgoing};
use std::sync::Arc;
use std::time::Duration;

// the remark that Java sends with `SYSTEM_BUSY`
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";

/// Requests that wait for Python threads, and reports of closed connections.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Mailbox(pub Arc<Post>);

/// A server's request handler, which puts all requests into the mailbox.
pub struct Post {
    mailbox: Arc<rmqfast_remoting::Mailbox>,
    /// Maximum bytes of a request's body. Requests with a code in `unlimited` may have a larger body.
    max_body: usize,
    unlimited: Vec<i32>,
}

impl Post {
    /// Returns the mailbox itself, for code that adds requests to it.
    pub fn mailbox(&self) -> Arc<rmqfast_remoting::Mailbox> {
        self.mailbox.clone()
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    #[pyo3(signature = (capacity, *, max_body = usize::MAX, unlimited = Vec::new()))]
    fn new(capacity: usize, max_body: usize, unlimited: Vec<i32>) -> Self {
        let mailbox = rmqfast_remoting::Mailbox::new(capacity).into();
        Self(Arc::new(Post { mailbox, max_body, unlimited }))
    }

    /// Returns a request, a closed connection with the reason, or a warning. Returns `None` after `timeout` seconds, or
    /// if the mailbox is closed and empty.
    #[pyo3(signature = (timeout, *, takes_large = true))]
    fn take<'py>(&self, py: Python<'py>, timeout: f64, takes_large: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        match py.detach(|| match takes_large {
            // one Python thread takes large requests, so that the other threads stay free for small ones
            true => self.0.mailbox.take(timeout),
            false => self.0.mailbox.take_small(timeout),
        }) {
            None => Ok(None),
            Some(Event::Request(request, answer)) => Call { request: *request, answer }.into_bound_py_any(py).map(Some),
            Some(Event::Closed(connection, reason)) => (Channel(connection), reason).into_bound_py_any(py).map(Some),
            Some(Event::Warning(text)) => text.into_bound_py_any(py).map(Some),
        }
    }

    /// Counts a oneway request that was refused. A later warning reports the number.
    fn dropped(&self) {
        self.0.mailbox.note_dropped();
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.0.mailbox.is_closed()
    }

    fn __len__(&self) -> usize {
        self.0.mailbox.len()
    }

    fn close(&self) {
        self.0.mailbox.close();
    }
}

impl Handler for Post {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        // a oneway request gets no refusal
        if !self.mailbox.request(request, Answer::to(connection, request)) && !request.is_oneway() {
            let header = Header {
                code: response::SYSTEM_BUSY,
                remark: Some(OVERLOAD),
                opaque: request.opaque,
                ..Header::response(request.serialize_type)
            };
            header.write(b"", out.frames());
        }
    }

    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let most = self.max_body;
        // checked with the header, before the body is read into memory
        let is_refused = body > most && !self.unlimited.contains(&request.code);
        is_refused.then(|| (response::SYSTEM_ERROR, format!("body: expected at most {most} bytes, got {body}")))
    }

    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.mailbox.connection_closed(connection, reason);
    }

    fn on_warning(&self, error: &Error) {
        self.mailbox.warn(error);
    }
}
