//! Why following a log ended.
use std::io;

/// Why following a log ended. The first reason counts, unless a later one is that the copy could not be written.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// It was asked to.
    #[error("stopped")]
    Stopped,
    /// The address refuses connections.
    #[error("{address}: {source}")]
    Connect { address: String, source: io::Error },
    /// The two sides do not agree on TLS.
    #[error(transparent)]
    Tls(rmqfast_remoting::Error),
    /// The connection ended, as where the other side was restarted: nothing on the wire tells why.
    #[error("the connection ended: {0}")]
    Closed(io::Error),
    /// Silence on the connection, without a keep-alive.
    #[error("nothing came for {0} seconds, not even a keep-alive")]
    Silent(u64),
    /// This side did not write in time. A connection that nobody reads would keep the master from removing old files.
    #[error(
        "the copy was not written for {0} seconds; the connection is closed, so that it holds nothing back at the master"
    )]
    Stalled(u64),
    /// Something that is no frame, or not the next one.
    #[error("a frame at {at}: {reason}")]
    Frame {
        /// Offset of the log.
        at: u64,
        /// Expected and got, in words.
        reason: String,
    },
    /// A master that has the bytes sends them: these are gone, or were lost.
    #[error("keep-alives came for {seconds} seconds and no bytes: the log does not have those at {at}")]
    Missing {
        /// Offset of the log.
        at: u64,
        seconds: u64,
    },
    /// The log has other bytes than the copy.
    #[error("the log differs from the copy at {at}")]
    Diverged {
        /// Offset of the first byte that differs.
        at: u64,
    },
    /// Bytes of the log that are no sound record.
    #[error("no sound record at {at} of the log: {reason}")]
    Broken {
        /// Offset of the log.
        at: u64,
        /// Expected and got, in words.
        reason: String,
    },
    /// The copy could not be written.
    #[error(transparent)]
    Store(rmqfast_store::Error),
}
