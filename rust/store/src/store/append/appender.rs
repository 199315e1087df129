//! Appends batches of messages to a store that this process owns. Also flushes, cleans and closes the store.
//!
//! One lock orders the log. Under the lock, bytes only go to the operating system's cache. Threads wait for the disk without
//! the lock.
//!
//! Source: `DefaultMessageStore.putMessage`, `DefaultMessageStore.shutdown`, `DefaultMessageStore.asyncPutMessage`,
//! `CommitLog.submitFlushRequest`, `DefaultMessageStore.messageArrivingListener`,
//! `MappedFileQueue.truncateDirtyFiles`, `AutoSwitchHAService.truncateInvalidMsg`.
use super::flusher::CheckpointWriter;
use super::options::{AppendOptions, Flush};
use super::owned_store::{Open, OwnedStore};
use super::plan::{Batch, Plan};
use super::resume;
use super::rows::Rows;
use super::threads::{FileWatch, Threads};
pub use super::writers::Place;
use super::writers::Writers;
use crate::file::disk::{self, Call, Permission, sync_directory};
use crate::file::{StoreLock, place};
use crate::format::host::Host;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::queue_ends::QueueEnds;
use crate::store::recover::{self, Extent, MissingEnd, RecoveryReport, is_begun, log_end, recover};
use crate::store::retain::clock::now_ms;
use crate::store::retain::{CleanReport, QueueName, Situation, clean_plan};
use crate::store::serve::{ArrivalListener, Live};
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The file that exists while a store is open, and after a crash.
pub const ABORT: &str = "abort";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendResult {
    pub rows: usize,
    pub last: Option<Place>,
}

/// A store that is open for appends. Threads may share it. Dropping it without [`close`](Self::close) releases the
/// lock of the store but leaves the file `abort`, as a killed process does.
#[derive(Debug)]
pub struct Appender {
    recovery: Option<RecoveryReport>,
    // Declared before the store, because fields are dropped in order and the threads use the store.
    threads: Mutex<Option<Threads>>,
    file_watch: Arc<Mutex<FileWatch>>,
    pub(super) store: Arc<OwnedStore>,
}

impl Appender {
    /// Opens a store, or creates it. A store that was not closed, or whose parts disagree, is recovered first. Fails with
    /// [`Error::Busy`] for a locked store; [`Error::Unsupported`] for a store of another kind; [`Error::Corrupt`] for a store
    /// that cannot be recovered without a loss; [`Error::NoRoom`] for a new store whose log does not fit on the disk.
    pub fn open(root: &Path, options: AppendOptions) -> Result<Self> {
        Self::open_watched(root, options, &mut |_, _| Ok(()))
    }

    /// Opens a store as [`open`](Self::open) does. Calls `watch` with the progress of a recovery; an error of `watch` stops the
    /// recovery.
    pub fn open_watched(root: &Path, options: AppendOptions, watch: Watch<'_>) -> Result<Self> {
        let options = options.check()?;
        let permission = Permission::hold(root, options.file_permission);
        resume::create_root(root)?;
        // The lock comes before any file is read, because a running Java broker holds the same lock.
        let lock = StoreLock::acquire(root)?;
        let (writers, recovery) = resume_or_recover(root, &options, watch)?;
        // This check comes before `abort` is created, so that a refused store needs no recovery.
        writers.log.check_room()?;
        lock.mark()?;
        let abort = root.join(ABORT);
        disk::call(Call::Create, &abort, || disk::create(&abort))?;
        // The file `abort` must survive a power loss, because it makes the next start recover the store.
        sync_directory(root)?;
        let open = Open { writers, plan: Plan::default(), is_closing: false, _lock: lock, _permission: permission };
        let store = Arc::new(OwnedStore::new(root, options, open)?);
        let file_watch = Arc::default();
        let threads = Threads::start(&store, &file_watch).map_err(|e| Error::io(root, e))?;
        Ok(Self { recovery, threads: Mutex::new(Some(threads)), file_watch, store })
    }

    /// Returns the report of the recovery at the open; `None` if no recovery was necessary.
    pub fn recovery(&self) -> Option<&RecoveryReport> {
        self.recovery.as_ref()
    }

    /// Appends a batch completely or not at all. All rows are checked and all files are allocated before the first byte is
    /// written.
    ///
    /// `store_ms` is the store time in milliseconds, by default the current time. `first_row` is the number of the first row
    /// in errors. [`PutMessageStatus::of`](super::PutMessageStatus::of) returns a broker's name of an error. Fails with
    /// [`Error::Invalid`] for a row; [`Error::Io`], [`Error::NoRoom`] if a file cannot be created or written;
    /// [`Error::NotWritable`] if the store is closed, its disk is too full, another process has changed its files, or a write
    /// or flush has failed before; [`Error::Busy`] if another append holds the log for too long; [`Error::FlushTimeout`],
    /// after which the batch is stored.
    pub fn append<R: Rows>(&self, rows: &R, store_ms: Option<i64>, first_row: usize) -> Result<AppendResult> {
        let mut last = None;
        self.put(rows, store_ms, first_row, false, |place| last = Some(place))?;
        Ok(AppendResult { rows: rows.len(), last })
    }

    /// Appends a producer's batch, which consists of messages of one queue. They are stored without a gap in one file
    /// of the log. Returns the place of each message.
    pub fn append_batch<R: Rows>(&self, rows: &R, store_ms: Option<i64>) -> Result<Vec<Place>> {
        let mut places = Vec::with_capacity(rows.len());
        self.put(rows, store_ms, 0, true, |place| places.push(place))?;
        Ok(places)
    }

    fn put<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        first_row: usize,
        is_whole: bool,
        on_place: impl FnMut(Place),
    ) -> Result<()> {
        let position = self.put_unsynced(rows, store_ms, first_row, is_whole, on_place)?;
        match self.store.options.flush {
            Flush::Async => Ok(()),
            Flush::Sync => self.wait_flushed(position, Some(self.store.options.sync_flush_timeout)),
        }
    }

    /// Appends without waiting for the disk. With `is_whole` the rows are a producer's batch. Calls `on_place` for each
    /// message. Returns the offset to [wait for](Self::wait_flushed).
    pub fn append_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        is_whole: bool,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, is_whole, on_place)
    }

    fn put_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        first_row: usize,
        is_whole: bool,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        let store = &self.store;
        let options = &store.options;
        if options.replica_from.is_some() {
            // The log of a copy must equal its master's log.
            let reason = "a copy of a master's log, which takes messages from its master alone".to_owned();
            return Err(Error::NotWritable { path: store.root.clone(), reason });
        }
        // Checked without the lock: a full disk refuses every append, so appends need not wait for each other.
        store.retention.check_writable()?;
        let (position, needs_file, arrivals) = store.with_log(|open| {
            let batch = Batch { options, store_ms: store_ms.unwrap_or_else(now_ms), first_row, is_whole };
            open.writers.prepare(&mut open.plan, rows, &batch)?;
            if let Some((pages, range)) = open.writers.log.to_touch(open.plan.size()) {
                // Another thread faults the pages in, so that the next records cause no page faults under the lock.
                store.work.touch(pages, range);
            }
            open.writers.write(&open.plan, rows, &batch, on_place).inspect_err(|e| store.on_write_error(e))?;
            // Collected after the messages became readable. A waiter that registers later reads the queue again by itself.
            let listener = store.live.arrivals().waiting();
            let arrivals = listener.map(|listener| (listener, open.writers.collect_arrivals(&open.plan, &batch)));
            open.plan.shrink();
            Ok((open.writers.log.position(), open.writers.log.next_needed().is_some(), arrivals))
        })?;
        // Woken without the lock, like the listener below.
        store.live.growth().notify();
        if needs_file {
            store.work.create();
        }
        if let Some((listener, arrivals)) = arrivals {
            // Called without the lock, because the listener answers pulls on this thread.
            arrivals.notify(&*listener);
        }
        Ok(position)
    }

    /// Flushes everything appended so far. After an error all later calls fail.
    pub fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    /// Flushes and closes the store. Further calls have no effect. The file `abort` stays after an error of this call,
    /// an earlier failure, or a change by another process.
    pub fn close(&self) -> Result<()> {
        // The threads use the store, so they stop first.
        drop(self.threads.lock().unwrap_or_else(PoisonError::into_inner).take());
        let store = &self.store;
        // Changes since the last check can be repaired only while the files are open.
        self.file_watch.lock().unwrap_or_else(PoisonError::into_inner).look_now(store);
        // Waits for a run of retention, which must not remove files after another process has opened the store.
        let _no_run = store.retention.runner();
        let closing = store.with(|open| {
            open.is_closing = true;
            Ok(())
        });
        let flushed = closing.is_ok().then(|| store.flush());
        let (Some(mut open), Some(flushed)) = (store.take_open(), flushed) else { return Ok(()) };
        flushed?;
        // A clean stop of RocketMQ also removes the file that was allocated ahead.
        open.writers.log.release_all();
        if store.harm.first().is_some() {
            // The file `abort` stays, so the next owner recovers the store.
            return Ok(());
        }
        let mut ends = QueueEnds::new(open.writers.log.position(), now_ms());
        for number in 0..open.writers.queues.len() as u32 {
            let queue = open.writers.queues.queue(number);
            ends.add(&open.writers.queues.topic(number).name, queue.queue_id, queue.next_offset());
        }
        // Saved before `abort` is removed: a crash between the two steps only costs a recovery.
        ends.save(&store.root)?;
        disk::remove_file(&store.root.join(ABORT))?;
        sync_directory(&store.root)
    }

    /// Runs retention while other threads append and read. Removes at most ten files of the log, the oldest first, then queue
    /// and index files that list only removed messages. `now_ms` is the time of day, by default the current time. With
    /// `manual`, files expire at any hour, and the time of day is trusted. After an error another call continues.
    pub fn clean(&self, now_ms: Option<i64>, manual: bool) -> Result<CleanReport> {
        self.clean_in(self.store.retention.situation(now_ms, manual))
    }

    /// Runs [`clean`](Self::clean) with the given time, disk usage and mode.
    pub fn clean_in(&self, situation: Situation) -> Result<CleanReport> {
        self.store.retention.run(&*self.store, situation)
    }

    pub fn last_clean(&self) -> Option<CleanReport> {
        self.store.retention.last()
    }

    /// Returns a counter that grows with each run of retention that removes files. If the counter has grown since a
    /// reader was opened, the reader may list removed files.
    pub fn clean_runs(&self) -> u64 {
        self.store.retention.runs()
    }

    /// Removes queues whose messages are all removed (`cleanExpiredConsumerQueue`), except for the queues of delayed messages.
    /// Returns the removed queues. Their next offsets are forgotten.
    pub fn clean_expired_queues(&self) -> Result<Vec<QueueName>> {
        self.store.remove_expired_queues()
    }

    /// Removes the queues of topics that are not `configured` (`cleanUnusedTopic`), except for topics of the broker itself.
    /// Returns the removed queues. Their next offsets are forgotten. Their messages stay in the log until retention removes
    /// them, but are not listed again.
    pub fn clean_unused_topics(&self, configured: &BTreeSet<String>) -> Result<Vec<QueueName>> {
        self.store.remove_topics(&|topic| clean_plan::is_unused(topic, configured))
    }

    /// Returns the first file that another process has changed, and a description of the change; `None` if there is
    /// none. After such a change all appends fail.
    pub fn harm(&self) -> Option<(&Path, &str)> {
        self.store.harm.first()
    }

    /// Returns the notices for users that were added since the last call. Each describes a change by another process.
    pub fn take_harm_lines(&self) -> Vec<String> {
        self.store.harm.take_lines()
    }

    pub fn store_host(&self) -> Host {
        self.store.options.store_host
    }
}

/// Repairs a store. Compares all queues and the index with the log or rebuilds them, and cuts everything behind the
/// last complete record of the log. A log that ends before its flushed end has lost messages, so it is cut only if
/// the caller confirms the new end with `cut_at`.
pub fn repair(root: &Path, options: AppendOptions, cut_at: Option<u64>, watch: Watch<'_>) -> Result<RecoveryReport> {
    let options = options.check()?;
    place::require_directory(root)?;
    resume::create_root(root)?;
    let _lock = StoreLock::acquire(root)?;
    resume::refuse_other_kinds(root)?;
    recover_and_clear(root, &options, Extent::Whole, cut_at, watch)
}

/// Returns the missing end of a store's log, which a repair would give up; `None` if the log is complete. Fails with
/// [`Error::Corrupt`] if the log continues behind damage.
pub fn missing_end(root: &Path) -> Result<Option<MissingEnd>> {
    let store = MessageStore::open(root, &OpenOptions::default())?;
    MissingEnd::find(&store, &store.all_queues()?)
}

/// Cuts the log behind its last record that ends at or before `at`, then queues and index. Used for a copy whose
/// master has lost all later records. Returns the new end of the log.
pub fn cut(root: &Path, at: u64, options: AppendOptions, watch: Watch<'_>) -> Result<u64> {
    let options = options.check()?;
    let _lock = StoreLock::acquire(root)?;
    resume::refuse_other_kinds(root)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    store.refuse_missing_files(&store.all_queues()?)?;
    let end = log_end::record_end(store.log(), at)?;
    // Marks the recovery as begun first, because queues may point to records that are cut, whatever the checkpoint contains.
    recover::begin(root)?;
    CheckpointWriter::open(root)?.lower_end(end)?;
    QueueEnds::remove(root)?;
    log_end::cut(store.log(), end)?;
    recover_and_clear(root, &options, Extent::Whole, None, watch).map(|report| report.log_end)
}

/// Recovers a store. Removes the file `abort` at the end.
fn recover_and_clear(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    cut_at: Option<u64>,
    watch: Watch<'_>,
) -> Result<RecoveryReport> {
    let report = recover(root, options, extent, cut_at, watch)?;
    let abort = root.join(ABORT);
    if place::exists(&abort)? {
        disk::remove_file(&abort)?;
        sync_directory(root)?;
    }
    Ok(report)
}

/// Opens the files of a store, to continue at their ends. Recovers the store first if necessary, and also returns the
/// report of the recovery. An interrupted recovery starts again when the store is opened again.
fn resume_or_recover(
    root: &Path,
    options: &AppendOptions,
    watch: Watch<'_>,
) -> Result<(Writers, Option<RecoveryReport>)> {
    resume::refuse_other_kinds(root)?;
    let extent = match place::exists(&root.join(ABORT))? {
        // An interrupted recovery may have cut queues, so the checkpoint does not count.
        _ if is_begun(root)? => Extent::Whole,
        true if has_short_queue(root, options)? => Extent::Whole,
        // Everything before the checkpoint is flushed, so only later records are compared.
        true => Extent::Checkpoint,
        false => {
            refuse_missing_end(root, options)?;
            match resume::resume(root, options) {
                Err(Error::Corrupt { .. }) => Extent::Whole,
                Ok(_) if has_short_queue(root, options)? => Extent::Whole,
                writers => return Ok((writers?, None)),
            }
        }
    };
    let first = recover_and_clear(root, options, extent, None, watch)?;
    match resume::resume(root, options) {
        // The checkpoint was wrong, so the whole store is recovered.
        Err(Error::Corrupt { .. }) if extent == Extent::Checkpoint => {
            let whole = recover_and_clear(root, options, Extent::Whole, None, watch)?;
            let cut_bytes = first.cut_bytes + whole.cut_bytes;
            Ok((resume::resume(root, options)?, Some(RecoveryReport { cut_bytes, ..whole })))
        }
        writers => Ok((writers?, Some(first))),
    }
}

/// Returns whether a queue has lost its last entries and would assign their offsets again. Always false for a copy,
/// which follows its master.
fn has_short_queue(root: &Path, options: &AppendOptions) -> Result<bool> {
    if options.replica_from.is_some() {
        return Ok(false);
    }
    let store = MessageStore::open(root, &OpenOptions::default())?;
    if store.log().segments().files().is_empty() && !place::exists(&root.join("checkpoint"))? {
        // Somebody has removed the old store except for the file `queue.ends`.
        QueueEnds::remove(root)?;
    }
    QueueEnds::find_shortage(&store)
}

/// Fails for a log that ends before its flushed end. Accepts the log of a copy, which fetches the rest from its
/// master.
fn refuse_missing_end(root: &Path, options: &AppendOptions) -> Result<()> {
    let mut is_new = true;
    for name in resume::DIRECTORIES {
        is_new &= !place::exists(&root.join(name))?;
    }
    let missing = if is_new || options.replica_from.is_some() { None } else { missing_end(root)? };
    missing.map_or(Ok(()), |missing| Err(missing.to_error()))
}

impl Appender {
    pub fn live(&self) -> Live {
        self.store.live.clone()
    }

    pub fn set_arrival_listener(&self, listener: Option<Arc<dyn ArrivalListener>>) {
        self.store.live.arrivals().listen(listener);
    }

    /// Waits until the log is flushed up to `position`. The first caller flushes for all. Fails with
    /// [`crate::Error::FlushTimeout`] after waiting longer than `timeout` for the flush of another caller.
    pub fn wait_flushed(&self, position: u64, timeout: Option<Duration>) -> Result<()> {
        self.store.flusher.commit(position, timeout, &|| self.store.unsynced_log())?;
        self.store.live.growth().notify();
        // Flushing a truncated file succeeds, so the file is checked, too.
        self.store.check_log()
    }

    /// Returns the offset up to which slaves may get the log. With sync flush this is the flushed end. Threads that
    /// wait for more can use [`Live::growth`].
    pub fn sendable_to(&self) -> u64 {
        let end = self.store.live.log_bounds().1;
        match self.store.options.flush {
            Flush::Async => end,
            Flush::Sync => end.min(self.flushed_offset()),
        }
    }

    pub fn flushed_offset(&self) -> u64 {
        self.store.flusher.flushed_offset()
    }
}
