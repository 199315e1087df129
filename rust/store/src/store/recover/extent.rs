//! The part of the log that a recovery reads.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// From the checkpoint on, after a crash.
    Checkpoint,
    /// The whole log, after an unexpected disagreement.
    Whole,
}
