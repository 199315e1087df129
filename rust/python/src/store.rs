//! A store directory, opened for reading.
use crate::error::to_python;
use crate::request::{PyPiece, PyScanRequest, from_piece, to_piece, to_way};
use crate::scan::Scan;
use pyo3::prelude::*;
use rmqfast_store::Error;
use rmqfast_store::file::Io;
use rmqfast_store::scan::scanner::Sources;
use rmqfast_store::scan::{self, Plan, ScanRequest, column};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;

/// A store directory.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Store {
    store: Arc<MessageStore>,
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, *, commit_log_dirs, io))]
    fn open(py: Python<'_>, path: PathBuf, commit_log_dirs: Vec<PathBuf>, io: &str) -> PyResult<Self> {
        let io = match io {
            "pread" => Io::Pread,
            "mmap" => Io::Mmap,
            other => return Err(to_python(Error::invalid("io", "'pread' or 'mmap'", other))),
        };
        let store = py.detach(|| MessageStore::open(&path, &OpenOptions { commit_log_dirs, io })).map_err(to_python)?;
        Ok(Self { store: Arc::new(store) })
    }

    #[pyo3(signature = (request, *, way, cut_bytes))]
    fn plan(
        &self,
        py: Python<'_>,
        request: PyScanRequest,
        way: Option<&str>,
        cut_bytes: u64,
    ) -> PyResult<(Vec<PyPiece>, u64, String)> {
        let request = request.into_request()?;
        let way = way.map(to_way).transpose()?;
        let plan = py.detach(|| self.planned(&request, way, Some(cut_bytes))).map_err(to_python)?;
        Ok((plan.pieces.iter().map(from_piece).collect(), plan.listed, plan.reason))
    }

    #[pyo3(signature = (request, *, way, threads))]
    fn scan(&self, py: Python<'_>, request: PyScanRequest, way: Option<&str>, threads: usize) -> PyResult<Scan> {
        const CUT: u64 = 64 << 20;
        let request = Arc::new(request.into_request()?);
        let way = way.map(to_way).transpose()?;
        let cut = (threads > 1).then_some(CUT);
        let plan = py.detach(|| self.planned(&request, way, cut)).map_err(to_python)?;
        Ok(start(plan.sources, request, plan.pieces, threads))
    }

    fn scan_pieces(&self, py: Python<'_>, request: PyScanRequest, pieces: Vec<PyPiece>) -> PyResult<Scan> {
        let request = Arc::new(request.into_request()?);
        let pieces = pieces.into_iter().map(to_piece).collect::<PyResult<Vec<_>>>()?;
        let sources = py.detach(|| Plan::sources(&self.store, &request)).map_err(to_python)?;
        Ok(start(sources, request, pieces, 1))
    }
}

impl Store {
    fn planned(&self, request: &ScanRequest, way: Option<scan::Way>, cut: Option<u64>) -> Result<Plan, Error> {
        let mut plan = Plan::new(&self.store, request, way)?;
        if let Some(bytes) = cut {
            plan.cut(bytes)?;
        }
        Ok(plan)
    }
}

fn start(sources: Sources, request: Arc<ScanRequest>, pieces: Vec<scan::Piece>, threads: usize) -> Scan {
    let schema = column::schema(&request.columns, request.time_unit);
    Scan::new(scan::Scan::new(sources, request, pieces, threads), schema)
}
