//! Exposes the appender, which appends messages to a store that this process owns.
use crate::append_options::PyAppendOptions;
use crate::arrow::Batches;
use crate::error::{ForkError, object, to_python};
use crate::live;
use crate::message::{BrokerFields, OneMessage, PyMessages, host};
use crate::process;
use crate::retain::{PyRetentionOptions, Report, report};
use crate::signals::watch;
use arrow_array::RecordBatchReader;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use rmqfast_store::format::message_id::OffsetMessageId;
use rmqfast_store::store::append::{self, AppendOptions, Columns, Place, PutMessageStatus};
use rmqfast_store::store::recover::RecoveryReport;
use rmqfast_store::{Error, Result};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The location of a stored message: `queue_id, queue_offset, physical_offset, offset_msg_id`.
type Placed<'py> = (i32, i64, i64, Bound<'py, PyString>);

/// The counts of a recovery: `log_end, cut_bytes, records, units, unlisted, index_entries, left_out`.
type Figures = (u64, u64, u64, u64, u64, u64, u64);

/// The missing end of a log: `log_end, expected, file, position, reason`.
type Missing = (u64, u64, PathBuf, u64, String);

fn figures(done: &RecoveryReport) -> Figures {
    (done.log_end, done.cut_bytes, done.records, done.units, done.unlisted, done.index_entries, done.left_out)
}

/// Returns the part at the end of a store's log that was flushed but is missing; `None` if nothing is missing.
#[pyfunction]
pub fn missing_end(py: Python<'_>, path: PathBuf) -> PyResult<Option<Missing>> {
    let missing = py.detach(|| append::missing_end(&path)).map_err(to_python)?;
    Ok(missing.map(|missing| {
        let reason = missing.to_string();
        (missing.log_end, missing.expected, missing.file, missing.position, reason)
    }))
}

/// Repairs a store, and returns the counts of the recovery. Calls `progress` with the bytes done and the total number
/// of bytes.
#[pyfunction]
#[pyo3(signature = (path, options, *, cut_at, progress))]
pub fn repair(
    py: Python<'_>,
    path: PathBuf,
    options: PyAppendOptions,
    cut_at: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Figures> {
    let options = options.into_options().map_err(to_python)?;
    let mut watch = watch(progress);
    // a recovery reads the whole log, so the GIL is released
    let repaired = py.detach(|| append::repair(&path, options, cut_at, &mut watch)).map_err(to_python)?;
    Ok(figures(&repaired))
}

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Appender {
    inner: Arc<append::Appender>,
    process: u32,
}

#[pymethods]
impl Appender {
    #[staticmethod]
    #[pyo3(signature = (path, options, *, retention, progress, replica_from=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        options: PyAppendOptions,
        retention: Option<PyRetentionOptions>,
        progress: Option<Py<PyAny>>,
        replica_from: Option<u64>,
    ) -> PyResult<Self> {
        let retain = retention.map(PyRetentionOptions::into_options).transpose().map_err(to_python)?;
        let options = AppendOptions { retain, replica_from, ..options.into_options().map_err(to_python)? };
        let mut watch = watch(progress);
        let inner = py.detach(|| append::Appender::open_watched(&path, options, &mut watch)).map_err(to_python)?;
        // a fork shares the files but lacks the threads that flush them
        Ok(Self { inner: inner.into(), process: process::id() })
    }

    /// Returns the counts of the recovery; `None` if the store needed no recovery when it was opened.
    fn recovered(&self) -> Option<Figures> {
        self.inner.recovery().map(figures)
    }

    #[pyo3(signature = (message, store_timestamp, born_host, sys_flag, reconsume_times, prepared_transaction_offset, is_due, waits))]
    #[expect(clippy::too_many_arguments, reason = "what a broker knows of a message")]
    fn append<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
        store_timestamp: Option<i64>,
        born_host: Option<&str>,
        sys_flag: i64,
        reconsume_times: i64,
        prepared_transaction_offset: i64,
        is_due: bool,
        waits: bool,
    ) -> PyResult<Placed<'py>> {
        self.check_process()?;
        let born_host = born_host.map(|text| host("born_host", text)).transpose().map_err(to_python)?;
        let added = BrokerFields { born_host, sys_flag, reconsume_times, prepared_transaction_offset, is_due };
        // strings and bytes are borrowed here, so that the append itself needs no GIL
        let rows = OneMessage::new(message, added)?;
        let mut last = None;
        let append = || match waits {
            // without `waits` the append returns before the record is on disk
            true => self.inner.append(&rows, store_timestamp, 0).map(|appended| last = appended.last),
            false => self.inner.append_unsynced(&rows, store_timestamp, false, |place| last = Some(place)).map(drop),
        };
        py.detach(append).map_err(with_status)?;
        last.map(|place| self.to_python(py, place)).ok_or_else(|| PyTypeError::new_err("no message"))
    }

    #[pyo3(signature = (messages, store_timestamp))]
    fn append_batch<'py>(
        &self,
        py: Python<'py>,
        messages: Vec<Bound<'py, PyAny>>,
        store_timestamp: Option<i64>,
    ) -> PyResult<Vec<Placed<'py>>> {
        self.check_process()?;
        // all messages are checked before the first is appended, so that an invalid message leaves nothing behind
        let rows = PyMessages::many(&messages)?;
        let places = py.detach(|| self.inner.append_batch(&rows, store_timestamp)).map_err(with_status)?;
        Ok(places.into_iter().map(|place| self.to_python(py, place)).collect())
    }

    #[pyo3(signature = (messages, *, store_timestamp))]
    fn append_messages(
        &self,
        py: Python<'_>,
        messages: Vec<Bound<'_, PyAny>>,
        store_timestamp: Option<i64>,
    ) -> PyResult<usize> {
        self.check_process()?;
        let rows = PyMessages::many(&messages)?;
        let appended = py.detach(|| self.inner.append(&rows, store_timestamp, 0)).map_err(with_status)?;
        Ok(appended.rows)
    }

    #[pyo3(signature = (batches, *, store_timestamp))]
    fn append_arrow(&self, py: Python<'_>, batches: Batches, store_timestamp: Option<i64>) -> PyResult<usize> {
        self.check_process()?;
        // batches are read one by one, since a stream may exceed memory
        let reader = batches.into_reader();
        py.detach(|| self.append_all(reader, store_timestamp)).map_err(with_status)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.inner.flush()).map_err(to_python)
    }

    #[pyo3(signature = (*, now, manual))]
    fn clean(&self, py: Python<'_>, now: Option<i64>, manual: bool) -> PyResult<Report> {
        self.check_process()?;
        let cleaned = py.detach(|| self.inner.clean(now, manual)).map_err(to_python)?;
        Ok(report(&cleaned))
    }

    /// Returns the report of the last retention run; `None` before the first run.
    fn last_cleaned(&self, py: Python<'_>) -> Option<Report> {
        py.detach(|| self.inner.last_clean()).as_ref().map(report)
    }

    /// Returns how many retention runs removed something.
    fn cleaned_runs(&self) -> u64 {
        self.inner.clean_runs()
    }

    fn clean_expired_queues(&self, py: Python<'_>) -> PyResult<Vec<(String, i32)>> {
        self.check_process()?;
        py.detach(|| self.inner.clean_expired_queues()).map_err(to_python)
    }

    fn clean_unused_topics(&self, py: Python<'_>, configured: BTreeSet<String>) -> PyResult<Vec<(String, i32)>> {
        self.check_process()?;
        py.detach(|| self.inner.clean_unused_topics(&configured)).map_err(to_python)
    }

    fn remove_ended_queues(&self, py: Python<'_>, ended: Vec<((String, i32), i64)>) -> PyResult<Vec<(String, i32)>> {
        self.check_process()?;
        py.detach(|| self.inner.remove_queues(&ended)).map_err(to_python)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.inner.close()).map_err(to_python)
    }

    fn queue_bounds(&self, py: Python<'_>, topic: &str, queue_id: i32) -> PyResult<(i64, i64)> {
        self.check_process()?;
        Ok(live::queue_bounds(py, &self.inner.live(), topic, queue_id))
    }

    fn unit(&self, py: Python<'_>, topic: &str, queue_id: i32, queue_offset: i64) -> PyResult<Option<live::PyUnit>> {
        self.check_process()?;
        live::unit(py, &self.inner.live(), (topic, queue_id, queue_offset))
    }

    fn record<'py>(&self, py: Python<'py>, physical_offset: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.check_process()?;
        live::record(py, &self.inner.live(), physical_offset)
    }

    fn store_time(&self, py: Python<'_>, topic: &str, queue_id: i32, queue_offset: i64) -> PyResult<i64> {
        self.check_process()?;
        live::store_time(py, &self.inner.live(), (topic, queue_id, queue_offset))
    }

    fn progress(
        &self,
        py: Python<'_>,
        topic: &str,
        offsets: Vec<(i32, i64)>,
        unread: bool,
    ) -> PyResult<Vec<(i64, i64, i64, i64)>> {
        self.check_process()?;
        live::progress(py, &self.inner.live(), topic, offsets, unread)
    }

    fn offset_for_time(&self, py: Python<'_>, topic: &str, queue_id: i32, when: i64) -> PyResult<i64> {
        self.check_process()?;
        live::offset_for_time(py, &self.inner.live(), (topic, queue_id), when)
    }

    fn query<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
        key: &str,
        max_num: usize,
        between: (i64, i64),
    ) -> PyResult<live::PyKeyFound<'py>> {
        self.check_process()?;
        live::query(py, &self.inner.live(), (topic, key), max_num, between)
    }

    fn log_bounds(&self) -> PyResult<(u64, u64)> {
        self.check_process()?;
        Ok(self.inner.live().log_bounds())
    }

    fn compare_from(&self, py: Python<'_>, end: u64, most: u64) -> PyResult<u64> {
        self.check_process()?;
        py.detach(|| self.inner.compare_from(end, most)).map_err(to_python)
    }

    fn log_file_size(&self) -> u64 {
        self.inner.live().log_file_size()
    }

    fn earliest_store_time(&self, py: Python<'_>, topic: Option<&str>, queue_id: Option<i32>) -> PyResult<i64> {
        self.check_process()?;
        live::earliest_store_time(py, &self.inner.live(), topic, queue_id)
    }
}

impl Appender {
    pub fn shared(&self) -> Arc<append::Appender> {
        self.inner.clone()
    }

    fn to_python<'py>(&self, py: Python<'py>, place: Place) -> Placed<'py> {
        // an id with an IPv6 host has 28 bytes, written in hex
        let mut id = Vec::with_capacity(56);
        OffsetMessageId { host: self.inner.store_host(), physical_offset: place.physical_offset }.write(&mut id);
        let id = PyString::new(py, std::str::from_utf8(&id).unwrap_or_default());
        (place.queue_id, place.queue_offset, place.physical_offset, id)
    }

    fn check_process(&self) -> PyResult<()> {
        if self.process == process::id() {
            return Ok(());
        }
        let text = format!("this store was opened for appending in process {}, not in its fork", self.process);
        Err(ForkError::new_err(text))
    }

    /// Appends one batch after another, and checks for Ctrl-C in between.
    fn append_all(&self, reader: Box<dyn RecordBatchReader + Send>, store_timestamp: Option<i64>) -> Result<usize> {
        let mut rows = 0;
        for batch in reader {
            let batch = batch.map_err(|e| Error::invalid("batches", "a stream that can be read", e))?;
            // the offset `rows` makes errors name the row of the whole stream
            rows += self.inner.append(&Columns::new(&batch)?, store_timestamp, rows)?.rows;
            // restored, so that `to_python` finds and raises the exception of the signal handler
            Python::attach(|py| py.check_signals().inspect_err(|e| e.clone_ref(py).restore(py)))
                .map_err(|_| Error::Interrupted)?;
        }
        Ok(rows)
    }
}

/// Adds the name of a `PutMessageStatus` to the error of an append, since the broker's answer depends on that status.
fn with_status(error: Error) -> PyErr {
    let status = PutMessageStatus::of(&error).name();
    Python::attach(|py| {
        // made an object now, since the attribute must be set before the exception is raised
        let raised = object(py, to_python(error));
        // KeyboardInterrupt may refuse the attribute, which it does not need
        let _ = raised.setattr("put_status", status);
        PyErr::from_value(raised.into_any())
    })
}
