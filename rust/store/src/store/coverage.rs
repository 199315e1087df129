//! Records that a consume queue should list and does not: of a queue whose files, or whose last units, are gone.
//!
//! Units say where their records begin and end. Those of all queues together cover the log up to where it is listed, without a
//! gap: that costs 20 bytes a message, and no look at the log. Where they do not, the log is walked from the gap on, block by
//! block, until a block holds nothing that is missing.
//!
//! The same holds for messages of topics that were deleted: nothing lists them, and they cost a walk as long as the log has them.
use super::append::queue_writer::can_follow;
use super::commit_log::CommitLog;
use super::consume_queue::{ConsumeQueue, UnitReader, is_directory_name};
use super::damage::DamageLog;
use super::generation::QueueBegin;
use super::log_walk::LogWalk;
use super::message_store::{MessageStore, QueueKind};
use super::multi_dispatch::LMQ;
use super::removed_topics::RemovedTopics;
use super::unlisted::{DELAY_TOPIC, Unlisted};
use crate::file::place;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::{Item, Layout, MIN_BLANK_LEN, Message};
use crate::store::config_files::{ConfigFile, TOPICS};
use crate::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

/// Units read at a time.
const UNITS: usize = 4096;
/// Bytes of the log that are looked at behind a gap, at least.
const BLOCK: usize = 64 << 10;

/// Reads which records before the listed end of a store no queue lists.
#[derive(Debug)]
pub struct Coverage<'a> {
    store: &'a MessageStore,
    queues: Vec<ConsumeQueue>,
    owners: Owners<'a>,
}

impl<'a> Coverage<'a> {
    /// That of the queues that `store` has now.
    pub fn new(store: &'a MessageStore) -> Result<Self> {
        let mut queues = store.all_queues()?;
        // a light queue lists records that their own topics' queues list, too
        queues.retain(|queue| !queue.topic().starts_with(LMQ));
        Ok(Self { store, queues, owners: Owners::new(store) })
    }

    /// Adds to `missing` what stands in `[from, end)` of the log and is in no queue. A record begins at `from`.
    pub fn find(&mut self, (from, end): (u64, u64), missing: &mut Unlisted) -> Result<()> {
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

    /// Stretches of the log of which no file has the bytes.
    fn gaps(&self, (from, end): (u64, u64)) -> DamageLog {
        let log = self.store.log();
        let mut gaps = DamageLog::default();
        for pair in log.segments().files().windows(2) {
            let (first, behind) = (pair[0].end().max(from), pair[1].base.min(end));
            if first < behind {
                gaps.push(log.damage(first, behind - first, "expected a file of the commit log, got none"));
            }
        }
        gaps
    }

    /// For each file of the log what the units say of it.
    fn sums(&self, (from, end): (u64, u64)) -> Result<Vec<(usize, Sum)>> {
        let segments = self.store.log().segments();
        let files = segments.files().iter().enumerate();
        let within = files.filter(|(_, file)| file.end() > from && file.base < end);
        let mut sums: Vec<_> = within.map(|(index, file)| (index, Sum::from(file.base.max(from)))).collect();
        let Some(first) = sums.first().map(|(index, _)| *index) else { return Ok(sums) };
        let mut last = (0, 0, 0);
        for queue in &self.queues {
            units(queue, self.store.log(), (from, end), &mut |_, start, behind| {
                // units of a queue are in the order of the log
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

    /// Whether units cover the file from the first byte that was asked for to `end`, or to the blank behind its last record.
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
            // retention removed it since it was listed
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(true),
            // a link that leads nowhere: the walk tells of it
            Err(Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Walks the records of a file of the log that follow where the units do not.
    fn walk(&mut self, index: usize, (from, end): (u64, u64), missing: &mut Unlisted) -> Result<()> {
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
            // the size that a unit tells may be wrong: a record surely begins where another one ended
            let mut sure = at;
            while let Some(span) = spans.get(next).filter(|span| span.start == at) {
                next += 1;
                let room = spans.get(next).map_or(file_end, |following| following.start);
                (sure, at) = (span.start, span.behind);
                // one that reaches over the next record, or leads where another one does, hides what stands there
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

    /// Walks from a record before a gap on, up to a block behind it that misses nothing of `spans`. Returns where that ends;
    /// `None` at `end`.
    fn walk_gap(
        &mut self,
        (from, gap, end): (u64, u64, u64),
        spans: &[Span],
        missing: &mut Unlisted,
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
                // a damaged unit of another message may lead there
                let is_its =
                    |span: &Span| span.offset == message.queue_offset() && self.queues[span.queue].is_of(&message);
                if !listing.any(is_its) {
                    misses = true;
                    if self.owners.is_missing(&message)? {
                        missing.push(&message);
                    }
                }
            }
            if !misses && walk.position() > gap {
                missing.note(damage);
                return Ok(Some(walk.position()));
            }
        }
        // what retention removes meanwhile is missed by nobody
        let retained = log.segments().find(from).and_then(|index| log.retained_from(index)).is_some();
        if !retained {
            missing.note(damage);
        }
        Ok(None)
    }
}

impl MessageStore {
    /// Records of all queues that stand before [`dispatched_to`](Self::dispatched_to), and that the queue does not list.
    pub fn missing(&self) -> Result<Arc<Unlisted>> {
        self.missing_from(self.log().min_offset())
    }

    /// The same for a topic, or some of its queues: others are among them only as far as they had to be looked at.
    pub fn missing_of(&self, topic: &str, queue_ids: Option<&[i32]>) -> Result<Arc<Unlisted>> {
        self.missing_from(self.doubted_from(topic, queue_ids)?)
    }

    /// Whether there is such a record from an offset of the log on, at which one begins.
    pub fn misses_behind(&self, offset: u64) -> Result<bool> {
        Ok(self.missing_from(offset.max(self.log().min_offset()))?.topics().next().is_some())
    }

    fn missing_from(&self, from: u64) -> Result<Arc<Unlisted>> {
        let mut known = self.known_missing();
        let (known_from, behind) = match &*known {
            Some((known_from, missing)) if *known_from <= from => return Ok(missing.clone()),
            Some((known_from, missing)) => (*known_from, missing.clone()),
            None => (self.dispatched_to()?, Arc::default()),
        };
        let mut missing = Unlisted::default();
        if self.queue_kind() == QueueKind::Files && from < known_from {
            Coverage::new(self)?.find((from, known_from), &mut missing)?;
        }
        missing.append(&behind);
        let missing = Arc::new(missing);
        *known = Some((from, missing.clone()));
        Ok(missing)
    }

    /// From where on the log has to be looked at for records of a topic that its queues do not list; the end of what is listed
    /// where each of them vouches for itself. Without `queue_ids` the topic's configuration tells which queues there are.
    fn doubted_from(&self, topic: &str, queue_ids: Option<&[i32]>) -> Result<u64> {
        let (begin, mut from) = (self.log().min_offset(), self.dispatched_to()?);
        // nothing but the properties of other topics' messages tells of the records of a light queue
        if topic.starts_with(LMQ) {
            return Ok(from);
        }
        let wanted = |id: i32| queue_ids.is_none_or(|ids| ids.contains(&id));
        let mut known = Vec::new();
        for queue in self.queues(topic)?.into_iter().filter(|queue| wanted(queue.queue_id())) {
            known.push(queue.queue_id());
            if !begins_whole(&queue, begin)? {
                return Ok(begin);
            }
            from = from.min(queue.max_physical_offset()?.max(begin));
        }
        let expected = match queue_ids {
            Some(ids) => ids.iter().filter(|id| **id >= 0).collect::<std::collections::BTreeSet<_>>().len(),
            None => match self.topics_config().queue_nums(topic) {
                Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
                // nobody says how many queues there were
                None => return Ok(begin),
            },
        };
        let of_these = known.iter().filter(|id| queue_ids.is_some() || (**id as usize) < expected).count();
        Ok(if of_these < expected { begin } else { from })
    }
}

/// Whether the files of a queue follow each other, and nothing is missing before the first unit.
fn begins_whole(queue: &ConsumeQueue, log_begin: u64) -> Result<bool> {
    let files = queue.segments().files();
    let lacks_file = queue.segments().first_without_file().is_some();
    if lacks_file || files.windows(2).any(|pair| pair[0].end() != pair[1].base) {
        return Ok(false);
    }
    let first = queue.first_offset();
    let unit = UnitReader::new(queue).unit(first)?.unwrap_or_default();
    // retention removes a file of the queue once the log has lost the messages of all its units
    Ok(first == 0 || unit.is_blank() || (unit.is_message() && unit.physical_offset as u64 <= log_begin))
}

/// Gives queue offset, start and end of the records in `[from, end)` that a queue lists.
fn units(
    queue: &ConsumeQueue,
    log: &CommitLog,
    (from, end): (u64, u64),
    visit: &mut impl FnMut(i64, u64, u64),
) -> Result<()> {
    let max = queue.max_offset()?;
    // at the log's begin no bisection is trusted, which damaged units mislead
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

/// The begin and end of a record as a unit says them, the place of its queue among all, and its offset there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    behind: u64,
    queue: usize,
    offset: i64,
}

/// What the units of one file of the log add up to. Where each record ends another begins, so that the hash of an end and that
/// of a start cancel out: what stays is the first start and the last end, in whatever order the units come.
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

/// The finalizer of splitmix64.
#[inline]
fn hash(place: u64) -> u64 {
    let place = (place ^ (place >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let place = (place ^ (place >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    place ^ (place >> 31)
}

/// Tells whether a queue should list a record that none lists.
#[derive(Debug)]
struct Owners<'a> {
    store: &'a MessageStore,
    topics: HashMap<String, Option<HashMap<i32, Owner>>>,
    config: Option<ConfigFile>,
    removed: RemovedTopics,
    /// Why it is not known which topics were removed.
    fault: Option<Error>,
}

/// A queue, and where it begins.
#[derive(Debug)]
struct Owner {
    queue: ConsumeQueue,
    begin: Option<QueueBegin>,
}

impl<'a> Owners<'a> {
    fn new(store: &'a MessageStore) -> Self {
        let (removed, fault) = match RemovedTopics::load(store.root()) {
            // where the log has to be walked, messages of topics that were removed would come back
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
            let queues = self.listed(topic)?;
            self.topics.insert(topic.to_owned(), queues);
        }
        let Some(Some(queues)) = self.topics.get(topic) else { return Ok(false) };
        let listed = (self.store.log().min_offset(), self.store.dispatched_to()?);
        queues.get(&queue_id).map_or(Ok(true), |owner| owner.misses(offset, message.physical_offset(), listed))
    }

    /// The queues of a topic as they are now; `None` of a topic that was deleted, or is listed elsewhere.
    fn listed(&mut self, topic: &str) -> Result<Option<HashMap<i32, Owner>>> {
        let queues = self.store.queues(topic)?;
        let is_batch = place::is_directory(&self.store.root().join("batchconsumequeue").join(topic))?;
        if is_batch || (queues.is_empty() && !self.may_exist(topic)) {
            return Ok(None);
        }
        let owners = queues.into_iter().map(|queue| Ok((queue.queue_id(), Owner::new(queue, self.store.log())?)));
        owners.collect::<Result<_>>().map(Some)
    }

    /// Whether a topic without queues is one that lost them: the configuration names it, or there is none.
    fn may_exist(&mut self, topic: &str) -> bool {
        // as it is now: a topic may have been deleted since the store was opened
        let config = self.config.get_or_insert_with(|| ConfigFile::load(self.store.root(), TOPICS));
        // nobody deletes the topic of delayed messages, and older brokers do not name it
        topic == DELAY_TOPIC || config.is_missing() || config.topics().any(|name| name == topic)
    }
}

impl Owner {
    fn new(queue: ConsumeQueue, log: &CommitLog) -> Result<Self> {
        let begin = QueueBegin::of(&queue, log)?;
        Ok(Self { queue, begin })
    }

    /// Whether the message of a place in the log and in the queue is not listed; the log is listed from `begin` to `listed_to`.
    fn misses(&self, offset: i64, physical_offset: i64, (begin, listed_to): (u64, u64)) -> Result<bool> {
        if self.begin.is_some_and(|begin| begin.is_behind(offset, physical_offset as u64)) {
            return Ok(false);
        }
        // an offset that no checksum guards, and that no queue can go on with
        if !can_follow(self.queue.max_offset()?, offset) {
            return Ok(false);
        }
        // one that leads elsewhere is damage, which whoever reads the queue meets; where no record is listed nobody does
        let is_met = |unit: &Unit| unit.is_message() && (begin..listed_to).contains(&(unit.physical_offset as u64));
        Ok(!UnitReader::new(&self.queue).unit(offset)?.is_some_and(|unit| is_met(&unit)))
    }
}
