//! Exposes lookups in the store of an [`Appender`](crate::append::Appender).
use crate::error::to_python;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rmqfast_store::Result;
use rmqfast_store::store::serve::{Live, LiveQueue};

pub type PyUnit = (i64, i32, i64);

pub type PyKeyFound<'py> = (Vec<Bound<'py, PyBytes>>, i64, i64);

/// Returns the result of `ask` for a queue, which runs without the GIL. Returns the argument `none` if the queue does
/// not exist.
fn of_queue<T: Send>(
    py: Python<'_>,
    live: &Live,
    (topic, queue_id): (&str, i32),
    none: T,
    ask: impl FnOnce(&LiveQueue) -> Result<T> + Send,
) -> PyResult<T> {
    // reading a page may wait for the disk
    let answer = py.detach(|| live.queue(topic, queue_id).map_or(Ok(none), |queue| ask(&queue)));
    answer.map_err(to_python)
}

/// Returns the first offset of a queue and its end (exclusive). Both are 0 if the queue does not exist.
pub fn queue_bounds(py: Python<'_>, live: &Live, topic: &str, queue_id: i32) -> (i64, i64) {
    py.detach(|| live.queue(topic, queue_id).map_or((0, 0), |queue| queue.bounds()))
}

pub fn unit(
    py: Python<'_>,
    live: &Live,
    (topic, queue_id, queue_offset): (&str, i32, i64),
) -> PyResult<Option<PyUnit>> {
    let unit = of_queue(py, live, (topic, queue_id), None, |queue| queue.unit(queue_offset))?;
    Ok(unit.map(|unit| (unit.physical_offset, unit.size, unit.tags_code)))
}

/// Returns the bytes of the record at a physical offset; `None` if no record begins there.
pub fn record<'py>(py: Python<'py>, live: &Live, physical_offset: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
    // clients may pass any number; an offset beyond the log has no record
    let offset = u64::try_from(physical_offset).unwrap_or(u64::MAX);
    let record = py.detach(|| live.record(offset).map(|record| record.map(|record| record.to_vec())));
    Ok(record.map_err(to_python)?.map(|record| PyBytes::new(py, &record)))
}

/// Returns a message's store time, or -1 if it does not exist.
pub fn store_time(py: Python<'_>, live: &Live, (topic, queue_id, queue_offset): (&str, i32, i64)) -> PyResult<i64> {
    of_queue(py, live, (topic, queue_id), -1, |queue| live.store_time(queue, queue_offset))
}

/// Returns of each queue its bounds, the store time of the message before an offset, and that of the first message from
/// the offset on, if `is_unread_wanted`; -1 if there is none.
pub fn progress(
    py: Python<'_>,
    live: &Live,
    topic: &str,
    offsets: Vec<(i32, i64)>,
    is_unread_wanted: bool,
) -> PyResult<Vec<(i64, i64, i64, i64)>> {
    let of_offset = |(queue_id, offset): (i32, i64)| {
        let Some(queue) = live.queue(topic, queue_id) else { return Ok((0, 0, -1, -1)) };
        let (first, end) = queue.bounds();
        let last = if offset > 0 { live.store_time(&queue, offset - 1)? } else { -1 };
        // expired messages are none that a group could still read
        let unread = offset.max(first);
        let is_read = is_unread_wanted && unread < end;
        Ok((first, end, last, if is_read { live.store_time(&queue, unread)? } else { -1 }))
    };
    py.detach(|| offsets.into_iter().map(of_offset).collect::<Result<_>>()).map_err(to_python)
}

/// Returns the offset for a store time by the rule of RocketMQ 4.9.4; 0 if the queue does not exist.
pub fn offset_for_time(py: Python<'_>, live: &Live, queue: (&str, i32), when: i64) -> PyResult<i64> {
    of_queue(py, live, queue, 0, |queue| live.offset_for_time(queue, when))
}

pub fn query<'py>(
    py: Python<'py>,
    live: &Live,
    (topic, key): (&str, &str),
    max_messages: usize,
    (begin, end): (i64, i64),
) -> PyResult<PyKeyFound<'py>> {
    let hits = py.detach(|| {
        let hits = live.query(topic, key, max_messages, begin, end)?;
        // copied without the GIL, since a page may have to be read from disk
        let records: Vec<Vec<u8>> = hits.records.iter().map(|record| record.to_vec()).collect();
        Ok((records, hits.index_last_update_timestamp, hits.index_last_update_phy_offset))
    });
    let (records, timestamp, phy_offset) = hits.map_err(to_python)?;
    Ok((records.iter().map(|record| PyBytes::new(py, record)).collect(), timestamp, phy_offset))
}

/// Returns the earliest store time: of a queue, of a whole topic if no queue is given, or of the store if no topic is
/// given.
pub fn earliest_store_time(py: Python<'_>, live: &Live, topic: Option<&str>, queue_id: Option<i32>) -> PyResult<i64> {
    match (topic, queue_id) {
        (Some(topic), Some(queue_id)) => of_queue(py, live, (topic, queue_id), -1, |q| live.earliest_in_queue(q)),
        (Some(topic), None) => py.detach(|| live.earliest_in_topic(topic)).map_err(to_python),
        (None, _) => py.detach(|| live.earliest_store_time()).map_err(to_python),
    }
}
