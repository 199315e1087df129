//! Looks up messages of a store by queue offset, physical offset, key, id or time; verifies and describes a store.
use crate::error::to_python;
use crate::row::{PyDamage, RowOptions, from_damage, rows};
use crate::signals::{Signals, watch};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rmqfast_store::Error;
use rmqfast_store::filter::TagExpression;
use rmqfast_store::format::message_id::OffsetMessageId;
use rmqfast_store::store::index_files::IndexFile;
use rmqfast_store::store::info::StoreInfo;
use rmqfast_store::store::query::{KeyQuery, QueryResult};
use rmqfast_store::store::time_search::TimeRule;
use rmqfast_store::store::verify::VerifyReport;
use rmqfast_store::store::{GetLimits, MessageStore, QueueKind};

/// Messages, and the damage that was found when they were read.
pub type Rows<'py> = (Vec<Bound<'py, PyDict>>, Vec<PyDamage>);

/// Result of a pull: `status, (next_begin_offset, min_offset, max_offset), suggest_pulling_from_slave, messages,
/// damage`.
pub type PyGetMessage<'py> = (&'static str, (i64, i64, i64), bool, Vec<Bound<'py, PyDict>>, Vec<PyDamage>);

/// The attributes of `rmqfast.store.request.GetLimits`.
#[derive(FromPyObject)]
pub struct PyGetLimits {
    count_in_memory: usize,
    bytes_in_memory: i32,
    count_in_disk: usize,
    bytes_in_disk: i32,
    access_ratio: u32,
    physical_memory: u64,
}

impl PyGetLimits {
    fn into_limits(self) -> GetLimits {
        GetLimits {
            count_in_memory: self.count_in_memory,
            bytes_in_memory: self.bytes_in_memory,
            count_in_disk: self.count_in_disk,
            bytes_in_disk: self.bytes_in_disk,
            memory: GetLimits::share(self.physical_memory, self.access_ratio),
        }
    }
}

/// Parses a broker's message id into IP address, port and physical offset.
#[pyfunction]
pub fn parse_message_id(message_id: &Bound<'_, PyString>) -> Option<(String, i32, i64)> {
    // a string with surrogates is not UTF-8 and cannot be an id
    let OffsetMessageId { host, physical_offset } = OffsetMessageId::parse(message_id.to_str().ok()?)?;
    Some((host.ip.to_string(), host.port, physical_offset))
}

/// Returns messages of a queue. Without `limits`, only `max_messages` limits their number.
pub fn get<'py>(
    py: Python<'py>,
    store: &MessageStore,
    place: (&str, i32, i64),
    (max_messages, limits): (usize, Option<PyGetLimits>),
    tags: &str,
    options: RowOptions,
) -> PyResult<PyGetMessage<'py>> {
    let tags = TagExpression::parse(tags).map_err(to_python)?;
    let limits = limits.map_or_else(|| GetLimits::of_count(max_messages), PyGetLimits::into_limits);
    let got = py.detach(|| store.get_within(place, max_messages, &tags, limits)).map_err(to_python)?;
    let (messages, mut damage) = to_rows(py, store, got.records.iter().map(Vec::as_slice), options)?;
    // in the order of discovery: records are read before they are decompressed
    damage.splice(..0, got.damage.iter().map(from_damage));
    let offsets = (got.next_begin_offset, got.min_offset, got.max_offset);
    Ok((got.status.name(), offsets, got.suggest_pulling_from_slave, messages, damage))
}

pub fn check_in_disk(
    py: Python<'_>,
    store: &MessageStore,
    (topic, queue_id, offset): (&str, i32, i64),
    limits: PyGetLimits,
) -> PyResult<bool> {
    let limits = limits.into_limits();
    py.detach(|| store.check_in_disk(topic, queue_id, offset, &limits)).map_err(to_python)
}

/// Returns the earliest store time of a queue, a topic or the store.
pub fn earliest_time(
    py: Python<'_>,
    store: &MessageStore,
    topic: Option<&str>,
    queue_id: Option<i32>,
) -> PyResult<Option<i64>> {
    py.detach(|| match (topic, queue_id) {
        (Some(topic), Some(queue_id)) => store.earliest_in_queue(topic, queue_id),
        // a queue id without a topic selects no queue
        _ => store.earliest_time(topic),
    })
    .map_err(to_python)
}

fn to_rows<'py, 'a>(
    py: Python<'py>,
    store: &MessageStore,
    records: impl IntoIterator<Item = &'a [u8]>,
    options: RowOptions,
) -> PyResult<Rows<'py>> {
    let (messages, damage) = rows(py, records, options)?;
    // the record's offset tells the file, which the damage of a row lacks
    let in_log = |d: &rmqfast_store::store::Damage| from_damage(&store.log().damage(d.offset, d.length, &*d.reason));
    Ok((messages, damage.iter().map(in_log).collect()))
}

pub fn offset_for_time(
    py: Python<'_>,
    store: &MessageStore,
    (topic, queue_id, when): (&str, i32, i64),
    rule: &str,
) -> PyResult<i64> {
    let rule = match rule {
        "5.x" => TimeRule::V5,
        "4.9.4" => TimeRule::V4,
        other => return Err(to_python(Error::invalid("rule", "'5.x' or '4.9.4'", other))),
    };
    py.detach(|| store.offset_for_time(topic, queue_id, when, rule)).map_err(to_python)
}

pub fn message_at<'py>(py: Python<'py>, store: &MessageStore, offset: u64, options: RowOptions) -> PyResult<Rows<'py>> {
    if offset >= store.end() {
        let expected = format!("one before the end of the log when the store was opened, {}", store.end());
        return Err(to_python(Error::invalid("physical offset", expected, offset)));
    }
    let record = py.detach(|| store.log().record_at(offset)).map_err(to_python)?;
    to_rows(py, store, [record.as_slice()], options)
}

pub fn query<'py>(
    py: Python<'py>,
    store: &MessageStore,
    (topic, key): (String, &str),
    max_messages: usize,
    (begin, end): (i64, i64),
    options: RowOptions,
) -> PyResult<Rows<'py>> {
    let signals = Signals::here();
    let topics = [topic];
    let query = KeyQuery { topics: &topics, key, unique: false, max_messages, begin, end };
    let messages = py.detach(|| store.query(&query, &mut signals.checker())).map_err(to_python)?;
    rows_of(py, store, &messages, options)
}

fn rows_of<'py>(py: Python<'py>, store: &MessageStore, all: &QueryResult, options: RowOptions) -> PyResult<Rows<'py>> {
    let (messages, mut damage) = to_rows(py, store, all.records.values().map(Vec::as_slice), options)?;
    damage.splice(..0, all.damage.entries().iter().map(from_damage));
    Ok((messages, damage))
}

/// Returns the message with an id; no rows if there is none.
pub fn message_by_id<'py>(
    py: Python<'py>,
    store: &MessageStore,
    id: &str,
    topic: Option<&str>,
    options: RowOptions,
) -> PyResult<Rows<'py>> {
    let signals = Signals::here();
    let messages = py.detach(|| store.message_by_id(id, topic, &mut signals.checker())).map_err(to_python)?;
    rows_of(py, store, &messages, options)
}

/// Verifies a store, and returns the report as a dictionary. Calls `progress` with the bytes done and the total number
/// of bytes.
pub fn verify<'py>(
    py: Python<'py>,
    store: &MessageStore,
    crc: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut watch = watch(progress);
    // a running broker rewrites the checkpoint, so the store is opened as of now to compare both
    let report = py.detach(|| store.as_of_now()?.verify(crc, &mut watch)).map_err(to_python)?;
    report_of(py, &report)
}

fn report_of<'py>(py: Python<'py>, report: &VerifyReport) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for (name, count) in [
        ("messages", report.messages),
        ("log_bytes", report.log_bytes),
        ("queues", report.queues),
        ("units", report.units),
        ("unlisted", report.unlisted),
        ("forgotten", report.forgotten),
        ("index_files", report.index_files),
        ("index_entries", report.index_entries),
        ("config_files", report.config_files),
        ("more_damage", report.damage.more()),
    ] {
        fields.set_item(name, count)?;
    }
    fields.set_item("aborted", report.aborted)?;
    fields.set_item("damage", report.damage.entries().iter().map(from_damage).collect::<Vec<_>>())?;
    fields.set_item("notes", report.notes.clone())?;
    Ok(fields)
}

pub fn info<'py>(py: Python<'py>, store: &MessageStore) -> PyResult<Bound<'py, PyDict>> {
    let info = py.detach(|| store.info()).map_err(to_python)?;
    info_of(py, &info)
}

fn info_of<'py>(py: Python<'py>, info: &StoreInfo) -> PyResult<Bound<'py, PyDict>> {
    let kind = match info.queue_kind {
        QueueKind::Files => "files",
        QueueKind::RocksDb => "rocksdb",
        QueueKind::Missing => "missing",
    };
    let times = info.checkpoint.map(|c| (c.physic_msg_timestamp, c.logics_msg_timestamp, c.index_msg_timestamp));
    let index = |f: &IndexFile| (f.path.to_string_lossy().into_owned(), f.len, f.entries(), f.geometry);
    let fields = PyDict::new(py);
    fields.set_item("version", info.version)?;
    fields.set_item("commit_log_files", info.commit_log_files)?;
    fields.set_item("commit_log_file_size", info.commit_log_file_size)?;
    fields.set_item("min_offset", info.min_offset)?;
    fields.set_item("max_offset", info.max_offset)?;
    fields.set_item("queue_kind", kind)?;
    fields.set_item("consume_queue_file_size", info.consume_queue_file_size)?;
    fields.set_item("topics", info.topics)?;
    fields.set_item("index_files", info.index.iter().map(index).collect::<Vec<_>>())?;
    fields.set_item("aborted", info.aborted)?;
    fields.set_item("checkpoint", times)?;
    fields.set_item("first_store_timestamp", info.store_timestamps.map(|(first, _)| first))?;
    fields.set_item("last_store_timestamp", info.store_timestamps.map(|(_, last)| last))?;
    fields.set_item("notes", info.notes.clone())?;
    Ok(fields)
}
