//! An open store behind one lock: its writers, retention while others append, and changes by other processes.
//!
//! Source: `DefaultMessageStore.cleanFilesPeriodically`, `cleanExpiredConsumerQueue`, `cleanUnusedTopic`.
use super::background::BackgroundWork;
use super::flusher::{Flusher, SyncList};
use super::options::AppendOptions;
use super::plan::Plan;
use super::writers::Writers;
use crate::file::StoreLock;
use crate::file::disk::Permission;
use crate::store::consume_queue::ConsumeQueue;
use crate::store::generation::{Removal, RemovedTopics};
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::retain::QueueName;
use crate::store::retain::clean_plan::{self, InUse};
use crate::store::retain::clock::now_ms;
use crate::store::retain::retention::{Owner, Retention};
use crate::store::serve::Live;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

#[derive(Debug)]
pub(super) struct OwnedStore {
    pub(super) root: PathBuf,
    pub(super) options: AppendOptions,
    pub(super) flusher: Flusher,
    pub(super) retention: Retention,
    pub(super) harm: Harm,
    pub(super) work: BackgroundWork,
    pub(super) live: Live,
    opened: Instant,
    /// Start of the append that holds the lock, as [`now_if_limited`](Self::now_if_limited) returns it; 0 if no
    /// append holds the lock.
    held_since: AtomicU64,
    /// The append lock. The state is `None` after the store was closed.
    state: Mutex<Option<Open>>,
}

/// The state behind the append lock.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) writers: Writers,
    pub(super) plan: Plan,
    /// Whether the store is being closed. If so, appends are refused, but earlier appends are still flushed.
    pub(super) is_closing: bool,
    pub(super) _lock: StoreLock,
    pub(super) _permission: Permission,
}

impl OwnedStore {
    pub(super) fn new(root: &Path, options: AppendOptions, open: Open) -> Result<Self> {
        Ok(Self {
            root: root.to_path_buf(),
            options,
            flusher: Flusher::new(root)?,
            retention: Retention::new(root, options.retain, options.zone_offset_ms),
            harm: Harm::default(),
            work: BackgroundWork::default(),
            live: open.writers.live(root),
            opened: Instant::now(),
            held_since: AtomicU64::new(0),
            state: Mutex::new(Some(open)),
        })
    }

    /// Closes the store by taking its state away. Returns the state, or `None` if the store was closed before.
    pub(super) fn take_open(&self) -> Option<Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.with_any(|open| {
            self.flusher.check_failure()?;
            action(open)
        })
    }

    /// Runs `action` like [`with`](Self::with), even if a flush or write has failed before.
    pub(super) fn with_any<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(state.as_mut().ok_or_else(|| closed_error(&self.root))?)
    }

    /// Records a failed write. If the cause is a file that another process has changed, earlier writes are still
    /// flushed.
    pub(super) fn on_write_error(&self, error: &Error) {
        match error {
            Error::NotWritable { .. } => self.harm.note(error),
            // A write that failed halfway leaves the file in an unknown state, so nothing may follow it.
            _ => self.flusher.fail(error),
        }
        // The background thread checks all files at once, to restore a removed file soon.
        self.work.look();
    }

    /// Checks that no other process has changed the log's current file.
    pub(super) fn check_log(&self) -> Result<()> {
        self.with(|open| open.writers.log.check()).inspect_err(|error| self.on_write_error(error))
    }

    /// Runs an append under the lock. Fails if the store is closed.
    pub(super) fn with_log<T>(&self, action: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        self.check_busy()?;
        self.with(|open| {
            if open.is_closing {
                return Err(closed_error(&self.root));
            }
            // Checked under the lock, so that no append comes between this check and the write.
            self.harm.check()?;
            // Other threads read this without the lock, to refuse appends while this append takes too long.
            self.held_since.store(self.now_if_limited(), Ordering::Relaxed);
            let result = action(open);
            self.held_since.store(0, Ordering::Relaxed);
            result
        })
    }

    /// Fails if another append holds the lock for too long, for example because the disk does not keep up
    /// (`DefaultMessageStore.isOSPageCacheBusy`).
    fn check_busy(&self) -> Result<()> {
        let Some(limit) = self.options.busy_after else { return Ok(()) };
        let since = self.held_since.load(Ordering::Relaxed);
        let duration = self.now_if_limited().saturating_sub(since);
        if since == 0 || u128::from(duration) <= limit.as_millis() {
            return Ok(());
        }
        let reason = format!("another append has held the log for {duration} ms, more than {} ms", limit.as_millis());
        Err(Error::Busy { path: self.root.clone(), reason })
    }

    /// Returns the milliseconds since the store was opened, plus 1. Without a limit returns 0, to avoid reading the
    /// clock.
    fn now_if_limited(&self) -> u64 {
        self.options.busy_after.map_or(0, |_| self.opened.elapsed().as_millis() as u64 + 1)
    }

    pub(super) fn flush(&self) -> Result<()> {
        let result = self.flusher.flush(&|| self.with(|open| Ok(open.writers.take_unsynced())));
        self.live.growth().notify();
        result
    }

    pub(super) fn unsynced_log(&self) -> Result<(SyncList, u64)> {
        self.with(|open| {
            let mut log = SyncList::default();
            let position = open.writers.log.take_unsynced(&mut log);
            Ok((log, position))
        })
    }

    pub(super) fn flush_log(&self) -> Result<()> {
        let position = self.with(|open| Ok(open.writers.log.position()))?;
        let result = self.flusher.commit(position, None, &|| self.unsynced_log());
        self.live.growth().notify();
        result
    }

    /// Creates the log's next file. Does not hold the append lock while the file is created.
    pub(super) fn create_ahead(&self) -> Result<()> {
        let Some(next) = self.with(|open| Ok(open.writers.log.next_needed()))? else { return Ok(()) };
        // Allocating a file of 1 GiB may take long, so it happens between two uses of the lock.
        let file = next.create(&self.root)?;
        self.with(|open| open.writers.log.add_ahead(next, file))
    }
}

fn closed_error(root: &Path) -> Error {
    Error::NotWritable { path: root.to_path_buf(), reason: "the store is closed".into() }
}

/// Maximum number of notices for users that nobody has taken yet.
const MAX_LINES: usize = 1000;

/// Changes by other processes to the files of an open store. After such a change nothing is appended until the store is opened
/// again. Earlier messages are still flushed, so that a recovery finds them.
#[derive(Debug, Default)]
pub struct Harm {
    first: OnceLock<(PathBuf, String)>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<String>,
    /// Files that were reported already, since each file is reported once.
    files: BTreeSet<PathBuf>,
}

impl Harm {
    /// Fails if another process has changed a file. The error names the first changed file.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.first.get() {
            None => Ok(()),
            Some((path, reason)) => Err(Error::NotWritable { path: path.clone(), reason: reason.clone() }),
        }
    }

    /// If the error says that somebody else changed the store, records it and adds a notice for users. Ignores other
    /// errors.
    pub fn note(&self, error: &Error) {
        let Error::NotWritable { path, reason } = error else { return };
        self.first.get_or_init(|| (path.clone(), reason.clone()));
        let is_new = self.lines().files.insert(path.clone());
        if is_new {
            self.add_line(error.to_string());
        }
    }

    pub fn add_line(&self, line: String) {
        let mut lines = self.lines();
        // Further notices are dropped if nobody takes the waiting notices.
        if lines.waiting.len() < MAX_LINES {
            lines.waiting.push(line);
        }
    }

    /// Returns the notices that were added since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines().waiting)
    }

    /// Returns the path of the first changed file and a description of the change, or `None`.
    pub fn first(&self) -> Option<(&Path, &str)> {
        self.first.get().map(|(path, reason)| (path.as_path(), reason.as_str()))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedStore {
    /// Removes queues whose messages are all removed, and returns these queues. No thread appends while a queue is
    /// removed.
    pub(super) fn remove_expired_queues(&self) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        let mut removed = Vec::new();
        let store = MessageStore::open(&self.root, &OpenOptions::default())?;
        for queue in store.all_queues()? {
            let name = (queue.topic().to_owned(), queue.queue_id());
            let is_gone = self.flusher.alone(|| {
                self.with(|open| {
                    // The files are listed again under the lock, because messages may have come.
                    let now = ConsumeQueue::list(queue.topic(), queue.queue_id(), queue.directory())?;
                    if !clean_plan::is_queue_expired(&now, store.log().min_offset())? {
                        return Ok(false);
                    }
                    remove_queue(open, &now).map(|()| true)
                })
            })?;
            removed.extend(is_gone.then_some(name));
        }
        Ok(removed)
    }

    /// Removes the queues of all selected topics, while no thread appends. Returns the removed queues. The time of the
    /// removal is saved before the first queue is removed. Otherwise a start after a crash would list the removed
    /// messages again.
    pub(super) fn remove_topics(&self, select: &dyn Fn(&str) -> bool) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let names = open.writers.queues.names_where(select);
                let directory = self.root.join("consumequeue");
                let queues = names.iter().map(|(topic, queue_id)| {
                    ConsumeQueue::list(topic, *queue_id, &directory.join(topic).join(queue_id.to_string()))
                });
                let mut queues = queues.collect::<Result<Vec<_>>>()?;
                // A queue without files has nothing to remove.
                queues.retain(|queue| !queue.segments().files().is_empty());
                if !queues.is_empty() {
                    let removal = Removal {
                        before: open.writers.log.position(),
                        // The clock may have gone back since the newest message was stored.
                        at_ms: now_ms().max(open.writers.last_store_ms),
                    };
                    let topics = queues.iter().map(ConsumeQueue::topic);
                    RemovedTopics::add(&self.root, topics, removal, open.writers.log.live().min_offset())?;
                }
                queues.iter().try_for_each(|queue| remove_queue(open, queue))?;
                Ok(queues.iter().map(|queue| (queue.topic().to_owned(), queue.queue_id())).collect())
            })
        })
    }

    /// Removes queues that the master no longer has, if they still end at the given offset. Returns the removed queues.
    /// Their topics were deleted and created again, so their earlier messages no longer belong to a topic.
    pub(super) fn remove_queues(&self, ends: &[(QueueName, i64)]) -> Result<Vec<QueueName>> {
        let _no_run = self.retention.runner();
        self.flush()?;
        self.flusher.alone(|| {
            self.with(|open| {
                let mut queues = Vec::new();
                for ((topic, queue_id), next) in ends {
                    if !open.writers.queues.has(topic, *queue_id) {
                        continue;
                    }
                    let number = open.writers.queues.find(topic, *queue_id);
                    // A new message may have restarted the queue meanwhile.
                    if open.writers.queues.queue(number).next_offset() == *next {
                        let directory = self.root.join("consumequeue").join(topic).join(queue_id.to_string());
                        queues.push(ConsumeQueue::list(topic, *queue_id, &directory)?);
                    }
                }
                let at_ms = now_ms().max(open.writers.last_store_ms);
                for queue in &queues {
                    // Only records before the queue's own end are removed. None of these belongs to the new topic.
                    let removal = Removal { before: queue.max_physical_offset()?, at_ms };
                    RemovedTopics::add(&self.root, [queue.topic()], removal, open.writers.log.live().min_offset())?;
                }
                queues.iter().try_for_each(|queue| remove_queue(open, queue))?;
                Ok(queues.iter().map(|queue| (queue.topic().to_owned(), queue.queue_id())).collect())
            })
        })
    }
}

fn remove_queue(open: &mut Open, queue: &ConsumeQueue) -> Result<()> {
    clean_plan::remove_queue_files(queue)?;
    open.writers.queues.remove(queue.topic(), queue.queue_id());
    clean_plan::remove_directory(queue)
}

impl Owner for OwnedStore {
    fn in_use(&self) -> Result<InUse> {
        self.harm.check()?;
        self.with(|open| {
            let (position, index_file) = (open.writers.log.position(), open.writers.index.in_use());
            Ok(InUse { position, index_file })
        })
    }

    fn flush(&self) -> Result<()> {
        Self::flush(self)
    }

    fn before_removal(&self, path: &Path) {
        self.live.release_file(path);
    }

    fn after_removals(&self) -> Result<()> {
        self.live.correct_min_offsets()
    }
}
