//! Errors of read and write requests.
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a read or write request. Each variant maps to one class of `rmqfast.errors`; each text says what went
/// wrong, where, and what was expected.
#[derive(Debug)]
pub enum Error {
    /// An option or an argument with an invalid value.
    Argument(String),
    /// A store has no message at the start offset of the read, or a copy of a store is damaged.
    Corrupt(String),
    /// Messages that a read or stream must return do not exist.
    DataLoss(String),
    /// A column name that the row does not have.
    UnknownColumn(String),
    /// An error of the store.
    Store(rmqfast_store::Error),
    /// The cluster refused a request or did not answer.
    Client(rmqfast_client::Error),
    /// Rows that could not be sent.
    Send {
        text: String,
        /// The broker's response code or a `ClientErrorCode`; -1 if there is no code.
        code: i32,
    },
}

impl Error {
    /// Returns the name of the class in `rmqfast.errors` that Python raises. In the JVM, a `SourceException` carries
    /// this name.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Argument(_) => "ArgumentError",
            Self::Corrupt(_) => "CorruptError",
            Self::DataLoss(_) => "DataLossError",
            Self::UnknownColumn(_) => "UnknownColumnError",
            Self::Store(error) => error.class(),
            Self::Client(error) => error.class(),
            Self::Send { .. } => "ClientError",
        }
    }

    pub fn argument(text: impl Into<String>) -> Self {
        Self::Argument(text.into())
    }
}

impl From<rmqfast_store::Error> for Error {
    fn from(error: rmqfast_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<rmqfast_client::Error> for Error {
    fn from(error: rmqfast_client::Error) -> Self {
        Self::Client(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(text)
            | Self::Corrupt(text)
            | Self::DataLoss(text)
            | Self::UnknownColumn(text)
            | Self::Send { text, .. } => f.write_str(text),
            Self::Store(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
