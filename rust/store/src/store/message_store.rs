//! A store directory that is open for reading. Reading never writes, locks or creates a file in the directory.
//!
//! Source: `DefaultMessageStore`, `StorePathConfigHelper`, `BrokerPathConfigHelper`.
use super::broker_stores::find_broker_stores;
use super::commit_log::{CommitLog, DamageLog};
use super::config_files::{ConfigFile, TOPICS};
use super::consume_queue::{ConsumeQueue, UnitReader, directory_names, is_directory_name, list_queues};
use super::generation::RemovedTopics;
use super::index_files::IndexFile;
use super::log_walk::LogWalk;
use super::unlisted::UnlistedRecords;
use crate::file::{Io, Place, place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::format::consume_queue::Unit;
use crate::format::message::{MIN_FILE_SIZE, Message};
use crate::{Error, Result};
use std::collections::HashSet;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Files with entries of 20 bytes.
    Files,
    /// A RocksDB database (5.x, `storeType=defaultRocksDB`). Its messages are found through the commit log.
    RocksDb,
    /// The consume queues do not exist, because they were never written or somebody has deleted them.
    Missing,
}

#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Directories of the commit log. If empty, the log is in `commitlog` below the root.
    pub commit_log_dirs: Vec<PathBuf>,
    pub io: Io,
}

impl OpenOptions {
    fn log_dirs(&self, root: &Path) -> Vec<PathBuf> {
        match self.commit_log_dirs.as_slice() {
            [] => vec![root.join("commitlog")],
            dirs => dirs.to_vec(),
        }
    }
}

/// A store directory. Parts that are costly to read are read on first use and cached.
#[derive(Debug)]
pub struct MessageStore {
    root: PathBuf,
    options: OpenOptions,
    log: Arc<CommitLog>,
    kind: QueueKind,
    /// Physical offset of the end of a [`snapshot`](Self::snapshot). Records that start at or behind it were appended
    /// later and are ignored.
    end: u64,
    dispatched_to: OnceLock<u64>,
    /// The [end of the closed log](super::last_close) when it was first asked for.
    closed_end: OnceLock<Option<u64>>,
    unlisted: OnceLock<Arc<UnlistedRecords>>,
    /// The offset at which a search for unlisted records began, and the records from there to `dispatched_to` that no
    /// queue lists.
    missing: Mutex<Option<(u64, Arc<UnlistedRecords>)>>,
    topics_config: OnceLock<ConfigFile>,
    index_files: OnceLock<Arc<Vec<IndexFile>>>,
    /// Queues of a [`snapshot`](Self::snapshot) that had no message when they were looked at, and topics, without a
    /// queue id, that had no queue.
    seen_empty: Mutex<HashSet<(String, Option<i32>)>>,
}

impl MessageStore {
    /// Opens a store for reading. Fails with [`Error::Unsupported`] for a DLedger store and for a directory that is not a
    /// store.
    pub fn open(root: &Path, options: &OpenOptions) -> Result<Self> {
        place::require_directory(root)?;
        let names = place::names(root)?;
        // This check comes first: a directory that only looks like a store should give an error, not an empty result.
        refuse_other_stores(root, &names)?;
        options.commit_log_dirs.iter().try_for_each(|directory| place::require_directory(directory))?;
        let is_store = ["commitlog", "consumequeue", "checkpoint"].iter().any(|n| names.iter().any(|name| name == n));
        // With log directories elsewhere, the root of a store may be empty.
        if !is_store && options.commit_log_dirs.is_empty() {
            let reason = "no RocketMQ store: expected commitlog/, consumequeue/ or checkpoint in it (storePathRootDir)";
            // only a hint, so what cannot be looked at is no error
            let stores = find_broker_stores(root).ok().flatten().unwrap_or_default();
            let found: Vec<String> = stores.into_keys().collect();
            let reason = match &found[..] {
                [] => reason.to_owned(),
                names => {
                    format!(
                        "{reason}; the stores of {} are in it: name one, or open_stores reads them as one",
                        names.join(", ")
                    )
                }
            };
            return Err(Error::Unsupported { path: root.to_path_buf(), reason });
        }
        Ok(Self {
            log: Arc::new(CommitLog::list(root, &options.log_dirs(root), options.io)?),
            kind: queue_kind(&root.join("consumequeue"))?,
            end: u64::MAX,
            root: root.to_path_buf(),
            options: options.clone(),
            dispatched_to: OnceLock::new(),
            closed_end: OnceLock::new(),
            unlisted: OnceLock::new(),
            missing: Mutex::default(),
            topics_config: OnceLock::new(),
            index_files: OnceLock::new(),
            seen_empty: Mutex::default(),
        })
    }

    /// Opens the store again, with a new listing of its files.
    pub fn reopen(&self, io: Io) -> Result<Self> {
        Self::open(&self.root, &OpenOptions { io, ..self.options.clone() })
    }

    /// Opens the store again, with the same options, to see its present state.
    pub fn as_of_now(&self) -> Result<Self> {
        self.reopen(self.options.io)
    }

    /// Makes this store a [`snapshot`](Self::snapshot) that ends behind its last record. `lost_end` is the flushed
    /// end of a log that has lost its end.
    pub(super) fn restrict(self, lost_end: u64) -> Result<Self> {
        let closed_end = self.closed_end()?.filter(|_| self.kind == QueueKind::Files);
        let from = match self.kind {
            _ if closed_end.is_some() => closed_end.unwrap_or_default(),
            QueueKind::Files => self.last_listed_offset()?,
            QueueKind::RocksDb | QueueKind::Missing => self.last_file_with_record()?,
        };
        // The walk is short, because few records follow the last listed record. Damage there is part of the snapshot, too.
        let mut walk = LogWalk::new(self.log.clone(), from, u64::MAX, u64::MAX).with_closed_end(closed_end);
        while walk.advance(&mut DamageLog::default())? {}
        if self.kind == QueueKind::Files && closed_end.is_none() && !self.has_abort()? {
            // Saves reading the queues a second time.
            self.dispatched_to.get_or_init(|| from);
        }
        Ok(Self { end: walk.position().max(lost_end), ..self })
    }

    pub fn log_now(&self) -> Result<Arc<CommitLog>> {
        CommitLog::list(&self.root, &self.options.log_dirs(&self.root), self.options.io).map(Arc::new)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    pub fn log(&self) -> &Arc<CommitLog> {
        &self.log
    }
    /// Returns the end of a snapshot, or `u64::MAX` for a store that is not a snapshot.
    pub fn end(&self) -> u64 {
        self.end
    }
    pub fn queue_kind(&self) -> QueueKind {
        self.kind
    }

    /// Returns whether the file `abort` exists. If so, a broker is running or has crashed. The file `abort.bak` of
    /// 5.x is ignored.
    pub fn has_abort(&self) -> Result<bool> {
        place::exists(&self.root.join("abort"))
    }

    /// Returns the values of the checkpoint file; `None` if the file is missing or damaged.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        Ok(self.checkpoint_page()?.and_then(|page| Checkpoint::decode(&page).ok()))
    }

    /// Returns the flushed end of the log, or `None` if the checkpoint does not record it.
    pub fn flushed_end(&self) -> Result<Option<FlushedEnd>> {
        let page = self.checkpoint_page()?;
        Ok(page.and_then(|page| Checkpoint::decode(&page).ok()?.flushed_end(&page)))
    }

    /// Returns the size of log files, as the checkpoint or else the files themselves show it; `None` if neither does.
    pub fn log_file_size(&self) -> Result<Option<u64>> {
        let noted = self.flushed_end()?.map(|end| u64::from(end.file_size));
        // A truncated file that is too short for any record does not show the size.
        Ok(noted.or_else(|| self.log.segments().file_size()).filter(|size| *size >= MIN_FILE_SIZE))
    }

    fn checkpoint_page(&self) -> Result<Option<Vec<u8>>> {
        // Only the first page of the file has values.
        match place::read(&self.root.join("checkpoint"), FILE_SIZE as u64) {
            // A directory or a dead link has no values. Writers refuse such a store.
            Err(Error::Corrupt { .. }) => Ok(None),
            page => page,
        }
    }

    pub fn queue_topics(&self) -> Result<Vec<String>> {
        match self.kind {
            QueueKind::Files => directory_names(&self.consume_queue_dir()),
            QueueKind::RocksDb | QueueKind::Missing => Ok(Vec::new()),
        }
    }

    /// Returns the topics with consume queues or a configuration, sorted. Reads the whole log if the store has no consume
    /// queues.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        let mut names = self.queue_topics()?;
        if self.end < u64::MAX && self.kind == QueueKind::Files {
            // Leaves out topics created after the snapshot. A topic without any queue has lost its queues, so it stays.
            let mut visible = Vec::new();
            for name in names {
                let key = (name.clone(), None);
                if list_queues(&self.consume_queue_dir(), &name)?.is_empty() {
                    self.seen_empty().insert(key);
                    visible.push(name);
                } else if self.seen_empty().contains(&key) || !self.queues(&name)?.is_empty() {
                    visible.push(name);
                }
            }
            names = visible;
        }
        names.extend(self.topics_config().topics().map(str::to_owned));
        if self.kind != QueueKind::Files {
            names.extend(self.unlisted()?.topics().map(str::to_owned));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    pub fn queues(&self, topic: &str) -> Result<Vec<ConsumeQueue>> {
        if self.kind != QueueKind::Files || !is_directory_name(topic) {
            return Ok(Vec::new());
        }
        let queues = list_queues(&self.consume_queue_dir(), topic)?;
        if self.end < u64::MAX {
            let mut visible = Vec::new();
            for queue in queues {
                if !self.is_later(&queue)? {
                    visible.push(queue);
                }
            }
            return Ok(visible);
        }
        Ok(queues)
    }

    /// Returns whether a topic has queues on the disk.
    pub fn has_queues(&self, topic: &str) -> Result<bool> {
        if self.kind != QueueKind::Files || !is_directory_name(topic) {
            return Ok(false);
        }
        Ok(!directory_names(&self.consume_queue_dir().join(topic))?.is_empty())
    }

    /// Returns whether the first message of a queue was appended after the snapshot. A queue that was seen before its
    /// first message stays, so that it does not disappear from a snapshot.
    fn is_later(&self, queue: &ConsumeQueue) -> Result<bool> {
        let first = UnitReader::new(queue).unit(queue.first_offset())?.filter(Unit::is_message);
        let name = || (queue.topic().to_owned(), Some(queue.queue_id()));
        let Some(first) = first else {
            self.seen_empty().insert(name());
            return Ok(false);
        };
        Ok(first.physical_offset as u64 >= self.end && !self.seen_empty().contains(&name()))
    }

    fn seen_empty(&self) -> MutexGuard<'_, HashSet<(String, Option<i32>)>> {
        self.seen_empty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if a dangling link or a directory is where a file of the store should be: a write would put a
    /// new file in its place. Checks the log, `queues`, the index, the configuration and the store's directory.
    pub fn refuse_missing_files(&self, queues: &[ConsumeQueue]) -> Result<()> {
        let segments = iter::once(self.log.segments()).chain(queues.iter().map(ConsumeQueue::segments));
        let mut missing: Vec<PathBuf> =
            segments.filter_map(|files| files.first_without_file().map(Path::to_path_buf)).collect();
        for directory in ["", "index", "config"] {
            for path in place::list(&self.root.join(directory))? {
                let is_file_name = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.parse::<u64>().is_ok());
                match Place::look(&path)? {
                    Place::DeadLink => missing.push(path),
                    Place::There(meta) if meta.is_dir() && is_file_name => missing.push(path),
                    Place::There(_) | Place::Absent => {}
                }
            }
        }
        missing.into_iter().next().map_or(Ok(()), |path| {
            let reason = format!("{}; nothing is written to the store until then", place::no_file_reason(&path));
            Err(Error::Unsupported { path, reason })
        })
    }

    pub fn all_queues(&self) -> Result<Vec<ConsumeQueue>> {
        let mut queues = Vec::new();
        for topic in self.queue_topics()? {
            queues.append(&mut self.queues(&topic)?);
        }
        Ok(queues)
    }

    /// Returns the offset before which the consume queues list every record. From this offset on, readers read the
    /// log itself.
    ///
    /// After a clean stop this is the end of the last listed record. If `abort` exists, it is the start of the newest log file
    /// whose first record is older than the checkpoint (`CommitLog.isMappedFileMatchedRecover`).
    pub fn dispatched_to(&self) -> Result<u64> {
        if let Some(offset) = self.dispatched_to.get() {
            return Ok(*offset);
        }
        let offset = match self.kind {
            QueueKind::RocksDb | QueueKind::Missing => self.log.min_offset(),
            QueueKind::Files if self.has_abort()? => self.offset_of_checkpoint()?,
            QueueKind::Files => self.last_listed_offset()?,
        };
        Ok(*self.dispatched_to.get_or_init(|| offset.min(self.end)))
    }

    /// Returns the records at the end of the log that no consume queue lists yet. They are read once and cached.
    pub fn unlisted(&self) -> Result<Arc<UnlistedRecords>> {
        if let Some(unlisted) = self.unlisted.get() {
            return Ok(unlisted.clone());
        }
        let (removed, fault) = match RemovedTopics::load(&self.root) {
            Err(fault @ Error::Corrupt { .. }) => (RemovedTopics::default(), Some(fault)),
            removed => (removed?, None),
        };
        let unlisted = UnlistedRecords::read(&self.log, self.dispatched_to()?, self.end, &removed)?;
        // Without the list of removed topics, messages of removed topics would come back.
        if let Some(fault) = fault.filter(|_| unlisted.topics().next().is_some()) {
            return Err(fault);
        }
        Ok(self.unlisted.get_or_init(|| Arc::new(unlisted)).clone())
    }

    pub(super) fn known_closed_end(&self) -> &OnceLock<Option<u64>> {
        &self.closed_end
    }

    pub(super) fn known_missing(&self) -> MutexGuard<'_, Option<(u64, Arc<UnlistedRecords>)>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index files, oldest first. They are listed once and cached.
    pub fn index_files(&self) -> Result<Arc<Vec<IndexFile>>> {
        if let Some(files) = self.index_files.get() {
            return Ok(files.clone());
        }
        let files = Arc::new(IndexFile::list(&self.root.join("index"))?);
        Ok(self.index_files.get_or_init(|| files).clone())
    }

    pub fn topics_config(&self) -> &ConfigFile {
        self.topics_config.get_or_init(|| ConfigFile::load(&self.root, TOPICS))
    }

    /// Returns notes for users about stray files, and about a configuration that was read from its backup or is kept
    /// in a database.
    pub fn notes(&self) -> Vec<String> {
        let strays = self.log.segments().strays().iter();
        let strays =
            strays.map(|path| format!("{}: no segment; a 4.9.4 broker does not start beside it", path.display()));
        let backup = self.topics_config().note.clone();
        backup.into_iter().chain(ConfigFile::database_notes(&self.root)).chain(strays).collect()
    }

    fn last_listed_offset(&self) -> Result<u64> {
        let mut end = self.log.min_offset();
        // A queue with a missing file does not show its end.
        for queue in self.all_queues()?.iter().filter(|queue| queue.segments().first_without_file().is_none()) {
            end = end.max(queue.max_physical_offset()?);
        }
        // A stale unit may point behind the log.
        Ok(end.min(self.log.segments().end()))
    }

    /// Returns the start of the last log file that begins with a record.
    fn last_file_with_record(&self) -> Result<u64> {
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            if self.first_store_timestamp(index)?.is_some() {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    fn offset_of_checkpoint(&self) -> Result<u64> {
        // `min_timestamp` already subtracts 3 seconds. Without a checkpoint the time is 0, so the whole log is read.
        let listed_until = self.checkpoint()?.map_or(0, |c| c.min_timestamp());
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            let first = self.first_store_timestamp(index)?;
            if first.is_some_and(|timestamp| timestamp != 0 && timestamp <= listed_until) {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    /// Returns the store timestamp of the record at the start of a log file; `None` if no record begins there.
    pub fn first_store_timestamp(&self, index: usize) -> Result<Option<i64>> {
        let base = self.log.segments().files()[index].base;
        match self.log.record_at(base) {
            Ok(record) => Ok(Message::decode(&record).map(|m| m.store_timestamp())),
            Err(Error::Corrupt { .. } | Error::Invalid { .. }) => Ok(None),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn consume_queue_dir(&self) -> PathBuf {
        self.root.join("consumequeue")
    }
}

fn refuse_other_stores(root: &Path, names: &[String]) -> Result<()> {
    for path in names.iter().filter(|name| name.starts_with("dledger-")).map(|name| root.join(name)) {
        if place::is_directory(&path)? {
            let reason =
                "a DLedger commit log (enableDLegerCommitLog=true), whose records are wrapped; not supported".into();
            return Err(Error::Unsupported { path, reason });
        }
    }
    let is_inside = names.iter().any(|name| crate::file::name::offset(name).is_some());
    if is_inside {
        let reason = "this is a directory of segments; give the store directory above it";
        return Err(Error::Unsupported { path: root.to_path_buf(), reason: reason.into() });
    }
    Ok(())
}

fn queue_kind(directory: &Path) -> Result<QueueKind> {
    if place::is_file(&directory.join("CURRENT"))? {
        return Ok(QueueKind::RocksDb);
    }
    Ok(if directory_names(directory)?.is_empty() { QueueKind::Missing } else { QueueKind::Files })
}
