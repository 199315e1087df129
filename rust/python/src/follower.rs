//! Exposes the follower of a master's commit log.
use crate::append::Appender;
use crate::append_options::PyAppendOptions;
use crate::error::{ArgumentError, to_python};
use crate::process::check_opened_here;
use crate::remoting::tls::PyTlsOptions;
use crate::signals::watch;
use pyo3::prelude::*;
use rmqfast_replication::follower::ColdRead;
use rmqfast_replication::{End, Follow, Mark, Progress, Sends, Source, follower};
use rmqfast_store::store::append;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

type PyEnd = (&'static str, String, Option<u64>);

/// Follows a master's commit log into a copy.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Follower {
    inner: follower::Follower,
    process: u32,
}

#[pymethods]
impl Follower {
    #[staticmethod]
    #[pyo3(signature = (copy, path, address, start, *, max_record, lists=true, cold_rate=0, cold_before=0, counts=false, tls=None, topics=None))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a Python function")]
    fn start(
        py: Python<'_>,
        copy: &Appender,
        path: PathBuf,
        address: String,
        start: u64,
        max_record: usize,
        lists: bool,
        cold_rate: u64,
        cold_before: u64,
        counts: bool,
        tls: Option<PyTlsOptions>,
        topics: Option<Vec<String>>,
    ) -> PyResult<Self> {
        // rate 0 stands for no limit
        let cold = (cold_rate > 0).then_some(ColdRead { rate: cold_rate, before: cold_before });
        let tls = tls.map(PyTlsOptions::into_client).transpose()?;
        let topics = topics.unwrap_or_default();
        let follow = Follow { address, tls, from: start, max_record, lists, cold, counts, topics };
        let copy = copy.shared();
        let inner = py.detach(|| follower::Follower::start(copy, &path, follow)).map_err(|end| match end {
            End::Store(error) => to_python(error),
            other => to_python(rmqfast_store::Error::io(&path, std::io::Error::other(other.to_string()))),
        })?;
        Ok(Self { inner, process: std::process::id() })
    }

    /// Returns how far the copy is: `position, listed_to, compared_to, last_store_ms, is_compared`.
    fn progress(&self) -> (u64, u64, u64, i64, bool) {
        let progress = self.inner.progress();
        let Progress { position, listed_to, compared_to, is_compared, last_store_ms } = progress;
        (position, listed_to, compared_to, last_store_ms, is_compared)
    }

    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<PyEnd>> {
        check_opened_here(self.process, "follower")?;
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        let end = py.detach(|| self.inner.wait(timeout));
        Ok(end.map(|end| (kind(&end), end.to_string(), offset(&end))))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        check_opened_here(self.process, "follower")?;
        py.detach(|| self.inner.stop());
        Ok(())
    }
}

fn kind(end: &End) -> &'static str {
    match end {
        End::Stopped => "stopped",
        End::Connect { .. } | End::Tls(_) => "connect",
        End::Closed(_) => "closed",
        // followers wait for missing bytes, so they never end this way
        End::Silent(_) | End::Missing { .. } => "silent",
        End::Stalled(_) => "stalled",
        End::Frame { .. } => "frame",
        End::Diverged { .. } => "diverged",
        End::Broken { .. } => "broken",
        End::Store(error) if error.is_disk_full() => "full",
        End::Store(_) => "store",
    }
}

fn offset(end: &End) -> Option<u64> {
    match end {
        End::Frame { at, .. } | End::Diverged { at } | End::Broken { at, .. } => Some(*at),
        _ => None,
    }
}

/// Returns the HA addresses, file size, acknowledgement mode and TLS setting that a broker's configuration contains.
#[pyfunction]
pub fn log_source(config: HashMap<String, String>, address: &str) -> PyResult<(Vec<String>, u64, &'static str, bool)> {
    let source = Source::of_config(&config, address).map_err(ArgumentError::new_err)?;
    let sends = match source.sends {
        Sends::NeverWait => "nobody",
        Sends::WaitForReports => "reports",
        Sends::WaitForConnections => "connections",
    };
    Ok((source.addresses, source.file_size, sends, source.has_tls))
}

/// Returns the newest copy of the broker after which `directory` is named: `directory` itself, or a later copy beside
/// it.
#[pyfunction]
pub fn newest_copy(py: Python<'_>, directory: PathBuf) -> PyResult<PathBuf> {
    py.detach(|| rmqfast_store::store::newest_copy(&directory)).map_err(to_python)
}

/// Cuts a copy's log after its last record that ends at or before `at`. Returns the new end.
#[pyfunction]
#[pyo3(signature = (path, at, options, *, progress))]
pub fn cut_copy(
    py: Python<'_>,
    path: PathBuf,
    at: u64,
    options: PyAppendOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let options = options.into_options().map_err(to_python)?;
    let mut watch = watch(progress);
    py.detach(|| append::cut(&path, at, options, &mut watch)).map_err(to_python)
}

/// Returns two positions in the master's log, for a copy of some topics: the end of the part that the copy has, and the
/// start of the part that is compared. Returns `None` for a copy of all topics.
#[pyfunction]
pub fn load_mark(path: PathBuf) -> PyResult<Option<(u64, u64)>> {
    let mark = Mark::load(&path).map_err(to_python)?;
    Ok(mark.map(|mark| (mark.position, mark.compare_from)))
}

/// Records that a copy of some topics begins at `position` of its master's log; its own log ends at `copy_end`.
#[pyfunction]
pub fn begin_mark(path: PathBuf, position: u64, copy_end: u64) -> PyResult<()> {
    Mark::first(position, copy_end).save(&path).map_err(to_python)
}
