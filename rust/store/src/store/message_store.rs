//! A store directory, opened for reading: nothing in it is written, locked or created.
//!
//! Source: `DefaultMessageStore`, `StorePathConfigHelper`, `BrokerPathConfigHelper`.
use super::commit_log::CommitLog;
use super::config_files::{ConfigFile, TOPICS};
use super::consume_queue::{ConsumeQueue, UnitReader, directory_names, is_directory_name, list_queues};
use super::damage::DamageLog;
use super::index_files::IndexFile;
use super::log_walk::LogWalk;
use super::removed_topics::RemovedTopics;
use super::unlisted::Unlisted;
use crate::file::{Io, Place, place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::format::consume_queue::Unit;
use crate::format::message::{MIN_FILE_SIZE, Message};
use crate::{Error, Result};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What lists a store's messages by queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Files of 20-byte units.
    Files,
    /// A RocksDB database (5.x `storeType=defaultRocksDB`): read through the commit log.
    RocksDb,
    /// Nothing: never written, or deleted.
    Missing,
}

/// How to open a store.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Directories of the commit log; `commitlog` below the root unless given.
    pub commit_log_dirs: Vec<PathBuf>,
    /// How segments are read.
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

/// A store directory. What is costly to read is read once, when somebody asks for it.
#[derive(Debug)]
pub struct MessageStore {
    root: PathBuf,
    options: OpenOptions,
    log: Arc<CommitLog>,
    kind: QueueKind,
    /// Records from here on are not of this store, as they came later.
    end: u64,
    dispatched_to: OnceLock<u64>,
    unlisted: OnceLock<Arc<Unlisted>>,
    missing: Mutex<Option<(u64, Arc<Unlisted>)>>,
    topics_config: OnceLock<ConfigFile>,
    index_files: OnceLock<Arc<Vec<IndexFile>>>,
}

impl MessageStore {
    /// Opens the store below `root`.
    ///
    /// # Errors
    /// [`Error::Io`] where the directory cannot be read, [`Error::Unsupported`] for DLedger and for a directory that is
    /// no store.
    pub fn open(root: &Path, options: &OpenOptions) -> Result<Self> {
        place::require_directory(root)?;
        let names = place::names(root)?;
        // first: a directory that only looks like a store gets the reason, not an empty answer
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

    /// The store as it is by now: its files are listed anew.
    pub fn reopened(&self, io: Io) -> Result<Self> {
        Self::open(&self.root, &OpenOptions { io, ..self.options.clone() })
    }

    /// The store as it is by now, opened with the same options.
    pub fn as_of_now(&self) -> Result<Self> {
        self.reopened(self.options.io)
    }

    /// The store as it is at this moment, whatever is added to its files: a record that comes later is not read. What is removed
    /// meanwhile is gone all the same. What was there up to `lost` is of it, too.
    pub(super) fn pinned_behind(self, lost: u64) -> Result<Self> {
        let from = match self.kind {
            QueueKind::Files => self.last_listed_offset()?,
            QueueKind::RocksDb | QueueKind::Missing => self.last_begun_file()?,
        };
        // behind the last record that a queue lists there are few; what is damaged there is of this store, too
        let mut walk = LogWalk::new(self.log.clone(), from, u64::MAX, u64::MAX);
        while walk.advance(&mut DamageLog::default())? {}
        if self.kind == QueueKind::Files && !self.has_abort()? {
            // queues are looked at once
            self.dispatched_to.get_or_init(|| from);
        }
        Ok(Self { end: walk.position().max(lost), ..self })
    }

    /// The commit log as it is by now.
    pub fn log_now(&self) -> Result<Arc<CommitLog>> {
        CommitLog::list(&self.root, &self.options.log_dirs(&self.root), self.options.io).map(Arc::new)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    pub fn log(&self) -> &Arc<CommitLog> {
        &self.log
    }
    /// Where it ends: records from there on came later than the moment that it shows. The maximum where it shows what comes, too.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// What lists its messages by queue.
    pub fn queue_kind(&self) -> QueueKind {
        self.kind
    }

    /// Whether `abort` is there: a broker is running, or one crashed. `abort.bak` of 5.x says nothing.
    pub fn has_abort(&self) -> Result<bool> {
        place::exists(&self.root.join("abort"))
    }

    /// The checkpoint, if there is one that says something.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        Ok(self.checkpoint_page()?.and_then(|page| Checkpoint::decode(&page).ok()))
    }

    /// Up to where the log was flushed, where the checkpoint says that.
    pub fn flushed_end(&self) -> Result<Option<FlushedEnd>> {
        let page = self.checkpoint_page()?;
        Ok(page.and_then(|page| Checkpoint::decode(&page).ok()?.flushed_end(&page)))
    }

    /// Bytes of a file of the log, where the checkpoint or the files tell.
    pub fn log_file_size(&self) -> Result<Option<u64>> {
        let written = self.flushed_end()?.map(|end| u64::from(end.file_size));
        // a file that was cut off to less than a record tells nothing
        Ok(written.or_else(|| self.log.segments().file_size()).filter(|size| *size >= MIN_FILE_SIZE))
    }

    fn checkpoint_page(&self) -> Result<Option<Vec<u8>>> {
        // the file is a page, its rest says nothing
        match place::read(&self.root.join("checkpoint"), FILE_SIZE as u64) {
            // what is no file vouches for nothing; whoever would write it is refused
            Err(Error::Corrupt { .. }) => Ok(None),
            page => page,
        }
    }

    /// Topics that have consume queues, sorted.
    pub fn queue_topics(&self) -> Result<Vec<String>> {
        match self.kind {
            QueueKind::Files => directory_names(&self.consume_queue_dir()),
            QueueKind::RocksDb | QueueKind::Missing => Ok(Vec::new()),
        }
    }

    /// Topics that have consume queues or that `config/topics.json` names, sorted. Only where there are no consume
    /// queues is the log asked, too: that reads all of it.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        let mut names = self.queue_topics()?;
        if self.end < u64::MAX && self.kind == QueueKind::Files {
            // a topic that came later; one that has no queue at all has lost them
            let mut shown = Vec::new();
            for name in names {
                let all = list_queues(&self.consume_queue_dir(), &name)?;
                if all.is_empty() || !self.queues(&name)?.is_empty() {
                    shown.push(name);
                }
            }
            names = shown;
        }
        names.extend(self.topics_config().topics().map(str::to_owned));
        if self.kind != QueueKind::Files {
            names.extend(self.unlisted()?.topics().map(str::to_owned));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The consume queues of a topic; none where the store has no usable ones.
    pub fn queues(&self, topic: &str) -> Result<Vec<ConsumeQueue>> {
        if self.kind != QueueKind::Files || !is_directory_name(topic) {
            return Ok(Vec::new());
        }
        let queues = list_queues(&self.consume_queue_dir(), topic)?;
        if self.end < u64::MAX {
            let mut shown = Vec::new();
            for queue in queues {
                if !self.is_later(&queue)? {
                    shown.push(queue);
                }
            }
            return Ok(shown);
        }
        Ok(queues)
    }

    /// Whether the first message of a queue came later.
    fn is_later(&self, queue: &ConsumeQueue) -> Result<bool> {
        let first = UnitReader::new(queue).unit(queue.first_offset())?.filter(Unit::is_message);
        Ok(first.is_some_and(|unit| unit.physical_offset as u64 >= self.end))
    }

    /// Refuses to go on where a file of the log, of these queues, of the index, of the configuration or beside them is a symbolic link whose
    /// target is not there, or a directory: what is written then would take its place.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for the first of them, [`Error::Io`].
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

    /// All consume queues.
    pub fn all_queues(&self) -> Result<Vec<ConsumeQueue>> {
        let mut queues = Vec::new();
        for topic in self.queue_topics()? {
            queues.append(&mut self.queues(&topic)?);
        }
        Ok(queues)
    }

    /// Up to where the consume queues surely list every record: behind it the log itself is read.
    ///
    /// After a clean stop that is behind the last record that any queue lists. With `abort` it is the start of the
    /// newest file that the checkpoint says was listed in full (`CommitLog.isMappedFileMatchedRecover`).
    pub fn dispatched_to(&self) -> Result<u64> {
        if let Some(offset) = self.dispatched_to.get() {
            return Ok(*offset);
        }
        let offset = match self.kind {
            QueueKind::RocksDb | QueueKind::Missing => self.log.min_offset(),
            QueueKind::Files if self.has_abort()? => self.checkpointed_offset()?,
            QueueKind::Files => self.last_listed_offset()?,
        };
        Ok(*self.dispatched_to.get_or_init(|| offset.min(self.end)))
    }

    /// The end of the log that no consume queue lists; read once.
    pub fn unlisted(&self) -> Result<Arc<Unlisted>> {
        if let Some(unlisted) = self.unlisted.get() {
            return Ok(unlisted.clone());
        }
        let (removed, fault) = match RemovedTopics::load(&self.root) {
            Err(fault @ Error::Corrupt { .. }) => (RemovedTopics::default(), Some(fault)),
            removed => (removed?, None),
        };
        let unlisted = Unlisted::read(&self.log, self.dispatched_to()?, self.end, &removed)?;
        // messages of topics that were removed would come back
        if let Some(fault) = fault.filter(|_| unlisted.topics().next().is_some()) {
            return Err(fault);
        }
        Ok(self.unlisted.get_or_init(|| Arc::new(unlisted)).clone())
    }

    /// What queues have lost, from an offset of the log on, as far as somebody has asked.
    pub(super) fn known_missing(&self) -> MutexGuard<'_, Option<(u64, Arc<Unlisted>)>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index files, oldest first; listed once.
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

    /// What a person should know: a configuration read from its backup or kept in a database, files that do not belong here.
    pub fn notes(&self) -> Vec<String> {
        let strays = self.log.segments().strays().iter();
        let strays =
            strays.map(|path| format!("{}: no segment; a 4.9.4 broker does not start beside it", path.display()));
        let backup = self.topics_config().note.clone();
        backup.into_iter().chain(ConfigFile::database_notes(&self.root)).chain(strays).collect()
    }

    fn last_listed_offset(&self) -> Result<u64> {
        let mut end = self.log.min_offset();
        // one whose files are not all there vouches for nothing
        for queue in self.all_queues()?.iter().filter(|queue| queue.segments().first_without_file().is_none()) {
            end = end.max(queue.max_physical_offset()?);
        }
        // a stale unit may lead behind the log
        Ok(end.min(self.log.segments().end()))
    }

    /// Where the last file of the log begins that begins with a record.
    fn last_begun_file(&self) -> Result<u64> {
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            if self.first_store_timestamp(index)?.is_some() {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    fn checkpointed_offset(&self) -> Result<u64> {
        // less 3 seconds, and 0 without a checkpoint: then all of the log is read straight
        let listed_until = self.checkpoint()?.map_or(0, |c| c.min_timestamp());
        for (index, file) in self.log.segments().files().iter().enumerate().rev() {
            let first = self.first_store_timestamp(index)?;
            if first.is_some_and(|timestamp| timestamp != 0 && timestamp <= listed_until) {
                return Ok(file.base);
            }
        }
        Ok(self.log.min_offset())
    }

    /// Store timestamp of the first record of a commit-log file, if one stands there.
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
