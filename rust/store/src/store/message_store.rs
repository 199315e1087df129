//! A store directory, opened for reading. Nothing in it is written, locked or created.
//!
//! Source: `DefaultMessageStore`, `StorePathConfigHelper`, `BrokerPathConfigHelper`.
use super::commit_log::CommitLog;
use super::config_files::{ConfigFile, TOPICS};
use super::consume_queue::{ConsumeQueue, UnitReader, directory_names, is_directory_name, list_queues};
use super::damage::DamageLog;
use super::index_files::IndexFile;
use super::log_walk::LogWalk;
use super::removed_topics::RemovedTopics;
use super::unlisted::UnlistedRecords;
use crate::file::{Io, Place, place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::format::consume_queue::Unit;
use crate::format::message::{MIN_FILE_SIZE, Message};
use crate::{Error, Result};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The kind of index that lists messages by queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Files of 20-byte units.
    Files,
    /// A RocksDB database (5.x `storeType=defaultRocksDB`): read through the commit log.
    RocksDb,
    /// Never written, or deleted.
    Missing,
}

#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Directories of the commit log; if empty, `commitlog` in the root.
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

/// A store directory. Costly parts are read on first use and cached.
#[derive(Debug)]
pub struct MessageStore {
    root: PathBuf,
    options: OpenOptions,
    log: Arc<CommitLog>,
    kind: QueueKind,
    /// Records from here on are ignored: they came after [`snapshot`](Self::snapshot).
    end: u64,
    dispatched_to: OnceLock<u64>,
    unlisted: OnceLock<Arc<UnlistedRecords>>,
    missing: Mutex<Option<(u64, Arc<UnlistedRecords>)>>,
    topics_config: OnceLock<ConfigFile>,
    index_files: OnceLock<Arc<Vec<IndexFile>>>,
}

impl MessageStore {
    /// Opens a store. [`Error::Unsupported`] for DLedger, and for a directory that is not a store.
    pub fn open(root: &Path, options: &OpenOptions) -> Result<Self> {
        place::require_directory(root)?;
        let names = place::names(root)?;
        // First: a directory that only looks like a store should give an error, not an empty result.
        refuse_other_stores(root, &names)?;
        options.commit_log_dirs.iter().try_for_each(|directory| place::require_directory(directory))?;
        let is_store = ["commitlog", "consumequeue", "checkpoint"].iter().any(|n| names.iter().any(|name| name == n));
        if !is_store && options.commit_log_dirs.is_empty() {
            let reason = "no RocketMQ store: expected commitlog/, consumequeue/ or checkpoint in it (storePathRootDir)";
            return Err(Error::Unsupported { path: root.to_path_buf(), reason: reason.into() });
        }
        Ok(Self {
            log: Arc::new(CommitLog::list(root, &options.log_dirs(root), options.io)?),
            kind: queue_kind(&root.join("consumequeue"))?,
            end: u64::MAX,
            root: root.to_path_buf(),
            options: options.clone(),
            dispatched_to: OnceLock::new(),
            unlisted: OnceLock::new(),
            missing: Mutex::default(),
            topics_config: OnceLock::new(),
            index_files: OnceLock::new(),
        })
    }

    /// Opens the store again, with a new listing of its files.
    pub fn reopen(&self, io: Io) -> Result<Self> {
        Self::open(&self.root, &OpenOptions { io, ..self.options.clone() })
    }

    /// Opens the store again, with the same options.
    pub fn as_of_now(&self) -> Result<Self> {
        self.reopen(self.options.io)
    }

    /// The work of [`snapshot`](Self::snapshot), for a store whose log ended at `lost_end`.
    pub(super) fn restrict(self, lost_end: u64) -> Result<Self> {
        let from = match self.kind {
            QueueKind::Files => self.last_listed_offset()?,
            QueueKind::RocksDb | QueueKind::Missing => self.last_file_with_record()?,
        };
        // Few records are behind the last listed one. Damage there belongs to the store, too.
        let mut walk = LogWalk::new(self.log.clone(), from, u64::MAX, u64::MAX);
        while walk.advance(&mut DamageLog::default())? {}
        if self.kind == QueueKind::Files && !self.has_abort()? {
            // So that queues are not read again.
            self.dispatched_to.get_or_init(|| from);
        }
        Ok(Self { end: walk.position().max(lost_end), ..self })
    }

    /// Lists the commit log again.
    pub fn log_now(&self) -> Result<Arc<CommitLog>> {
        CommitLog::list(&self.root, &self.options.log_dirs(&self.root), self.options.io).map(Arc::new)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    pub fn log(&self) -> &Arc<CommitLog> {
        &self.log
    }
    /// The end of a snapshot; otherwise the maximum.
    pub fn end(&self) -> u64 {
        self.end
    }
    pub fn queue_kind(&self) -> QueueKind {
        self.kind
    }

    /// Whether `abort` exists: a broker is running or has crashed. `abort.bak` of 5.x means nothing.
    pub fn has_abort(&self) -> Result<bool> {
        place::exists(&self.root.join("abort"))
    }

    /// The checkpoint, if there is a readable one.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        Ok(self.checkpoint_page()?.and_then(|page| Checkpoint::decode(&page).ok()))
    }

    /// The end of the flushed log, if the checkpoint tells it.
    pub fn flushed_end(&self) -> Result<Option<FlushedEnd>> {
        let page = self.checkpoint_page()?;
        Ok(page.and_then(|page| Checkpoint::decode(&page).ok()?.flushed_end(&page)))
    }

    /// The size of log files, if the checkpoint or the files tell it.
    pub fn log_file_size(&self) -> Result<Option<u64>> {
        let noted = self.flushed_end()?.map(|end| u64::from(end.file_size));
        // A file truncated to less than a record tells nothing.
        Ok(noted.or_else(|| self.log.segments().file_size()).filter(|size| *size >= MIN_FILE_SIZE))
    }

    fn checkpoint_page(&self) -> Result<Option<Vec<u8>>> {
        // Only the first page of the file counts.
        match place::read(&self.root.join("checkpoint"), FILE_SIZE as u64) {
            // Not a file, so it tells nothing. Writers refuse such a store.
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

    /// Topics with consume queues or in `config/topics.json`, sorted. Without consume queues it reads the whole log, too.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        let mut names = self.queue_topics()?;
        if self.end < u64::MAX && self.kind == QueueKind::Files {
            // Leaves out topics created after the snapshot. One without any queue has lost them.
            let mut visible = Vec::new();
            for name in names {
                let all = list_queues(&self.consume_queue_dir(), &name)?;
                if all.is_empty() || !self.queues(&name)?.is_empty() {
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

    /// The consume queues of a topic.
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

    /// Whether the first message of a queue came after the snapshot.
    fn is_later(&self, queue: &ConsumeQueue) -> Result<bool> {
        let first = UnitReader::new(queue).unit(queue.first_offset())?.filter(Unit::is_message);
        Ok(first.is_some_and(|unit| unit.physical_offset as u64 >= self.end))
    }

    /// Refuses to write to the store if a file of the log, of these queues, of the index, of the configuration or in the root is a dead link
    /// or a directory: the new file would replace it.
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

    /// The offset up to which consume queues surely list every record. Behind it the log itself is read.
    ///
    /// After a clean stop that is the end of the last listed record. With `abort` it is the start of the newest file that was fully listed
    /// by the checkpoint (`CommitLog.isMappedFileMatchedRecover`).
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

    /// The end of the log that no consume queue lists; cached.
    pub fn unlisted(&self) -> Result<Arc<UnlistedRecords>> {
        if let Some(unlisted) = self.unlisted.get() {
            return Ok(unlisted.clone());
        }
        let (removed, fault) = match RemovedTopics::load(&self.root) {
            Err(fault @ Error::Corrupt { .. }) => (RemovedTopics::default(), Some(fault)),
            removed => (removed?, None),
        };
        let unlisted = UnlistedRecords::read(&self.log, self.dispatched_to()?, self.end, &removed)?;
        // Messages of removed topics would come back.
        if let Some(fault) = fault.filter(|_| unlisted.topics().next().is_some()) {
            return Err(fault);
        }
        Ok(self.unlisted.get_or_init(|| Arc::new(unlisted)).clone())
    }

    /// The cache of unlisted records, and the offset from which it is complete.
    pub(super) fn known_missing(&self) -> MutexGuard<'_, Option<(u64, Arc<UnlistedRecords>)>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index files, oldest first; cached.
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

    /// Notes for users: a configuration read from its backup or kept in a database, stray files.
    pub fn notes(&self) -> Vec<String> {
        let strays = self.log.segments().strays().iter();
        let strays =
            strays.map(|path| format!("{}: no segment; a 4.9.4 broker does not start beside it", path.display()));
        let backup = self.topics_config().note.clone();
        backup.into_iter().chain(ConfigFile::database_notes(&self.root)).chain(strays).collect()
    }

    fn last_listed_offset(&self) -> Result<u64> {
        let mut end = self.log.min_offset();
        // A queue with a missing file confirms nothing.
        for queue in self.all_queues()?.iter().filter(|queue| queue.segments().first_without_file().is_none()) {
            end = end.max(queue.max_physical_offset()?);
        }
        // A stale unit may point behind the log.
        Ok(end.min(self.log.segments().end()))
    }

    /// Start of the last log file that begins with a record.
    fn last_file_with_record(&self) -> Result<u64> {
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            if self.first_store_timestamp(index)?.is_some() {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    fn offset_of_checkpoint(&self) -> Result<u64> {
        // Minus 3 seconds, and 0 without a checkpoint: then the whole log is read.
        let listed_until = self.checkpoint()?.map_or(0, |c| c.min_timestamp());
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            let first = self.first_store_timestamp(index)?;
            if first.is_some_and(|timestamp| timestamp != 0 && timestamp <= listed_until) {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    /// Store timestamp of the record at the start of a log file, if there is one.
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
