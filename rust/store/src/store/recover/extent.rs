//! How far back a recovery has to begin.

/// How much of the log is compared with what lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What the checkpoint does not vouch for: after a crash.
    Checkpoint,
    /// All of it: where something disagrees that should not.
    Whole,
}
