//! The status of a pull's answer.
use rmqfast_remoting::code::response;

/// The status of a pull's answer.
///
/// Source: `PullStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullStatus {
    Found,
    /// Nothing new arrived while the broker held the pull.
    NoNewMsg,
    /// No message matches the filter.
    NoMatchedMsg,
    /// The queue does not have that offset; nothing more comes before a seek.
    OffsetIllegal,
    /// The broker refused, did not answer in time, or sent what is no answer; it will be asked again.
    Failed,
}

impl PullStatus {
    /// The status of a response code of `PULL_MESSAGE`.
    pub fn of_code(code: i32) -> Self {
        match code {
            // `ResponseCode`: SUCCESS, PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED
            response::SUCCESS => Self::Found,
            response::PULL_NOT_FOUND => Self::NoNewMsg,
            response::PULL_RETRY_IMMEDIATELY => Self::NoMatchedMsg,
            response::PULL_OFFSET_MOVED => Self::OffsetIllegal,
            _ => Self::Failed,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoNewMsg => "NO_NEW_MSG",
            Self::NoMatchedMsg => "NO_MATCHED_MSG",
            Self::OffsetIllegal => "OFFSET_ILLEGAL",
            Self::Failed => "FAILED",
        }
    }
}
