//! The offset up to which the log is surely complete, because consume queues list a record that ends there.
use crate::file::Io;
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use crate::store::commit_log::CommitLog;
use crate::store::consume_queue::ConsumeQueue;
use crate::store::consume_queue::{UnitReader, is_directory_name};
use crate::store::log_walk::RecordAt;
use crate::store::message_store::{MessageStore, QueueKind};
use crate::store::resync::is_start;
use crate::{Error, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

/// Maximum number of queues whose list of files is cached.
const LISTED: usize = 4096;

/// The bound is the offset before which all records are known to be complete.
#[derive(Debug)]
pub struct Bound {
    to: u64,
    by_queues: bool,
    consume_queue_dir: PathBuf,
    /// Queues with their lists of files, by topic and queue id.
    queues: HashMap<(String, i32), ConsumeQueue>,
}

impl Bound {
    pub fn new(store: &MessageStore) -> Self {
        Self { to: 0, by_queues: false, consume_queue_dir: store.consume_queue_dir(), queues: HashMap::new() }
    }

    pub fn to(&self) -> u64 {
        self.to
    }

    /// Returns whether the store has consume queues. If so, a record only counts as complete if a queue confirms it.
    pub fn by_queues(&self) -> bool {
        self.by_queues
    }

    /// Raises the bound to the end of the last record that any queue lists. Without queues, a log file counts as
    /// complete once the next file has begun.
    pub fn refresh(&mut self, store: &MessageStore) -> Result<()> {
        let store = store.reopen(Io::Pread)?;
        self.by_queues = store.queue_kind() == QueueKind::Files;
        if !self.by_queues {
            self.to = self.to.max(last_file_with_record(store.log())?);
            return Ok(());
        }
        let mut ends = Vec::new();
        for queue in store.all_queues()? {
            if let Some(last) = if_present(queue.last_message())?.flatten() {
                ends.push((last, queue));
            }
        }
        // The furthest unit is checked first, because a valid unit confirms all records before its own.
        ends.sort_by_key(|((_, unit), _)| Reverse(end_of(*unit)));
        for ((offset, unit), queue) in ends {
            if end_of(unit) <= self.to {
                break;
            }
            // The unit is read twice, because it may be half written.
            let again = UnitReader::new(&queue).unit(offset)?;
            if again == Some(unit) && queue.is_own(store.log(), offset, unit)? {
                self.to = end_of(unit);
                break;
            }
        }
        Ok(())
    }

    /// Raises the bound to the end of the last of `records` that its queue lists. The positions of `records` count
    /// from offset `start`.
    pub fn raise(&mut self, bytes: &[u8], records: &[RecordAt], start: u64) -> Result<()> {
        let end = |record: &RecordAt| start + u64::from(record.at) + u64::from(record.layout.total);
        let to = self.to;
        let listable: Vec<_> = records.iter().filter(|r| end(r) > to && r.layout.is_dispatched()).collect();
        let (mut low, mut high) = (0, listable.len());
        while low < high {
            // The last record is tried first, because its queue usually lists it already.
            let middle = if high == listable.len() { high - 1 } else { low + (high - low) / 2 };
            let record = listable[middle];
            let message = bytes.get(record.at as usize..).and_then(|bytes| Message::new(bytes, record.layout));
            if message.map_or(Ok(false), |message| self.is_listed(&message))? {
                self.to = end(record);
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(())
    }

    fn is_listed(&mut self, message: &Message<'_>) -> Result<bool> {
        let Some(topic) = std::str::from_utf8(message.topic()).ok().filter(|t| is_directory_name(t)) else {
            return Ok(false);
        };
        let key = (topic.to_owned(), message.queue_id());
        let unit = match self.queues.get(&key).map_or(Ok(None), |queue| unit_at(queue, message))? {
            Some(unit) => Some(unit),
            // A queue file that was created since the listing may have the unit.
            None => self.list_again(key, message)?,
        };
        let size = message.layout().total as i32;
        Ok(unit.is_some_and(|unit| (unit.physical_offset, unit.size) == (message.physical_offset(), size)))
    }

    fn list_again(&mut self, key: (String, i32), message: &Message<'_>) -> Result<Option<Unit>> {
        let directory = self.consume_queue_dir.join(&key.0).join(key.1.to_string());
        let Some(queue) = if_present(ConsumeQueue::list(&key.0, key.1, &directory))? else { return Ok(None) };
        let unit = unit_at(&queue, message)?;
        // All listings are dropped at once. Queues still in use are listed again soon.
        if self.queues.len() >= LISTED {
            self.queues.clear();
        }
        self.queues.insert(key, queue);
        Ok(unit)
    }
}

/// Returns `None` if reading failed because the file was just removed or is a dead link.
fn if_present<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => Ok(None),
        read => read.map(Some),
    }
}

fn unit_at(queue: &ConsumeQueue, message: &Message<'_>) -> Result<Option<Unit>> {
    if_present(UnitReader::new(queue).unit(message.queue_offset())).map(Option::flatten)
}

fn end_of(unit: Unit) -> u64 {
    (unit.physical_offset as u64).saturating_add(unit.size as u64)
}

/// Returns the start of the last file that begins with a complete record.
fn last_file_with_record(log: &CommitLog) -> Result<u64> {
    for (index, file) in log.segments().files().iter().enumerate().rev() {
        let Some(segment) = if_present(log.open(index))? else { continue };
        if is_start(&segment, 0, file.base, file.len)? {
            return Ok(file.base);
        }
    }
    Ok(0)
}
