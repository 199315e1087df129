//! Errors of connections, and of bytes that violate the protocol.
use std::io;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("malformed {what}: expected {expected}, got {got}")]
    Malformed { what: &'static str, expected: String, got: String },
    #[error("{what} above its limit: expected at most {limit}, got {got}")]
    TooLarge { what: &'static str, limit: usize, got: usize },
    #[error("connect to <{address}> failed: {source}")]
    Connect { address: String, source: io::Error },
    #[error("the channel <{address}> is closed")]
    Closed { address: String },
    #[error("wait response on the channel <{address}> timeout, {timeout_ms}(ms)")]
    Timeout { address: String, timeout_ms: u64 },
    #[error("{}: {what}: expected {expected}, got {got}", path.display())]
    TlsFile { path: PathBuf, what: &'static str, expected: &'static str, got: String },
    #[error("TLS with <{address}> failed: {reason}")]
    Tls { address: String, reason: String },
    /// A connection ended before all oneway requests were written.
    #[error("up to {count} one-way requests to <{address}> are lost: the connection ended before they were written")]
    OnewayLost { address: String, count: u64 },
    /// The connection was used in a forked process that did not open it.
    #[error("used in a fork of the process that opened it")]
    Forked,
    /// Too many requests were in flight, or too many bytes were queued, until the time to wait was over.
    #[error("no room for a further request to <{address}> in time: expected at most {limit} in flight")]
    TooManyRequests { address: String, limit: usize },
    #[error("interrupted")]
    Interrupted,
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

impl Error {
    /// Returns the name of the class in `rmqfast.errors` that Python raises. In the JVM, a `SourceException` contains
    /// this name.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Malformed { .. } | Self::TooLarge { .. } => "RemotingProtocolError",
            Self::Connect { .. } => "RemotingConnectError",
            Self::Closed { .. } | Self::OnewayLost { .. } => "ChannelClosedError",
            Self::Timeout { .. } => "RemotingTimeoutError",
            Self::TlsFile { .. } => "TlsFileError",
            Self::Tls { .. } => "TlsError",
            Self::TooManyRequests { .. } => "TooManyRequestsError",
            Self::Forked => "ForkError",
            Self::Interrupted | Self::Io { .. } => "RemotingError",
        }
    }

    pub(crate) fn malformed(what: &'static str, expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Malformed { what, expected: expected.into(), got: got.to_string() }
    }

    /// Returns a copy of the error. Each caller that waited for the same connection gets a copy.
    pub(crate) fn duplicate(&self) -> Self {
        let again = |source: &io::Error| io::Error::new(source.kind(), source.to_string());
        match self {
            Self::Malformed { what, expected, got } => {
                Self::Malformed { what, expected: expected.clone(), got: got.clone() }
            }
            Self::TooLarge { what, limit, got } => Self::TooLarge { what, limit: *limit, got: *got },
            Self::Connect { address, source } => Self::Connect { address: address.clone(), source: again(source) },
            Self::Closed { address } => Self::Closed { address: address.clone() },
            Self::Timeout { address, timeout_ms } => {
                Self::Timeout { address: address.clone(), timeout_ms: *timeout_ms }
            }
            Self::TlsFile { path, what, expected, got } => {
                Self::TlsFile { path: path.clone(), what, expected, got: got.clone() }
            }
            Self::Tls { address, reason } => Self::Tls { address: address.clone(), reason: reason.clone() },
            Self::TooManyRequests { address, limit } => {
                Self::TooManyRequests { address: address.clone(), limit: *limit }
            }
            Self::OnewayLost { address, count } => Self::OnewayLost { address: address.clone(), count: *count },
            Self::Forked => Self::Forked,
            Self::Interrupted => Self::Interrupted,
            Self::Io { what, source } => Self::Io { what: what.clone(), source: again(source) },
        }
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}
