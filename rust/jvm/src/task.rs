//! Interface of the tasks, which fill one batch after another.
use crate::failure::Result;
use crate::vectors::Rows;
use rmqfast_client::ranges;
use std::time::Duration;

/// A piece being read.
pub trait Task: Send {
    /// Fills the next batch: its rows, or `None` at the end. Without a row it gives the caller a word, to see whether the task
    /// was killed; that takes as long as `wait` where messages are waited for. What [`addresses`](Self::addresses) gave before
    /// is void.
    ///
    /// # Errors
    /// Messages that are lost or unreadable, where that shall end the task; a broker that does not answer.
    fn advance(&mut self, wait: Duration) -> Result<Option<usize>>;

    /// Addresses of the batch's arrays: see [`Batch::addresses`](crate::vectors::Batch::addresses).
    fn addresses(&self) -> &[i64];

    /// Some rows of the batch, from that at `from` on, in Spark's format of rows: see [`Batch::rows`](crate::vectors::Batch::rows).
    fn rows(&mut self, from: usize) -> Rows;

    /// The next offset of each queue after the first `rows` of the batch, as offsets of a checkpoint.
    ///
    /// # Errors
    /// A store, which is not read without an end.
    fn position(&self, rows: usize) -> Result<String>;

    /// Log lines since the last call.
    fn take_warning(&mut self) -> Option<String>;

    /// Ends without a failure before all is read, as behind a limit and in Real-Time Mode: connections are left to the next task.
    fn keep(&mut self) {}

    /// Counts of the task so far.
    fn counts(&self) -> Counts;
}

/// Counts of a task.
pub type Counts = ranges::Counts;
