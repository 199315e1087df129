//! The position of a follower in the log. If no record begins at the position, the follower waits, goes to the next
//! file, or skips damaged or removed bytes.
use crate::file::{Io, Segment};
use crate::format::consume_queue::Unit;
use crate::format::message::Message;
use crate::store::commit_log::{CommitLog, DamageLog};
use crate::store::consume_queue::{ConsumeQueue, UnitReader, is_directory_name};
use crate::store::log_walk::{RecordAt, Resync, is_start, resync};
use crate::store::message_store::{MessageStore, QueueKind};
use crate::{Error, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time until all queues are read again.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A position at which no record was found, and the time at which to read all queues next.
#[derive(Debug)]
struct Standstill {
    position: u64,
    ask_at: Instant,
    wait: Duration,
}

/// A range of the log that retention removed before it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedRange {
    pub offset: u64,
    pub length: u64,
}

/// Times to wait for data that is not complete.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Minimum time between two equal reads of the last record, if no queue lists it.
    pub settle: Duration,
    /// Time after which invalid bytes count as damage. Also the time after which a record counts as complete although
    /// its last bytes are zero.
    pub patience: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        // A record is written in far less than 20 ms, unless the broker's thread is suspended.
        Self { settle: Duration::from_millis(20), patience: Duration::from_secs(1) }
    }
}

#[derive(Debug)]
pub struct LogPlace {
    store: MessageStore,
    pub(super) log: Arc<CommitLog>,
    pub(super) position: u64,
    pub(super) open: Option<(u64, Segment)>,
    /// Whether any file was read. Before the first read, a removed file does not count as a loss.
    pub(super) has_read: bool,
    pub(super) bound: Bound,
    standstill: Option<Standstill>,
    pub(super) removed: Vec<RemovedRange>,
    pub(super) waits: Waits,
}

impl LogPlace {
    pub(super) fn at_start_of(store: &MessageStore) -> Result<Self> {
        let store = store.reopen(Io::Pread)?;
        let mut bound = Bound::new(&store);
        bound.refresh(&store)?;
        Ok(Self {
            log: store.log().clone(),
            position: store.log().min_offset(),
            open: None,
            has_read: false,
            bound,
            standstill: None,
            removed: Vec::new(),
            waits: Waits::default(),
            store,
        })
    }

    pub(super) fn pass(&mut self, len: usize) {
        self.position += len as u64;
        self.standstill = None;
    }

    /// Opens the file that contains the position. Returns the position within the file, or `None` if the file does
    /// not exist.
    pub(super) fn open_file(&mut self) -> Result<Option<u64>> {
        if self.open.is_none() {
            let files = self.log.segments().files();
            let Some(index) = files.partition_point(|f| f.base <= self.position).checked_sub(1) else {
                return Ok(None);
            };
            // The position is behind a dead link that was skipped, where no file exists yet.
            if files[index].is_missing && self.position >= files[index].end() {
                return Ok(None);
            }
            match self.log.open(index) {
                Ok(segment) => self.open = Some((files[index].base, segment)),
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
            self.has_read = true;
        }
        Ok(self.open.as_ref().map(|(base, _)| self.position - base))
    }

    /// Skips a file that is a dead link. Returns whether there was a dead link.
    pub(super) fn pass_missing_file(&mut self, damage: &mut DamageLog) -> bool {
        let index = self.log.segments().find(self.position).filter(|_| self.open.is_none());
        let Some(file) = index.map(|index| &self.log.segments().files()[index]).filter(|file| file.is_missing) else {
            return false;
        };
        let end = file.end();
        let reason = self.log.reason_of_absence(index.unwrap_or_default());
        damage.push(self.log.damage(self.position, end - self.position, reason));
        self.go_to(end);
        true
    }

    /// Goes to the next file if it exists. Otherwise waits, since a restarted broker may overwrite the blank record.
    /// Returns whether another step may find more without waiting.
    pub(super) fn roll(&mut self, at: u64, size: usize, damage: &mut DamageLog) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        let (base, len) = (*base, segment.file_len()?);
        // A blank reaches to the end of its file. A blank of another size is invalid, or half written.
        if at + size as u64 != len {
            let reason = format!("blank size at +0: expected {}, got {size}", len.saturating_sub(at));
            return self.wait_or_skip(reason, damage);
        }
        self.log = self.store.log_now()?;
        if !self.log.segments().files().iter().any(|file| file.base >= base + len) {
            return self.find_file_again();
        }
        self.go_to(base + len);
        Ok(true)
    }

    /// Waits for bytes that are not written yet. If the bytes turn out to be damaged, reports the damage and skips
    /// them. Returns whether another step may find more without waiting.
    pub(super) fn wait_or_skip(&mut self, reason: String, damage: &mut DamageLog) -> Result<bool> {
        if self.find_file_again()? {
            return Ok(true);
        }
        // The record may just be incomplete. Only data behind it proves damage.
        if !self.is_time_to_ask() || !self.is_passed_by_bound()? {
            return Ok(false);
        }
        let Some(next) = self.find_next()? else { return Ok(false) };
        // No queue lists the next record, so it may be an old record, or a record being written.
        if self.bound.by_queues() && next >= self.bound.to() || self.is_complete_now()? {
            return Ok(false);
        }
        damage.push(self.log.damage(self.position, next - self.position, reason));
        self.go_to(next);
        Ok(true)
    }

    /// Reads the queues, unless it is too early. Returns whether a queue lists a record behind the position.
    pub(super) fn ask_queues(&mut self) -> Result<bool> {
        if self.is_time_to_ask() {
            self.bound.refresh(&self.store)?;
            return Ok(self.position < self.bound.to());
        }
        Ok(false)
    }

    /// Skips files that retention removed. If nothing was read before, this is not a loss; reading begins at the first
    /// file that exists. Returns whether a file can be read now.
    pub(super) fn pass_removed(&mut self) -> Result<bool> {
        self.log = self.store.log_now()?;
        let first = match self.log.segments().files().first() {
            Some(file) if file.base > self.position => file.base,
            Some(_) => return Ok(self.open_file()?.is_some()),
            None => return Ok(false),
        };
        // A follower that has read nothing has lost nothing.
        if self.has_read {
            self.removed.push(RemovedRange { offset: self.position, length: first - self.position });
        }
        self.go_to(first);
        Ok(true)
    }

    fn go_to(&mut self, position: u64) {
        self.position = position;
        self.open = None;
        self.standstill = None;
    }

    /// Lists the directory again if the open file no longer contains the position. Returns whether another file may
    /// contain it.
    fn find_file_again(&mut self) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        // A recovery of the broker may replace a file. The open file then shows the old content.
        let is_replaced = segment.is_replaced();
        if !is_replaced && self.position < base + segment.file_len()? {
            return Ok(false);
        }
        self.log = self.store.log_now()?;
        let files = self.log.segments().files();
        // The last file that begins at or before the position is the only one that can contain it.
        let holder = files.iter().rev().find(|file| file.base <= self.position).map(|file| file.base);
        if !is_replaced && holder == Some(*base) {
            return Ok(false);
        }
        self.open = None;
        Ok(true)
    }

    /// Returns whether to read all queues now. At a position before the bound this is always so. At other positions
    /// the follower first waits, and the waits become longer.
    fn is_time_to_ask(&mut self) -> bool {
        let (now, position) = (Instant::now(), self.position);
        let earlier = self.standstill.take().filter(|earlier| earlier.position == position);
        let mut here = earlier.unwrap_or_else(|| {
            let wait = if position < self.bound.to() { Duration::ZERO } else { self.waits.patience };
            Standstill { position, ask_at: now + wait, wait: self.waits.patience }
        });
        let is_time = now >= here.ask_at;
        if is_time {
            // The interval grows, because this reads a file of each queue.
            here.wait = (2 * here.wait).min(MAX_WAIT);
            here.ask_at = now + here.wait;
        }
        self.standstill = Some(here);
        is_time
    }

    /// Returns whether the log surely continues behind the position, according to the queues. Without queues always
    /// returns true, and the caller searches for a complete record behind the position.
    fn is_passed_by_bound(&mut self) -> Result<bool> {
        self.log = self.store.log_now()?;
        if self.position >= self.bound.to() {
            self.bound.refresh(&self.store)?;
        }
        Ok(self.position < self.bound.to() || !self.bound.by_queues())
    }

    /// Returns the offset of the next valid record, or of the next file if a later file has data; `None` if there is
    /// neither.
    fn find_next(&self) -> Result<Option<u64>> {
        let files = self.log.segments().files();
        let Some(index) = files.partition_point(|f| f.base <= self.position).checked_sub(1) else { return Ok(None) };
        let file = &files[index];
        if self.position < file.end() {
            let mut segment = match self.log.open(index) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
                other => other?,
            };
            if let Resync::At(at) = resync(&self.log, index, &mut segment, self.position - file.base)? {
                return Ok(Some(file.base + at));
            }
        }
        Ok(self.log.continues_behind(index)?.then(|| files[index + 1].base))
    }

    fn is_complete_now(&self) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        is_start(segment, self.position - base, *base, segment.file_len()?)
    }
}

const LISTED: usize = 4096;

/// The offset up to which consume queues confirm that the log is complete.
#[derive(Debug)]
pub struct Bound {
    to: u64,
    by_queues: bool,
    consume_queue_dir: PathBuf,
    queues: HashMap<(String, i32), ConsumeQueue>,
}

impl Bound {
    pub fn new(store: &MessageStore) -> Self {
        Self { to: 0, by_queues: false, consume_queue_dir: store.consume_queue_dir(), queues: HashMap::new() }
    }

    pub fn to(&self) -> u64 {
        self.to
    }

    /// Returns whether the bound comes from consume queues. In a store without queues it comes from the files of the
    /// log.
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
