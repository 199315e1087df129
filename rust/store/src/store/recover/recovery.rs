//! Recovers a store in one walk over the log. The walk starts at the offset up to which, according to the checkpoint,
//! everything is flushed.
use super::index::{self, IndexRepair};
use super::log_end::{self, Extent, begin, is_begun};
use super::missing_end::MissingEnd;
use super::queues::QueueRepair;
use crate::file::{AllocatedFile, Segments, disk};
use crate::format::checkpoint::FlushedEnd;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::store::append::flusher::{CheckpointWriter, FlushState, SyncList};
use crate::store::append::options::AppendOptions;
use crate::store::append::queue_table::QueueTable;
use crate::store::append::queue_writer::{MAX_GAP, can_follow};
use crate::store::commit_log::{Damage, DamageLog};
use crate::store::consume_queue::{ConsumeQueue, is_directory_name};
use crate::store::delay::DelayLevels;
use crate::store::generation::RemovedTopics;
use crate::store::log_walk::LogWalk;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::queue_ends::{Loss, LostMessages, QueueEnds};
use crate::store::retain::clock::now_ms;
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of lost messages of a queue. Each lost message gets a blank consume-queue entry.
const MAX_LEFT_OUT: i64 = 1 << 26;
const BLOCK_LEN: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Offset behind the last complete record of the log.
    pub log_end: u64,
    pub cut_bytes: u64,
    pub records: u64,
    pub units: u64,
    /// Number of records without an entry, because other records have the same queue offsets.
    pub unlisted: u64,
    pub index_entries: u64,
    /// Number of queue offsets that belonged to lost messages. They are not assigned again.
    pub left_out: u64,
}

/// Recovers a store that this process has locked. An interrupted recovery can be repeated.
///
/// A log that ends before its flushed end has lost messages, so it is cut only if `cut_at` confirms its present end. Its
/// queues then continue behind the lost messages. The log of a copy is always cut, because its master has the rest. Fails with
/// [`Error::Corrupt`] for a log that is damaged before flushed messages, or ends before its flushed end; nothing is changed
/// then. [`Error::Invalid`] for a wrong `cut_at`.
pub fn recover(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    cut_at: Option<u64>,
    watch: Watch<'_>,
) -> Result<RecoveryReport> {
    let copy_flushed = accept_missing_end(root, options, cut_at)?;
    // A cut removes messages that queues list, so everything is compared.
    let extent = if cut_at.is_some() { Extent::Whole } else { extent };
    match recover_once(root, options, extent, copy_flushed, watch) {
        // The old index stays beside the new index until the end, but only if the disk has room for both.
        Err(error) if error.is_disk_full() => {
            let extent = if is_begun(root)? { Extent::Whole } else { extent };
            index::remove_replaced(&MessageStore::open(root, &OpenOptions::default())?, extent)?;
            recover_once(root, options, extent, copy_flushed, watch)
        }
        result => result,
    }
}

/// Refuses a log that ends before its flushed end, unless `cut_at` is its present end. Returns the flushed end for the
/// log of a copy that ends before it, and `None` for other accepted logs. Saves the lost messages of the queues before
/// anything is cut.
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
            disk::create_directories(&directory)?;
            log_end::remove_in_place_of_files(&directory, at)?;
            save_losses(&store, &queues, at)?;
            // From here on the cut is decided, even if the recovery is interrupted.
            begin(root)?;
            CheckpointWriter::open(root)?.lower_end(at)?;
            Ok(None)
        }
        (Some(missing), None) => Err(missing.to_error()),
        (Some(missing), Some(at)) => Err(Error::invalid("cut_at", format!("the log's end, {}", missing.log_end), at)),
        (None, Some(at)) => Err(Error::invalid("cut_at", "none, as the log has all that was flushed", at)),
    }
}

/// Saves the lost messages of each queue, when the log is lost from `log_end` on.
fn save_losses(store: &MessageStore, queues: &[ConsumeQueue], log_end: u64) -> Result<()> {
    let mut losses = LostMessages::load(store.root())?;
    let at_ms = now_ms();
    for queue in queues {
        let max = queue.max_offset()?;
        let begin = queue.lower_bound(log_end, max)?;
        // A file far behind the other files does not belong to the queue.
        let units = queue.segments().files().iter().map(|file| file.len / UNIT_SIZE as u64).sum::<u64>();
        let end = max.min(begin.saturating_add_unsigned(units).saturating_add(MAX_GAP));
        losses.add(queue.topic(), queue.queue_id(), Loss { begin, end, at_ms });
    }
    losses.save(store.root())
}

fn recover_once(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    copy_flushed: Option<u64>,
    watch: Watch<'_>,
) -> Result<RecoveryReport> {
    let extent = if is_begun(root)? { Extent::Whole } else { extent };
    complete_files(&MessageStore::open(root, &OpenOptions::default())?, options)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    let queues = store.all_queues()?;
    store.refuse_missing_files(&queues)?;
    if extent == Extent::Whole {
        begin(root)?;
    }
    let mut recovery = Recovery::new(&store, options, queues, extent)?;
    recovery.copy_flushed = copy_flushed;
    let end = recovery.walk(watch)?;
    // Messages before the checkpoint are lost, so its time for the queues cannot be trusted either.
    if extent == Extent::Checkpoint && recovery.lacks_flushed_messages()? {
        drop(recovery);
        return recover_once(root, options, Extent::Whole, copy_flushed, watch);
    }
    // The log is cut before the queues are finished, because no unit may point to bytes that are about to be cut.
    recovery.report.cut_bytes = log_end::cut(store.log(), end)?;
    log_end::remove_in_place_of_files(&root.join("commitlog"), end)?;
    recovery.list_lagging(end, watch)?;
    recovery.report.log_end = recovery.skip_lost(end)?;
    recovery.finish()
}

struct Recovery<'a> {
    store: &'a MessageStore,
    queue_file_size: u64,
    file_size: u64,
    is_copy: bool,
    delay_levels: DelayLevels,
    removed: Arc<RemovedTopics>,
    queues: QueueRepair,
    index: IndexRepair,
    checked_from: u64,
    flushed_until: i64,
    flushed_end: u64,
    /// The flushed end of a copy that now ends before this offset.
    copy_flushed: Option<u64>,
    last_store_ms: i64,
    /// Store times of the last two records. A single time could be damaged, because no checksum covers it.
    recent_ms: [Option<i64>; 2],
    /// Offset behind the last record that is surely complete.
    end: u64,
    /// A record that may be incomplete. It becomes certain once another record follows.
    pending: Option<Vec<u8>>,
    report: RecoveryReport,
}

impl<'a> Recovery<'a> {
    fn new(
        store: &'a MessageStore,
        options: &AppendOptions,
        queues: Vec<ConsumeQueue>,
        extent: Extent,
    ) -> Result<Self> {
        // Existing files decide. The option is for a store without queue files.
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
            copy_flushed: None,
            last_store_ms: 0,
            recent_ms: [None, None],
            end: 0,
            pending: None,
            report: RecoveryReport::default(),
        })
    }

    /// Compares the log record by record with queues and index. Returns the end of the log.
    fn walk(&mut self, watch: Watch<'_>) -> Result<u64> {
        let log = self.store.log();
        // The index may have to start earlier than the queues.
        let from = self.checked_from.min(self.index.from());
        let walk = LogWalk::new(log.clone(), from, u64::MAX, self.checked_from);
        let mut walk = walk.without_waiting().with_block_len(BLOCK_LEN);
        let mut damage = DamageLog::default();
        self.end = self.checked_from.min(log.segments().end());
        loop {
            let more = walk.advance(&mut damage)?;
            if let Some(first) = damage.entries().iter().find(|damage| damage.offset >= self.checked_from) {
                // A cut here would lose messages that were acknowledged as flushed, so a person has to decide.
                let refusal = if more { self.flushed_behind(&mut walk, first, watch)? } else { None };
                let end = self.pending.as_ref().map_or(first.offset, |_| self.end);
                return refusal.map_or(Ok(end), Err);
            }
            if !more {
                // The flushed end may be behind a blank at the end of a file.
                let is_complete = self.pending.is_none() && walk.position() >= self.flushed_end;
                return Ok(if is_complete { self.end.max(self.flushed_end) } else { self.end });
            }
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(message) = Message::new(bytes, record.layout) else { continue };
                self.read(&message)?;
            }
            self.queues.write()?;
            watch(walk.position() - from, log.segments().end().saturating_sub(from))?;
        }
    }

    /// Dispatches a record. A record whose topic or properties end in zero bytes may be torn, since no checksum covers
    /// these fields and a complete record never ends in this way. Such a record counts only if another record follows.
    fn read(&mut self, message: &Message<'_>) -> Result<()> {
        if let Some(pending) = self.pending.take() {
            Message::decode(&pending).map_or(Ok(()), |pending| self.dispatch(&pending))?;
        }
        let end = message.physical_offset() as u64 + u64::from(message.layout().total);
        let is_behind = message.physical_offset() as u64 >= self.checked_from && end > self.flushed_end;
        let last = if message.properties().is_empty() { message.topic().last() } else { message.properties().last() };
        if is_behind && last == Some(&0) {
            self.pending = Some(message.record().to_vec());
            return Ok(());
        }
        self.end = end;
        self.dispatch(message)
    }

    fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        self.report.records += 1;
        self.last_store_ms = self.last_store_ms.max(message.store_timestamp());
        self.recent_ms = [self.recent_ms[1], Some(message.store_timestamp())];
        self.index.dispatch(message)?;
        if message.physical_offset() as u64 >= self.checked_from {
            self.queues.dispatch(message)?;
        }
        Ok(())
    }

    /// Reads on behind damage. Returns an error if a record there was flushed before the crash.
    fn flushed_behind(&mut self, walk: &mut LogWalk, damage: &Damage, watch: Watch<'_>) -> Result<Option<Error>> {
        let log = self.store.log();
        loop {
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(next) = Message::new(bytes, record.layout) else { continue };
                if self.was_flushed(&next)? {
                    return Ok(Some(log_end::damage_error(log, damage, &next)));
                }
            }
            watch(walk.position() - log.min_offset(), log.segments().end() - log.min_offset())?;
            if !walk.advance(&mut DamageLog::default())? {
                return Ok(None);
            }
        }
    }

    /// Returns whether a record behind damage was flushed before the crash. A record does not count if it is the old
    /// content of a place that was used again.
    fn was_flushed(&mut self, next: &Message<'_>) -> Result<bool> {
        let end = next.physical_offset().cast_unsigned() + u64::from(next.layout().total);
        let since = self.recent_ms.into_iter().flatten().min().unwrap_or(0);
        let is_in_time = (since..self.flushed_until).contains(&next.store_timestamp());
        Ok((end <= self.flushed_end || is_in_time) && self.queues.has_place(next)?)
    }

    /// Returns whether the checkpoint's time is later than the last message. If so, flushed messages are missing.
    fn lacks_flushed_messages(&self) -> Result<bool> {
        Ok(self.store.checkpoint()?.is_some_and(|checkpoint| checkpoint.min_timestamp() > self.last_store_ms))
    }

    /// Finishes the queues. Queues that lack earlier entries are listed again from the start of the log.
    fn list_lagging(&mut self, end: u64, watch: Watch<'_>) -> Result<()> {
        let lagging = self.queues.finish(end)?;
        (self.report.units, self.report.unlisted) = (self.queues.units_written(), self.queues.unlisted_records());
        if lagging.is_empty() {
            return Ok(());
        }
        // Files of queues are removed before they are written again. After an interruption here, only a recovery of the whole
        // store helps.
        begin(self.store.root())?;
        let (log, directory) = (self.store.log(), self.store.consume_queue_dir());
        let table = table(self.store, self.queue_file_size);
        let mut queues = QueueRepair::list_again(log.clone(), table, &directory, lagging)?
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
        self.report.units += queues.units_written();
        self.report.unlisted += queues.unlisted_records();
        Ok(())
    }

    /// Makes queues continue behind the offsets of their lost messages. Returns the new end of the log.
    fn skip_lost(&mut self, end: u64) -> Result<u64> {
        let losses = self.find_losses()?;
        let mut table = table(self.store, self.queue_file_size);
        let mut short = Vec::new();
        for (topic, queue_id, next) in losses.ends(&self.removed).filter(|(topic, ..)| is_directory_name(topic)) {
            let present_end = self.next_offset(topic, queue_id)?;
            if present_end < next {
                check_left_out(self.store.root(), (topic, queue_id), present_end, next)?;
                short.push((table.add(topic, queue_id, present_end), present_end, next));
            }
        }
        if short.is_empty() {
            return Ok(end);
        }
        // Saved before the queues are written, because until then only the queues show the losses.
        losses.save(self.store.root())?;
        let end = log_end::pass_first_file(&self.store.root().join("commitlog"), end, self.file_size)?;
        let log_file = ((end - 1) / self.file_size * self.file_size) as i64;
        let tail = Unit::last_left_out(log_file, i32::try_from(self.file_size).unwrap_or(i32::MAX));
        for (number, present_end, next) in short {
            table.leave_out(number, next, log_file, tail)?;
            self.report.left_out += next.abs_diff(present_end);
        }
        let mut unsynced = SyncList::default();
        table.take_unsynced(&mut unsynced);
        unsynced.sync().map(|()| end)
    }

    /// Returns the losses that were saved earlier, the losses that this recovery found at the ends of queues, and the
    /// ends of queues that have lost their files. For a copy returns only the saved losses, which come from its
    /// master.
    fn find_losses(&self) -> Result<LostMessages> {
        let mut losses = LostMessages::load(self.store.root())?;
        for ((topic, queue_id), end) in self.queues.ends().iter().filter(|_| !self.is_copy) {
            let begin = self.next_offset(topic, *queue_id)?;
            losses.add(topic, *queue_id, Loss { begin, end: *end, at_ms: now_ms() });
        }
        if !self.is_copy {
            let ends = QueueEnds::load(self.store.root())?;
            for (topic, queue_id, end) in ends.iter(&self.removed) {
                let begin = self.next_offset(topic, queue_id)?;
                losses.add(topic, queue_id, Loss { begin, end, at_ms: now_ms() });
            }
        }
        Ok(losses)
    }

    fn next_offset(&self, topic: &str, queue_id: i32) -> Result<i64> {
        let directory = self.store.consume_queue_dir().join(topic).join(queue_id.to_string());
        ConsumeQueue::list(topic, queue_id, &directory)?.max_offset()
    }

    fn finish(mut self) -> Result<RecoveryReport> {
        let indexed_until = self.index.finish()?;
        self.report.index_entries = self.index.entries_written();
        // Flushed before the checkpoint is written, because the checkpoint claims that everything is flushed.
        self.sync_all()?;
        let root = self.store.root();
        // Replaces the former end, because the log may end earlier now.
        let log_end = Some(self.report.log_end).filter(|end| *end > self.store.log().min_offset());
        let offset = log_end.max(self.copy_flushed);
        let file_size = u32::try_from(self.file_size).unwrap_or(u32::MAX);
        let end = offset.map(|offset| FlushedEnd { offset, file_size });
        CheckpointWriter::open(root)?.reset(FlushState { stored_until: self.last_store_ms, end, indexed_until })?;
        let mut ends = QueueEnds::new(self.report.log_end, now_ms());
        for queue in MessageStore::open(root, &OpenOptions::default())?.all_queues()? {
            ends.add(queue.topic(), queue.queue_id(), queue.max_offset()?);
        }
        match ends.save(root) {
            // A store on a full disk must still be readable. The former file stays true, and the log tells the rest,
            // unless the log ends earlier now.
            Err(error) if error.is_disk_full() => {
                if QueueEnds::load(root)?.log_end > self.report.log_end {
                    QueueEnds::remove(root)?;
                }
            }
            result => result?,
        }
        log_end::remove_marker(root)?;
        Ok(self.report)
    }

    /// Flushes all files, including data that the last owner wrote but did not flush. Must come before the checkpoint
    /// is written, which claims that everything is flushed.
    fn sync_all(&self) -> Result<()> {
        let mut unsynced = SyncList::default();
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

/// Returns the store time before which all messages were flushed when the last owner of the store ended.
fn flushed_until(store: &MessageStore) -> Result<i64> {
    if !store.has_abort()? {
        return Ok(i64::MAX);
    }
    // Only the time of the log counts, because the time of the queues says nothing about records.
    Ok(store.checkpoint()?.map_or(0, |checkpoint| checkpoint.physic_msg_timestamp))
}

/// Fails if a queue has more lost offsets than a loss can have, which means that `config/lostMessages.json` was edited.
fn check_left_out(root: &Path, (topic, queue_id): (&str, i32), present_end: i64, next: i64) -> Result<()> {
    if can_follow(0, next) && (present_end == 0 || next - present_end <= MAX_LEFT_OUT) {
        return Ok(());
    }
    let reason = format!(
        "queue {queue_id} of topic {topic} ends at {present_end}: expected the end of a loss there, got {next}"
    );
    Err(Error::Corrupt { path: LostMessages::path(root), offset: 0, reason })
}

fn table(store: &MessageStore, file_size: u64) -> QueueTable {
    QueueTable::new(store.consume_queue_dir(), file_size)
}

/// Extends log files that are too short. After a power loss this happens to a file that was created but not flushed.
fn complete_files(store: &MessageStore, options: &AppendOptions) -> Result<()> {
    let size = store.log_file_size()?.unwrap_or(options.file_size);
    let mut short = store.log().segments().files().iter().filter(|file| file.len < size && !file.is_missing);
    short.try_for_each(|file| AllocatedFile::open(&file.path)?.set_len(size))
}

fn file_size_of(queues: &[ConsumeQueue]) -> Option<u64> {
    let mut counts = std::collections::BTreeMap::new();
    for file in queues.iter().flat_map(|queue| queue.segments().files()) {
        *counts.entry(file.len).or_insert(0_usize) += usize::from(file.len > 0 && file.len % UNIT_SIZE as u64 == 0);
    }
    // A damaged file may have any size, so the most frequent size counts.
    counts.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(size, count)| (*count, *size)).map(|(size, _)| size)
}
