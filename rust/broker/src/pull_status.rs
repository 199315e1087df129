//! Maps what a store says of a pull to the response code that clients know.
//!
//! Source: `PullMessageProcessor.processRequest`.
use rmqfast_remoting::code::response;
use rmqfast_store::store::get::GetMessageStatus;

/// The code for a status.
pub fn code_of(status: GetMessageStatus, asked_offset: i64) -> i32 {
    use GetMessageStatus as Status;
    match status {
        Status::Found => response::SUCCESS,
        Status::MessageWasRemoving | Status::NoMatchedMessage => response::PULL_RETRY_IMMEDIATELY,
        Status::NoMessageInQueue if asked_offset != 0 => response::PULL_OFFSET_MOVED,
        Status::NoMessageInQueue | Status::OffsetFoundNull | Status::OffsetOverflowOne => response::PULL_NOT_FOUND,
        Status::OffsetOverflowBadly | Status::OffsetTooSmall => response::PULL_OFFSET_MOVED,
    }
}
