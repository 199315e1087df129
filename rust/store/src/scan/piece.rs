//! A range of the log that is read by log or by queue. A plan consists of pieces, and each piece can be read by another thread or task.

/// The way to read a piece. Reads either all of the log, or only the records that consume queues list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Log,
    Queue,
}

/// A range of the log, from physical offset `from` to `end` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub way: Way,
    pub from: u64,
    pub end: u64,
    /// Whether to check the CRC of every body even if the request does not ask for it. Set for records that no
    /// consume queue lists yet.
    pub verify_crc: bool,
}
