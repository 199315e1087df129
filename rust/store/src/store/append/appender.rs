//! The appender: stores batches of messages in a store that this process owns, and flushes, cleans and closes it.
//!
//! One lock makes one ordered log. Under it bytes go to the operating system's cache and no further: who waits for the disk, and
//! the thread that flushes, wait without it.
//!
//! Source: `DefaultMessageStore.putMessage`, `DefaultMessageStore.shutdown`.
use super::batch::Batch;
use super::checkpoint::CheckpointWriter;
use super::file_watch::FileWatch;
use super::options::{AppendOptions, Flush};
use super::owned_store::{Open, OwnedStore};
use super::plan::Plan;
use super::resume;
use super::row::Rows;
use super::threads::Threads;
pub use super::writers::Place;
use super::writers::Writers;
use crate::file::disk::{self, Call, sync_directory};
use crate::file::permission::{self, Permission};
use crate::file::{StoreLock, place};
use crate::format::host::Host;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::queue_ends::QueueEnds;
use crate::store::recover::{self, Extent, MissingEnd, Recovered, is_begun, log_end, recover};
use crate::store::retain::clock::now_ms;
use crate::store::retain::{Cleaned, QueueName, Situation, whole_queues};
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the file that is there while a store is open.
pub const ABORT: &str = "abort";

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Messages that were stored.
    pub rows: usize,
    /// Where the last one is.
    pub last: Option<Place>,
}

/// The appender; threads may share it.
///
/// Dropped without [`close`](Self::close) it gives up the lock but leaves `abort`, as a process that ends would.
#[derive(Debug)]
pub struct Appender {
    recovered: Option<Recovered>,
    // before the store, which they work on
    threads: Mutex<Option<Threads>>,
    file_watch: Arc<Mutex<FileWatch>>,
    pub(super) store: Arc<OwnedStore>,
}

impl Appender {
    /// Opens the store below `root`, or makes a new one where there is nothing. A store that was not closed, or whose parts
    /// disagree, is recovered first.
    ///
    /// # Errors
    /// [`Error::Busy`] for a store that is locked; [`Error::Unsupported`] for one of another kind; [`Error::Corrupt`] for one
    /// that cannot be recovered without a loss; [`Error::NoRoom`] for a new one whose log does not fit on the disk; [`Error::Io`].
    pub fn open(root: &Path, options: AppendOptions) -> Result<Self> {
        Self::open_watched(root, options, &mut |_, _| Ok(()))
    }

    /// As [`open`](Self::open); `watch` is called with the progress of a recovery, and may end it.
    pub fn open_watched(root: &Path, options: AppendOptions, watch: Watch<'_>) -> Result<Self> {
        let options = options.checked()?;
        let permission = Permission::hold(root, options.file_permission);
        resume::create_root(root)?;
        // before any file is read: a broker of Java that runs holds the same lock
        let lock = StoreLock::acquire(root)?;
        let (writers, recovered) = resume_or_recover(root, &options, watch)?;
        // before `abort` is there: a store that is refused needs no recovery
        writers.log.check_room()?;
        lock.mark()?;
        let abort = root.join(ABORT);
        disk::call(Call::Create, &abort, || permission::create(&abort))?;
        // `abort` is to survive a loss of power: it is what makes the next start recover
        sync_directory(root)?;
        let open = Open { writers, plan: Plan::default(), is_closing: false, _lock: lock, _permission: permission };
        let store = Arc::new(OwnedStore::new(root, options, open)?);
        let file_watch = Arc::default();
        let threads = Threads::start(&store, &file_watch).map_err(|e| Error::io(root, e))?;
        Ok(Self { recovered, threads: Mutex::new(Some(threads)), file_watch, store })
    }

    /// What recovery did when the store was opened; `None` where nothing had to be recovered.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Stores a batch, or nothing of it: rows are checked and files allocated before the first byte is written.
    ///
    /// `store_ms` is the store time in milliseconds; the clock's unless given. `first_row` is the number of the first row
    /// in errors. [`PutMessageStatus::of`](super::PutMessageStatus::of) is what a broker calls an error.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a row; [`Error::Io`], [`Error::NoRoom`] where a file cannot be created or written; [`Error::NotWritable`]
    /// for a store that was closed, whose disk retention finds too full, whose files another process has changed, or where a write
    /// or a flush has failed before; [`Error::Busy`];
    /// [`Error::FlushTimeout`], which leaves the batch stored.
    pub fn append<R: Rows>(&self, rows: &R, store_ms: Option<i64>, first_row: usize) -> Result<Appended> {
        let mut last = None;
        self.put(rows, store_ms, first_row, false, |place| last = Some(place))?;
        Ok(Appended { rows: rows.len(), last })
    }

    /// Stores a batch as a producer sends one: its messages are of one queue and stand one behind the other in one file of the
    /// log. Returns where each is.
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
        placed: impl FnMut(Place),
    ) -> Result<()> {
        let position = self.put_unsynced(rows, store_ms, first_row, is_whole, placed)?;
        match self.store.options.flush {
            Flush::Async => Ok(()),
            Flush::Sync => self.wait_flushed(position, Some(self.store.options.sync_flush_timeout)),
        }
    }

    /// Returns the offset of the log up to which the disk must have it.
    pub(super) fn put_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        first_row: usize,
        is_whole: bool,
        placed: impl FnMut(Place),
    ) -> Result<u64> {
        let store = &self.store;
        let options = &store.options;
        if options.replica_from.is_some() {
            let reason = "a copy of a master's log, which takes messages from its master alone".to_owned();
            return Err(Error::NotWritable { path: store.root.clone(), reason });
        }
        // without the lock: a full disk refuses everybody, and nobody waits for it
        store.retention.check_writable()?;
        let (position, wants_file, arrived) = store.with_log(|open| {
            let batch = Batch { options, store_ms: store_ms.unwrap_or_else(now_ms), first_row, is_whole };
            open.writers.prepare(&mut open.plan, rows, &batch)?;
            if let Some((pages, range)) = open.writers.log.to_touch(open.plan.size()) {
                // by another thread, so that the page faults of the next records do not come under the lock
                store.work.touch(pages, range);
            }
            open.writers.write(&open.plan, rows, &batch, placed).inspect_err(|e| store.failed(e))?;
            // asked once the messages can be read: who parks after this looks at the queue again by itself
            let arrivals = store.live.arrivals().waiting();
            let arrived = arrivals.map(|listener| (listener, open.writers.arrived(&open.plan, &batch)));
            open.plan.shrink();
            Ok((open.writers.log.position(), open.writers.log.wanted().is_some(), arrived))
        })?;
        // without the lock, as for the listener below
        store.live.growth().tell();
        if wants_file {
            store.work.create();
        }
        if let Some((listener, arrived)) = arrived {
            // without the lock: who is notified answers pulls on this thread
            arrived.tell(&*listener);
        }
        Ok(position)
    }

    /// Waits until all that was appended is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`], after which the appender only fails.
    pub fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    /// Flushes and gives the store up. A second call does nothing. After an earlier failure, or where another process has changed
    /// files, `abort` stays.
    ///
    /// # Errors
    /// [`Error::Io`]; then `abort` stays, too.
    pub fn close(&self) -> Result<()> {
        drop(self.threads.lock().unwrap_or_else(PoisonError::into_inner).take());
        let store = &self.store;
        // what was taken since the last look goes with the files that are held open
        self.file_watch.lock().unwrap_or_else(PoisonError::into_inner).look_now(store);
        // waits for a run: it must not remove files of a store that somebody else opens next
        let _no_run = store.retention.runner();
        let closing = store.with(|open| {
            open.is_closing = true;
            Ok(())
        });
        let flushed = closing.is_ok().then(|| store.flush());
        let (Some(mut open), Some(flushed)) = (store.take_open(), flushed) else { return Ok(()) };
        flushed?;
        // as a clean stop of RocketMQ removes the file that it allocated ahead
        open.writers.log.release_all();
        if store.harm.first().is_some() {
            // whoever opens it next is to recover it
            return Ok(());
        }
        let mut ends = QueueEnds::new(open.writers.log.position(), now_ms());
        for number in 0..open.writers.queues.len() as u32 {
            let queue = open.writers.queues.queue(number);
            ends.add(&open.writers.queues.topic(number).name, queue.queue_id, queue.next_offset());
        }
        ends.save(&store.root)?;
        disk::remove_file(&store.root.join(ABORT))?;
        sync_directory(&store.root)
    }

    /// Removes what retention lets go, while others append and read: files of the log, at most ten and the oldest first, then
    /// those of queues and index that list only what is gone. `now_ms` is the time of day, the clock's unless given; with `manual`
    /// files go by age at any hour, and the time of day is believed.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] where the store was opened without retention, [`crate::Error::NotWritable`] where it is closed;
    /// [`crate::Error::Io`], after which another call goes on.
    pub fn clean(&self, now_ms: Option<i64>, manual: bool) -> Result<Cleaned> {
        self.clean_in(self.store.retention.situation(now_ms, manual))
    }

    /// As [`clean`](Self::clean), in a situation that need not be the real one.
    pub fn clean_in(&self, situation: Situation) -> Result<Cleaned> {
        self.store.retention.run(&*self.store, situation)
    }

    /// What the last run of retention did.
    pub fn last_cleaned(&self) -> Option<Cleaned> {
        self.store.retention.last()
    }

    /// Grows with each run that removes something: readers from before know files that are gone.
    pub fn cleaned_runs(&self) -> u64 {
        self.store.retention.runs()
    }

    /// Removes the queues of which no message is left (`cleanExpiredConsumerQueue`), but those of delayed messages. Returns them.
    /// Their next offsets are forgotten.
    ///
    /// # Errors
    /// [`crate::Error::NotWritable`] where the store is closed, [`crate::Error::Io`].
    pub fn clean_expired_queues(&self) -> Result<Vec<QueueName>> {
        self.store.remove_expired_queues()
    }

    /// Removes the queues of topics that are not among those `configured` (`cleanUnusedTopic`), but those of the broker itself.
    /// Returns them. Their next offsets are forgotten. Their messages stay in the log until they are old, and are not listed again.
    pub fn clean_unused_topics(&self, configured: &BTreeSet<String>) -> Result<Vec<QueueName>> {
        self.store.remove_topics(&|topic| whole_queues::is_unused(topic, configured))
    }

    /// The file that another process has changed, for which nothing is appended any more, and what happened to it.
    pub fn harm(&self) -> Option<(&Path, &str)> {
        self.store.harm.first()
    }

    /// Lines for a person about what other processes did to the files, since they were taken last.
    pub fn take_harm_lines(&self) -> Vec<String> {
        self.store.harm.take_lines()
    }

    pub fn store_host(&self) -> Host {
        self.store.options.store_host
    }
}

/// Makes the store below `root` whole: all queues and the index are compared with the log or built from it, and what stands
/// behind the log's last whole record is cut. A log that ends before what was flushed is cut only where `cut_at` is its end.
///
/// # Errors
/// As [`Appender::open`]; [`Error::Invalid`] for another `cut_at`.
pub fn repair(root: &Path, options: AppendOptions, cut_at: Option<u64>, watch: Watch<'_>) -> Result<Recovered> {
    let options = options.checked()?;
    place::require_directory(root)?;
    resume::create_root(root)?;
    let _lock = StoreLock::acquire(root)?;
    resume::refuse_other_kinds(root)?;
    recovered(root, &options, Extent::Whole, cut_at, watch)
}

/// What a repair of the store below `root` would have to cut off, if its log ends before what was flushed.
///
/// # Errors
/// [`Error::Io`]; [`Error::Corrupt`] where the log goes on behind damage.
pub fn missing_end(root: &Path) -> Result<Option<MissingEnd>> {
    let store = MessageStore::open(root, &OpenOptions::default())?;
    MissingEnd::find(&store, &store.all_queues()?)
}

/// Cuts the log of the store below `root` behind its last record that ends at `at` or before, as where its master has lost what
/// comes then; queues and index follow. Returns where the log ends now.
///
/// Source: `MappedFileQueue.truncateDirtyFiles`, `AutoSwitchHAService.truncateInvalidMsg`.
pub fn cut(root: &Path, at: u64, options: AppendOptions, watch: Watch<'_>) -> Result<u64> {
    let options = options.checked()?;
    let _lock = StoreLock::acquire(root)?;
    resume::refuse_other_kinds(root)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    store.refuse_missing_files(&store.all_queues()?)?;
    let end = log_end::record_end(store.log(), at)?;
    // first: queues may lead to what is cut, whatever the checkpoint says of them
    recover::begin(root)?;
    CheckpointWriter::open(root)?.lower_end(end)?;
    QueueEnds::remove(root)?;
    log_end::cut(store.log(), end)?;
    recovered(root, &options, Extent::Whole, None, watch).map(|recovered| recovered.log_end)
}

fn recovered(
    root: &Path,
    options: &AppendOptions,
    extent: Extent,
    cut_at: Option<u64>,
    watch: Watch<'_>,
) -> Result<Recovered> {
    let recovered = recover(root, options, extent, cut_at, watch)?;
    let abort = root.join(ABORT);
    if place::exists(&abort)? {
        disk::remove_file(&abort)?;
        sync_directory(root)?;
    }
    Ok(recovered)
}

/// Goes on where the store ends, if need be behind a recovery, which begins again if this process dies in it.
fn resume_or_recover(root: &Path, options: &AppendOptions, watch: Watch<'_>) -> Result<(Writers, Option<Recovered>)> {
    resume::refuse_other_kinds(root)?;
    let extent = match place::exists(&root.join(ABORT))? {
        // a recovery that did not end may have cut queues, whatever the checkpoint says of them
        _ if is_begun(root)? => Extent::Whole,
        true if has_short_queue(root, options)? => Extent::Whole,
        // what the checkpoint vouches for is on the disk: only what stands behind it is compared
        true => Extent::Checkpoint,
        false => {
            refuse_missing_end(root, options)?;
            match resume::resume(root, options) {
                Err(Error::Corrupt { .. }) => Extent::Whole,
                Ok(_) if has_short_queue(root, options)? => Extent::Whole,
                resumed => return Ok((resumed?, None)),
            }
        }
    };
    let first = recovered(root, options, extent, None, watch)?;
    match resume::resume(root, options) {
        // what the checkpoint vouched for was not so
        Err(Error::Corrupt { .. }) if extent == Extent::Checkpoint => {
            let whole = recovered(root, options, Extent::Whole, None, watch)?;
            let cut_bytes = first.cut_bytes + whole.cut_bytes;
            Ok((resume::resume(root, options)?, Some(Recovered { cut_bytes, ..whole })))
        }
        resumed => Ok((resumed?, Some(first))),
    }
}

/// Refuses a log that ends before what was flushed, before anything is changed; a copy fetches the rest from its master.
/// Whether a queue has lost units that it had: it would give their offsets again. A copy has what its master says.
fn has_short_queue(root: &Path, options: &AppendOptions) -> Result<bool> {
    if options.replica_from.is_some() {
        return Ok(false);
    }
    let store = MessageStore::open(root, &OpenOptions::default())?;
    if store.log().segments().files().is_empty() && !place::exists(&root.join("checkpoint"))? {
        // somebody has removed all of the old store but this
        QueueEnds::remove(root)?;
    }
    QueueEnds::are_missed(&store)
}

fn refuse_missing_end(root: &Path, options: &AppendOptions) -> Result<()> {
    let mut is_new = true;
    for name in resume::DIRECTORIES {
        is_new &= !place::exists(&root.join(name))?;
    }
    let missing = if is_new || options.replica_from.is_some() { None } else { missing_end(root)? };
    missing.map_or(Ok(()), |missing| Err(missing.refused()))
}
