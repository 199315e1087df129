//! Reasons for the end of following a log.
use std::io;

/// Reason for the end of following a log. The first reason is kept, unless a later one is a failure to write the copy.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// The connection could not be opened.
    #[error("{address}: {source}")]
    Connect { address: String, source: io::Error },
    /// The TLS handshake failed.
    #[error(transparent)]
    Tls(rmqfast_remoting::Error),
    /// The connection ended. The protocol gives no reason, for example a restart of the master.
    #[error("the connection ended: {0}")]
    Closed(io::Error),
    /// No bytes for this many seconds, not even a keep-alive.
    #[error("nothing came for {0} seconds, not even a keep-alive")]
    Silent(u64),
    /// This side wrote too slowly. A connection that is not read keeps the master from removing old files.
    #[error(
        "the copy was not written for {0} seconds; the connection is closed, so that it holds nothing back at the master"
    )]
    Stalled(u64),
    /// An invalid frame, or a frame for another position.
    #[error("a frame at {at}: {reason}")]
    Frame {
        /// Position in the log.
        at: u64,
        /// The defect, as expected and actual value.
        reason: String,
    },
    /// The master sends only keep-alives, so it no longer has the requested bytes.
    #[error("keep-alives came for {seconds} seconds and no bytes: the log does not have those at {at}")]
    Missing {
        /// Position in the log.
        at: u64,
        seconds: u64,
    },
    /// The log and the copy differ.
    #[error("the log differs from the copy at {at}")]
    Diverged {
        /// Position of the first different byte.
        at: u64,
    },
    /// An invalid record in the log.
    #[error("no sound record at {at} of the log: {reason}")]
    Broken {
        /// Position in the log.
        at: u64,
        /// The defect, as expected and actual value.
        reason: String,
    },
    /// The copy could not be written.
    #[error(transparent)]
    Store(rmqfast_store::Error),
}
