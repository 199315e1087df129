//! Opens an existing store, to continue at its end. Queues and index must agree with the log.
//!
//! This module repairs nothing. Like RocketMQ's own recovery, it reads only the last files.
//!
//! Source: `DefaultMessageStore.load`, `CommitLog.recoverNormally`, `recoverTopicQueueTable`.
use super::index_writer::{Geometry, IndexWriter};
use super::log_writer::{LogWriter, MAX_FULL, NextFile};
use super::options::{AppendOptions, Flush};
use super::queue_table::QueueTable;
use super::queue_writer::can_follow;
use super::writers::Writers;
use crate::file::disk::{create_directories, sync_directory};
use crate::file::{AllocatedFile, Io, Segment, Segments, lock, name, place};
use crate::format::config::MAX_LEN;
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::index::{self, IndexHeader, guess_geometry};
use crate::format::message::{MIN_FILE_SIZE, Message};
use crate::store::commit_log::DamageLog;
use crate::store::consume_queue::{ConsumeQueue, UnitReader, is_directory_name};
use crate::store::generation::RemovedTopics;
use crate::store::log_walk::LogWalk;
use crate::store::message_store::{MessageStore, OpenOptions};
use crate::store::queue_ends::LostMessages;
use crate::{Error, Result};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const DIRECTORIES: [&str; 3] = ["commitlog", "consumequeue", "index"];
/// Files and directories of kinds of stores that appends do not support. Appends would leave these files out of date.
const OTHER_KINDS: [(&str, &str); 5] = [
    ("consumequeue_ext", "consume-queue extensions (enableConsumeQueueExt=true)"),
    ("timerwheel", TIMERS),
    ("timerlog", TIMERS),
    ("batchconsumequeue", "batch consume queues of RocketMQ 5.x"),
    ("rocksdbstore", "a RocksDB database of RocketMQ 5.x"),
];
/// Names the timer files of RocketMQ 5.x in errors. By default 5.x creates these files, even if no message has a
/// timer.
const TIMERS: &str = "timers of RocketMQ 5.x (timerWheelEnable=true, its default; those that wait fire in no export)";

type Offsets = HashMap<String, HashMap<i32, i64>>;

/// Creates the directory of a new store. Refuses a directory that is neither empty nor a store.
pub fn create_root(root: &Path) -> Result<()> {
    create_directories(root)?;
    let paths = place::list(root)?;
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()).collect();
    let is_new = names.iter().all(|name| *name == lock::NAME);
    let is_store = DIRECTORIES.iter().any(|d| names.iter().any(|name| *name == *d));
    if is_new || is_store {
        return Ok(());
    }
    let reason = "neither empty nor a RocketMQ store; give an empty directory to make a new store in";
    Err(Error::Unsupported { path: root.to_path_buf(), reason: reason.into() })
}

/// Opens the files of a store that this process has locked.
pub fn resume(root: &Path, options: &AppendOptions) -> Result<Writers> {
    for name in DIRECTORIES {
        create_directories(&root.join(name))?;
    }
    // A process that was killed may have left the file that it created ahead.
    NextFile::remove_left_over(root);
    sync_directory(root)?;
    let store = MessageStore::open(root, &OpenOptions::default())?;
    let queues = store.all_queues()?;
    store.refuse_missing_files(&queues)?;
    let offsets = next_offsets(&queues)?;
    check_lost(root, &offsets)?;
    let end = log_end(&store, &queues, &offsets)?.unwrap_or_else(|| options.replica_from.unwrap_or(0));
    queues.iter().try_for_each(|queue| check_last_unit(&store, queue, end))?;
    Ok(Writers {
        log: log_writer(&store, options, end)?,
        queues: queue_table(&store, options, &queues, &offsets)?,
        index: index_writer(root, options, end)?,
        last_store_ms: 0,
    })
}

/// Refuses a store of an unsupported type, before anything is written.
pub fn refuse_other_kinds(root: &Path) -> Result<()> {
    if place::is_file(&root.join("consumequeue").join("CURRENT"))? {
        return Err(refusal(
            &root.join("consumequeue"),
            "consume queues in RocksDB (RocketMQ 5.x, storeType=defaultRocksDB)",
        ));
    }
    for (name, what) in OTHER_KINDS {
        if place::exists(&root.join(name))? {
            return Err(refusal(&root.join(name), what));
        }
    }
    let topics = root.join("config").join("topics.json");
    let text = place::read(&topics, MAX_LEN as u64)?;
    if text.is_some_and(|text| memchr::memmem::find(&text, b"BatchCQ").is_some()) {
        return Err(refusal(&topics, "batch consume queues of RocketMQ 5.x (queue.type=BatchCQ)"));
    }
    Ok(())
}

fn refusal(path: &Path, what: &str) -> Error {
    let reason = format!(
        "{what}, which this package does not write; read the store with mode \"r\", or have its messages in a new one \
         that can be changed: `rmqfast store export DIR OUT`, MessageStore.export"
    );
    Error::Unsupported { path: path.to_path_buf(), reason }
}

fn corrupt(path: &Path, offset: u64, reason: impl std::fmt::Display) -> Error {
    let reason = format!("{reason}; the store can be read with mode \"r\", not appended to");
    Error::Corrupt { path: path.to_path_buf(), offset, reason }
}

fn next_offsets(queues: &[ConsumeQueue]) -> Result<Offsets> {
    let mut offsets = Offsets::new();
    for queue in queues {
        let topic = offsets.entry(queue.topic().to_owned()).or_default();
        topic.insert(queue.queue_id(), queue.max_offset()?);
    }
    Ok(offsets)
}

/// Fails if a queue would assign the offset of a lost message again.
fn check_lost(root: &Path, offsets: &Offsets) -> Result<()> {
    let removed = RemovedTopics::load(root)?;
    for (topic, queue, end) in LostMessages::load(root)?.ends(&removed) {
        let next = offsets.get(topic).and_then(|queues| queues.get(&queue)).copied().unwrap_or(0);
        if next < end {
            let reason = format!("queue {queue} of topic {topic} ends at {next}, but gave the offsets before {end}");
            return Err(corrupt(root, 0, reason));
        }
    }
    Ok(())
}

/// Returns the end of the log; `None` for a log without files. Reads the records of the last file, and all records
/// that no queue lists yet. Each record must be in its queue, unless its topic was removed.
fn log_end(store: &MessageStore, queues: &[ConsumeQueue], offsets: &Offsets) -> Result<Option<u64>> {
    let files = store.log().segments().files();
    let Some(last) = files.last() else { return Ok(None) };
    let listed = store.dispatched_to()?;
    let newest_listed = store.log().segments().find(listed.saturating_sub(1)).map_or(last.base, |i| files[i].base);
    let removed = RemovedTopics::load(store.root())?;
    let mut damage = DamageLog::default();
    let walk = LogWalk::new(store.log().clone(), newest_listed.min(last.base), u64::MAX, listed);
    let mut walk = walk.without_waiting();
    while walk.advance(&mut damage)? {
        let block = walk.block();
        for record in block.records.iter().filter(|record| record.layout.is_dispatched()) {
            let message = Message::new(block.bytes.get(record.at as usize..).unwrap_or_default(), record.layout);
            let message = message.filter(|message| !removed.has(topic_of(message), message));
            message.map_or(Ok(()), |message| check_listed(store, &message, queues, offsets))?;
        }
    }
    if let Some(first) = damage.entries().first() {
        return Err(corrupt(&first.file, first.offset, &first.reason));
    }
    // Appends continue in the last file, so the log must not end before it.
    if walk.position() < last.base {
        return Err(corrupt(
            &last.path,
            0,
            format!("expected the log's end, at {}, in its last file", walk.position()),
        ));
    }
    Ok(Some(walk.position()))
}

fn topic_of<'a>(message: &Message<'a>) -> &'a str {
    std::str::from_utf8(message.topic()).unwrap_or_default()
}

fn check_listed(store: &MessageStore, message: &Message<'_>, queues: &[ConsumeQueue], offsets: &Offsets) -> Result<()> {
    let topic = topic_of(message);
    let next = offsets.get(topic).and_then(|queues| queues.get(&message.queue_id())).copied().unwrap_or(0);
    // Fields without a checksum may be damaged. Recovery does not list such a message either.
    let has_place = is_directory_name(topic) && message.queue_id() >= 0 && can_follow(next, message.queue_offset());
    if message.queue_offset() < next || !has_place {
        return Ok(());
    }
    let queue = queues.iter().find(|queue| (queue.topic(), queue.queue_id()) == (topic, message.queue_id()));
    if queue.map_or(Ok(false), |queue| lists_behind(queue, message))? {
        return Ok(());
    }
    let (queue, offset) = (message.queue_id(), message.queue_offset());
    let reason = format!("queue {queue} of topic {topic} ends at {next}, but the log has its message {offset}");
    Err(corrupt(store.root(), message.physical_offset() as u64, reason))
}

/// Returns whether a queue that has not reached the offset of a message lists records behind this message. If so,
/// either the queue was removed with its topic and started again, or the offset of the message is damaged.
fn lists_behind(queue: &ConsumeQueue, message: &Message<'_>) -> Result<bool> {
    Ok(queue.last_message()?.is_some_and(|(_, last)| last.physical_offset > message.physical_offset()))
}

/// Fails if the last entry does not point to its message. Entries appended behind a wrong last entry would be at
/// wrong offsets.
fn check_last_unit(store: &MessageStore, queue: &ConsumeQueue, end: u64) -> Result<()> {
    let offset = queue.max_offset()? - 1;
    let unit = UnitReader::new(queue).unit(offset)?.filter(Unit::is_message);
    // Retention may have removed the message of the last unit. Then there is nothing to compare.
    let Some(unit) = unit.filter(|unit| unit.physical_offset as u64 >= store.log().min_offset()) else { return Ok(()) };
    let at = offset as u64 * UNIT_SIZE as u64;
    let fits = unit.physical_offset as u64 + unit.size as u64 <= end;
    if fits && queue.is_own(store.log(), offset, unit)? {
        return Ok(());
    }
    let reason = format!("expected unit {offset} to lead to its message, got offset {}", unit.physical_offset);
    Err(corrupt(queue.directory(), at, reason))
}

fn log_writer(store: &MessageStore, options: &AppendOptions, end: u64) -> Result<LogWriter> {
    let segments = store.log().segments();
    let size = one_size(segments)?.unwrap_or(options.file_size);
    let expected = store.log_file_size()?.unwrap_or(MIN_FILE_SIZE);
    if let Some(file) = segments.files().first().filter(|_| size < expected) {
        return Err(corrupt(&file.path, file.len, format!("expected a file of {expected} bytes, got one of {size}")));
    }
    // Continues in the file with the end. If that file is full, the next record begins a new file.
    let current = segments.find(end).map(|index| &segments.files()[index]);
    let current = current.map(|file| Ok::<_, Error>((file.base, AllocatedFile::open(&file.path)?))).transpose()?;
    let next = current.as_ref().map_or(end, |(base, _)| base + size);
    let path = store.root().join("commitlog").join(name::of_offset(next));
    if place::is_directory(&path)? {
        return Err(corrupt(&path, 0, "expected nothing where the log's next file is to be, got a directory"));
    }
    // A copy writes many records in one system call, which is cheaper than a page fault for each new page of a map.
    let is_mapped = options.flush == Flush::Async && options.replica_from.is_none();
    let mut log = LogWriter::new(store.root().join("commitlog"), size, end, current, is_mapped)?;
    log.live().begin_at(if segments.files().is_empty() { end } else { segments.start() });
    // The full files are kept open, so that a file that another process removes can be restored.
    for file in segments.files().iter().filter(|file| file.end() <= end).rev().take(MAX_FULL) {
        log.hold(file.base, AllocatedFile::open(&file.path)?.into());
    }
    Ok(log)
}

fn queue_table(
    store: &MessageStore,
    options: &AppendOptions,
    queues: &[ConsumeQueue],
    offsets: &Offsets,
) -> Result<QueueTable> {
    let mut size = None;
    for queue in queues {
        let own = one_size(queue.segments())?;
        if let (Some(size), Some(own)) = (size, own)
            && size != own
        {
            return Err(corrupt(
                queue.directory(),
                0,
                format!("expected files of {size} bytes, as other queues, got {own}"),
            ));
        }
        // A truncated file does not show the size of the others.
        if let Some(own) = own.filter(|own| *own == 0 || !own.is_multiple_of(UNIT_SIZE as u64)) {
            let expected = format!("expected files of whole units of {UNIT_SIZE} bytes, got one of {own}");
            return Err(corrupt(queue.directory(), own, expected));
        }
        size = size.or(own);
        // Such a file could not be found by a queue offset.
        if let Some(file) = queue.segments().files().iter().find(|file| !file.base.is_multiple_of(file.len)) {
            let expected = format!("expected the name of a file to be a multiple of {}, got {}", file.len, file.base);
            return Err(corrupt(&file.path, 0, expected));
        }
    }
    let mut table = QueueTable::new(store.root().join("consumequeue"), size.unwrap_or(options.queue_file_size));
    for queue in queues {
        let number = table.add(queue.topic(), queue.queue_id(), offsets[queue.topic()][&queue.queue_id()]);
        table.live_queue(number).begin_in(queue, store.log().min_offset())?;
    }
    Ok(table)
}

/// Returns the size that all files have, or `None` without files. Fails if sizes differ, since RocketMQ does not open
/// such a store.
fn one_size(segments: &Segments) -> Result<Option<u64>> {
    let size = segments.files().first().map(|file| file.len);
    match segments.files().iter().find(|file| Some(file.len) != size) {
        Some(file) => Err(corrupt(&file.path, file.len, format!("expected {} bytes, as others", size.unwrap_or(0)))),
        None => Ok(size),
    }
}

fn index_writer(root: &Path, options: &AppendOptions, end: u64) -> Result<IndexWriter> {
    let directory = root.join("index");
    let configured = Geometry { slots: options.index_slots, entries: options.index_entries };
    let Some(path) = newest_index(&directory)? else { return IndexWriter::new(directory, configured, None) };
    let file = AllocatedFile::open(&path)?;
    let header = Segment::open(&path, Io::Pread)?.window(0, index::HEADER_SIZE).map(IndexHeader::decode)?;
    let header = header.filter(|header| header.end_phy_offset as u64 <= end);
    let Some(_) = header else {
        return Err(corrupt(&path, 24, format!("expected an index that ends before the log, at {end}")));
    };
    let geometry = geometry_of(&path, configured)?.ok_or_else(|| {
        let expected = "the slots and entries of the store's index files, which do not tell them, or `rmqfast store repair`, which \
                        builds an index anew that was cut off";
        Error::invalid(
            "index_slots, index_entries",
            expected,
            format!("{} and {}", configured.slots, configured.entries),
        )
    })?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    IndexWriter::new(directory, geometry, Some((name, file)))
}

/// Returns the number of slots and entries of an index file, or `None` if they are unknown. Reads the file only if its
/// size is not the default. Does not map the file, because reading holes through a map would allocate memory in a
/// tmpfs.
fn geometry_of(path: &Path, configured: Geometry) -> Result<Option<Geometry>> {
    let len = path.metadata().map_err(|e| Error::io(path, e))?.len();
    let guessed = match guess_geometry(len, &[]) {
        None => guess_geometry(len, &fs::read(path).map_err(|e| Error::io(path, e))?),
        usual => usual,
    };
    let guessed = guessed.map(|(slots, entries)| Geometry { slots, entries });
    Ok(guessed.or(Some(configured)).filter(|geometry| index::file_size(geometry.slots, geometry.entries) == len))
}

/// Returns the newest index file, or `None`. As in RocketMQ, names that are not numbers are skipped.
fn newest_index(directory: &Path) -> Result<Option<PathBuf>> {
    let names = place::names(directory)?.into_iter();
    let newest = names.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).max();
    Ok(newest.map(|name| directory.join(name)))
}
