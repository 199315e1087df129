//! Recovers a store in one walk, from where the checkpoint says that everything before is on the disk.
use super::extent::Extent;
use super::index::{self, IndexRepair};
use super::log_end;
use super::queues::QueueRepair;
use crate::file::disk::{self, Call};
use crate::file::{Allocated, Segments, permission};
use crate::format::consume_queue::UNIT_SIZE;
use crate::format::message::Message;
use crate::store::append::checkpoint::CheckpointWriter;
use crate::store::append::options::AppendOptions;
use crate::store::append::queue_table::QueueTable;
use crate::store::append::unsynced::Unsynced;
use crate::store::consume_queue::ConsumeQueue;
use crate::store::damage::DamageLog;
use crate::store::delay_levels::DelayLevels;
use crate::store::log_walk::LogWalk;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::removed_topics::RemovedTopics;
use crate::store::retain::clock::now_ms;
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

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
}

/// Recovers the store below `root`, which this process has locked. Ended in the middle, it can be begun again.
///
/// # Errors
/// [`Error::Corrupt`] for a log that is damaged where it had been flushed, or that is gone while queues list it:
/// nothing was changed then. [`Error::Io`]; what `watch` returns.
pub fn recover(root: &Path, options: &AppendOptions, extent: Extent, watch: Watch<'_>) -> Result<Recovered> {
    match recover_once(root, options, extent, watch) {
        // the old index stays beside the new one till the end, if there is room for both
        Err(error) if error.is_disk_full() => {
            let extent = if is_begun(root) { Extent::Whole } else { extent };
            index::give_back(&MessageStore::open(root, &OpenOptions::default())?, extent)?;
            recover_once(root, options, extent, watch)
        }
        done => done,
    }
}

fn recover_once(root: &Path, options: &AppendOptions, extent: Extent, watch: Watch<'_>) -> Result<Recovered> {
    let extent = if is_begun(root) { Extent::Whole } else { extent };
    complete_files(root, options)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    let queues = store.all_queues()?;
    refuse_lost_log(&store, &queues)?;
    if extent == Extent::Whole {
        begin(root)?;
    }
    let mut recovery = Recovery::new(&store, options, queues, extent)?;
    let end = recovery.walk(watch)?;
    // messages are gone that the checkpoint speaks of, so it tells nothing of the queues either
    if extent == Extent::Checkpoint && recovery.was_vouched_for_more() {
        drop(recovery);
        return recover_once(root, options, Extent::Whole, watch);
    }
    recovery.done.log_end = end;
    // before the queues are finished: no unit may lead to bytes that are about to be zero
    recovery.done.cut_bytes = log_end::cut(store.log(), end)?;
    recovery.list_lagging(end, watch)?;
    recovery.finish()
}

/// A recovery that runs.
struct Recovery<'a> {
    store: &'a MessageStore,
    queue_file_size: u64,
    delay_levels: DelayLevels,
    removed: Arc<RemovedTopics>,
    queues: QueueRepair,
    index: IndexRepair,
    /// Records before this were flushed, and listed.
    checked_from: u64,
    /// Messages stored until then had been flushed.
    flushed_until: i64,
    last_store_ms: i64,
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
            flushed_until: flushed_until(store),
            last_store_ms: 0,
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
                if let Some(next) = log_end::record_behind(&walk).filter(|_| more)
                    && self.was_flushed(&next)?
                {
                    // to cut here would lose messages that had been acknowledged as flushed: a person decides
                    return Err(log_end::damaged(log, first, &next));
                }
                return Ok(self.held.as_ref().map_or(first.offset, |_| self.end));
            }
            if !more {
                return Ok(self.end);
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
        let is_behind = message.physical_offset() as u64 >= self.checked_from;
        let last = if message.properties().is_empty() { message.topic().last() } else { message.properties().last() };
        if is_behind && last == Some(&0) {
            self.held = Some(message.record().to_vec());
            return Ok(());
        }
        self.end = message.physical_offset() as u64 + u64::from(message.layout().total);
        self.dispatch(message)
    }

    fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        self.done.records += 1;
        self.last_store_ms = self.last_store_ms.max(message.store_timestamp());
        self.index.dispatch(message)?;
        if message.physical_offset() as u64 >= self.checked_from {
            self.queues.dispatch(message)?;
        }
        Ok(())
    }

    /// Whether a record behind damage was on the disk before the crash: an old one, whose place was given anew, was not.
    fn was_flushed(&mut self, next: &Message<'_>) -> Result<bool> {
        let is_in_time = (self.last_store_ms..self.flushed_until).contains(&next.store_timestamp());
        Ok(is_in_time && self.queues.has_place(next)?)
    }

    /// Whether the checkpoint speaks of later messages than the log has: then nobody knows what was on the disk.
    fn was_vouched_for_more(&self) -> bool {
        self.store.checkpoint().is_some_and(|checkpoint| checkpoint.min_timestamp() > self.last_store_ms)
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

    fn finish(mut self) -> Result<Recovered> {
        let indexed_until = self.index.finish()?;
        self.done.index_entries = self.index.written();
        // before the checkpoint, which vouches for all of it
        self.sync_all()?;
        let root = self.store.root();
        // whatever it said: the log may end earlier now
        CheckpointWriter::open(root)?.reset(self.last_store_ms, indexed_until)?;
        if is_begun(root) {
            disk::remove_file(&root.join(BEGUN))?;
            disk::sync_directory(root)?;
        }
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

/// Stands in the store's directory while queues may be shorter than a checkpoint tells.
const BEGUN: &str = "recovery.begun";

/// Whether a recovery began and did not end.
pub fn is_begun(root: &Path) -> bool {
    root.join(BEGUN).exists()
}

/// Notes that the next start is to recover all of the store.
///
/// # Errors
/// [`Error::Io`].
pub fn begin(root: &Path) -> Result<()> {
    let path = root.join(BEGUN);
    disk::call(Call::Create, &path, || permission::create(&path))?;
    disk::sync_directory(root)
}

/// Messages stored before then were on the disk when the last owner left.
fn flushed_until(store: &MessageStore) -> i64 {
    match store.has_abort() {
        // the time of the log alone: that of the queues says nothing of records
        true => store.checkpoint().map_or(0, |checkpoint| checkpoint.physic_msg_timestamp),
        false => i64::MAX,
    }
}

fn table(store: &MessageStore, file_size: u64) -> QueueTable {
    QueueTable::new(store.consume_queue_dir(), file_size)
}

/// Files of the log that were created and not waited for are short after a loss of power.
fn complete_files(root: &Path, options: &AppendOptions) -> Result<()> {
    let segments = Segments::list(&[root.join("commitlog")])?;
    let size = segments.file_size().unwrap_or(options.file_size);
    let mut short = segments.files().iter().filter(|file| file.len < size);
    short.try_for_each(|file| Allocated::open(&file.path)?.extend(size))
}

/// Where the log should be and is not, its queues must not be cut to nothing; unless nothing of it had been flushed.
fn refuse_lost_log(store: &MessageStore, queues: &[ConsumeQueue]) -> Result<()> {
    if !store.log().segments().files().is_empty() || flushed_until(store) == 0 {
        return Ok(());
    }
    for queue in queues {
        let listed = queue.max_physical_offset()?;
        if listed > 0 {
            let reason =
                format!("expected the files of the commit log, got none, but its queues list messages up to {listed}");
            return Err(Error::Corrupt { path: store.root().join("commitlog"), offset: 0, reason });
        }
    }
    Ok(())
}

/// The size that most queue files have.
fn file_size_of(queues: &[ConsumeQueue]) -> Option<u64> {
    let mut counts = std::collections::BTreeMap::new();
    for file in queues.iter().flat_map(|queue| queue.segments().files()) {
        *counts.entry(file.len).or_insert(0_usize) += usize::from(file.len > 0 && file.len % UNIT_SIZE as u64 == 0);
    }
    counts.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(size, count)| (*count, *size)).map(|(size, _)| size)
}
