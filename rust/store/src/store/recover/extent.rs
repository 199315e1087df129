//! The part of the log that a recovery reads.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The log from the checkpoint on. Used after a crash.
    Checkpoint,
    /// The whole log. Used when log, queues and index disagree although the store was closed properly.
    Whole,
}
