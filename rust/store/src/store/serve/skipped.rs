//! Messages that a queue lists but a pull cannot return, with their unit and the fault.
use crate::format::consume_queue::Unit;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    NoUnit,
    /// The file of the queue is missing, with all messages that it listed.
    NoQueueFile,
    /// The unit points behind the log's end.
    BehindLog,
    /// The file of the log is missing.
    NoFile,
    /// The file of the log has lost bytes of the record.
    CutOff,
    /// The bytes there are not the record.
    NoRecord,
    /// The body does not have the record's CRC.
    Body,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "the queue has no unit there",
            Self::NoQueueFile => "the file of the queue is not there, nor the messages behind it that it listed",
            Self::BehindLog => "its unit leads behind the end of the log",
            Self::NoFile => "the file of the log is not there",
            Self::CutOff => "the file of the log was cut off",
            Self::NoRecord => "the log has no such record there",
            Self::Body => "its body does not have its CRC",
        })
    }
}

/// One or several messages skipped for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRange {
    /// Offset of the first one.
    pub queue_offset: i64,
    pub messages: u64,
    pub unit: Unit,
    pub fault: Fault,
}
