//! What Java's `SourceException` says: the same words as the Python errors, behind the name of their class.
use rmqfast_spark::request::text::quoted;
use rmqfast_store::Error;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// A failure of which nothing but its words crosses to Java.
#[derive(Debug)]
pub struct Failure {
    /// Name of the class in `rmqfast.errors`.
    pub kind: &'static str,
    /// What, where, expected, got.
    pub text: String,
}

impl Failure {
    /// An option or an argument that cannot be.
    pub fn argument(text: impl Into<String>) -> Self {
        Self { kind: "ArgumentError", text: text.into() }
    }

    /// Bytes of the store that cannot be used.
    pub fn corrupt(text: impl Into<String>) -> Self {
        Self { kind: "CorruptError", text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

impl From<rmqfast_spark::Error> for Failure {
    fn from(error: rmqfast_spark::Error) -> Self {
        use rmqfast_spark::Error as Request;
        let kind = match error {
            // the store's errors have classes of their own
            Request::Store(error) => return error.into(),
            Request::Argument(_) => "ArgumentError",
            Request::Corrupt(_) => "CorruptError",
            Request::DataLoss(_) => "DataLossError",
            Request::UnknownColumn(_) => "UnknownColumnError",
            Request::Client(error) => return error.into(),
            Request::Send { .. } => "ClientError",
        };
        Self { kind, text: error.to_string() }
    }
}

impl From<rmqfast_client::Error> for Failure {
    fn from(error: rmqfast_client::Error) -> Self {
        use rmqfast_client::Error as Client;
        let kind = match error {
            Client::Store(error) => return error.into(),
            Client::Argument(_) => "ArgumentError",
            Client::Corrupt(_) => "CorruptError",
            Client::UnknownTopic(_) => "UnknownTopicError",
            Client::DataLoss { .. } => "DataLossError",
            Client::Response { .. } => "ResponseError",
            Client::Remoting(error) => return error.into(),
            Client::Body { .. } => "RemotingProtocolError",
            Client::Closed => "ChannelClosedError",
            Client::Client { .. } => "ClientError",
        };
        Self { kind, text: error.to_string() }
    }
}

impl From<rmqfast_remoting::Error> for Failure {
    fn from(error: rmqfast_remoting::Error) -> Self {
        use rmqfast_remoting::Error as Remoting;
        let kind = match error {
            Remoting::Malformed { .. } | Remoting::TooLarge { .. } => "RemotingProtocolError",
            Remoting::Connect { .. } => "RemotingConnectError",
            Remoting::Closed { .. } | Remoting::OnewayLost { .. } => "ChannelClosedError",
            Remoting::Timeout { .. } => "RemotingTimeoutError",
            Remoting::TlsFile { .. } => "TlsFileError",
            Remoting::Tls { .. } => "TlsError",
            Remoting::TooManyRequests { .. } => "TooManyRequestsError",
            Remoting::Forked => "ForkError",
            Remoting::Io { .. } | Remoting::Interrupted => "RemotingError",
        };
        Self { kind, text: error.to_string() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => "StoreNotFoundError",
            Error::Io { .. } | Error::NoRoom { .. } => "StoreIOError",
            Error::Corrupt { .. } => "CorruptError",
            Error::Unsupported { .. } => "UnsupportedStoreError",
            Error::Unknown { what: "column", .. } => "UnknownColumnError",
            Error::Unknown { .. } => "UnknownTopicError",
            Error::Expression { .. } => "ExpressionError",
            Error::Busy { .. } => "StoreBusyError",
            _ => "ArgumentError",
        };
        let text = match &error {
            Error::Io { path, source } => told_by_system(path, source),
            _ => error.to_string(),
        };
        Self { kind, text }
    }
}

/// As Python's `OSError` says it.
fn told_by_system(path: &Path, source: &std::io::Error) -> String {
    let text = source.to_string();
    // `OSError` shows the number in front, and its words in lower case
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let path = path.to_string_lossy();
    match source.raw_os_error() {
        // Rust makes some of these itself, without a number
        _ if source.kind() == ErrorKind::NotFound => format!("[Errno 2] no such file or directory: {}", quoted(&path)),
        Some(errno) => format!("[Errno {errno}] {words}: {}", quoted(&path)),
        None => format!("{path}: {source}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_its_class_and_what_the_store_says() {
        let failure = Failure::from(Error::unknown("topic", "ordres", ["orders"]));
        assert_eq!(failure.to_string(), "UnknownTopicError: unknown topic 'ordres'; did you mean orders?");
    }
}
