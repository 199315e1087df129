//! The callbacks of a server: requests, and connections that end.
use crate::command::Command;
use crate::connection::Connection;
use crate::error::Error;
use crate::outgoing::Outgoing;
use std::sync::Arc;

/// Answers the requests of all connections of a server.
pub trait Handler: Send + Sync + 'static {
    /// Handles a request. It appends the answer to `out`, or sends it later over the connection, or not at all. It must
    /// not block.
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing);

    /// Returns the code and the remark to refuse a request with a body of this length. Called when the header is
    /// complete, before memory is allocated for the body.
    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let _ = (request, body);
        None
    }

    /// Called when a connection ended. `reason` is `None` if either side closed it regularly.
    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>);

    /// Called for a fault that concerns no single connection, for example an unusable new certificate.
    fn on_warning(&self, error: &Error);
}
