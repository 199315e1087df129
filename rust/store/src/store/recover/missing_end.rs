//! A log that ends before what was flushed of it: its last file was emptied, cut off, removed, or is not mounted.
//!
//! The log alone cannot tell. Its checkpoint says up to which offset it was flushed. A broker of RocketMQ leaves no such offset: where it
//! was closed, its queues, its index and the times of its checkpoint tell; where it was not, the times alone, as pages of queues may reach
//! the disk before those of the log.
use super::log_end;
use super::marker::is_begun;
use crate::file::{name, place};
use crate::format::message::Message;
use crate::store::commit_log::{CommitLog, LostEnd};
use crate::store::consume_queue::ConsumeQueue;
use crate::store::damage::DamageLog;
use crate::store::log_walk::{Block, LogWalk};
use crate::store::message_store::MessageStore;
use crate::store::retain::clock::now_ms;
use crate::{Error, Result};
use std::collections::HashSet;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes before the flushed end in which a record is looked for.
const LOOK_BACK: u64 = 64 << 10;
const NO_FILE: &str = "no file";
const UNWRITTEN: &str = "bytes that were never written";
const BLANK: &str = "the blank that ends a file";

/// An end of the log that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEnd {
    pub root: PathBuf,
    /// Where the log ends.
    pub log_end: u64,
    /// Where it ended, or behind.
    pub expected: u64,
    pub witness: String,
    /// The file that ends too early, or should be there.
    pub file: PathBuf,
    pub position: u64,
    pub got: String,
}

impl MissingEnd {
    /// Looks for one in a store that nobody has open; `queues` are all there are.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] where the log goes on behind damage.
    pub fn find(store: &MessageStore, queues: &[ConsumeQueue]) -> Result<Option<Self>> {
        let log = store.log();
        if let Some(flushed) = store.flushed_end()?.map(|end| end.offset) {
            if !reaches(log, flushed)? {
                let ending = Ending::of(store, &HashSet::new(), 0)?;
                let missing = Self::new(store, &ending, flushed, checkpoint_of(store))?;
                return ending.goes_on.map_or(Ok(Some(missing)), Err);
            }
            if store.has_abort()? || ends_at(log, flushed)? {
                return Ok(None);
            }
        }
        // a recovery that did not end may have changed them
        if is_begun(store.root())? {
            return Ok(None);
        }
        let lists = Lists::of(store, queues, !store.has_abort()?)?;
        // damage, which a recovery tells from what was never flushed
        if lists.ending.goes_on.is_some() {
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

    /// The error of whoever would append to such a log.
    pub fn refused(&self) -> Error {
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
    /// Has whoever walks the log hear of an end that was flushed and is not there. Looks once.
    pub fn look_at_end(&self) -> Result<()> {
        if self.log().lost_end().is_some() {
            return Ok(());
        }
        let lost = match flushed_behind(self)? {
            // what a writer has added since the files were listed
            Some((end, _)) if reaches(&self.log_now()?, end)? => None,
            lost => lost,
        };
        self.log().note_lost_end(lost.map(|(end, witness)| LostEnd { end, witness }));
        Ok(())
    }

    /// As [`pinned_behind`](Self::pinned_behind), with the queues of an end that is lost.
    pub fn pinned(self) -> Result<Self> {
        self.look_at_end()?;
        let lost = self.log().lost_end().flatten().map_or(0, |lost| lost.end);
        self.pinned_behind(lost)
    }
}

/// Up to where a log was flushed that ends before, and what says so. Whoever reads it meets by himself where it ends.
fn flushed_behind(store: &MessageStore) -> Result<Option<(u64, String)>> {
    let log = store.log();
    if let Some(flushed) = store.flushed_end()?.map(|end| end.offset) {
        if !reaches(log, flushed)? {
            return Ok(Some((flushed, checkpoint_of(store))));
        }
        if store.has_abort()? || ends_at(log, flushed)? {
            return Ok(None);
        }
    }
    // who writes to it adds to the lists and to the log, one after the other
    if log.has_writer() || is_begun(store.root())? {
        return Ok(None);
    }
    let queues = store.all_queues()?;
    // nobody tells, and the log need not be read
    if queues.is_empty() && store.index_files()?.is_empty() && store.checkpoint()?.is_none() {
        return Ok(None);
    }
    // who reads a store that crashed, and has no log at all, is told; a recovery goes on, as the name of the only file may be
    // what a loss of power took
    let has_log = !log.segments().files().is_empty();
    let lists = Lists::of(store, &queues, !has_log || !store.has_abort()?)?;
    let end = lists.ending.position;
    let listed = lists.listed_behind(store, end)?;
    // times may be damaged, and where queues are whole these tell
    if listed.is_some() || (lists.is_closed && !queues.is_empty()) {
        Ok(listed)
    } else {
        lists.flushed_behind(store, end)
    }
}

/// What lists the log, the times of the checkpoint, and the log's last records.
struct Lists {
    is_closed: bool,
    listed: Vec<Listed>,
    ending: Ending,
}

impl Lists {
    fn of(store: &MessageStore, queues: &[ConsumeQueue], is_closed: bool) -> Result<Self> {
        let mut listed = listed_of(queues)?;
        let mut from = 0;
        if let Some(end) = listed.iter().map(|listed| listed.end).max()
            && reaches(store.log(), end)?
        {
            // nothing that they list is missing
            from = log_end::last_records(store.log(), end, LOOK_BACK)?;
            listed.clear();
        }
        if !is_closed {
            listed.clear();
        }
        let mut ending = Ending::of(store, &listed.iter().map(Listed::key).collect(), from)?;
        // one whose record stands in an older file is damaged itself
        let doubted: HashSet<Key> = listed.iter().filter(|l| ending.misses(l, ending.end)).map(Listed::key).collect();
        if !doubted.is_empty() {
            let mut walk = LogWalk::new(store.log().clone(), 0, ending.end, 0).without_waiting();
            while walk.advance(&mut DamageLog::default())? {
                ending.meet(walk.block(), &doubted);
            }
        }
        Ok(Self { is_closed, listed, ending })
    }

    /// Up to where queues and index list a log that ends at `end`, and which of them; `None` where none knows more.
    fn listed_behind(&self, store: &MessageStore, end: u64) -> Result<Option<(u64, String)>> {
        let ending = &self.ending;
        if let Some(listed) = self.listed.iter().filter(|l| ending.misses(l, end)).max_by_key(|listed| listed.end) {
            return Ok(Some((listed.end, listed.to_string())));
        }
        if self.is_closed
            && let Some(file) = store.index_files()?.last()
        {
            let (at, time) = (u64::try_from(file.header.end_phy_offset).unwrap_or(0), file.header.end_timestamp);
            if at >= ending.blank.unwrap_or(end) && time >= ending.last_ms && file.entries() > 0 {
                return Ok(Some((at + 1, format!("the index, {}", file.path.display()))));
            }
        }
        Ok(None)
    }

    /// That the times of the checkpoint are those of messages which stood behind `end`.
    fn flushed_behind(&self, store: &MessageStore, end: u64) -> Result<Option<(u64, String)>> {
        let flushed_ms = store.checkpoint()?.map_or(0, |c| c.physic_msg_timestamp.min(c.logics_msg_timestamp));
        // a time to come is damage of the checkpoint
        let is_later = flushed_ms > self.ending.last_ms && flushed_ms <= now_ms();
        if is_later && flushed_ms > last_time(store.log(), store.log().min_offset())? {
            let witness = format!("{}, of messages stored until {flushed_ms},", checkpoint_of(store));
            return Ok(Some((end + 1, witness)));
        }
        Ok(None)
    }
}

/// Where the sound part of a log ends.
struct Ending {
    end: u64,
    /// Where a walk ends that goes on behind damage.
    position: u64,
    reason: String,
    /// Where the blank begins that ends the newest file: nothing that was flushed ends in it.
    blank: Option<u64>,
    /// That records follow, behind damage.
    goes_on: Option<Error>,
    /// The greatest store time of its last records.
    last_ms: i64,
    /// Which of the places that were asked for have records there.
    records: HashSet<Key>,
}

/// Topic, queue and queue offset.
type Key = (Vec<u8>, i32, i64);

impl Ending {
    /// Reads the last files, back to one that has a record, or back to `from`.
    fn of(store: &MessageStore, places: &HashSet<Key>, from: u64) -> Result<Self> {
        let log = store.log();
        let size = store.log_file_size()?.unwrap_or(0);
        let mut ending = Self {
            end: log.min_offset(),
            position: log.min_offset(),
            reason: NO_FILE.to_owned(),
            blank: None,
            goes_on: None,
            last_ms: 0,
            records: HashSet::new(),
        };
        let mut behind = None;
        for file in log.segments().files().iter().rev() {
            let file_end = file.base + size.max(file.len);
            // what stands behind a file that is missing is no part of the log
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
                if let Some(first) = damage.entries().first().filter(|_| ending.goes_on.is_none()) {
                    ending.goes_on = log_end::record_behind(&walk).map(|next| log_end::damaged(log, first, &next));
                }
                records_end = ending.meet(walk.block(), places).unwrap_or(records_end);
            }
            let is_blank = damage.entries().is_empty() && records_end < walk.position() && walk.position() >= file_end;
            ending.blank = ending.blank.or(Some(records_end).filter(|_| is_newest && is_blank));
            // the log does not go on to a file in which nothing was written
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

    /// Where a log ends that reached to `expected`, and what stands there.
    fn before(&self, expected: u64) -> (u64, &str) {
        match self.blank.filter(|_| expected < self.end) {
            Some(blank) => (blank, BLANK),
            None => (self.end, &self.reason),
        }
    }

    /// Whether no record of that place is in a log that ends at `end`: else the unit alone is damaged.
    fn misses(&self, listed: &Listed, end: u64) -> bool {
        listed.end > self.blank.unwrap_or(end) && !self.records.contains(&listed.key())
    }

    /// Looks at records; returns where the last one ends.
    fn meet(&mut self, block: Block<'_>, places: &HashSet<Key>) -> Option<u64> {
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

/// The last message that a queue lists.
struct Listed {
    topic: String,
    queue_id: i32,
    offset: i64,
    end: u64,
}

impl Listed {
    fn key(&self) -> Key {
        (self.topic.as_bytes().to_vec(), self.queue_id, self.offset)
    }
}

impl Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of topic {}, which lists message {},", self.queue_id, self.topic, self.offset)
    }
}

fn listed_of(queues: &[ConsumeQueue]) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for queue in queues {
        let last = queue.last_message()?;
        listed.extend(last.map(|(offset, unit)| Listed {
            topic: queue.topic().to_owned(),
            queue_id: queue.queue_id(),
            offset,
            end: unit.end(),
        }));
    }
    Ok(listed)
}

/// Whether a sound record, or the blank behind one, ends at `end` of the log.
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
    // none reaches over what was flushed
    Ok(is_sound && walk.position() == end)
}

/// Whether nothing follows that is whole.
fn ends_at(log: &Arc<CommitLog>, end: u64) -> Result<bool> {
    let mut walk = LogWalk::new(log.clone(), end, u64::MAX, u64::MAX).without_waiting();
    Ok(!walk.advance(&mut DamageLog::default())?)
}

/// The greatest store time of the log's records from `from` on.
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
