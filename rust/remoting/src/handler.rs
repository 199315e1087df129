//! The callbacks of a server: requests, and connections that end.
use crate::command::Command;
use crate::connection::Connection;
use crate::error::Error;
use crate::outgoing::Outgoing;
use std::sync::Arc;

/// Answers the requests of all connections of a server.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request: appends a frame to `out`, perhaps with a body that stands elsewhere, or sends one later over the
    /// connection, or none. It must not wait.
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing);

    /// Refuses a request by the length of its body, with a code and a remark. It is called once the header is there, before memory
    /// is taken for the body.
    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let _ = (request, body);
        None
    }

    /// Is notified that a connection is gone; `reason` says why, unless the peer or this side closed it.
    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>);

    /// Is notified of a fault that is no connection's, as a new certificate that is of no use.
    fn on_warning(&self, error: &Error);
}
