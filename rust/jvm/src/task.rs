//! The interface of tasks. A task fills one batch after another.
use crate::failure::Result;
use crate::vectors::Rows;
use rmqfast_client::ranges;
use std::time::Duration;

pub trait Task: Send {
    /// Fills the next batch. Returns its number of rows, or `None` at the end. The [`addresses`](Self::addresses) of
    /// earlier batches become invalid.
    ///
    /// Returns 0 if no message arrives within `wait`, so that the caller can check whether the task was killed.
    ///
    /// # Errors
    /// Lost or unreadable messages if the read is strict, or a broker that does not answer.
    fn advance(&mut self, wait: Duration) -> Result<Option<usize>>;

    /// Returns the addresses of the batch's arrays; see [`Batch::addresses`](crate::vectors::Batch::addresses).
    fn addresses(&self) -> &[i64];

    /// Converts rows of the batch, starting at row `from`, to Spark's row format; see
    /// [`Batch::rows`](crate::vectors::Batch::rows).
    fn rows(&mut self, from: usize) -> Rows;

    /// Returns the next offset of each queue, as if only the first `rows` rows of the batch were done. The result has
    /// the form of Spark's checkpoint.
    ///
    /// # Errors
    /// The task reads a store, which Real-Time Mode does not support.
    fn position(&self, rows: usize) -> Result<String>;

    /// Returns the log lines that were added since the last call.
    fn take_warning(&mut self) -> Option<String>;

    /// Called when the task ends before its last row without a failure, for example at a limit or in Real-Time Mode.
    /// Makes its connections available to the next task.
    fn keep(&mut self) {}

    fn counts(&self) -> Counts;
}

pub type Counts = ranges::Counts;
