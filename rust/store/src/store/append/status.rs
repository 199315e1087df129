//! Maps the errors of an append to RocketMQ's `PutMessageStatus`. Values that only brokers with slaves return are
//! left out.
//!
//! Source: `PutMessageStatus`, `DefaultMessageStore.checkStoreStatus`, `checkMessage`, `checkMessages`.
use super::row_check::{PROPERTIES_SIZE, TOO_MANY_QUEUES};
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
