//! Exposes a store directory that is opened for reading.
use crate::error::{spark, to_python};
use crate::explanation::explanation_dict;
use crate::export::{PySizes, export_store};
use crate::lookup::{self, PyGetLimits, PyGetMessage, Rows};
use crate::request::{PyPiece, PyScanRequest, from_piece, to_piece, to_way};
use crate::row::RowOptions;
use crate::scan::{Scan, Source};
use crate::store_scans::{StoreGuard, StoreScan, StoreScans};
use crate::tail::{PyStart, Range, Tail};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_spark::store::piece::Cut;
use rmqfast_store::Error;
use rmqfast_store::file::Io;
use rmqfast_store::scan::{self, Explanation, Piece, Plan, QueueCounts, ScanRequest, Sources};
use rmqfast_store::store::queue_view::Topics;
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[pyclass(frozen, weakref, module = "rmqfast._native._rmqfast")]
pub struct Store {
    store: MessageStore,
    /// Shared by a store and its refreshed copies, so that closing one closes all.
    is_closed: Arc<AtomicBool>,
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, *, commit_log_dirs, io, pinned))]
    fn open(py: Python<'_>, path: PathBuf, commit_log_dirs: Vec<PathBuf>, io: &str, pinned: bool) -> PyResult<Self> {
        let io = match io {
            "auto" => Io::Auto,
            "pread" => Io::Pread,
            "mmap" => Io::Mmap,
            other => return Err(to_python(Error::invalid("io", "'auto', 'pread' or 'mmap'", other))),
        };
        // opening lists files, which may wait for the disk
        let opened = py.detach(|| {
            let store = MessageStore::open(&path, &OpenOptions { commit_log_dirs, io })?;
            if pinned { store.snapshot() } else { Ok(store) }
        });
        Ok(Self { store: opened.map_err(to_python)?, is_closed: Arc::default() })
    }

    fn refreshed(&self, py: Python<'_>) -> PyResult<Self> {
        let store = self.store()?;
        let now = py.detach(|| store.as_of_now()?.snapshot()).map_err(to_python)?;
        // shared, so that closing a reader also ends scans that began before the refresh
        Ok(Self { store: now, is_closed: self.is_closed.clone() })
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    #[pyo3(signature = (request, *, way, cut_bytes, readers))]
    fn plan(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        way: Option<&str>,
        cut_bytes: u64,
        readers: u64,
    ) -> PyResult<(Vec<PyPiece>, u64, String)> {
        let request = request.into_request()?;
        let way = way.map(to_way).transpose()?;
        let store = self.store()?;
        let plan = py.detach(|| make_plan(store, &request, way, Some((cut_bytes, readers)))).map_err(to_python)?;
        Ok((plan.pieces.iter().map(from_piece).collect(), plan.listed, plan.reason))
    }

    #[pyo3(signature = (request, *, least, piece_bytes, readers, worker_cores))]
    fn partitions(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        least: Option<u64>,
        piece_bytes: Option<u64>,
        readers: u64,
        worker_cores: Option<u64>,
    ) -> PyResult<Vec<PyPiece>> {
        let request = request.into_request()?;
        let cut = Cut { least, bytes: piece_bytes, worker_cores };
        let store = self.store()?;
        let plan = |bytes| Ok(make_plan(store, &request, None, Some((bytes, readers)))?.pieces);
        let pieces = py.detach(|| cut.pieces(plan)).map_err(spark)?;
        Ok(pieces.iter().map(from_piece).collect())
    }

    #[pyo3(signature = (request, *, way, threads, limit, fails_on_damage))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn scan(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        way: Option<&str>,
        threads: usize,
        limit: Option<usize>,
        fails_on_damage: bool,
    ) -> PyResult<Scan> {
        let request = Arc::new(request.into_request()?);
        let way = way.map(to_way).transpose()?;
        let store = self.store()?;
        let plan = py.detach(|| plan_scan(store, &request, way, threads)).map_err(to_python)?;
        let schema = request.schema();
        let scan = self.source(plan.sources, request, plan.pieces, threads);
        Ok(Scan::new(scan, schema, limit, fails_on_damage))
    }

    #[pyo3(signature = (request, pieces, *, threads, limit, fails_on_damage))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn scan_pieces(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        pieces: Vec<PyPiece>,
        threads: usize,
        limit: Option<usize>,
        fails_on_damage: bool,
    ) -> PyResult<Scan> {
        let request = Arc::new(request.into_request()?);
        let pieces = pieces.into_iter().map(to_piece).collect::<PyResult<Vec<_>>>()?;
        // the pieces were planned in another process, so this process opens the files itself
        let store = self.store()?;
        let sources = py.detach(|| Plan::sources(store, &request)).map_err(to_python)?;
        let schema = request.schema();
        let scan = self.source(sources, request, pieces, threads);
        Ok(Scan::new(scan, schema, limit, fails_on_damage))
    }

    /// Explains what a scan reads: one that is planned now, or one of planned pieces.
    #[pyo3(signature = (request, pieces, *, way, threads))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        request: PyScanRequest,
        pieces: Option<Vec<PyPiece>>,
        way: Option<&str>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let request = Arc::new(request.into_request()?);
        let way = way.map(to_way).transpose()?;
        let pieces = pieces.map(|pieces| pieces.into_iter().map(to_piece).collect::<PyResult<Vec<_>>>()).transpose()?;
        let store = self.store()?;
        let explain = || {
            let Some(pieces) = pieces else {
                let plan = plan_scan(store, &request, way, threads)?;
                let explanation = plan.explain(store, &request)?;
                return Ok((explanation, Some(plan)));
            };
            Ok((Explanation::of(store, &request, &Plan::sources(store, &request)?, &pieces)?, None))
        };
        let (explanation, plan) = py.detach(explain).map_err(to_python)?;
        explanation_dict(py, &explanation, plan.as_ref())
    }

    /// Counts the messages of a request by the consume queues. Returns `None` if the log must be read.
    fn count(&self, py: Python<'_>, request: PyScanRequest) -> PyResult<Option<i64>> {
        let request = request.into_request()?;
        let store = self.store()?;
        let counts = py.detach(|| QueueCounts::of(store, &request, u64::MAX)).map_err(to_python)?;
        Ok(counts.map(|counts| counts.messages))
    }

    #[pyo3(signature = (request, *, start, last, stop, poll_interval, fails_on_damage))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn tail(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        start: PyStart,
        last: usize,
        stop: Option<i64>,
        poll_interval: f64,
        fails_on_damage: bool,
    ) -> PyResult<Tail> {
        let request = request.into_request()?;
        let range = Range { start, last, stop, fails_on_damage };
        let store = self.store()?;
        py.detach(|| Tail::open(store, &request, &range, poll_interval, self.guard())).map_err(to_python)
    }

    fn has_topic(&self, py: Python<'_>, topic: &str) -> PyResult<bool> {
        let store = self.store()?;
        py.detach(|| store.has_topic(topic)).map_err(to_python)
    }

    fn topics(&self, py: Python<'_>) -> PyResult<Topics> {
        let store = self.store()?;
        py.detach(|| store.topics()).map_err(to_python)
    }

    #[pyo3(signature = (queue, offset, *, max_messages, tags, options, limits))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn get<'py>(
        &self,
        py: Python<'py>,
        queue: (String, i32),
        offset: i64,
        max_messages: usize,
        tags: &str,
        options: RowOptions,
        limits: Option<PyGetLimits>,
    ) -> PyResult<PyGetMessage<'py>> {
        lookup::get(py, self.store()?, (&queue.0, queue.1, offset), (max_messages, limits), tags, options)
    }

    #[pyo3(signature = (queue, offset, *, limits))]
    fn check_in_disk(&self, py: Python<'_>, queue: (String, i32), offset: i64, limits: PyGetLimits) -> PyResult<bool> {
        lookup::check_in_disk(py, self.store()?, (&queue.0, queue.1, offset), limits)
    }

    fn earliest_time(&self, py: Python<'_>, topic: Option<&str>, queue_id: Option<i32>) -> PyResult<Option<i64>> {
        lookup::earliest_time(py, self.store()?, topic, queue_id)
    }

    #[pyo3(signature = (topic, queue_id, when, *, rule))]
    fn offset_for_time(&self, py: Python<'_>, topic: &str, queue_id: i32, when: i64, rule: &str) -> PyResult<i64> {
        lookup::offset_for_time(py, self.store()?, (topic, queue_id, when), rule)
    }

    #[pyo3(signature = (physical_offset, *, options))]
    fn message_at<'py>(&self, py: Python<'py>, physical_offset: u64, options: RowOptions) -> PyResult<Rows<'py>> {
        lookup::message_at(py, self.store()?, physical_offset, options)
    }

    #[pyo3(signature = (topic, key, *, max_messages, between, options))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        topic: String,
        key: &str,
        max_messages: usize,
        between: (i64, i64),
        options: RowOptions,
    ) -> PyResult<Rows<'py>> {
        lookup::query(py, self.store()?, (topic, key), max_messages, between, options)
    }

    #[pyo3(signature = (id, *, topic, options))]
    fn message_by_id<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        topic: Option<&str>,
        options: RowOptions,
    ) -> PyResult<Rows<'py>> {
        lookup::message_by_id(py, self.store()?, id, topic, options)
    }

    #[pyo3(signature = (*, crc, progress))]
    fn verify<'py>(&self, py: Python<'py>, crc: bool, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        lookup::verify(py, self.store()?, crc, progress)
    }

    #[pyo3(signature = (request, out, *, sizes, progress))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        request: PyScanRequest,
        out: PathBuf,
        sizes: PySizes,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        export_store(py, self.store()?, &request.into_request()?, &out, sizes, progress)
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        lookup::info(py, self.store()?)
    }
}

impl Store {
    fn store(&self) -> PyResult<&MessageStore> {
        self.guard().check().map_err(to_python)?;
        Ok(&self.store)
    }

    fn source(&self, sources: Sources, request: Arc<ScanRequest>, pieces: Vec<Piece>, threads: usize) -> Source {
        let broker_name = request.broker_name.clone();
        let scan = scan::Scan::new(sources, request, pieces, threads);
        Source::Stores(StoreScans::new(vec![StoreScan { scan, guard: self.guard(), broker_name }]))
    }

    fn guard(&self) -> StoreGuard {
        StoreGuard { root: self.store.root().to_path_buf(), is_closed: self.is_closed.clone() }
    }
}

fn plan_scan(
    store: &MessageStore,
    request: &ScanRequest,
    way: Option<scan::Way>,
    threads: usize,
) -> Result<Plan, Error> {
    // bytes of a piece; smaller pieces share the work more evenly among threads
    const CUT: u64 = 64 << 20;
    // a single thread reads in order and needs no pieces
    make_plan(store, request, way, (threads > 1).then_some((CUT, threads as u64)))
}

fn make_plan(
    store: &MessageStore,
    request: &ScanRequest,
    way: Option<scan::Way>,
    cut: Option<(u64, u64)>,
) -> Result<Plan, Error> {
    let mut plan = Plan::new(store, request, way)?;
    if let Some((bytes, readers)) = cut {
        plan.cut(bytes, readers)?;
    }
    Ok(plan)
}
