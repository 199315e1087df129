//! Reads a task's piece by pulls, from the broker's log, or from a copy. All three give the same messages, so the
//! reader can change from a log to pulls within a piece.
use crate::error::Result;
use crate::origin::copy_rows::CopyRows;
use crate::origin::log_rows::LogRows;
use crate::origin::log_source::{Refusal, log_sources, pull_because};
use crate::origin::piece::TopicPiece;
use arrow_array::RecordBatch;
use rmqfast_client::cluster::{ClusterOptions, TopicCluster};
use rmqfast_client::puller::{PulledAnswer, Queue};
use rmqfast_client::ranges::{self, Counts, PoolKey, PullerPool, RangeReader, RangeRequest, Step, Warning};
use std::time::{Duration, Instant};

pub struct PieceReader {
    origin: Origin,
    /// Counts of the rows that were read from a log or a copy.
    counts: Counts,
    warnings: Vec<Warning>,
}

enum Origin {
    Pulls(Box<RangeReader>),
    Log(Box<Log>),
    Copy(Box<CopyRows>),
}

/// A broker's log, and the request and address with which its rest can be pulled.
struct Log {
    rows: LogRows,
    /// Addresses of the log, according to the plan.
    addresses: Vec<String>,
    /// Whether the broker has confirmed that its log may be read at `addresses`.
    is_checked: bool,
    request: RangeRequest,
    address: Option<String>,
    cluster: ClusterOptions,
}

impl PieceReader {
    /// Opens the piece. A copy is opened at once; a broker is connected at the first read.
    ///
    /// # Errors
    /// The piece has queues of several brokers or a queue twice, or its copy cannot be read.
    pub fn open(request: RangeRequest, piece: TopicPiece, cluster: ClusterOptions) -> Result<Self> {
        let TopicPiece { address, ranges, log, copy, .. } = piece;
        if let Some(part) = copy {
            return Ok(Self::new(Origin::Copy(Box::new(CopyRows::open(request, &ranges, part)?))));
        }
        // a part that lacks the beginning of a range is malformed, so its ranges are pulled
        let Some(part) = log.filter(|part| part.begins.len() == ranges.len()) else {
            return Ok(Self::pulling(RangeReader::new(request, ranges, address, cluster)?));
        };
        let rows = LogRows::new(&request, &ranges, &part);
        let addresses = part.stretch.addresses;
        let log = Log { rows, addresses, is_checked: false, request, address, cluster };
        Ok(Self::new(Origin::Log(Box::new(log))))
    }

    fn pulling(reader: RangeReader) -> Self {
        Self::new(Origin::Pulls(Box::new(reader)))
    }

    fn new(origin: Origin) -> Self {
        Self { origin, counts: Counts::default(), warnings: Vec::new() }
    }

    /// Reads the next answers. Waits at most for `wait`, or longer if it has to connect or to ask for the broker's
    /// address and configuration.
    ///
    /// # Errors
    /// Fails like [`RangeReader::advance`] and [`CopyRows::advance`].
    pub fn advance(&mut self, wait: Duration) -> Result<Step> {
        match &mut self.origin {
            Origin::Pulls(reader) => Ok(reader.advance(wait)?),
            Origin::Log(_) => self.advance_log(wait),
            Origin::Copy(rows) => {
                let step = rows.advance(&mut self.warnings)?;
                if let Step::Answers(answers) = &step {
                    self.count(answers);
                }
                Ok(step)
            }
        }
    }

    fn advance_log(&mut self, wait: Duration) -> Result<Step> {
        let Origin::Log(log) = &mut self.origin else { return Ok(Step::Waiting) };
        let began = Instant::now();
        match log.advance(wait) {
            Ok(Step::Answers(mut answers)) => {
                // all bytes count as read, even if filters drop the rows
                let bytes = self.counts.bytes + bytes(&answers);
                ranges::choose(&log.request, &mut answers, &mut self.warnings)?;
                self.count(&answers);
                self.counts.bytes = bytes;
                Ok(if answers.is_empty() { Step::Waiting } else { Step::Answers(answers) })
            }
            Ok(Step::Waiting) => {
                self.counts.waited += began.elapsed();
                Ok(Step::Waiting)
            }
            Ok(Step::Done) => Ok(Step::Done),
            Err(Refusal::Pulled(reason)) => self.pull_the_rest(&reason),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    /// Converts answers of [`advance`](Self::advance) to Arrow batches.
    ///
    /// # Errors
    /// Fails like [`unreadable`](Self::unreadable).
    pub fn batches(&mut self, answers: &[PulledAnswer]) -> Result<Vec<RecordBatch>> {
        Ok(match &mut self.origin {
            Origin::Pulls(reader) => reader.batches(answers)?,
            Origin::Log(log) => ranges::batches(&log.request, answers, &mut self.warnings)?,
            Origin::Copy(rows) => ranges::batches(&rows.request, answers, &mut self.warnings)?,
        })
    }

    /// Reports messages whose bodies do not decompress, by their physical offsets.
    ///
    /// # Errors
    /// There is such a body, and the request is strict.
    pub fn unreadable(&mut self, answers: &[PulledAnswer], offsets: &[i64]) -> Result<()> {
        match &mut self.origin {
            Origin::Pulls(reader) => reader.unreadable(answers, offsets)?,
            Origin::Log(log) => ranges::unreadable(&log.request, answers, offsets, &mut self.warnings)?,
            Origin::Copy(rows) => ranges::unreadable(&rows.request, answers, offsets, &mut self.warnings)?,
        }
        Ok(())
    }

    /// Returns the warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        if let Origin::Pulls(reader) = &mut self.origin {
            warnings.extend(reader.take_warnings());
        }
        warnings
    }

    /// Returns the next offset of each unfinished queue. Returns nothing for a copy.
    pub fn next_offsets(&self) -> Box<dyn Iterator<Item = (&Queue, i64)> + '_> {
        match &self.origin {
            Origin::Pulls(reader) => Box::new(reader.next_offsets()),
            Origin::Log(log) => Box::new(log.rows.next_offsets()),
            Origin::Copy(_) => Box::new(std::iter::empty()),
        }
    }

    pub fn counts(&self) -> Counts {
        let Origin::Pulls(reader) = &self.origin else { return self.counts };
        let pulled = reader.counts();
        Counts {
            rows: self.counts.rows + pulled.rows,
            bytes: self.counts.bytes + pulled.bytes,
            pulls: self.counts.pulls + pulled.pulls,
            waited: self.counts.waited + pulled.waited,
        }
    }

    pub fn close(&mut self) {
        match &mut self.origin {
            Origin::Pulls(reader) => reader.close(),
            Origin::Log(log) => log.rows.close(),
            Origin::Copy(_) => {}
        }
    }

    /// Makes pulls read ahead, see [`RangeReader::reading_ahead`]. A log or a copy is never read beyond the piece.
    pub fn reading_ahead(self) -> Self {
        self.with_reader(RangeReader::reading_ahead)
    }

    /// Makes pulls use a pool, see [`RangeReader::with_pool`]. A connection to a log is only used for one piece.
    pub fn with_pool(self, pool: &'static PullerPool, key: PoolKey) -> Self {
        self.with_reader(|reader| reader.with_pool(pool, key))
    }

    /// Ends the read. A puller returns to its pool; a connection to a log is closed.
    pub fn keep(&mut self) {
        match &mut self.origin {
            Origin::Pulls(reader) => reader.keep(),
            Origin::Log(log) => log.rows.close(),
            Origin::Copy(_) => {}
        }
    }

    fn count(&mut self, answers: &[PulledAnswer]) {
        self.counts.pulls += 1;
        self.counts.bytes += bytes(answers);
        self.counts.rows += answers.iter().map(|answer| answer.rows.len() as u64).sum::<u64>();
    }

    fn with_reader(self, change: impl FnOnce(RangeReader) -> RangeReader) -> Self {
        match self.origin {
            Origin::Pulls(reader) => Self { origin: Origin::Pulls(Box::new(change(*reader))), ..self },
            Origin::Log(_) | Origin::Copy(_) => self,
        }
    }

    fn pull_the_rest(&mut self, reason: &str) -> Result<Step> {
        let Origin::Log(log) = &mut self.origin else { return Ok(Step::Waiting) };
        // rows that were returned already are not pulled again
        let rest = log.rows.rest();
        if let Some(first) = rest.first() {
            let broker = &first.queue.broker_name;
            let text = format!("broker {broker}: its log is not read on, the rest is pulled: {reason}");
            self.warnings.push(Warning::Trouble(text));
        }
        let (request, address, cluster) = (log.request.clone(), log.address.clone(), log.cluster.clone());
        self.origin = Origin::Pulls(Box::new(RangeReader::new(request, rest, address, cluster)?));
        Ok(Step::Waiting)
    }
}

fn bytes(answers: &[PulledAnswer]) -> u64 {
    answers.iter().map(|answer| answer.bytes() as u64).sum()
}

impl Log {
    /// Calls [`LogRows::advance`]. First lets the broker confirm the plan, which may be hours old.
    fn advance(&mut self, wait: Duration) -> Result<Step, Refusal> {
        if !self.is_checked {
            let queue = self.rows.next_offsets().next().map(|(queue, _)| queue.clone());
            if let Some(queue) = queue {
                self.check(&queue)?;
            }
            self.is_checked = true;
        }
        self.rows.advance(wait, &self.request).map_err(Refusal::Pulled)
    }

    /// Checks that the log may still be read at the planned addresses. Since the plan was made, the master may have
    /// been configured so that sends wait for readers of its log.
    fn check(&mut self, queue: &Queue) -> Result<(), Refusal> {
        let logs = log_sources(&TopicCluster::new(self.cluster.clone())?, queue)?;
        if logs.iter().any(|log| log.source.addresses == self.addresses) {
            return Ok(());
        }
        let (expected, got) = (self.addresses.join(", "), logs.into_iter().flat_map(|log| log.source.addresses));
        let got = got.collect::<Vec<_>>().join(", ");
        Err(pull_because(format!("its log is served elsewhere now: expected {expected}, got {got}")))
    }
}

impl std::fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceReader").finish_non_exhaustive()
    }
}
