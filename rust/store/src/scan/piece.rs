//! A stretch of the log that a scan reads in one way: what plans are made of, and what tasks get.

/// How a piece is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Log,
    /// By the units of consume queues.
    Queue,
}

/// A stretch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How it is read.
    pub way: Way,
    /// Physical offset of its first byte.
    pub from: u64,
    /// Physical offset behind its last byte.
    pub end: u64,
    /// Check every body, asked for or not: nothing vouches for these records yet.
    pub verify_crc: bool,
}
