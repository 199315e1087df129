//! Exposes the reader of a task's queue ranges.
use super::read::TopicRead;
use super::warnings::log;
use crate::arrow::Batch;
use crate::error::spark;
use crate::process::check_opened_here;
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use rmqfast_client::ranges::{QueueRange, Step};
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::origin::reader::PieceReader;
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
}

impl RangeReader {
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
        Ok(Self { reader, ready: VecDeque::new(), name, process: std::process::id() })
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
            log(py, LOGGER, self.reader.take_warnings().iter().map(ToString::to_string).collect())?;
            if read.map_err(spark)? {
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

    fn close(&mut self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| self.reader.close());
        }
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
