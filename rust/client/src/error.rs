//! What can go wrong with what a broker answers.
use rmqfast_store::format::malformed::Malformed;

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an answer is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body of a pull is not record after record.
    #[error("malformed body of a pull at byte {at}: {reason}")]
    Body {
        /// Where the record begins that is at fault, in bytes from the body's start.
        at: usize,
        /// What was expected and what was found.
        reason: String,
    },
    /// The connection.
    #[error(transparent)]
    Remoting(#[from] rmqfast_remoting::Error),
    /// Building columns.
    #[error(transparent)]
    Store(#[from] rmqfast_store::Error),
    /// Used after its end.
    #[error("the puller is closed")]
    Closed,
}

impl Error {
    pub(crate) fn body(at: usize, reason: impl Into<String>) -> Self {
        Self::Body { at, reason: reason.into() }
    }

    pub(crate) fn record(at: usize, malformed: Malformed) -> Self {
        Self::body(at, malformed.to_string())
    }
}
