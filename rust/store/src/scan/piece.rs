//! A range of the log that a scan reads in one way. Plans consist of pieces, and tasks read them.

/// The way a piece is read: straight, or by consume queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Log,
    Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub way: Way,
    pub from: u64,
    pub end: u64,
    /// Check every body even if the request does not: no consume queue confirms these records yet.
    pub verify_crc: bool,
}
