//! The part of the log that a recovery reads.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The log from the checkpoint on. Used after a crash.
    Checkpoint,
    /// The whole log. Used for a repair, after an interrupted recovery, and when queues or index contradict the log.
    Whole,
}
