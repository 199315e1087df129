//! The interface of tasks. A task fills one batch after another.
use crate::vectors::Rows;
use rmqfast_client::ranges;
use rmqfast_spark::request::text::quote;
use rmqfast_store::Error;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
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

    /// Returns the warnings since the last call, as lines for Spark's log; `None` if there are none. Those that are told
    /// once only come with `is_over`.
    fn take_warning(&mut self, is_over: bool) -> Option<String>;

    /// Returns the number of bodies so far that could not be decoded.
    fn bad_bodies(&self) -> u64;

    /// Called when the task ends before its last row without a failure, for example at a limit or in Real-Time Mode.
    /// Makes its connections available to the next task.
    fn keep(&mut self) {}

    fn counts(&self) -> Counts;
}

pub type Counts = ranges::Counts;

pub type Result<T> = std::result::Result<T, Failure>;

/// An error that Java gets as class name and text.
#[derive(Debug)]
pub struct Failure {
    /// Name of the class in `rmqfast.errors`.
    pub kind: &'static str,
    /// The error text. It names the place, the expected and the actual value.
    pub text: String,
}

impl Failure {
    pub fn argument(text: impl Into<String>) -> Self {
        Self { kind: "ArgumentError", text: text.into() }
    }

    pub fn corrupt(text: impl Into<String>) -> Self {
        Self { kind: "CorruptError", text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

impl From<rmqfast_spark::Error> for Failure {
    fn from(error: rmqfast_spark::Error) -> Self {
        match error {
            rmqfast_spark::Error::Store(error) => error.into(),
            rmqfast_spark::Error::Client(error) => error.into(),
            error => Self { kind: error.class(), text: error.to_string() },
        }
    }
}

impl From<rmqfast_client::Error> for Failure {
    fn from(error: rmqfast_client::Error) -> Self {
        match error {
            rmqfast_client::Error::Store(error) => error.into(),
            error => Self { kind: error.class(), text: error.to_string() },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = match &error {
            Error::Io { path, source } => os_error_text(path, source),
            _ => error.to_string(),
        };
        Self { kind: error.class(), text }
    }
}

/// Formats an I/O error like Python's `OSError`.
fn os_error_text(path: &Path, source: &std::io::Error) -> String {
    let text = source.to_string();
    // `OSError` shows the errno first, and its text in lower case
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let path = path.to_string_lossy();
    match source.raw_os_error() {
        // Rust's own NotFound has no errno
        _ if source.kind() == ErrorKind::NotFound => format!("[Errno 2] no such file or directory: {}", quote(&path)),
        Some(errno) => format!("[Errno {errno}] {words}: {}", quote(&path)),
        None => format!("{path}: {source}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_its_class_and_what_the_store_says() {
        let failure = Failure::from(Error::unknown("topic", "ordres", ["orders"]));
        assert_eq!(failure.to_string(), "UnknownTopicError: unknown topic 'ordres'; did you mean orders?");
    }
}
