//! Messages that a queue lists but a pull cannot return, with their consume-queue entry and the fault.
use crate::format::consume_queue::Unit;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    NoUnit,
    /// The queue file is missing, with all its entries.
    NoQueueFile,
    /// The entry points behind the end of the log.
    BehindLog,
    NoFile,
    /// The log file was truncated and has lost bytes of the record.
    CutOff,
    /// The bytes at the offset are not the record that the entry describes.
    NoRecord,
    /// The body does not match the CRC in the record.
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

/// A range of messages that were skipped for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRange {
    /// Queue offset of the first message.
    pub queue_offset: i64,
    pub messages: u64,
    pub unit: Unit,
    pub fault: Fault,
}
