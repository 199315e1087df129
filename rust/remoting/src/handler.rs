//! The callbacks of a server, for requests and for connections that end.
use crate::command::Command;
use crate::connection::Connection;
use crate::error::Error;
use crate::outgoing::Outgoing;
use std::sync::Arc;

/// Answers the requests on all connections of a server.
pub trait Handler: Send + Sync + 'static {
    /// Handles a request. Appends the answer to `out`, sends the answer later over the connection, or sends none.
    /// Must not block.
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing);

    /// Decides whether to refuse a request with a body of `body` bytes. Returns the response code and the remark of
    /// the refusal. Called when the header is complete, before memory is allocated for the body.
    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let _ = (request, body);
        None
    }

    /// Called when a connection has ended. `reason` is `None` if either side closed the connection regularly.
    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>);

    /// Called for a fault that concerns no single connection, for example an unusable new certificate.
    fn on_warning(&self, error: &Error);
}
