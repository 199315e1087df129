//! Writes the consume queues and the index of an export.
//!
//! Source: `DefaultMessageStore.CommitLogDispatcherBuildConsumeQueue`, `IndexService.buildIndex`.
use crate::Result;
use crate::file::disk::{self, Call};
use crate::file::name;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::{Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::properties::KnownProperties;
use crate::store::append::AppendOptions;
use crate::store::append::flusher::SyncList;
use crate::store::append::index_writer::{Geometry, IndexWriter, TopicHash, key_hash};
use crate::store::append::queue_table::QueueTable;
use crate::store::append::queue_writer::can_follow;
use crate::store::consume_queue::{UnitReader, is_directory_name};
use crate::store::delay::{DELAY_TOPIC, DelayLevels};
use crate::store::queue_view::Topics;
use crate::store::unlisted::code_of;
use crate::store::{ConsumeQueue, MessageStore, QueueKind};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

#[derive(Debug)]
pub struct Lists {
    directory: PathBuf,
    options: AppendOptions,
    queues: QueueTable,
    index: IndexWriter,
    bounds: Topics,
    has_queues: bool,
    delayed: Vec<ConsumeQueue>,
    /// For each queue, by its number: the start offset of each of its files, and the store time in milliseconds of
    /// the last message in that file.
    times: Vec<Vec<(u64, i64)>>,
    topic_hash: TopicHash,
    store_ms: i64,
    unlisted: u64,
    index_entries: u64,
}

impl Lists {
    pub fn new(store: &MessageStore, root: &Path, options: AppendOptions) -> Result<Self> {
        let geometry = Geometry { slots: options.index_slots, entries: options.index_entries };
        let directory = root.join("consumequeue");
        Ok(Self {
            queues: QueueTable::new(directory.clone(), options.queue_file_size),
            index: IndexWriter::new(root.join("index"), geometry, None)?,
            bounds: store.topics()?,
            has_queues: store.queue_kind() == QueueKind::Files,
            delayed: store.queues(DELAY_TOPIC)?,
            directory,
            options,
            times: Vec::new(),
            topic_hash: TopicHash::default(),
            store_ms: 0,
            unlisted: 0,
            index_entries: 0,
        })
    }

    pub fn unlisted_records(&self) -> u64 {
        self.unlisted
    }
    pub fn index_entries(&self) -> u64 {
        self.index_entries
    }

    /// Returns the queues of the source store and their first and last offsets.
    pub fn bounds(&self) -> &Topics {
        &self.bounds
    }

    pub fn topics(&self) -> impl Iterator<Item = &str> {
        (0..self.queues.len() as u32).map(|number| &*self.queues.topic(number).name)
    }

    /// Adds a record to its consume queue and to the index. `physical_offset` is the record's offset in the new log,
    /// `log_file` the first offset of the new log file that contains the record.
    pub fn dispatch(&mut self, message: &Message<'_>, physical_offset: i64, log_file: i64) -> Result<()> {
        self.index(message, physical_offset)?;
        if !message.layout().is_dispatched() {
            return Ok(());
        }
        let Some((topic, offset)) = self.place_of(message) else {
            self.unlisted += 1;
            return Ok(());
        };
        let number = self.queues.find(topic, message.queue_id());
        let next = self.queues.queue(number).next_offset();
        if offset < next {
            // The topic was deleted and created again. A broker serves the later generation, so the later generation replaces the earlier
            // one.
            if offset > 0 {
                self.unlisted += 1;
                return Ok(());
            }
            self.queues.cut(number, 0)?;
            self.times[number as usize].clear();
        } else if offset > next {
            // Without the source's consume queue nothing confirms a gap, and a damaged offset could make a gap of any size.
            if !self.has_queues && !can_follow(next, offset) {
                self.unlisted += 1;
                return Ok(());
            }
            // Left-out messages keep their queue offsets, so that the offsets of consumers stay valid.
            self.queues.fill(number, offset, log_file)?;
        }
        let tags_code = self.tags_code(message, topic)?;
        self.queues.append(number, Unit { physical_offset, size: message.layout().total as i32, tags_code })?;
        self.note_time(number, offset, message.store_timestamp());
        Ok(())
    }

    /// Returns topic and queue offset of a record, or `None` if the source has no queue with that offset. The check
    /// is needed because no checksum covers these fields.
    fn place_of<'a>(&self, message: &Message<'a>) -> Option<(&'a str, i64)> {
        let topic = std::str::from_utf8(message.topic()).ok().filter(|name| is_directory_name(name))?;
        let (_, end) = self.bounds.get(topic)?.get(&message.queue_id())?;
        Some((topic, message.queue_offset())).filter(|(_, offset)| (0..*end).contains(offset))
    }

    /// Returns the tag hash of a message. In the delay topic the time of delivery takes its place. This time depends on
    /// the configuration of the broker that wrote the store, so it is copied from the source's queue.
    fn tags_code(&self, message: &Message<'_>, topic: &str) -> Result<i64> {
        if topic == DELAY_TOPIC
            && let Some(queue) = self.delayed.iter().find(|queue| queue.queue_id() == message.queue_id())
            && let Some(unit) = UnitReader::new(queue).unit(message.queue_offset())?
            && (unit.physical_offset, unit.size) == (message.physical_offset(), message.layout().total as i32)
        {
            return Ok(unit.tags_code);
        }
        Ok(code_of(message, topic, &DelayLevels::default()))
    }

    fn note_time(&mut self, number: u32, offset: i64, store_ms: i64) {
        let at = offset as u64 * UNIT_SIZE as u64;
        let base = at - at % self.options.queue_file_size;
        if self.times.len() <= number as usize {
            self.times.resize(number as usize + 1, Vec::new());
        }
        let times = &mut self.times[number as usize];
        match times.last_mut().filter(|(last, _)| *last == base) {
            Some((_, time)) => *time = store_ms,
            None => times.push((base, store_ms)),
        }
    }

    fn index(&mut self, message: &Message<'_>, physical_offset: i64) -> Result<()> {
        // A broker indexes half messages, but no rolled-back messages (`IndexService.buildIndex`).
        if message.layout().sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK {
            return Ok(());
        }
        // The index writer takes the entries of one store time at a time.
        if message.store_timestamp() != self.store_ms {
            self.write_index()?;
            self.store_ms = message.store_timestamp();
        }
        let topic_hash = self.topic_hash.of(message.topic());
        let before = self.index_entries;
        for key in KnownProperties::of(message.properties()).index_keys() {
            self.index.push(key_hash(topic_hash, key), physical_offset);
            self.index_entries += 1;
        }
        if self.index_entries == before {
            // As in a broker, a record without keys also starts a new file if the newest one is full.
            self.index.push_none();
        }
        Ok(())
    }

    fn write_index(&mut self) -> Result<()> {
        self.index.write(self.store_ms, self.store_ms + self.options.zone_offset_ms)
    }

    pub fn write(&mut self) -> Result<()> {
        self.queues.write()?;
        self.write_index()
    }

    /// Adds to `out` the files that were written since the last call. Returns the store time up to which all keys are
    /// in full index files.
    pub fn take_unsynced(&mut self, out: &mut SyncList) -> i64 {
        self.queues.take_unsynced(out);
        self.index.take_unsynced(out)
    }

    /// Sets the modification time of each queue file to the store time of its last message, since RocketMQ 4.9 searches
    /// messages by modification time. Source: `MappedFileQueue.getMappedFileByTime`.
    pub fn set_times(&self) -> Result<()> {
        for (number, times) in self.times.iter().enumerate() {
            let number = number as u32;
            let queue_id = self.queues.queue(number).queue_id.to_string();
            let directory = self.directory.join(&*self.queues.topic(number).name).join(queue_id);
            for (base, store_ms) in times {
                let Ok(millis) = u64::try_from(*store_ms) else { continue };
                let Some(time) = UNIX_EPOCH.checked_add(Duration::from_millis(millis)) else { continue };
                let path = directory.join(name::of_offset(*base));
                disk::call(Call::Write, &path, || {
                    // A file system may not be able to store the time, which is no reason to fail.
                    let file = OpenOptions::new().write(true).open(&path)?;
                    let _ = file.set_modified(time);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
