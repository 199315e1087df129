//! The interface of streams, which Spark's JVM and PySpark sources use. Offsets are JSON strings that Spark stores in
//! its checkpoint.
use crate::error::{Error, Result};
use crate::request::options::Options;
use std::time::Duration;

/// The driver's side of a stream: finds the start, the end of each batch, and the tasks that read the batch.
///
/// Source: Spark's `MicroBatchStream`, `SupportsTriggerAvailableNow` and `ReportsSourceMetrics`.
pub trait Stream: Send {
    /// Describes the stream for people, without credentials.
    fn description(&self) -> String;

    /// Returns the start offsets of a stream that has no checkpoint.
    ///
    /// # Errors
    /// No broker or store answers, or the starting offset does not exist.
    fn initial(&mut self) -> Result<String>;

    /// Makes later batches stop at the current end, for the trigger `availableNow`.
    ///
    /// # Errors
    /// No broker or store answers.
    fn aim(&mut self) -> Result<()>;

    /// Returns the end offsets of the batch that begins at `start`. They equal `start` if there is nothing to read.
    ///
    /// Without `start`, returns the current end. The limits of the options apply only if the trigger `is_limited`.
    ///
    /// # Errors
    /// The checkpoint of another stream, lost messages if `failOnDataLoss` is set, or no answer for too long.
    fn latest(&mut self, start: Option<&str>, is_limited: bool) -> Result<String>;

    /// Returns the last known end offsets, for the query's progress report; `None` if none are known yet.
    fn report(&self) -> Option<String>;

    /// Returns the serialized tasks of a batch. Spark may ask again after a failure, so equal offsets must give equal
    /// tasks.
    ///
    /// # Errors
    /// The checkpoint of another stream, or no answer.
    fn pieces(&mut self, start: &str, end: &str) -> Result<Vec<Vec<u8>>>;

    /// Returns tasks that never end, for Spark's Real-Time Mode. There are `most` tasks, or one for each broker if
    /// there are more brokers.
    ///
    /// # Errors
    /// See [`pieces`](Self::pieces). Also a stream without Real-Time Mode.
    fn endless_pieces(&mut self, _start: &str, _most: usize) -> Result<Vec<Vec<u8>>> {
        Err(Error::argument("Real-Time Mode: expected a topic of a live cluster, got a store directory"))
    }

    /// Merges the offsets that tasks report into one offset per queue.
    ///
    /// # Errors
    /// The offsets belong to another stream.
    fn merge(&mut self, offsets: &[String]) -> Result<String> {
        offsets.last().cloned().ok_or_else(|| Error::argument("offsets: expected those of a task, got none"))
    }

    /// Called when Spark has stored all rows before `end`.
    ///
    /// # Errors
    /// The checkpoint of another stream, or an interrupt.
    fn commit(&mut self, end: &str) -> Result<()>;

    /// Returns metrics about the messages after `consumed`, as names and values.
    ///
    /// # Errors
    /// The checkpoint of another stream.
    fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(String, String)>>;

    /// Returns the log lines since the last call.
    fn take_log(&mut self) -> Vec<(Level, String)>;

    /// Closes connections. The stream is not called afterwards.
    fn close(&mut self);
}

/// Limits of one batch of a topic stream. Without limits, a batch takes the whole backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub most: Option<i64>,
    /// Minimum number of messages. A smaller backlog is only read after `delay`.
    pub least: Option<i64>,
    /// Maximum wait for `least` messages.
    pub delay: Duration,
}

impl Limits {
    pub fn of(options: &Options) -> Self {
        let delay = options.number("maxTriggerDelayMs").unwrap_or_default().unsigned_abs();
        Self {
            most: options.number("maxOffsetsPerTrigger"),
            least: options.number("minOffsetsPerTrigger"),
            delay: Duration::from_millis(delay),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
}

/// Log lines, buffered until Python or the JVM takes them.
#[derive(Debug, Default)]
pub struct Log {
    lines: Vec<(Level, String)>,
}

impl Log {
    pub fn info(&mut self, text: String) {
        self.lines.push((Level::Info, text));
    }

    pub fn warn(&mut self, texts: impl IntoIterator<Item = String>) {
        self.lines.extend(texts.into_iter().map(|text| (Level::Warning, text)));
    }

    /// Returns the lines since the last call.
    pub fn take(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
}
