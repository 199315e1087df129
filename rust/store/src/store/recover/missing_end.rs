//! Detects a log that ends before its flushed end, because its last file was emptied, truncated or removed, or is not mounted.
//!
//! The log alone does not show a missing end. Our checkpoint contains the flushed offset. A RocketMQ broker saves no such
//! offset. After its clean stop, the queues, the index and the times of the checkpoint show the end. After its crash only the
//! times do, because pages of queues may reach the disk before pages of the log.
use super::log_end::{self, is_begun};
use crate::file::{name, place};
use crate::format::message::Message;
use crate::store::commit_log::{CommitLog, DamageLog, LostEnd};
use crate::store::consume_queue::ConsumeQueue;
use crate::store::log_walk::{Block, LogWalk};
use crate::store::message_store::MessageStore;
use crate::store::retain::clock::now_ms;
use crate::{Error, Result};
use std::collections::HashSet;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes before the flushed end that are searched for a record.
const LOOK_BACK: u64 = 64 << 10;
const NO_FILE: &str = "no file";
const UNWRITTEN: &str = "bytes that were never written";
const BLANK: &str = "the blank that ends a file";

/// A log that ends before the offset up to which it was flushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEnd {
    pub root: PathBuf,
    pub log_end: u64,
    /// The lowest offset at which the log may have ended when it was flushed.
    pub expected: u64,
    /// Names the source of the flushed end in error texts, for example the checkpoint.
    pub witness: String,
    /// The log file that ends too early or is missing.
    pub file: PathBuf,
    pub position: u64,
    pub got: String,
}

impl MissingEnd {
    /// Returns the missing end of a store's log, or `None` if the log is complete. No process may have the store open.
    /// `queues` are all its queues. Fails with [`Error::Corrupt`] if records follow behind damage.
    pub fn find(store: &MessageStore, queues: &[ConsumeQueue]) -> Result<Option<Self>> {
        let log = store.log();
        if let Some(flushed) = store.flushed_end()?.map(|end| end.offset) {
            if !reaches(log, flushed)? {
                let ending = Ending::of(store, &HashSet::new(), 0)?;
                let missing = Self::new(store, &ending, flushed, checkpoint_of(store))?;
                return ending.continuation.map_or(Ok(Some(missing)), Err);
            }
            if store.has_abort()? || ends_at(log, flushed, None)? {
                return Ok(None);
            }
        }
        // An interrupted recovery may have changed the queues, so they do not show the end.
        if is_begun(store.root())? {
            return Ok(None);
        }
        let lists = Lists::of(store, queues, !store.has_abort()?)?;
        // The log is damaged. Recovery can tell this damage from bytes that were never flushed.
        if lists.ending.continuation.is_some() {
            return Ok(None);
        }
        let expected = match lists.listed_behind(store, lists.ending.end)? {
            None => lists.flushed_behind(store, lists.ending.end)?,
            listed => listed,
        };
        expected.map(|(expected, witness)| Self::new(store, &lists.ending, expected, witness)).transpose()
    }

    fn new(store: &MessageStore, ending: &Ending, expected: u64, witness: String) -> Result<Self> {
        let segments = store.log().segments();
        let size = store.log_file_size()?.unwrap_or(1);
        let (log_end, reason) = ending.before(expected);
        let file = segments.files().iter().find(|file| (file.base..file.base + size).contains(&log_end));
        let (file, position, got) = match file {
            Some(file) => (file.path.clone(), log_end - file.base, reason.to_owned()),
            None => {
                let base = segments.files().last().map_or(expected.saturating_sub(1) / size * size, |_| log_end);
                let path = store.root().join("commitlog").join(name::of_offset(base));
                let is_link = place::exists(&path)?;
                (path, 0, if is_link { "a link that leads nowhere" } else { NO_FILE }.to_owned())
            }
        };
        Ok(Self { root: store.root().to_path_buf(), log_end, expected, witness, file, position, got })
    }

    /// Returns the error with which appends to a log with a missing end are refused.
    pub fn to_error(&self) -> Error {
        let reason = format!(
            "{self}; nothing was changed. Bring the file back, or see what is lost, and how to go on without it: `rmqfast store repair {}`",
            self.root.display()
        );
        Error::Corrupt { path: self.file.clone(), offset: self.position, reason }
    }
}

impl Display for MissingEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log_end, expected, witness, got, .. } = self;
        write!(
            f,
            "expected the commit log to end at {expected} or behind, as {witness} says, got its end at {log_end}: {got}"
        )
    }
}

impl MessageStore {
    /// Checks for a missing end, so that readers of the log report it. Only the first call checks.
    pub fn check_end(&self) -> Result<()> {
        if self.log().lost_end().is_some() {
            return Ok(());
        }
        let lost_end = match flushed_behind(self)? {
            // A writer has appended since the files were listed.
            Some((end, _)) if !self.ends_before(end, || self.log_now())? => None,
            lost_end => lost_end,
        };
        self.log().note_lost_end(lost_end.map(|(end, witness)| LostEnd { end, witness }));
        Ok(())
    }

    /// Returns whether the log ends before `end`. `list` lists the present files. Files that retention removed since the
    /// store was opened are not missing.
    fn ends_before(&self, end: u64, mut list: impl FnMut() -> Result<Arc<CommitLog>>) -> Result<bool> {
        let mut seen_from = self.log().min_offset();
        loop {
            let log = list()?;
            let has_shrunk = log.min_offset() > seen_from;
            // Everything up to `end` may have been removed, and was there.
            if (has_shrunk && log.min_offset() >= end) || reaches(&log, end)? {
                return Ok(false);
            }
            // Nothing was removed while the log was read, or it begins where it did: the end is missing.
            if list()?.min_offset() == log.min_offset() {
                return Ok(true);
            }
            seen_from = log.min_offset();
        }
    }

    /// Restricts the store to its present content. Records that are appended later are not read. If the log has lost
    /// its end, the consume-queue entries of the lost records are included. Retention may still remove messages.
    pub fn snapshot(self) -> Result<Self> {
        self.check_end()?;
        let lost_end = self.log().lost_end().flatten().map_or(0, |lost| lost.end);
        self.restrict(lost_end)
    }
}

/// Returns the flushed end of a log that ends before it, and the name of its source. Returns `None` for a complete
/// log.
fn flushed_behind(store: &MessageStore) -> Result<Option<(u64, String)>> {
    let log = store.log();
    if let Some(flushed) = store.flushed_end()?.map(|end| end.offset) {
        if !reaches(log, flushed)? {
            return Ok(Some((flushed, checkpoint_of(store))));
        }
        if store.has_abort()? || ends_at(log, flushed, store.closed_end()?)? {
            return Ok(None);
        }
    }
    // A writer appends to the queues after the log, so they may disagree for a moment.
    if log.has_writer() || is_begun(store.root())? {
        return Ok(None);
    }
    let queues = store.all_queues()?;
    // Without queues, index and checkpoint the end is unknown, so the log need not be read.
    if queues.is_empty() && store.index_files()?.is_empty() && store.checkpoint()?.is_none() {
        return Ok(None);
    }
    // A crashed store without any log file is reported to readers. A recovery continues, because a power loss may have removed
    // the name of the only file.
    let has_log = !log.segments().files().is_empty();
    let lists = Lists::of(store, &queues, !has_log || !store.has_abort()?)?;
    let end = lists.ending.position;
    let listed = lists.listed_behind(store, end)?;
    // Times may be damaged, so complete queues are the better source.
    if listed.is_some() || (lists.is_closed && !queues.is_empty()) {
        Ok(listed)
    } else {
        lists.flushed_behind(store, end)
    }
}

/// The last messages in the queues, and the end of the log according to them.
struct Lists {
    is_closed: bool,
    tails: Vec<QueueTail>,
    ending: Ending,
}

impl Lists {
    fn of(store: &MessageStore, queues: &[ConsumeQueue], is_closed: bool) -> Result<Self> {
        let mut tails = tails_of(queues)?;
        let mut from = 0;
        if let Some(end) = tails.iter().map(|tail| tail.end).max()
            && reaches(store.log(), end)?
        {
            // The log has the last listed message, so no listed message is missing.
            from = log_end::last_records(store.log(), end, LOOK_BACK)?;
            tails.clear();
        }
        // After a crash, pages of queues may be on the disk before pages of the log, so queues do not count.
        if !is_closed {
            tails.clear();
        }
        let mut ending = Ending::of(store, &tails.iter().map(QueueTail::key).collect(), from)?;
        // If the record is in an older file of the log, only the unit is damaged.
        let missing: HashSet<Key> = tails.iter().filter(|t| ending.misses(t, ending.end)).map(QueueTail::key).collect();
        if !missing.is_empty() {
            let mut walk = LogWalk::new(store.log().clone(), 0, ending.end, 0).without_waiting();
            while walk.advance(&mut DamageLog::default())? {
                ending.read(walk.block(), &missing);
            }
        }
        Ok(Self { is_closed, tails, ending })
    }

    /// Returns the end of the log according to queues or index, and the name of the source. Returns `None` if they
    /// list no record behind `end`.
    fn listed_behind(&self, store: &MessageStore, end: u64) -> Result<Option<(u64, String)>> {
        let ending = &self.ending;
        if let Some(tail) = self.tails.iter().filter(|tail| ending.misses(tail, end)).max_by_key(|tail| tail.end) {
            return Ok(Some((tail.end, tail.to_string())));
        }
        if self.is_closed
            && let Some(file) = store.index_files()?.last()
        {
            let (at, time) = (u64::try_from(file.header.end_phy_offset).unwrap_or(0), file.header.end_timestamp);
            // The time has to be later, too, because a damaged header may contain any offset.
            if at >= ending.blank.unwrap_or(end) && time >= ending.last_ms && file.entries() > 0 {
                return Ok(Some((at + 1, format!("the index, {}", file.path.display()))));
            }
        }
        Ok(None)
    }

    /// Returns the end of the log according to the checkpoint, if its times are later than all messages before `end`.
    fn flushed_behind(&self, store: &MessageStore, end: u64) -> Result<Option<(u64, String)>> {
        let flushed_ms = store.checkpoint()?.map_or(0, |c| c.physic_msg_timestamp.min(c.logics_msg_timestamp));
        // A time in the future means that the checkpoint is damaged.
        let is_later = flushed_ms > self.ending.last_ms && flushed_ms <= now_ms();
        if is_later && flushed_ms > last_time(store.log(), store.log().min_offset())? {
            let witness = format!("{}, of messages stored until {flushed_ms},", checkpoint_of(store));
            return Ok(Some((end + 1, witness)));
        }
        Ok(None)
    }
}

struct Ending {
    end: u64,
    /// Offset at which the walk over the log ended. The walk continues behind damage, so this may be greater than
    /// `end`.
    position: u64,
    reason: String,
    /// Start of the blank record at the end of the newest file. The flushed end is never inside a blank record.
    blank: Option<u64>,
    continuation: Option<Error>,
    /// The greatest store time of the last records, in milliseconds.
    last_ms: i64,
    /// The searched keys whose records were found.
    records: HashSet<Key>,
}

/// Topic, queue id and queue offset of a message.
type Key = (Vec<u8>, i32, i64);

impl Ending {
    /// Reads the last files of a log backwards, up to a file with a record or to the offset `from`.
    fn of(store: &MessageStore, places: &HashSet<Key>, from: u64) -> Result<Self> {
        let log = store.log();
        let size = store.log_file_size()?.unwrap_or(0);
        let mut ending = Self {
            end: log.min_offset(),
            position: log.min_offset(),
            reason: NO_FILE.to_owned(),
            blank: None,
            continuation: None,
            last_ms: 0,
            records: HashSet::new(),
        };
        let mut behind = None;
        for file in log.segments().files().iter().rev() {
            let file_end = file.base + size.max(file.len);
            // Files behind a missing file are not part of the log.
            if behind != Some(file_end) {
                (ending.end, ending.reason) = (file_end, NO_FILE.to_owned());
            }
            let is_newest = behind.replace(file.base).is_none();
            let mut records_end = file.base.max(from);
            let mut walk = LogWalk::new(log.clone(), file.base.max(from), file_end, 0).without_waiting();
            let mut damage = DamageLog::default();
            let mut has_records = false;
            while walk.advance(&mut damage)? {
                has_records = true;
                if let Some(first) = damage.entries().first().filter(|_| ending.continuation.is_none()) {
                    ending.continuation =
                        log_end::first_record(&walk).map(|next| log_end::damage_error(log, first, &next));
                }
                records_end = ending.read(walk.block(), places).unwrap_or(records_end);
            }
            let is_blank = damage.entries().is_empty() && records_end < walk.position() && walk.position() >= file_end;
            ending.blank = ending.blank.or(Some(records_end).filter(|_| is_newest && is_blank));
            // The log does not continue into an unwritten file.
            if has_records || is_blank || !damage.is_empty() {
                ending.position = ending.position.max(walk.position());
            }
            if let Some(first) = damage.entries().first() {
                (ending.end, ending.reason) = (first.offset, first.reason.clone());
            } else if walk.position() < file_end {
                let is_cut = walk.position() >= file.end();
                let reason = if is_cut { format!("a file of {} bytes", file.len) } else { UNWRITTEN.to_owned() };
                (ending.end, ending.reason) = (walk.position(), reason);
            }
            if has_records || file.base <= from {
                break;
            }
        }
        Ok(ending)
    }

    /// Returns the end of a log that should reach `expected`, and the reason why the log ends there.
    fn before(&self, expected: u64) -> (u64, &str) {
        match self.blank.filter(|_| expected < self.end) {
            Some(blank) => (blank, BLANK),
            None => (self.end, &self.reason),
        }
    }

    /// Returns whether a log that ends at `end` lacks the record of a tail. If the log has the record, only the
    /// consume-queue entry is damaged.
    fn misses(&self, tail: &QueueTail, end: u64) -> bool {
        tail.end > self.blank.unwrap_or(end) && !self.records.contains(&tail.key())
    }

    fn read(&mut self, block: Block<'_>, places: &HashSet<Key>) -> Option<u64> {
        let mut end = None;
        for record in block.records {
            let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
            let Some(message) = Message::new(bytes, record.layout) else { continue };
            self.last_ms = self.last_ms.max(message.store_timestamp());
            end = Some(message.physical_offset() as u64 + u64::from(message.layout().total));
            let key = (message.topic().to_vec(), message.queue_id(), message.queue_offset());
            self.records.extend(places.contains(&key).then_some(key));
        }
        end
    }
}

struct QueueTail {
    topic: String,
    queue_id: i32,
    offset: i64,
    end: u64,
}

impl QueueTail {
    fn key(&self) -> Key {
        (self.topic.as_bytes().to_vec(), self.queue_id, self.offset)
    }
}

impl Display for QueueTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of topic {}, which lists message {},", self.queue_id, self.topic, self.offset)
    }
}

fn tails_of(queues: &[ConsumeQueue]) -> Result<Vec<QueueTail>> {
    let mut tails = Vec::new();
    for queue in queues {
        let last = queue.last_message()?;
        tails.extend(last.map(|(offset, unit)| QueueTail {
            topic: queue.topic().to_owned(),
            queue_id: queue.queue_id(),
            offset,
            end: unit.end(),
        }));
    }
    Ok(tails)
}

/// Returns whether the log is valid up to `end`, and `end` is the end of a record or of the blank behind a record.
fn reaches(log: &Arc<CommitLog>, end: u64) -> Result<bool> {
    let Some(last) = end.checked_sub(1) else { return Ok(true) };
    if log.segments().find(last).is_none() {
        return Ok(false);
    }
    let from = log_end::last_records(log, end, LOOK_BACK)?;
    let mut walk = LogWalk::new(log.clone(), from, end, 0).without_waiting();
    let mut damage = DamageLog::default();
    while walk.advance(&mut damage)? {}
    let is_sound = damage.entries().iter().all(|damage| damage.offset.saturating_add(damage.length) < end);
    // If the log is complete, no record extends beyond the flushed end.
    Ok(is_sound && walk.position() == end)
}

/// Returns whether no complete record begins at or behind `end`.
fn ends_at(log: &Arc<CommitLog>, end: u64, closed_end: Option<u64>) -> Result<bool> {
    let walk = LogWalk::new(log.clone(), end, u64::MAX, u64::MAX).without_waiting();
    let mut walk = walk.with_closed_end(closed_end);
    Ok(!walk.advance(&mut DamageLog::default())?)
}

/// Returns the greatest store time of the log's records from offset `from` on.
fn last_time(log: &Arc<CommitLog>, from: u64) -> Result<i64> {
    let mut walk = LogWalk::new(log.clone(), from, u64::MAX, u64::MAX).without_waiting();
    let mut last = 0;
    while walk.advance(&mut DamageLog::default())? {
        let block = walk.block();
        let messages = block.records.iter().filter_map(|r| Message::new(block.bytes.get(r.at as usize..)?, r.layout));
        last = messages.map(|message| message.store_timestamp()).fold(last, i64::max);
    }
    Ok(last)
}

fn checkpoint_of(store: &MessageStore) -> String {
    format!("the checkpoint, {},", store.root().join("checkpoint").display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::AppendOptions;
    use crate::store::made_store::store_of;
    use std::fs;

    #[test]
    fn an_end_that_retention_removes_during_the_check_was_there() {
        let (_dir, store) = store_of(12, 1000, AppendOptions { file_size: 4096, ..AppendOptions::default() });
        let length = store.log().record_at(0).expect("a record").len() as u64;
        let (in_first, behind_all) = (2 * length, 1 << 20);
        let ends_before = |end| store.ends_before(end, || store.log_now()).expect("checked");
        assert_eq!([in_first, behind_all].map(ends_before), [false, true]);
        // the first file goes after it was listed, and before it is read
        let first = store.log().segments().files()[0].path.clone();
        let listed_before = || {
            let listed = store.log_now();
            let _ = fs::remove_file(&first);
            listed
        };
        assert!(!store.ends_before(in_first, listed_before).expect("checked"));
        assert_eq!([in_first, behind_all].map(ends_before), [false, true]);
    }

    #[test]
    fn an_end_is_missing_if_only_a_file_behind_it_was_left_when_the_store_was_opened() {
        let (dir, store) = store_of(2, 1000, AppendOptions { file_size: 4096, ..AppendOptions::default() });
        let files = store.log().segments().files();
        fs::write(dir.path().join("commitlog").join(name::of_offset(4096)), vec![0; 4096]).expect("written");
        fs::remove_file(&files[0].path).expect("removed");
        let store = store.as_of_now().expect("opened");
        store.check_end().expect("checked");
        assert!(store.log().lost_end().flatten().is_some());
    }
}
