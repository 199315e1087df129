//! RocketMQ's `PutMessageStatus` for each way in which an append can fail.
//!
//! Source: `PutMessageStatus`, `DefaultMessageStore.checkStoreStatus`, `checkMessage`, `checkMessages`.
use super::row_check::{PROPERTIES_SIZE, TOO_MANY_QUEUES};
use crate::Error;

/// `PutMessageStatus`, as far as a store without replicas can give one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are RocketMQ's")]
pub enum PutMessageStatus {
    PutOk,
    FlushDiskTimeout,
    ServiceNotAvailable,
    CreateMapedFileFailed,
    MessageIllegal,
    PropertiesSizeExceeded,
    OsPagecacheBusy,
    LmqConsumeQueueNumExceeded,
    UnknownError,
}

impl PutMessageStatus {
    /// The status of an append that failed.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::FlushTimeout { .. } => Self::FlushDiskTimeout,
            Error::NotWritable { .. } => Self::ServiceNotAvailable,
            Error::Busy { .. } => Self::OsPagecacheBusy,
            Error::Io { .. } | Error::NoRoom { .. } => Self::CreateMapedFileFailed,
            Error::Invalid { what: PROPERTIES_SIZE, .. } => Self::PropertiesSizeExceeded,
            Error::Invalid { what: TOO_MANY_QUEUES, .. } => Self::LmqConsumeQueueNumExceeded,
            Error::Invalid { .. } => Self::MessageIllegal,
            _ => Self::UnknownError,
        }
    }

    /// Whether the message is in the log: to send it again would store it twice.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::PutOk | Self::FlushDiskTimeout)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::PutOk => "PUT_OK",
            Self::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
            Self::ServiceNotAvailable => "SERVICE_NOT_AVAILABLE",
            Self::CreateMapedFileFailed => "CREATE_MAPEDFILE_FAILED",
            Self::MessageIllegal => "MESSAGE_ILLEGAL",
            Self::PropertiesSizeExceeded => "PROPERTIES_SIZE_EXCEEDED",
            Self::OsPagecacheBusy => "OS_PAGECACHE_BUSY",
            Self::LmqConsumeQueueNumExceeded => "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
            Self::UnknownError => "UNKNOWN_ERROR",
        }
    }
}
