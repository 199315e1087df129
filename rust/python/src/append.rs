//! A store that this process owns and appends to.
use crate::error::{ForkError, to_python};
use crate::signals::watch;
use arrow_array::RecordBatchReader;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3_arrow::input::AnyRecordBatch;
use rmqfast_store::format::message_id::OffsetMessageId;
use rmqfast_store::store::append::{self, AppendOptions, Columns, Flush, Messages, OwnedMessage};
use rmqfast_store::store::recover::Recovered;
use rmqfast_store::{Error, Result};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The attributes of `rmqfast.store.writer.AppendOptions`.
#[derive(FromPyObject)]
pub struct PyAppendOptions {
    flush: String,
    file_size: u64,
    queue_file_size: u64,
    index_slots: u32,
    index_entries: u32,
    max_message_size: usize,
    store_host: String,
    zone_offset_ms: i64,
}

/// The attributes of `rmqfast.Message`.
#[derive(FromPyObject)]
struct PyMessage {
    topic: String,
    body: PyBackedBytes,
    tags: Option<String>,
    keys: Option<String>,
    #[pyo3(from_py_with = pairs)]
    properties: Vec<(String, String)>,
    queue_id: i64,
    flag: i64,
    born_timestamp: Option<i64>,
}

/// `log_end, cut_bytes, records, units, unlisted, index_entries`.
type Figures = (u64, u64, u64, u64, u64, u64);

fn figures(done: &Recovered) -> Figures {
    (done.log_end, done.cut_bytes, done.records, done.units, done.unlisted, done.index_entries)
}

/// Makes a store whole; `progress` is called with bytes done and bytes in all.
#[pyfunction]
#[pyo3(signature = (path, options, *, progress))]
pub fn repair(
    py: Python<'_>,
    path: PathBuf,
    options: PyAppendOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Figures> {
    let options = options.into_options().map_err(to_python)?;
    let mut watch = watch(progress);
    let done = py.detach(|| append::repair(&path, options, &mut watch)).map_err(to_python)?;
    Ok(figures(&done))
}

/// A store that is appended to.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Appender {
    inner: append::Appender,
    process: u32,
}

#[pymethods]
impl Appender {
    #[staticmethod]
    #[pyo3(signature = (path, options, *, progress))]
    fn open(py: Python<'_>, path: PathBuf, options: PyAppendOptions, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let options = options.into_options().map_err(to_python)?;
        let mut watch = watch(progress);
        let inner = py.detach(|| append::Appender::open_watched(&path, options, &mut watch)).map_err(to_python)?;
        Ok(Self { inner, process: std::process::id() })
    }

    /// What the recovery did, if there was one.
    fn recovered(&self) -> Option<Figures> {
        self.inner.recovered().map(figures)
    }

    #[pyo3(signature = (message, *, store_timestamp))]
    fn append(
        &self,
        py: Python<'_>,
        message: PyMessage,
        store_timestamp: Option<i64>,
    ) -> PyResult<Option<(i32, i64, i64, String)>> {
        self.check_process()?;
        let rows = Messages::new(vec![message.into_message()]);
        let appended = py.detach(|| self.inner.append(&rows, store_timestamp, 0)).map_err(to_python)?;
        Ok(appended.last.map(|place| {
            let id = OffsetMessageId { host: self.inner.store_host(), physical_offset: place.physical_offset };
            (place.queue_id, place.queue_offset, place.physical_offset, id.to_string())
        }))
    }

    #[pyo3(signature = (messages, *, store_timestamp))]
    fn append_messages(
        &self,
        py: Python<'_>,
        messages: Vec<Bound<'_, PyAny>>,
        store_timestamp: Option<i64>,
    ) -> PyResult<usize> {
        self.check_process()?;
        let messages = messages.iter().enumerate().map(|(row, message)| of_row(row, message));
        let rows = Messages::new(messages.collect::<PyResult<_>>()?);
        let appended = py.detach(|| self.inner.append(&rows, store_timestamp, 0)).map_err(to_python)?;
        Ok(appended.rows)
    }

    #[pyo3(signature = (batches, *, store_timestamp))]
    fn append_arrow(&self, py: Python<'_>, batches: AnyRecordBatch, store_timestamp: Option<i64>) -> PyResult<usize> {
        self.check_process()?;
        let reader = batches.into_reader()?;
        py.detach(|| self.append_all(reader, store_timestamp)).map_err(to_python)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.inner.flush()).map_err(to_python)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.inner.close()).map_err(to_python)
    }
}

impl Appender {
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = format!("this store was opened for appending in process {}, not in its fork", self.process);
        Err(ForkError::new_err(text))
    }

    /// Appends batch by batch; Ctrl-C is looked for between them.
    fn append_all(&self, reader: Box<dyn RecordBatchReader + Send>, store_timestamp: Option<i64>) -> Result<usize> {
        let mut rows = 0;
        for batch in reader {
            let batch = batch.map_err(|e| Error::invalid("batches", "a stream that can be read", e))?;
            rows += self.inner.append(&Columns::new(&batch)?, store_timestamp, rows)?.rows;
            Python::attach(|py| py.check_signals().inspect_err(|e| e.clone_ref(py).restore(py)))
                .map_err(|_| Error::Interrupted)?;
        }
        Ok(rows)
    }
}

impl PyAppendOptions {
    fn into_options(self) -> Result<AppendOptions> {
        let flush = match self.flush.as_str() {
            "async" => Flush::Async,
            "sync" => Flush::Sync,
            other => return Err(Error::invalid("flush", "'async' or 'sync'", other)),
        };
        let host: SocketAddr = self
            .store_host
            .parse()
            .map_err(|_| Error::invalid("store_host", "'ip:port' or '[ip6]:port'", &self.store_host))?;
        Ok(AppendOptions {
            flush,
            file_size: self.file_size,
            queue_file_size: self.queue_file_size,
            index_slots: self.index_slots,
            index_entries: self.index_entries,
            max_message_size: self.max_message_size,
            store_host: host.into(),
            zone_offset_ms: self.zone_offset_ms,
        })
    }
}

impl PyMessage {
    fn into_message(self) -> OwnedMessage {
        OwnedMessage {
            topic: self.topic,
            body: self.body.to_vec(),
            tags: self.tags,
            keys: self.keys,
            properties: self.properties,
            queue_id: self.queue_id,
            flag: self.flag,
            born_timestamp: self.born_timestamp,
        }
    }
}

fn of_row(row: usize, message: &Bound<'_, PyAny>) -> PyResult<OwnedMessage> {
    let message: PyResult<PyMessage> = message.extract();
    message.map(PyMessage::into_message).map_err(|e| PyTypeError::new_err(format!("message {row}: {e}")))
}

/// The items of any mapping.
fn pairs(properties: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    properties.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
}
