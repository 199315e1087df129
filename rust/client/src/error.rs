//! The errors of this crate. Their texts end with the next step for the user.
use crate::remark::{plain_remark, step_after};
use rmqfast_store::format::cursor::Malformed;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body of an answer to a pull contains an invalid record.
    #[error("malformed body of a pull at byte {at}: {reason}")]
    Body {
        /// Start of the damaged record, in bytes from the body's start.
        at: usize,
        reason: String,
    },
    #[error(transparent)]
    Remoting(#[from] rmqfast_remoting::Error),
    #[error(transparent)]
    Store(#[from] rmqfast_store::Error),
    /// The puller was used after [`close`](crate::puller::Puller::close).
    #[error("the puller is closed")]
    Closed,
    #[error("{0}")]
    Argument(String),
    /// Bodies of messages that do not match their CRC or do not decompress.
    #[error("{0}")]
    Corrupt(String),
    /// A name server or a broker answered with an error.
    #[error("{}{}{}", answer(code, &plain_remark(remark)), by(address), step(step_after(remark).unwrap_or_default()))]
    Response { code: i32, remark: String, address: String },
    /// The name server does not know the topic.
    #[error("{0}")]
    UnknownTopic(String),
    /// Messages of a requested range do not exist any more.
    #[error("{text}\n{next_step}")]
    DataLoss { text: String, next_step: &'static str },
    /// A request to the cluster failed.
    #[error("{text}{}{}", plain_remark(remark), step(step_after(remark).unwrap_or(next_step)))]
    Client {
        /// The failure, without the remark.
        text: String,
        /// Remark of the broker or the connection, appended to the text; empty for none.
        remark: String,
        /// Response code, or a code of `ClientErrorCode`; -1 for none.
        code: i32,
        /// Advice for the user. Only used if [`step_after`] knows no advice for the remark.
        next_step: &'static str,
    },
}

fn answer(code: &i32, remark: &str) -> String {
    format!("CODE: {code}  DESC: {remark}")
}

fn by(address: &str) -> String {
    if address.is_empty() { String::new() } else { format!(" BROKER: {address}") }
}

/// Formats the next step as a line of its own. Empty if there is no next step.
fn step(next_step: &str) -> String {
    if next_step.is_empty() { String::new() } else { format!("\n{next_step}") }
}

impl Error {
    /// Returns the name of the class in `rmqfast.errors` that Python raises. In the JVM, a `SourceException` carries
    /// this name.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Body { .. } => "RemotingProtocolError",
            Self::Remoting(error) => error.class(),
            Self::Store(error) => error.class(),
            Self::Closed => "ChannelClosedError",
            Self::Argument(_) => "ArgumentError",
            Self::Corrupt(_) => "CorruptError",
            Self::Response { .. } => "ResponseError",
            Self::UnknownTopic(_) => "UnknownTopicError",
            Self::DataLoss { .. } => "DataLossError",
            Self::Client { .. } => "ClientError",
        }
    }

    pub(crate) fn client(text: String, remark: impl ToString, next_step: &'static str) -> Self {
        Self::Client { text, remark: remark.to_string(), code: -1, next_step }
    }

    /// Returns the error without the broker's address and the next step, for a caller that adds both itself.
    pub(crate) fn remark(&self) -> String {
        match self {
            Self::Response { code, remark, .. } => answer(code, remark),
            error => error.to_string(),
        }
    }

    pub(crate) fn body(at: usize, reason: impl Into<String>) -> Self {
        Self::Body { at, reason: reason.into() }
    }

    pub(crate) fn record(at: usize, malformed: Malformed) -> Self {
        Self::body(at, malformed.to_string())
    }
}
