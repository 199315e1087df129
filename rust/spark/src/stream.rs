//! Interface of streams for Spark's JVM and for PySpark. Offsets are texts of a checkpoint.
use crate::error::{Error, Result};
use crate::request::options::Options;
use std::time::Duration;

/// A stream as its driver sees it: where it begins, how far its next batch goes, which tasks read that.
///
/// Source: `MicroBatchStream` of Spark, and what `SupportsTriggerAvailableNow` and `ReportsSourceMetrics` add to it.
pub trait Stream: Send {
    /// Describes the stream for people; never an account.
    fn description(&self) -> String;

    /// Start offsets of a stream without a checkpoint.
    ///
    /// # Errors
    /// Nobody can be asked, or an offset that there is not.
    fn initial(&mut self) -> Result<String>;

    /// From now on no batch goes beyond what there is now.
    ///
    /// # Errors
    /// Nobody can be asked.
    fn aim(&mut self) -> Result<()>;

    /// End offsets of the batch that begins at `start`: equal to `start` if there is nothing to read, the end if Spark
    /// gives no start. Limits hold if the trigger `is_limited`.
    ///
    /// # Errors
    /// The checkpoint of another stream; what is lost, where that is not passed over; nobody can be asked for too long.
    fn latest(&mut self, start: Option<&str>, is_limited: bool) -> Result<String>;

    /// The last end that is known, for the progress of the query.
    fn report(&self) -> Option<String>;

    /// The tasks of a batch, as bytes that carry a version. Spark may ask more than once: the same offsets are the same tasks.
    ///
    /// # Errors
    /// The checkpoint of another stream; nobody can be asked.
    fn pieces(&mut self, start: &str, end: &str) -> Result<Vec<Vec<u8>>>;

    /// Tasks without an end for Real-Time Mode, `most` of them where there are no more brokers.
    ///
    /// # Errors
    /// As [`pieces`](Self::pieces); a stream that has no such tasks.
    fn endless_pieces(&mut self, _start: &str, _most: usize) -> Result<Vec<Vec<u8>>> {
        Err(Error::argument("Real-Time Mode: expected a topic of a live cluster, got a store directory"))
    }

    /// The offsets of all queues, of which each task says its own.
    ///
    /// # Errors
    /// The offsets of another stream.
    fn merge(&mut self, offsets: &[String]) -> Result<String> {
        offsets.last().cloned().ok_or_else(|| Error::argument("offsets: expected those of a task, got none"))
    }

    /// Spark has stored all before `end`.
    ///
    /// # Errors
    /// The checkpoint of another stream; an interrupt.
    fn commit(&mut self, end: &str) -> Result<()>;

    /// Lag of a query that read as far as `consumed`, by name.
    ///
    /// # Errors
    /// The checkpoint of another stream.
    fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(String, String)>>;

    /// Log lines since the last call.
    fn take_log(&mut self) -> Vec<(Level, String)>;

    /// Closes connections. A stream that is closed is not asked any more.
    fn close(&mut self);
}

/// Limits of a topic's batch; without limits it takes everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub most: Option<i64>,
    /// Messages at least; fewer wait for more of them.
    pub least: Option<i64>,
    /// For how long at most.
    pub delay: Duration,
}

impl Limits {
    /// Those that options ask for.
    pub fn of(options: &Options) -> Self {
        let delay = options.number("maxTriggerDelayMs").unwrap_or_default().unsigned_abs();
        Self {
            most: options.number("maxOffsetsPerTrigger"),
            least: options.number("minOffsetsPerTrigger"),
            delay: Duration::from_millis(delay),
        }
    }
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
}

/// Lines for whoever has a log.
#[derive(Debug, Default)]
pub struct Log {
    lines: Vec<(Level, String)>,
}

impl Log {
    pub fn info(&mut self, text: String) {
        self.lines.push((Level::Info, text));
    }

    /// Notes what should not happen.
    pub fn warn(&mut self, texts: impl IntoIterator<Item = String>) {
        self.lines.extend(texts.into_iter().map(|text| (Level::Warning, text)));
    }

    /// The lines since the last call.
    pub fn take(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
}
