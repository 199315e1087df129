//! Errors of a broker's answers.
use crate::remark::{plain_remark, step_after};
use rmqfast_store::format::malformed::Malformed;

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an answer is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body of a pull is not record after record.
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
    /// Used after its end.
    #[error("the puller is closed")]
    Closed,
    /// An argument that cannot be.
    #[error("{0}")]
    Argument(String),
    /// A body that is of no use.
    #[error("{0}")]
    Corrupt(String),
    /// A name server or a broker answered with an error.
    #[error("{}{}{}", answer(code, &plain_remark(remark)), by(address), step(step_after(remark).unwrap_or_default()))]
    Response { code: i32, remark: String, address: String },
    /// The name servers do not know the topic.
    #[error("{0}")]
    UnknownTopic(String),
    /// Messages of a range are not there.
    #[error("{text}\n{next_step}")]
    DataLoss { text: String, next_step: &'static str },
    /// The cluster does not do what it was asked for.
    #[error("{text}{}{}", plain_remark(remark), step(step_after(remark).unwrap_or(next_step)))]
    Client {
        /// The failure, without the peer's words.
        text: String,
        /// The broker's or the connection's words; they follow the text, empty for none.
        remark: String,
        /// The response code, or one of `ClientErrorCode`; -1 for none.
        code: i32,
        /// The next step, unless the remark is known to have a better one.
        next_step: &'static str,
    },
}

fn answer(code: &i32, remark: &str) -> String {
    format!("CODE: {code}  DESC: {remark}")
}

fn by(address: &str) -> String {
    if address.is_empty() { String::new() } else { format!(" BROKER: {address}") }
}

/// A line of its own for what to do, where there is anything.
fn step(next_step: &str) -> String {
    if next_step.is_empty() { String::new() } else { format!("\n{next_step}") }
}

impl Error {
    /// The class of `rmqfast.errors` that Python and the JVM give it.
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

    /// The remark for a caller that names the broker and the next step itself.
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
