//! Exposes the reader of a task's queue ranges.
use super::read::TopicRead;
use super::warnings::log;
use crate::arrow::Batch;
use crate::error::spark;
use crate::process::check_opened_here;
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use rmqfast_client::ranges::{QueueRange, Step, Warning};
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::origin::reader::PieceReader;
use rmqfast_store::scan::decode::BadBodies;
use std::collections::VecDeque;
use std::time::Duration;

// interval of checks for Ctrl-C
const LOOK: Duration = Duration::from_millis(100);
const LOGGER: &str = "rmqfast.client.ranges";

/// Reads ranges of queues of one broker, batch by batch.
#[pyclass(module = "rmqfast._native._rmqfast")]
pub struct RangeReader {
    reader: PieceReader,
    ready: VecDeque<RecordBatch>,
    name: String,
    process: u32,
    /// Bad bodies, which are told once at the end.
    bad_bodies: BadBodies,
}

impl RangeReader {
    /// Logs the warnings since the last call, without those of bad bodies.
    fn log_warnings(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut texts = Vec::new();
        for warning in self.reader.take_warnings() {
            match warning {
                Warning::BadBodies(bodies) => self.bad_bodies.append(bodies),
                other => texts.push(other.to_string()),
            }
        }
        log(py, LOGGER, texts)
    }

    fn log_bad_bodies(&mut self, py: Python<'_>) -> PyResult<()> {
        let bodies = std::mem::take(&mut self.bad_bodies);
        if bodies.count() == 0 {
            return Ok(());
        }
        log(py, LOGGER, vec![format!("{}; their value is null", Warning::BadBodies(bodies))])
    }

    /// Reads more batches. Returns whether all ranges are read.
    fn read_on(&mut self) -> rmqfast_spark::Result<bool> {
        match self.reader.advance(LOOK)? {
            Step::Answers(answers) => self.ready.extend(self.reader.batches(&answers)?),
            Step::Waiting => {}
            Step::Done => return Ok(true),
        }
        Ok(false)
    }
}

#[pymethods]
impl RangeReader {
    #[staticmethod]
    fn of_piece(read: &TopicRead, piece: &[u8]) -> PyResult<Self> {
        let piece = TopicPiece::of_bytes(piece).map_err(spark)?;
        let name = name_of(&piece.ranges);
        let (request, cluster) = (read.read().request.clone(), read.read().cluster.clone());
        let reader = PieceReader::open(request, piece, cluster).map_err(spark)?;
        let (process, bad_bodies) = (std::process::id(), BadBodies::default());
        Ok(Self { reader, ready: VecDeque::new(), name, process, bad_bodies })
    }

    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<Batch>> {
        // PySpark's daemon forks its workers, and the puller's thread is missing in a fork
        check_opened_here(self.process, "reader")?;
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(Batch(batch)));
            }
            let read = py.detach(|| self.read_on());
            // logged before an error is raised, since the warnings may explain it
            self.log_warnings(py)?;
            if read.map_err(spark)? {
                self.log_bad_bodies(py)?;
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.reader.counts().rows
    }

    #[getter]
    fn size(&self) -> u64 {
        self.reader.counts().bytes
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.process == std::process::id() {
            py.detach(|| self.reader.close());
        }
        self.log_bad_bodies(py)
    }
}

/// Formats ranges as a name of the piece, for errors and logs.
fn name_of(ranges: &[QueueRange]) -> String {
    match ranges {
        [] => "no range".to_owned(),
        [range] => range.to_string(),
        [range, more @ ..] => format!("{range} and {} more", more.len()),
    }
}
