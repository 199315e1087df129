//! A message that a queue lists and a pull cannot deliver: what its unit says, and what was found instead.
use crate::format::consume_queue::Unit;
use std::fmt;

/// Why a message is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The queue has no unit there.
    NoUnit,
    /// The file of the queue is not there: so it is with all messages that it listed.
    NoQueueFile,
    /// The unit leads behind the log's end.
    BehindLog,
    /// The file of the log is not there.
    NoFile,
    /// The file of the log has lost bytes of the record.
    CutOff,
    /// What stands there does not prove that it is the record.
    NoRecord,
    /// The body does not have the CRC that the record tells.
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

/// A message that a pull skipped, or several for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is in the queue, or the first of them.
    pub queue_offset: i64,
    /// How many there are.
    pub messages: u64,
    /// What the queue says of it.
    pub unit: Unit,
    /// Why it was not given.
    pub fault: Fault,
}
