//! The reasons why following a log ends.
use std::io;

/// The reason why following a log ends. If several reasons occur, the first counts, except that a failure to write
/// the copy replaces an earlier reason.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The caller has called `stop`.
    #[error("stopped")]
    Stopped,
    /// The connection could not be opened.
    #[error("{address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error(transparent)]
    Tls(rmqfast_remoting::Error),
    /// The connection ended. The protocol does not tell the reason, which may be a restart of the master.
    #[error("the connection ended: {0}")]
    Closed(io::Error),
    /// The master sent no bytes for this many seconds, not even a keep-alive.
    #[error("nothing came for {0} seconds, not even a keep-alive")]
    Silent(u64),
    /// This side wrote the copy too slowly, so the connection is closed. A connection that is not read keeps the
    /// master from removing old files.
    #[error(
        "the copy was not written for {0} seconds; the connection is closed, so that it holds nothing back at the master"
    )]
    Stalled(u64),
    /// The master sent an invalid frame, or a frame for another position.
    #[error("a frame at {at}: {reason}")]
    Frame {
        /// Position in the log of the frame.
        at: u64,
        /// The fault, as expected and actual value.
        reason: String,
    },
    /// The master sends only keep-alives, which means that it no longer has the requested bytes.
    #[error("keep-alives came for {seconds} seconds and no bytes: the log does not have those at {at}")]
    Missing {
        /// Position in the log of the requested bytes.
        at: u64,
        seconds: u64,
    },
    /// The copy differs from the log.
    #[error("the log differs from the copy at {at}")]
    Diverged {
        /// Position of the first byte that differs.
        at: u64,
    },
    /// The log contains an invalid record.
    #[error("no sound record at {at} of the log: {reason}")]
    Broken {
        /// Position in the log of the record.
        at: u64,
        /// The fault, as expected and actual value.
        reason: String,
    },
    /// The copy could not be written.
    #[error(transparent)]
    Store(rmqfast_store::Error),
}
