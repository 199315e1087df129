//! Checks whether a scan can trust the consume queues, by the first and last entries of their files.
use super::request::ScanRequest;
use crate::file::place;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::{Item, Layout, Message};
use crate::store::consume_queue::{LMQ, UnitReader};
use crate::store::last_close::LastClose;
use crate::store::queue_ends::ShortQueue;
use crate::store::{ConsumeQueue, MessageStore};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Maximum bytes of a record to read when its consume-queue entry is checked. The size in a damaged entry may be
/// anything.
const MAX_HEAD: usize = 256 << 10;

/// Returns the reason not to trust the queues of a topic, or `None`. Reasons are a queue that ends before an offset
/// that it has assigned, a missing file, and a file whose first or last entry does not point to its record.
pub fn find_fault(
    store: &MessageStore,
    (request, queues): (&ScanRequest, &[ConsumeQueue]),
    close: &LastClose,
    listed_to: u64,
) -> Result<Option<String>> {
    let log = store.log();
    if let Some(short) = short_queue(close, request, queues)? {
        return Ok(Some(short));
    }
    if let Some(link) = queues.iter().find_map(|queue| queue.segments().first_without_file()) {
        return Ok(Some(place::no_file(link).to_string()));
    }
    for queue in queues {
        let max = queue.max_offset()?;
        // Units before `first` point to records that retention has removed.
        let first = queue.lower_bound(log.min_offset(), max)?;
        let mut reader = UnitReader::new(queue);
        if let Some(gap) = queue.segments().files().windows(2).find(|pair| pair[0].end() != pair[1].base) {
            let (topic, id, got) = (queue.topic(), queue.queue_id(), gap[1].base);
            let expected = format!("expected a file that begins at byte {}", gap[0].end());
            return Ok(Some(format!("consume queue {topic} {id} is damaged: {expected}, got one at {got}")));
        }
        for file in queue.segments().files() {
            let unit = UNIT_SIZE as u64;
            let (low, high) = ((file.base / unit) as i64, (file.end() / unit) as i64);
            reader.load(low.max(first), high.min(max))?;
            // Check both ends of each file, where a truncated or overwritten queue is visible.
            for offset in [low.max(first), high.min(max) - 1] {
                if offset < low.max(first) || offset >= high.min(max) {
                    continue;
                }
                let Some(unit) = reader.unit(offset)?.filter(|unit| !unit.is_left_out()) else { continue };
                if let Some(reason) = check_unit(store, queue, (offset, unit), listed_to)? {
                    let (topic, id) = (queue.topic(), queue.queue_id());
                    return Ok(Some(format!("consume queue {topic} {id} is damaged at offset {offset}: {reason}")));
                }
            }
        }
        if !close.ends_at(queue)?
            && let Some(at) = written_behind(queue, max)?
        {
            let (topic, id) = (queue.topic(), queue.queue_id());
            let got = format!("expected nothing behind offset {max}, got data at byte {at}");
            return Ok(Some(format!("consume queue {topic} {id} is damaged: {got}")));
        }
    }
    Ok(None)
}

/// Describes a queue that is shorter than it was when the store was closed. `None` if there is no such queue.
fn short_queue(close: &LastClose, request: &ScanRequest, queues: &[ConsumeQueue]) -> Result<Option<String>> {
    let mut end_by_id = BTreeMap::new();
    for queue in queues {
        end_by_id.insert(queue.queue_id(), queue.max_offset()?);
    }
    let is_selected =
        |short: &ShortQueue<'_>| request.topic.as_deref() == Some(short.topic) && request.has_queue(short.queue_id);
    let end_of = |_: &str, id: i32| end_by_id.get(&id).copied().unwrap_or(0);
    Ok(close.ends().short(close.removed(), end_of).find(is_selected).map(|short| short.to_string()))
}

/// Returns the position of the first nonzero byte behind queue offset `max`, or `None`. Ignores entries that a running
/// broker has appended since `max` was read.
fn written_behind(queue: &ConsumeQueue, max: i64) -> Result<Option<u64>> {
    let data = queue.written_behind(max)?;
    Ok(if data.is_some() && queue.find_end()? != max { None } else { data })
}

/// Returns the reason why a consume-queue entry does not point to its record, or `None`.
fn check_unit(
    store: &MessageStore,
    queue: &ConsumeQueue,
    (offset, unit): (i64, Unit),
    listed_to: u64,
) -> Result<Option<String>> {
    if !unit.is_message() {
        return Ok(Some(format!("expected a record, got {unit:?}")));
    }
    // The record of the last unit may be torn. Then the log is damaged, not the queue.
    if unit.physical_offset as u64 >= listed_to {
        return Ok(None);
    }
    let head = match store.log().record_head(unit.physical_offset as u64, (unit.size as usize).min(MAX_HEAD)) {
        Ok(head) => head,
        Err(Error::Invalid { expected, got, .. }) => return Ok(Some(format!("expected {expected}, got {got}"))),
        // The log itself is damaged there, which the scan reports.
        Err(Error::Corrupt { .. }) => return Ok(None),
        // Retention has removed the file since the log was listed.
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let layout = match Layout::decode(&head) {
        Ok(Item::Message(layout)) => layout,
        Ok(Item::Partial(needed)) if needed > MAX_HEAD && needed == unit.size as usize => return Ok(None),
        _ => return Ok(Some(format!("expected a record at {}, got none", unit.physical_offset))),
    };
    let ours = Message::new(&head, layout).is_some_and(|m| {
        m.topic() == queue.topic().as_bytes() && m.queue_id() == queue.queue_id() && m.queue_offset() == offset
    });
    // Multi-dispatch queues (LMQ) list records of other topics.
    let lmq = queue.topic().starts_with(LMQ);
    Ok((!ours && !lmq).then(|| format!("the record at {} is another's", unit.physical_offset)))
}
