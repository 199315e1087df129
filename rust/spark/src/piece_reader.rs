//! Reads the piece of a task: its ranges of queues, by pulls or out of the broker's log. Both give the same messages, so that what the
//! log does not tell is pulled.
use crate::error::Result;
use crate::log_rows::{Found, LogRows};
use crate::topic_piece::TopicPiece;
use arrow_array::RecordBatch;
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::puller::{Fetched, Queue};
use rmqfast_client::ranges::{self, Counts, OnWait, PoolKey, PullerPool, RangeReader, RangeRequest, Step};
use std::time::{Duration, Instant};

/// Reads a piece.
pub struct PieceReader {
    way: Way,
    /// What was read out of the log.
    counts: Counts,
    warnings: Vec<String>,
}

enum Way {
    Pulls(Box<RangeReader>),
    Log(Box<ByLog>),
}

/// A piece that is read out of a log, and how it would be pulled.
struct ByLog {
    rows: LogRows,
    request: RangeRequest,
    address: Option<String>,
    cluster: ClusterOptions,
    on_wait: Option<Box<OnWait>>,
}

impl PieceReader {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// A piece of queues of several brokers, or of one queue twice.
    pub fn open(
        request: RangeRequest,
        piece: TopicPiece,
        cluster: ClusterOptions,
        on_wait: Box<OnWait>,
    ) -> Result<Self> {
        let TopicPiece { address, ranges, log, .. } = piece;
        let Some(part) = log.filter(|part| part.since.len() == ranges.len()) else {
            return Ok(Self::pulling(RangeReader::new(request, ranges, address, cluster, on_wait)?));
        };
        let rows = LogRows::new(&request, &ranges, &part);
        let way = Way::Log(Box::new(ByLog { rows, request, address, cluster, on_wait: Some(on_wait) }));
        Ok(Self { way, counts: Counts::default(), warnings: Vec::new() })
    }

    /// One that pulls.
    pub fn pulling(reader: RangeReader) -> Self {
        Self { way: Way::Pulls(Box::new(reader)), counts: Counts::default(), warnings: Vec::new() }
    }

    /// Reads on; waits for `wait` at most, and longer only to connect or to locate the broker.
    ///
    /// # Errors
    /// As [`RangeReader::advance`].
    pub fn advance(&mut self, wait: Duration) -> Result<Step> {
        let by_log = match &mut self.way {
            Way::Pulls(reader) => return Ok(reader.advance(wait)?),
            Way::Log(by_log) => by_log,
        };
        let began = Instant::now();
        match by_log.rows.advance(wait, &by_log.request) {
            Ok(Found::Answers(mut answers)) => {
                self.counts.pulls += 1;
                self.counts.bytes += answers.iter().map(|answer| answer.bytes() as u64).sum::<u64>();
                ranges::choose(&by_log.request, &mut answers, &mut self.warnings)?;
                self.counts.rows += answers.iter().map(|answer| answer.rows.len() as u64).sum::<u64>();
                Ok(if answers.is_empty() { Step::Waiting } else { Step::Answers(answers) })
            }
            Ok(Found::Waiting) => {
                self.counts.waited += began.elapsed();
                Ok(Step::Waiting)
            }
            Ok(Found::Done) => Ok(Step::Done),
            Err(reason) => self.pull_the_rest(&reason),
        }
    }

    /// Answers of [`advance`](Self::advance) as Arrow batches.
    ///
    /// # Errors
    /// As [`unreadable`](Self::unreadable).
    pub fn batches(&mut self, answers: &[Fetched]) -> Result<Vec<RecordBatch>> {
        Ok(match &mut self.way {
            Way::Pulls(reader) => reader.batches(answers)?,
            Way::Log(by_log) => ranges::batches(&by_log.request, answers, &mut self.warnings)?,
        })
    }

    /// Tells of bodies that do not decompress, by the physical offsets of their messages.
    ///
    /// # Errors
    /// There is one, and the request is strict.
    pub fn unreadable(&mut self, answers: &[Fetched], offsets: &[i64]) -> Result<()> {
        match &mut self.way {
            Way::Pulls(reader) => reader.unreadable(answers, offsets)?,
            Way::Log(by_log) => ranges::unreadable(&by_log.request, answers, offsets, &mut self.warnings)?,
        }
        Ok(())
    }

    /// What is worth a warning since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.warnings);
        if let Way::Pulls(reader) = &mut self.way {
            warnings.extend(reader.take_warnings());
        }
        warnings
    }

    /// Where each queue goes on behind what was handed out, of ranges that are not at their end.
    pub fn next_offsets(&self) -> Box<dyn Iterator<Item = (&Queue, i64)> + '_> {
        match &self.way {
            Way::Pulls(reader) => Box::new(reader.next_offsets()),
            Way::Log(by_log) => Box::new(by_log.rows.next_offsets()),
        }
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        let Way::Pulls(reader) = &self.way else { return self.counts };
        let pulled = reader.counts();
        Counts {
            rows: self.counts.rows + pulled.rows,
            bytes: self.counts.bytes + pulled.bytes,
            pulls: self.counts.pulls + pulled.pulls,
            waited: self.counts.waited + pulled.waited,
        }
    }

    /// Ends the connection.
    pub fn close(&self) {
        if let Way::Pulls(reader) = &self.way {
            reader.close();
        }
    }

    /// As [`RangeReader::reading_ahead`]; a log is read to the end of the piece only.
    pub fn reading_ahead(self) -> Self {
        self.with_reader(RangeReader::reading_ahead)
    }

    /// As [`RangeReader::pooled`]; the connection to a log is for one piece.
    pub fn pooled(self, pool: &'static PullerPool, key: PoolKey) -> Self {
        self.with_reader(|reader| reader.pooled(pool, key))
    }

    /// Gives up the ranges; a puller is left to the pool.
    pub fn keep(&mut self) {
        if let Way::Pulls(reader) = &mut self.way {
            reader.keep();
        }
    }

    fn with_reader(self, change: impl FnOnce(RangeReader) -> RangeReader) -> Self {
        match self.way {
            Way::Pulls(reader) => Self { way: Way::Pulls(Box::new(change(*reader))), ..self },
            Way::Log(_) => self,
        }
    }

    fn pull_the_rest(&mut self, reason: &str) -> Result<Step> {
        let Way::Log(by_log) = &mut self.way else { return Ok(Step::Waiting) };
        let rest = by_log.rows.rest();
        if let Some(first) = rest.first() {
            let broker = &first.queue.broker_name;
            self.warnings.push(format!("broker {broker}: its log is not read on, the rest is pulled: {reason}"));
        }
        let on_wait = by_log.on_wait.take().unwrap_or_else(|| Box::new(rmqfast_remoting::never));
        let (request, address, cluster) = (by_log.request.clone(), by_log.address.clone(), by_log.cluster.clone());
        self.way = Way::Pulls(Box::new(RangeReader::new(request, rest, address, cluster, on_wait)?));
        Ok(Step::Waiting)
    }
}

impl std::fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceReader").finish_non_exhaustive()
    }
}
