//! Finds records that their consume queue should list but does not list, because its files or its last entries are
//! lost.
//!
//! A consume-queue entry tells the start and the end of its record. If no entry is lost, the entries of all queues
//! cover the listed part of the log without a gap. Checking this reads 20 bytes per message and no byte of the log.
//! Only at a gap the log is read, block by block, until a block has no missing record.
//!
//! Messages of deleted topics are gaps, too. They cost a walk as long as they are in the log.
use super::append::queue_writer::can_follow;
use super::commit_log::{CommitLog, Damage, DamageLog, NO_FILE};
use super::config_files::{ConfigFile, TOPICS};
use super::consume_queue::{ConsumeQueue, LMQ, UnitReader, is_directory_name};
use super::delay::DELAY_TOPIC;
use super::generation::{QueueBegin, RemovedTopics};
use super::log_walk::LogWalk;
use super::message_store::{MessageStore, OpenOptions, QueueKind};
use super::unlisted::UnlistedRecords;
use crate::file::place;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::{Item, Layout, MIN_BLANK_LEN, Message};
use crate::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

const UNITS: usize = 4096;
const BLOCK: usize = 64 << 10;

/// Searches the part of the log that queues list for records that no queue lists.
#[derive(Debug)]
pub struct Coverage<'a> {
    store: &'a MessageStore,
    queues: Vec<ConsumeQueue>,
    owners: Owners<'a>,
}

impl<'a> Coverage<'a> {
    pub fn new(store: &'a MessageStore) -> Result<Self> {
        let mut queues = store.all_queues()?;
        // Light queues are left out, because the queue of a record's own topic lists the record, too.
        queues.retain(|queue| !queue.topic().starts_with(LMQ));
        Ok(Self { store, queues, owners: Owners::new(store) })
    }

    /// Adds to `missing` the records in `[from, end)` of the log that their queues do not list. A record must begin at
    /// `from`.
    pub fn find(&mut self, (from, end): (u64, u64), missing: &mut UnlistedRecords) -> Result<()> {
        missing.note(self.gaps((from, end)));
        for (index, sum) in self.sums((from, end))? {
            if !self.is_covered(index, &sum, end)? {
                if let Some(fault) = self.owners.fault.take() {
                    return Err(fault);
                }
                self.walk(index, (sum.start, end), missing)?;
            }
        }
        Ok(())
    }

    fn gaps(&self, (from, end): (u64, u64)) -> DamageLog {
        let log = self.store.log();
        let mut gaps = DamageLog::default();
        for pair in log.segments().files().windows(2) {
            let (first, behind) = (pair[0].end().max(from), pair[1].base.min(end));
            if first < behind {
                gaps.push(log.damage(first, behind - first, NO_FILE));
            }
        }
        gaps
    }

    /// Returns, for each log file, its index and the sum of the entries that point into it.
    fn sums(&self, (from, end): (u64, u64)) -> Result<Vec<(usize, Sum)>> {
        let segments = self.store.log().segments();
        let files = segments.files().iter().enumerate();
        let within = files.filter(|(_, file)| file.end() > from && file.base < end);
        let mut sums: Vec<_> = within.map(|(index, file)| (index, Sum::from(file.base.max(from)))).collect();
        let Some(first) = sums.first().map(|(index, _)| *index) else { return Ok(sums) };
        let mut last = (0, 0, 0);
        for queue in &self.queues {
            units(queue, self.store.log(), (from, end), &mut |_, start, behind| {
                // The units of a queue have the order of the log, so the file seldom changes.
                if !(last.0..last.1).contains(&start) {
                    let Some(index) = segments.find(start) else { return };
                    let file = &segments.files()[index];
                    last = (file.base, file.end(), index - first);
                }
                if let Some((_, sum)) = sums.get_mut(last.2) {
                    sum.add(start, behind);
                }
            })?;
        }
        Ok(sums)
    }

    /// Returns whether entries cover a file from the start of `sum` to `end`, or to the blank record at the end of
    /// the file.
    fn is_covered(&self, index: usize, sum: &Sum, end: u64) -> Result<bool> {
        let (log, file) = (self.store.log(), &self.store.log().segments().files()[index]);
        if !sum.is_chain() {
            return Ok(false);
        }
        let room = file.end().saturating_sub(sum.last);
        if sum.last >= end || room == 0 {
            return Ok(true);
        }
        match log.record_head(sum.last, MIN_BLANK_LEN) {
            Ok(head) => Ok(matches!(Layout::decode(&head), Ok(Item::Blank(size)) if size as u64 >= room)),
            // Retention has removed the file since the listing.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(true),
            // A dead link. The walk reports it as damage.
            Err(Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the parts of a log file that no entry covers.
    fn walk(&mut self, index: usize, (from, end): (u64, u64), missing: &mut UnlistedRecords) -> Result<()> {
        let log = self.store.log();
        let (base, file_end) = (log.segments().files()[index].base, log.segments().files()[index].end());
        let end = end.min(file_end);
        let mut spans = Vec::new();
        for (queue, files) in self.queues.iter().enumerate() {
            units(files, log, (from.max(base), end), &mut |offset, start, behind| {
                spans.push(Span { start, behind, queue, offset });
            })?;
        }
        spans.sort_unstable();
        let (mut at, mut next) = (from.max(base), 0);
        while at < end {
            // The size in a unit may be wrong. Only the start of a listed record is a sure place to begin the walk.
            let mut sure = at;
            while let Some(span) = spans.get(next).filter(|span| span.start == at) {
                next += 1;
                let room = spans.get(next).map_or(file_end, |following| following.start);
                (sure, at) = (span.start, span.behind);
                // A unit that overlaps the next record, or points to the record of another unit, may hide records.
                if span.behind > room {
                    at = span.start + 1;
                    break;
                }
            }
            let Some(behind) = self.walk_gap((sure, at, end), &spans, missing)? else { break };
            at = behind;
            next = spans.partition_point(|span| span.start < at);
        }
        Ok(())
    }

    /// Reads blocks from `from`, the last record before a gap, until a block behind the gap has no unlisted record.
    /// Returns the end of that block, or `None` if `end` comes first.
    fn walk_gap(
        &mut self,
        (from, gap, end): (u64, u64, u64),
        spans: &[Span],
        missing: &mut UnlistedRecords,
    ) -> Result<Option<u64>> {
        let log = self.store.log();
        let mut walk = LogWalk::new(log.clone(), from, end, 0).with_block_len(BLOCK);
        let (mut damage, mut next) = (DamageLog::default(), spans.partition_point(|span| span.start < from));
        while gap < end && walk.advance(&mut damage)? {
            let (block, mut misses) = (walk.block(), false);
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(message) = Message::new(bytes, record.layout) else { continue };
                let start = message.physical_offset() as u64;
                next += spans[next..].iter().take_while(|span| span.start < start).count();
                let mut listing = spans[next..].iter().take_while(|span| span.start == start);
                // Compares queue and offset, too, because a damaged unit of another message may point to this record.
                let lists_it =
                    |span: &Span| span.offset == message.queue_offset() && self.queues[span.queue].is_of(&message);
                if !listing.any(lists_it) {
                    misses = true;
                    if self.owners.is_missing(&message)? {
                        missing.push(&message);
                    }
                }
            }
            // A block without a missing record shows that the gap is over.
            if !misses && walk.position() > gap {
                missing.note(damage);
                return Ok(Some(walk.position()));
            }
        }
        // Records that retention has removed meanwhile are not missing.
        let is_removed = log.segments().find(from).and_then(|index| log.retained_from(index)).is_some();
        if !is_removed {
            missing.note(damage);
        }
        Ok(None)
    }
}

impl MessageStore {
    /// Returns the records before [`dispatched_to`](Self::dispatched_to) that their queue does not list.
    pub fn missing(&self) -> Result<Arc<UnlistedRecords>> {
        self.missing_from(self.log().min_offset())
    }

    /// Returns the [`missing`](Self::missing) records of a topic or of some of its queues. The result may include
    /// records of other queues that had to be read.
    pub fn missing_of(&self, topic: &str, queue_ids: Option<&[i32]>) -> Result<Arc<UnlistedRecords>> {
        let queues = self.queues(topic)?;
        self.missing_from(self.uncertain_from(topic, (&queues, queue_ids), self.dispatched_to()?)?)
    }

    /// Returns the same as [`missing_of`](Self::missing_of), of a topic whose `queues` reach to `closed_end`, where the
    /// store was [closed](super::last_close::LastClose::listed_to). Reads no queue of another topic unless an entry of
    /// these queues is damaged.
    pub fn missing_of_closed(
        &self,
        topic: &str,
        (queues, queue_ids): (&[ConsumeQueue], Option<&[i32]>),
        closed_end: u64,
    ) -> Result<Arc<UnlistedRecords>> {
        let from = self.uncertain_from(topic, (queues, queue_ids), closed_end)?;
        if list_without_holes(queues, self.log().min_offset(), (from, closed_end))? {
            return Ok(Arc::default());
        }
        self.missing_from(from)
    }

    /// Tells whether a record at or behind `offset` is [`missing`](Self::missing). A record must begin at `offset`.
    pub fn misses_behind(&self, offset: u64) -> Result<bool> {
        Ok(self.missing_from(offset.max(self.log().min_offset()))?.topics().next().is_some())
    }

    fn missing_from(&self, from: u64) -> Result<Arc<UnlistedRecords>> {
        let mut cache = self.known_missing();
        let (known_from, behind) = match &*cache {
            Some((known_from, missing)) if *known_from <= from => return Ok(missing.clone()),
            Some((known_from, missing)) => (*known_from, missing.clone()),
            None => (self.dispatched_to()?, Arc::default()),
        };
        let mut missing = UnlistedRecords::default();
        if self.queue_kind() == QueueKind::Files && from < known_from {
            Coverage::new(self)?.find((from, known_from), &mut missing)?;
        }
        // The later part of the log is known from an earlier call.
        missing.append(&behind);
        let missing = Arc::new(missing);
        *cache = Some((from, missing.clone()));
        Ok(missing)
    }

    /// Returns the offset from which to search the log for unlisted records of a topic: the start of the log if a queue
    /// or its first entries are missing, otherwise the end of the part that all queues list. Without `queue_ids`, the
    /// topic's configuration says how many queues there should be.
    fn uncertain_from(
        &self,
        topic: &str,
        (queues, queue_ids): (&[ConsumeQueue], Option<&[i32]>),
        listed_to: u64,
    ) -> Result<u64> {
        let (begin, mut from) = (self.log().min_offset(), listed_to);
        // Only a search through all properties would find the records of a light queue.
        if topic.starts_with(LMQ) {
            return Ok(from);
        }
        let is_selected = |id: i32| queue_ids.is_none_or(|ids| ids.contains(&id));
        let mut present = Vec::new();
        for queue in queues.iter().filter(|queue| is_selected(queue.queue_id())) {
            present.push(queue.queue_id());
            if !begins_whole(queue, begin)? {
                return Ok(begin);
            }
            from = from.min(queue.max_physical_offset()?.max(begin));
        }
        let expected = match queue_ids {
            Some(ids) => ids.iter().filter(|id| **id >= 0).collect::<std::collections::BTreeSet<_>>().len(),
            None => match self.topics_config().queue_nums(topic) {
                Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
                // Without a configuration, a whole queue may be missing.
                None => return Ok(begin),
            },
        };
        let count = present.iter().filter(|id| queue_ids.is_some() || (**id as usize) < expected).count();
        Ok(if count < expected { begin } else { from })
    }
}

/// Returns whether the files of a queue are contiguous and the queue has not lost its first entries.
fn begins_whole(queue: &ConsumeQueue, log_begin: u64) -> Result<bool> {
    let files = queue.segments().files();
    let lacks_file = queue.segments().first_without_file().is_some();
    if lacks_file || files.windows(2).any(|pair| pair[0].end() != pair[1].base) {
        return Ok(false);
    }
    let first = queue.first_offset();
    let unit = UnitReader::new(queue).unit(first)?.unwrap_or_default();
    // Retention removes only files whose messages are all gone, so the first unit of the rest is not behind the log's start.
    Ok(first == 0 || unit.is_blank() || (unit.is_message() && unit.physical_offset as u64 <= log_begin))
}

/// Returns whether `queues` list all messages whose offsets they have given out, of the part of the log from `from` to
/// `end`: they begin whole, and each entry there points to a record before `end`, behind that of the entry before it.
fn list_without_holes(queues: &[ConsumeQueue], log_begin: u64, range: (u64, u64)) -> Result<bool> {
    for queue in queues {
        if !begins_whole(queue, log_begin)? || !lists_without_holes(queue, log_begin, range)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lists_without_holes(queue: &ConsumeQueue, log_begin: u64, (from, end): (u64, u64)) -> Result<bool> {
    let (first, max) = (queue.first_offset(), queue.max_offset()?);
    let is_from_begin = from <= log_begin;
    let from = from.max(log_begin);
    let is_before = |unit: Unit| unit == Unit::PRE_BLANK || (unit.is_message() && (unit.physical_offset as u64) < from);
    // As in `units`: a hole could mislead a bisection.
    let mut at = if is_from_begin { first } else { queue.lower_bound(from, max)? };
    let mut reader = UnitReader::new(queue);
    // Behind a hole the bisection may have passed over entries of the range.
    if at > first && !reader.unit(at - 1)?.is_some_and(is_before) {
        return Ok(false);
    }
    let (mut expired, mut last) = (None, None);
    while at < max {
        let (units, _) = reader.units(at, UNITS.min((max - at) as usize))?.as_chunks::<UNIT_SIZE>();
        for bytes in units {
            let unit = Unit::decode(bytes).unwrap_or_default();
            let start = Some(unit.physical_offset as u64);
            // Before the first message of the log there may be entries whose records retention has removed.
            if is_from_begin && last.is_none() && is_before(unit) {
                if unit.is_message() && start <= std::mem::replace(&mut expired, start) {
                    return Ok(false);
                }
                continue;
            }
            let is_within = start >= Some(from) && start < Some(end);
            if !unit.is_message() || !is_within || start <= last {
                return Ok(false);
            }
            last = start;
        }
        if units.is_empty() {
            return Ok(false);
        }
        at += units.len() as i64;
    }
    Ok(true)
}

/// Calls `visit` with queue offset, start and end of each record in `[from, end)` that a queue lists.
fn units(
    queue: &ConsumeQueue,
    log: &CommitLog,
    (from, end): (u64, u64),
    visit: &mut impl FnMut(i64, u64, u64),
) -> Result<()> {
    let max = queue.max_offset()?;
    // From the log's start on, all units are read: damaged units could mislead a bisection.
    let mut at = if from > log.min_offset() { queue.lower_bound(from, max)? } else { queue.first_offset() };
    let mut reader = UnitReader::new(queue);
    while at < max {
        let bytes = reader.units(at, UNITS.min((max - at) as usize))?;
        let (units, _) = bytes.as_chunks::<UNIT_SIZE>();
        let mut last = 0;
        let units_at = (at..).zip(units).filter_map(|(offset, bytes)| Some((offset, Unit::decode(bytes)?)));
        for (offset, unit) in units_at.filter(|(_, unit)| unit.is_message()) {
            last = unit.physical_offset as u64;
            if (from..end).contains(&last) {
                visit(offset, last, last.saturating_add(unit.size as u64));
            }
        }
        if last >= end {
            break;
        }
        at += units.len() as i64;
        if units.is_empty() {
            let behind = queue.segments().files().iter().map(|file| file.base.div_ceil(UNIT_SIZE as u64) as i64);
            at = behind.filter(|first| *first > at).min().unwrap_or(max);
        }
    }
    Ok(())
}

/// A consume-queue entry, as start and end of its record, index of its queue, and queue offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    behind: u64,
    queue: usize,
    offset: i64,
}

/// The sum of the entries of a log file. It adds the hash of each start and subtracts the hash of each end. Where a
/// record begins at the end of the record before it, the two hashes cancel out. So without a gap only the first start
/// and the last end remain, whatever the order of the entries.
#[derive(Clone, Copy, Debug)]
struct Sum {
    start: u64,
    last: u64,
    bytes: u64,
    hash: u64,
}

impl Sum {
    fn from(start: u64) -> Self {
        Self { start, last: start, bytes: 0, hash: 0 }
    }

    #[inline]
    fn add(&mut self, start: u64, behind: u64) {
        self.last = self.last.max(behind);
        self.bytes = self.bytes.wrapping_add(behind - start);
        self.hash = self.hash.wrapping_add(hash(start)).wrapping_sub(hash(behind));
    }

    fn is_chain(&self) -> bool {
        self.bytes == self.last - self.start && self.hash == hash(self.start).wrapping_sub(hash(self.last))
    }
}

/// Hashes a position, with the finalizer of splitmix64.
#[inline]
fn hash(place: u64) -> u64 {
    let place = (place ^ (place >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let place = (place ^ (place >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    place ^ (place >> 31)
}

/// Decides whether a record that no queue lists should be in a queue.
#[derive(Debug)]
struct Owners<'a> {
    store: &'a MessageStore,
    topics: HashMap<String, Option<HashMap<i32, Owner>>>,
    config: Option<ConfigFile>,
    removed: RemovedTopics,
    /// The error of reading the file of removed topics. It is returned only if records have to be read.
    fault: Option<Error>,
}

#[derive(Debug)]
struct Owner {
    queue: ConsumeQueue,
    begin: Option<QueueBegin>,
}

impl<'a> Owners<'a> {
    fn new(store: &'a MessageStore) -> Self {
        let (removed, fault) = match RemovedTopics::load(store.root()) {
            // Messages of removed topics would come back in a walk. Without a walk the error does not matter.
            Err(fault) => (RemovedTopics::default(), Some(fault)),
            Ok(removed) => (removed, None),
        };
        Self { store, topics: HashMap::new(), config: None, removed, fault }
    }

    fn is_missing(&mut self, message: &Message<'_>) -> Result<bool> {
        let (queue_id, offset) = (message.queue_id(), message.queue_offset());
        let Some(topic) = std::str::from_utf8(message.topic()).ok().filter(|name| is_directory_name(name)) else {
            return Ok(false);
        };
        let has_place = message.layout().is_dispatched() && queue_id >= 0 && offset >= 0;
        if !has_place || self.removed.has(topic, message) {
            return Ok(false);
        }
        if !self.topics.contains_key(topic) {
            let queues = self.queues_of(topic)?;
            self.topics.insert(topic.to_owned(), queues);
        }
        let Some(Some(queues)) = self.topics.get(topic) else { return Ok(false) };
        let listed = (self.store.log().min_offset(), self.store.dispatched_to()?);
        queues.get(&queue_id).map_or(Ok(true), |owner| owner.misses(offset, message.physical_offset(), listed))
    }

    /// Returns the queues of a topic; `None` for a deleted topic and for a topic with batch queues.
    fn queues_of(&mut self, topic: &str) -> Result<Option<HashMap<i32, Owner>>> {
        let queues = self.store.queues(topic)?;
        // Batch queues of 5.x have another format and are not compared.
        let is_batch = place::is_directory(&self.store.root().join("batchconsumequeue").join(topic))?;
        if is_batch || (queues.is_empty() && !self.may_exist(topic)) {
            return Ok(None);
        }
        let owners = queues.into_iter().map(|queue| Ok((queue.queue_id(), Owner::new(queue, self.store.log())?)));
        owners.collect::<Result<_>>().map(Some)
    }

    /// Returns whether a topic without queues may have lost them. This is so if the configuration contains the topic,
    /// or if there is no configuration.
    fn may_exist(&mut self, topic: &str) -> bool {
        // Reads the configuration again, because a topic may have been deleted since the store was opened.
        let config = self.config.get_or_insert_with(|| ConfigFile::load(self.store.root(), TOPICS));
        // The delay topic is never deleted, and older brokers do not list it in the configuration.
        topic == DELAY_TOPIC || config.is_missing() || config.topics().any(|name| name == topic)
    }
}

impl Owner {
    fn new(queue: ConsumeQueue, log: &CommitLog) -> Result<Self> {
        let begin = QueueBegin::of(&queue, log)?;
        Ok(Self { queue, begin })
    }

    /// Returns whether the queue should list a message with these offsets but does not. The queue lists the log from
    /// `begin` to `listed_to`.
    fn misses(&self, offset: i64, physical_offset: i64, (begin, listed_to): (u64, u64)) -> Result<bool> {
        if self.begin.is_some_and(|begin| begin.is_behind(offset, physical_offset as u64)) {
            return Ok(false);
        }
        // No checksum covers a queue offset. An offset that cannot follow in the queue is damaged.
        if !can_follow(self.queue.max_offset()?, offset) {
            return Ok(false);
        }
        // A unit that points to another record in the listed log is damage, which a reader of the queue reports. Any other unit
        // does not take the place of this message.
        let is_read = |unit: &Unit| unit.is_message() && (begin..listed_to).contains(&(unit.physical_offset as u64));
        Ok(!UnitReader::new(&self.queue).unit(offset)?.is_some_and(|unit| is_read(&unit)))
    }
}

// A repair leaves a blank file where all records were lost, and removes their units from the queues. If queues still list
// messages in the file, the blank file has replaced another file by mistake.

/// Returns the damage of a log file that is one blank record, although a queue lists a message in this file; `None` if
/// no queue does.
pub fn damage_of_blank(log: &CommitLog, index: usize) -> Result<Option<Damage>> {
    let store = MessageStore::open(log.root(), &OpenOptions::default())?;
    if store.queue_kind() != QueueKind::Files {
        return Ok(None);
    }
    let file = &log.segments().files()[index];
    for queue in store.all_queues()? {
        let max = queue.max_offset()?;
        let first = queue.lower_bound(file.base, max)?;
        let unit = if first < max { UnitReader::new(&queue).unit(first)? } else { None };
        if unit.is_some_and(|unit| unit.is_message() && (unit.physical_offset as u64) < file.end()) {
            let (topic, id) = (queue.topic(), queue.queue_id());
            let reason =
                format!("expected message {first} of queue {id} of topic {topic}, got a blank as long as the file");
            return Ok(Some(log.damage(file.base, file.len, reason)));
        }
    }
    Ok(None)
}
