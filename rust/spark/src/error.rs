//! Errors of read and write requests.
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Each maps to one class of `rmqfast.errors`; all say what, where, expected, got.
#[derive(Debug)]
pub enum Error {
    /// An option or an argument that cannot be.
    Argument(String),
    /// An offset of a store that has expired.
    Corrupt(String),
    /// An offset that a queue of a cluster does not have.
    DataLoss(String),
    /// A column that the row does not have.
    UnknownColumn(String),
    /// An error of the store.
    Store(rmqfast_store::Error),
    /// An error of the cluster, or no answer.
    Client(rmqfast_client::Error),
    /// Rows that cannot be sent.
    Send {
        text: String,
        /// The response code, or one of `ClientErrorCode`; -1 for none.
        code: i32,
    },
}

impl Error {
    /// The class of `rmqfast.errors` that Python and the JVM give it.
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

    /// An option or an argument that cannot be.
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
