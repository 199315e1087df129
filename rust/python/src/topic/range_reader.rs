//! Reads ranges of queues, batch by batch.
use super::read::TopicRead;
use super::request::PyRangeRequest;
use super::warnings::log;
use crate::client::message_queue::PulledQueue;
use crate::error::{client, spark};
use crate::process::check_opened_here;
use crate::signals;
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::ranges::{self, QueueRange, RangeRequest, Step};
use rmqfast_spark::topic_piece::TopicPiece;
use std::collections::VecDeque;
use std::time::Duration;

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);
const LOGGER: &str = "rmqfast.client.ranges";

/// Reads ranges of queues of one broker.
#[pyclass(module = "rmqfast._native._rmqfast")]
pub struct RangeReader {
    reader: ranges::RangeReader,
    ready: VecDeque<RecordBatch>,
    name: String,
    process: u32,
}

/// `QueueRange` of Python.
#[derive(FromPyObject)]
struct PyQueueRange {
    queue: PulledQueue,
    start: i64,
    end: i64,
}

impl RangeReader {
    fn open(
        request: RangeRequest,
        cluster: ClusterOptions,
        ranges: Vec<QueueRange>,
        address: Option<String>,
    ) -> PyResult<Self> {
        let name = match ranges.as_slice() {
            [] => "no range".to_owned(),
            [range] => range.to_string(),
            [range, more @ ..] => format!("{range} and {} more", more.len()),
        };
        let reader = ranges::RangeReader::new(request, ranges, address, cluster, Box::new(signals::waiting()));
        Ok(Self { reader: reader.map_err(client)?, ready: VecDeque::new(), name, process: std::process::id() })
    }

    /// Whether all is read.
    fn read_on(&mut self) -> rmqfast_client::Result<bool> {
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
    #[new]
    #[pyo3(signature = (request, ranges, address=None))]
    fn new(request: PyRangeRequest<'_>, ranges: Vec<PyQueueRange>, address: Option<String>) -> PyResult<Self> {
        let ranges =
            ranges.into_iter().map(|PyQueueRange { queue, start, end }| QueueRange { queue: queue.0, start, end });
        let (request, cluster) = request.into_request()?;
        Self::open(request, cluster, ranges.collect(), address)
    }

    #[staticmethod]
    fn of_piece(read: &TopicRead, piece: &[u8]) -> PyResult<Self> {
        let TopicPiece { ranges, address, .. } = TopicPiece::of_bytes(piece).map_err(spark)?;
        Self::open(read.read().request.clone(), read.read().cluster.clone(), ranges, address)
    }

    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        // PySpark's daemon forks its workers, and a thread of the puller does not come along
        check_opened_here(self.process, "reader")?;
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(PyRecordBatch::new(batch)));
            }
            let read = py.detach(|| self.read_on());
            // logged before an error is raised: they may say why
            log(py, LOGGER, self.reader.take_warnings())?;
            if read.map_err(client)? {
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

    fn close(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| self.reader.close());
        }
    }
}
