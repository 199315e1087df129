//! Recovers a store in one walk, from where the checkpoint says that everything before is on the disk.
use super::extent::Extent;
use super::index::{self, IndexRepair};
use super::log_end;
use super::marker::{self, begin, is_begun};
use super::missing_end::MissingEnd;
use super::queues::QueueRepair;
use crate::file::{AllocatedFile, Segments, permission};
use crate::format::checkpoint::FlushedEnd;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::store::append::checkpoint::{CheckpointWriter, Flushed};
use crate::store::append::options::AppendOptions;
use crate::store::append::queue_table::QueueTable;
use crate::store::append::queue_writer::{MAX_GAP, can_follow};
use crate::store::append::unsynced::Unsynced;
use crate::store::consume_queue::{ConsumeQueue, is_directory_name};
use crate::store::damage::{Damage, DamageLog};
use crate::store::delay_levels::DelayLevels;
use crate::store::log_walk::LogWalk;
use crate::store::lost_messages::{Loss, LostMessages};
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::queue_ends::QueueEnds;
use crate::store::removed_topics::RemovedTopics;
use crate::store::retain::clock::now_ms;
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Messages of one queue that a loss can have: more units are not written for them.
const MAX_LEFT_OUT: i64 = 1 << 26;
/// Bytes that are read at a time.
const BLOCK_LEN: usize = 1 << 20;

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Offset behind the last whole record of the log.
    pub log_end: u64,
    /// Bytes that stood behind it and are gone.
    pub cut_bytes: u64,
    /// Records that were looked at.
    pub records: u64,
    /// Units of consume queues that were written.
    pub units: u64,
    /// Records that no queue lists, as others have their offsets.
    pub unlisted: u64,
    /// Index entries that were written.
    pub index_entries: u64,
    /// Queue offsets of messages that are gone, and are not given again.
    pub left_out: u64,
}

/// Recovers the store below `root`, which this process has locked. Ended in the middle, it can be begun again.
///
/// A log that ends before what was flushed is cut there if `cut_at` is its end; the queues go on behind what they listed. One of a copy is
/// cut in any case: its master has the rest.
///
/// # Errors
/// [`Error::Corrupt`] for a log that is damaged where it had been flushed, or that ends before: nothing was changed then.
/// [`Error::Invalid`] for another end than that of `cut_at`. [`Error::Io`]; what `watch` returns.
pub fn recover(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    cut_at: Option<u64>,
    watch: Watch<'_>,
) -> Result<Recovered> {
    let vouched = accept_missing_end(root, options, cut_at)?;
    let extent = if cut_at.is_some() { Extent::Whole } else { extent };
    match recover_once(root, options, extent, vouched, watch) {
        // the old index stays beside the new one till the end, if there is room for both
        Err(error) if error.is_disk_full() => {
            let extent = if is_begun(root)? { Extent::Whole } else { extent };
            index::give_back(&MessageStore::open(root, &OpenOptions::default())?, extent)?;
            recover_once(root, options, extent, vouched, watch)
        }
        done => done,
    }
}

/// Refuses a log that ends before what was flushed, unless its end is `cut_at`, or it is a copy's: then up to where it was flushed is returned.
/// What the queues listed is noted before anything is cut.
fn accept_missing_end(root: &Path, options: &AppendOptions, cut_at: Option<u64>) -> Result<Option<u64>> {
    let store = MessageStore::open(root, &OpenOptions::default())?;
    let queues = store.all_queues()?;
    let missing = MissingEnd::find(&store, &queues)?;
    match (missing, cut_at) {
        (None, Some(_)) if is_begun(root)? => Ok(None),
        (None, None) => Ok(None),
        (Some(missing), _) if options.replica_from.is_some() => Ok(Some(missing.expected)),
        (Some(missing), Some(at)) if at == missing.log_end => {
            let directory = root.join("commitlog");
            permission::create_directories(&directory)?;
            log_end::remove_in_place_of_files(&directory, at)?;
            note_lost(&store, &queues, at)?;
            // what is cut from here on was decided, also where this ends in the middle
            begin(root)?;
            CheckpointWriter::open(root)?.lower_end(at)?;
            Ok(None)
        }
        (Some(missing), None) => Err(missing.refused()),
        (Some(missing), Some(at)) => Err(Error::invalid("cut_at", format!("the log's end, {}", missing.log_end), at)),
        (None, Some(at)) => Err(Error::invalid("cut_at", "none, as the log has all that was flushed", at)),
    }
}

/// Notes what is lost of each queue with the log from `log_end` on.
fn note_lost(store: &MessageStore, queues: &[ConsumeQueue], log_end: u64) -> Result<()> {
    let mut lost = LostMessages::load(store.root())?;
    let at_ms = now_ms();
    for queue in queues {
        let max = queue.max_offset()?;
        let begin = queue.lower_bound(log_end, max)?;
        // a file far behind the others is none of the queue
        let units = queue.segments().files().iter().map(|file| file.len / UNIT_SIZE as u64).sum::<u64>();
        let end = max.min(begin.saturating_add_unsigned(units).saturating_add(MAX_GAP));
        lost.add(queue.topic(), queue.queue_id(), Loss { begin, end, at_ms });
    }
    lost.save(store.root())
}

fn recover_once(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    vouched: Option<u64>,
    watch: Watch<'_>,
) -> Result<Recovered> {
    let extent = if is_begun(root)? { Extent::Whole } else { extent };
    complete_files(&MessageStore::open(root, &OpenOptions::default())?, options)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    let queues = store.all_queues()?;
    store.refuse_missing_files(&queues)?;
    if extent == Extent::Whole {
        begin(root)?;
    }
    let mut recovery = Recovery::new(&store, options, queues, extent)?;
    recovery.vouched = vouched;
    let end = recovery.walk(watch)?;
    // messages are gone that the checkpoint speaks of, so it tells nothing of the queues either
    if extent == Extent::Checkpoint && recovery.was_vouched_for_more()? {
        drop(recovery);
        return recover_once(root, options, Extent::Whole, vouched, watch);
    }
    // before the queues are finished: no unit may lead to bytes that are about to be zero
    recovery.done.cut_bytes = log_end::cut(store.log(), end)?;
    log_end::remove_in_place_of_files(&root.join("commitlog"), end)?;
    recovery.list_lagging(end, watch)?;
    recovery.done.log_end = recovery.pass_lost(end)?;
    recovery.finish()
}

/// A recovery that runs.
struct Recovery<'a> {
    store: &'a MessageStore,
    queue_file_size: u64,
    file_size: u64,
    is_copy: bool,
    delay_levels: DelayLevels,
    removed: Arc<RemovedTopics>,
    queues: QueueRepair,
    index: IndexRepair,
    /// Records before this were flushed, and listed.
    checked_from: u64,
    /// Messages stored until then had been flushed.
    flushed_until: i64,
    /// Up to here the log had been flushed.
    flushed_end: u64,
    /// Up to here a copy had been flushed that ends before.
    vouched: Option<u64>,
    last_store_ms: i64,
    /// When the last two records were stored: no checksum guards the time of one.
    recent_ms: [Option<i64>; 2],
    /// Behind the last record that counts.
    end: u64,
    held: Option<Vec<u8>>,
    done: Recovered,
}

impl<'a> Recovery<'a> {
    fn new(
        store: &'a MessageStore,
        options: &AppendOptions,
        queues: Vec<ConsumeQueue>,
        extent: Extent,
    ) -> Result<Self> {
        let queue_file_size = file_size_of(&queues).unwrap_or(options.queue_file_size);
        let removed = Arc::new(RemovedTopics::load(store.root())?);
        Ok(Self {
            store,
            queue_file_size,
            file_size: store.log_file_size()?.unwrap_or(options.file_size),
            is_copy: options.replica_from.is_some(),
            queues: QueueRepair::new(store.log().clone(), table(store, queue_file_size), queues, queue_file_size)?
                .with_delay_levels(options.delay_levels)
                .without(removed.clone()),
            removed,
            delay_levels: options.delay_levels,
            index: IndexRepair::open(store, options, extent, now_ms() + options.zone_offset_ms)?,
            checked_from: match extent {
                Extent::Checkpoint => store.dispatched_to()?,
                Extent::Whole => store.log().min_offset(),
            },
            flushed_until: flushed_until(store)?,
            flushed_end: store.flushed_end()?.map_or(0, |end| end.offset),
            vouched: None,
            last_store_ms: 0,
            recent_ms: [None, None],
            end: 0,
            held: None,
            done: Recovered::default(),
        })
    }

    /// Compares record by record; returns where the log ends.
    fn walk(&mut self, watch: Watch<'_>) -> Result<u64> {
        let log = self.store.log();
        // the index may have to begin earlier than the queues
        let from = self.checked_from.min(self.index.from());
        let walk = LogWalk::new(log.clone(), from, u64::MAX, self.checked_from);
        let mut walk = walk.without_waiting().with_block_len(BLOCK_LEN);
        let mut damage = DamageLog::default();
        self.end = self.checked_from.min(log.segments().end());
        loop {
            let more = walk.advance(&mut damage)?;
            if let Some(first) = damage.entries().iter().find(|damage| damage.offset >= self.checked_from) {
                // to cut here would lose messages that had been acknowledged as flushed: a person decides
                let refusal = if more { self.flushed_behind(&mut walk, first, watch)? } else { None };
                let end = self.held.as_ref().map_or(first.offset, |_| self.end);
                return refusal.map_or(Ok(end), Err);
            }
            if !more {
                // blanks that end files had been flushed with the log, and the next file goes on behind them
                let is_whole = self.held.is_none() && walk.position() >= self.flushed_end;
                return Ok(if is_whole { self.end.max(self.flushed_end) } else { self.end });
            }
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(message) = Message::new(bytes, record.layout) else { continue };
                self.meet(&message)?;
            }
            self.queues.write()?;
            watch(walk.position() - from, log.segments().end().saturating_sub(from))?;
        }
    }

    /// A record whose topic or properties end in zero may be torn: no checksum guards them, and they never end so. It counts
    /// once another one stands behind it.
    fn meet(&mut self, message: &Message<'_>) -> Result<()> {
        if let Some(held) = self.held.take() {
            Message::decode(&held).map_or(Ok(()), |held| self.dispatch(&held))?;
        }
        let end = message.physical_offset() as u64 + u64::from(message.layout().total);
        let is_behind = message.physical_offset() as u64 >= self.checked_from && end > self.flushed_end;
        let last = if message.properties().is_empty() { message.topic().last() } else { message.properties().last() };
        if is_behind && last == Some(&0) {
            self.held = Some(message.record().to_vec());
            return Ok(());
        }
        self.end = end;
        self.dispatch(message)
    }

    fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        self.done.records += 1;
        self.last_store_ms = self.last_store_ms.max(message.store_timestamp());
        self.recent_ms = [self.recent_ms[1], Some(message.store_timestamp())];
        self.index.dispatch(message)?;
        if message.physical_offset() as u64 >= self.checked_from {
            self.queues.dispatch(message)?;
        }
        Ok(())
    }

    /// The error that tells of a record which was on the disk before the crash, if one stands in the block that was read behind damage, or
    /// behind that.
    fn flushed_behind(&mut self, walk: &mut LogWalk, damage: &Damage, watch: Watch<'_>) -> Result<Option<Error>> {
        let log = self.store.log();
        loop {
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(next) = Message::new(bytes, record.layout) else { continue };
                if self.was_flushed(&next)? {
                    return Ok(Some(log_end::damaged(log, damage, &next)));
                }
            }
            watch(walk.position() - log.min_offset(), log.segments().end() - log.min_offset())?;
            if !walk.advance(&mut DamageLog::default())? {
                return Ok(None);
            }
        }
    }

    /// Whether a record behind damage was on the disk before the crash: an old one, whose place was given anew, was not.
    fn was_flushed(&mut self, next: &Message<'_>) -> Result<bool> {
        let end = next.physical_offset().cast_unsigned() + u64::from(next.layout().total);
        let since = self.recent_ms.into_iter().flatten().min().unwrap_or(0);
        let is_in_time = (since..self.flushed_until).contains(&next.store_timestamp());
        Ok((end <= self.flushed_end || is_in_time) && self.queues.has_place(next)?)
    }

    /// Whether the checkpoint speaks of later messages than the log has: then nobody knows what was on the disk.
    fn was_vouched_for_more(&self) -> Result<bool> {
        Ok(self.store.checkpoint()?.is_some_and(|checkpoint| checkpoint.min_timestamp() > self.last_store_ms))
    }

    /// Ends the queues; those that lag are listed again from the log's first byte.
    fn list_lagging(&mut self, end: u64, watch: Watch<'_>) -> Result<()> {
        let lagging = self.queues.finish(end)?;
        (self.done.units, self.done.unlisted) = (self.queues.written(), self.queues.unlisted());
        if lagging.is_empty() {
            return Ok(());
        }
        // a file of the queues goes before its units are listed again: ended here, only a whole recovery helps
        begin(self.store.root())?;
        let (log, directory) = (self.store.log(), self.store.consume_queue_dir());
        let mut queues = QueueRepair::anew(log.clone(), table(self.store, self.queue_file_size), &directory, lagging)?
            .with_delay_levels(self.delay_levels)
            .without(self.removed.clone());
        let walk = LogWalk::new(log.clone(), log.min_offset(), end, u64::MAX);
        let mut walk = walk.without_waiting().with_block_len(BLOCK_LEN);
        while walk.advance(&mut DamageLog::default())? {
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                Message::new(bytes, record.layout).map_or(Ok(()), |message| queues.dispatch(&message))?;
            }
            queues.write()?;
            watch(walk.position() - log.min_offset(), end - log.min_offset())?;
        }
        queues.finish(end)?;
        self.done.units += queues.written();
        self.done.unlisted += queues.unlisted();
        Ok(())
    }

    /// Has queues go on behind the offsets that they gave to messages which are gone. Returns where the log goes on, which ends at `end`.
    fn pass_lost(&mut self, end: u64) -> Result<u64> {
        let lost = self.lost()?;
        let mut table = table(self.store, self.queue_file_size);
        let mut short = Vec::new();
        for (topic, queue_id, next) in lost.ends(&self.removed).filter(|(topic, ..)| is_directory_name(topic)) {
            let there = self.next_offset(topic, queue_id)?;
            if there < next {
                check_left_out(self.store.root(), (topic, queue_id), there, next)?;
                short.push((table.add(topic, queue_id, there), there, next));
            }
        }
        if short.is_empty() {
            return Ok(end);
        }
        // before they are written: until then the queues tell
        lost.save(self.store.root())?;
        let end = log_end::pass_first_file(&self.store.root().join("commitlog"), end, self.file_size)?;
        let log_file = ((end - 1) / self.file_size * self.file_size) as i64;
        let tail = Unit::last_left_out(log_file, i32::try_from(self.file_size).unwrap_or(i32::MAX));
        for (number, there, next) in short {
            table.leave_out(number, next, log_file, tail)?;
            self.done.left_out += next.abs_diff(there);
        }
        let mut unsynced = Unsynced::default();
        table.unsynced(&mut unsynced);
        unsynced.sync().map(|()| end)
    }

    /// What is noted, what queues gave to messages that say another place by now, and what they gave before their files were lost. A copy has
    /// what its master says.
    fn lost(&self) -> Result<LostMessages> {
        let mut lost = LostMessages::load(self.store.root())?;
        for ((topic, queue_id), end) in self.queues.ends().iter().filter(|_| !self.is_copy) {
            let begin = self.next_offset(topic, *queue_id)?;
            lost.add(topic, *queue_id, Loss { begin, end: *end, at_ms: now_ms() });
        }
        if !self.is_copy {
            let ends = QueueEnds::load(self.store.root())?;
            for (topic, queue_id, end) in ends.iter(&self.removed) {
                let begin = self.next_offset(topic, queue_id)?;
                lost.add(topic, queue_id, Loss { begin, end, at_ms: now_ms() });
            }
        }
        Ok(lost)
    }

    fn next_offset(&self, topic: &str, queue_id: i32) -> Result<i64> {
        let directory = self.store.consume_queue_dir().join(topic).join(queue_id.to_string());
        ConsumeQueue::list(topic, queue_id, &directory)?.max_offset()
    }

    fn finish(mut self) -> Result<Recovered> {
        let indexed_until = self.index.finish()?;
        self.done.index_entries = self.index.written();
        // before the checkpoint, which vouches for all of it
        self.sync_all()?;
        let root = self.store.root();
        // whatever it said: the log may end earlier now
        let offset = Some(self.done.log_end).filter(|end| *end > self.store.log().min_offset()).max(self.vouched);
        let file_size = u32::try_from(self.file_size).unwrap_or(u32::MAX);
        let end = offset.map(|offset| FlushedEnd { offset, file_size });
        CheckpointWriter::open(root)?.reset(Flushed { stored_until: self.last_store_ms, end, indexed_until })?;
        let mut ends = QueueEnds::new(self.done.log_end, now_ms());
        for queue in MessageStore::open(root, &OpenOptions::default())?.all_queues()? {
            ends.add(queue.topic(), queue.queue_id(), queue.max_offset()?);
        }
        ends.save(root)?;
        marker::remove(root)?;
        Ok(self.done)
    }

    /// Waits for what the last owner wrote and did not wait for: the checkpoint is going to vouch for it.
    fn sync_all(&self) -> Result<()> {
        let mut unsynced = Unsynced::default();
        let log = Segments::list(&[self.store.root().join("commitlog")])?;
        for file in log.files().iter().filter(|file| file.end() > self.checked_from) {
            unsynced.path(file.path.clone());
        }
        for queue in self.store.all_queues()? {
            queue.segments().files().iter().for_each(|file| unsynced.path(file.path.clone()));
            queue.directory().ancestors().take(3).for_each(|directory| unsynced.directory(directory.to_path_buf()));
        }
        unsynced.directory(self.store.root().join("commitlog"));
        unsynced.sync()
    }
}

/// Messages stored before then were on the disk when the last owner left.
fn flushed_until(store: &MessageStore) -> Result<i64> {
    if !store.has_abort()? {
        return Ok(i64::MAX);
    }
    // the time of the log alone: that of the queues says nothing of records
    Ok(store.checkpoint()?.map_or(0, |checkpoint| checkpoint.physic_msg_timestamp))
}

/// Refuses to leave out more offsets than any loss can have: somebody has changed the note.
fn check_left_out(root: &Path, (topic, queue_id): (&str, i32), there: i64, next: i64) -> Result<()> {
    if can_follow(0, next) && (there == 0 || next - there <= MAX_LEFT_OUT) {
        return Ok(());
    }
    let reason =
        format!("queue {queue_id} of topic {topic} ends at {there}: expected the end of a loss there, got {next}");
    Err(Error::Corrupt { path: LostMessages::path(root), offset: 0, reason })
}

fn table(store: &MessageStore, file_size: u64) -> QueueTable {
    QueueTable::new(store.consume_queue_dir(), file_size)
}

/// Files of the log that were created and not waited for are short after a loss of power.
fn complete_files(store: &MessageStore, options: &AppendOptions) -> Result<()> {
    let size = store.log_file_size()?.unwrap_or(options.file_size);
    let mut short = store.log().segments().files().iter().filter(|file| file.len < size && !file.is_missing);
    short.try_for_each(|file| AllocatedFile::open(&file.path)?.set_len(size))
}

/// The size that most queue files have.
fn file_size_of(queues: &[ConsumeQueue]) -> Option<u64> {
    let mut counts = std::collections::BTreeMap::new();
    for file in queues.iter().flat_map(|queue| queue.segments().files()) {
        *counts.entry(file.len).or_insert(0_usize) += usize::from(file.len > 0 && file.len % UNIT_SIZE as u64 == 0);
    }
    counts.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(size, count)| (*count, *size)).map(|(size, _)| size)
}
