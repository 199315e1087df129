//! Exposes the read of topics. The driver plans it and pickles it for the tasks.
use super::request::cluster_options;
use super::warnings::{log, log_lines};
use crate::error::spark;
use crate::request::PyScanRequest;
use crate::scan::{Scan, Source};
use crate::selection::{PyFilter, filters};
use crate::signals;
use crate::spark::pairs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use rmqfast_client::cluster::Bounds;
use rmqfast_client::puller::Queue;
use rmqfast_spark::origin::BrokerWay;
use rmqfast_spark::origin::piece::{RangeParts, TopicPiece};
use rmqfast_spark::request::options::Kind;
use rmqfast_spark::topic::read;
use rmqfast_store::scan::ScanRequest;
use std::sync::Arc;

type PyTopicPiece = (&'static str, Option<String>, Vec<RangeParts>, Option<(u64, u64)>);

const LOGGER: &str = "rmqfast.spark";

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct TopicRead {
    read: read::TopicRead,
    arguments: Arguments,
}

/// Arguments from which a task creates the read again.
struct Arguments {
    kind: String,
    options: Py<PyDict>,
    columns: Vec<String>,
    config: Option<Py<PyAny>>,
    /// The filters that the read itself applies.
    filters: Vec<Py<PyAny>>,
}

impl TopicRead {
    pub fn read(&self) -> &read::TopicRead {
        &self.read
    }

    fn with_pieces(&self, pieces: &[Vec<u8>]) -> PyResult<read::TopicRead> {
        let pieces = pieces.iter().map(|piece| TopicPiece::of_bytes(piece)).collect::<Result<_, _>>().map_err(spark)?;
        Ok(self.read.clone().with_pieces(pieces))
    }
}

#[pymethods]
impl TopicRead {
    #[new]
    #[pyo3(signature = (kind, options, columns, *, config=None))]
    fn new(
        kind: String,
        options: Bound<'_, PyDict>,
        columns: Vec<String>,
        config: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let read = read::TopicRead::of(Kind::of_name(&kind).map_err(spark)?, &pairs(&options)?, &columns);
        let mut read = read.map_err(spark)?;
        if let Some(config) = &config {
            read = read.at(cluster_options(config)?);
        }
        // set here because every process that unpickles the read calls this constructor
        read.cluster.interrupt = Arc::new(signals::check);
        let (options, config, filters) = (options.unbind(), config.map(Bound::unbind), Vec::new());
        Ok(Self { read, arguments: Arguments { kind, options, columns, config, filters } })
    }

    /// Rebuilds a pickled read.
    #[staticmethod]
    fn narrowed(
        py: Python<'_>,
        kind: String,
        options: Bound<'_, PyDict>,
        columns: Vec<String>,
        config: Option<Bound<'_, PyAny>>,
        filters: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self::new(kind, options, columns, config)?.take(py, filters)?.0)
    }

    fn take(&self, py: Python<'_>, filters: Vec<Bound<'_, PyAny>>) -> PyResult<(Self, Vec<bool>)> {
        let filter_list = filters.iter().map(|filter| filter.extract()).collect::<PyResult<Vec<PyFilter<'_>>>>()?;
        let mut read = self.read.clone();
        let is_taken = read.take(&self::filters(filter_list)?);
        let Arguments { kind, options, columns, config, filters: before } = &self.arguments;
        let pushed = filters.into_iter().zip(&is_taken).filter(|(_, is_taken)| **is_taken);
        let arguments = Arguments {
            kind: kind.clone(),
            options: options.clone_ref(py),
            columns: columns.clone(),
            config: config.as_ref().map(|config| config.clone_ref(py)),
            filters: before.iter().map(|f| f.clone_ref(py)).chain(pushed.map(|(f, _)| f.unbind())).collect(),
        };
        Ok((Self { read, arguments }, is_taken))
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let warnings = py.detach(|| self.read.check()).map_err(spark)?;
        log(py, LOGGER, warnings)
    }

    #[pyo3(signature = (*, logger=LOGGER))]
    fn plan<'py>(&self, py: Python<'py>, logger: &str) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(self.plan_with_ways(py, logger)?.0)
    }

    #[pyo3(signature = (*, logger=LOGGER))]
    fn plan_with_ways<'py>(&self, py: Python<'py>, logger: &str) -> PyResult<(Vec<Bound<'py, PyBytes>>, String)> {
        let mut planned = py.detach(|| self.read.plan()).map_err(spark)?;
        // logged after the plan, since log handlers are Python code and need the GIL
        log_lines(py, logger, planned.log.take())?;
        let pieces = planned.pieces.iter().map(|piece| PyBytes::new(py, &piece.to_bytes()));
        Ok((pieces.collect(), BrokerWay::to_option(&planned.ways)))
    }

    /// Starts a scan of the planned pieces.
    #[pyo3(signature = (pieces, request, *, threads, limit))]
    fn scan(
        &self,
        pieces: Vec<Vec<u8>>,
        request: PyScanRequest,
        threads: usize,
        limit: Option<usize>,
    ) -> PyResult<Scan> {
        let mut read = self.with_pieces(&pieces)?;
        // what options do not have; filters stay those of the read
        let ScanRequest { columns, decode, keys_prefix, time_unit, batch_rows, batch_bytes, .. } =
            request.into_request()?;
        let own = read.request.scan;
        read.request.scan = ScanRequest { columns, decode, keys_prefix, time_unit, batch_rows, batch_bytes, ..own };
        let schema = read.request.scan.schema();
        let fails_on_damage = read.request.is_strict;
        // the pieces are planned, so that no broker is asked
        let pieces = read.plan().map_err(spark)?.pieces;
        Ok(Scan::new(Source::Topics(read.scan(pieces, threads)), schema, limit, fails_on_damage))
    }

    /// Returns the pieces that a scan of planned pieces reads: way, address, ranges, and range of the log. Asks no broker.
    #[pyo3(signature = (pieces, *, threads))]
    fn explain(&self, pieces: Vec<Vec<u8>>, threads: usize) -> PyResult<Vec<PyTopicPiece>> {
        let pieces = self.with_pieces(&pieces)?.plan().map_err(spark)?.pieces;
        let described = TopicPiece::join(pieces, threads).into_iter().map(|piece| {
            let ((way, log), (address, ranges)) = (piece.way(), piece.to_parts());
            (way, address, ranges, log)
        });
        Ok(described.collect())
    }

    /// Counts the messages of planned pieces from the queues' bounds alone. Returns `None` if the messages must be read.
    fn count(&self, py: Python<'_>, pieces: Vec<Vec<u8>>) -> PyResult<Option<i64>> {
        let read = self.with_pieces(&pieces)?;
        let counts = py.detach(|| read.known_counts()).map_err(spark)?;
        Ok(counts.map(|counts| counts.messages))
    }

    /// Returns topic, broker name, queue id and present offsets of each queue.
    fn bounds(&self, py: Python<'_>) -> PyResult<Vec<RangeParts>> {
        let bounds = py.detach(|| self.read.bounds()).map_err(spark)?;
        let parts = |(queue, (first, end)): (Queue, Bounds)| {
            (queue.topic, queue.broker_name.to_string(), queue.queue_id, first, end)
        };
        Ok(bounds.into_iter().map(parts).collect())
    }

    /// Pickles the read as its options, which are small. Files that options name, such as certificates, must exist on
    /// each machine.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let Arguments { kind, options, columns, config, filters } = &self.arguments;
        let arguments = (kind, options.bind(py), columns, config.as_ref().map(|config| config.bind(py)), filters);
        let make = PyType::new::<Self>(py).getattr("narrowed")?;
        Ok((make, arguments.into_pyobject(py)?.into_any()))
    }
}

/// Formats pieces as the value of the option `pieces`.
#[pyfunction]
pub fn pieces_option(pieces: Vec<Vec<u8>>) -> PyResult<String> {
    let pieces = pieces.iter().map(|piece| TopicPiece::of_bytes(piece)).collect::<Result<Vec<_>, _>>();
    Ok(TopicPiece::to_option(&pieces.map_err(spark)?))
}

/// Returns the broker address and the queue ranges of a piece.
#[pyfunction]
pub fn read_piece(piece: &[u8]) -> PyResult<(Option<String>, Vec<RangeParts>)> {
    Ok(TopicPiece::of_bytes(piece).map_err(spark)?.to_parts())
}
