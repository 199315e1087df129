//! Finds store times in a consume queue that this process appends to, and the offset for a time by the rule of 4.9.4.
//!
//! Source: `DefaultMessageStore.getMessageStoreTimeStamp`, `getEarliestMessageTime`, `ConsumeQueue.getOffsetInQueueByTime`.
use super::live_log::LiveLog;
use super::live_queue::LiveQueue;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::store::time_search::{TimedQueue, file_by_time, nearest};

/// Returns the store time of a message in milliseconds; -1 without a message.
pub fn store_time(log: &LiveLog, queue: &LiveQueue, offset: i64) -> Result<i64> {
    match queue.unit(offset)?.filter(Unit::is_message) {
        Some(unit) => log.store_time(unit.physical_offset, unit.size),
        None => Ok(-1),
    }
}

/// Returns the offset of the message nearest to a time in milliseconds, in the file chosen by modification time.
pub fn offset_for_time(log: &LiveLog, queue: &LiveQueue, when: i64) -> Result<i64> {
    nearest(&mut Search { log, queue, bounds: queue.bounds() }, when, log.min_offset() as i64)
}

/// Returns the store time of the first message in the log, in milliseconds; -1 without messages.
pub fn earliest_in_log(log: &LiveLog) -> Result<i64> {
    let record = log.record(log.min_offset())?;
    Ok(record.as_ref().and_then(|record| record.message()).map_or(-1, |message| message.store_timestamp()))
}

struct Search<'a> {
    log: &'a LiveLog,
    queue: &'a LiveQueue,
    bounds: (i64, i64),
}

impl TimedQueue for Search<'_> {
    fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        self.queue.unit(offset)
    }

    fn store_time(&mut self, unit: Unit) -> Result<Option<i64>> {
        let time = self.log.store_time(unit.physical_offset, unit.size)?;
        Ok(Some(time).filter(|time| *time >= 0))
    }

    fn file_by_time(&self, when: i64) -> Result<Option<(i64, i64)>> {
        // The files are listed again, because their present modification times count.
        let files = self.queue.list_files()?;
        file_by_time(files.segments().files(), when, |_| None)
    }
}
