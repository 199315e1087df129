//! Recovers the index. Keeps full files that were flushed before the checkpoint, and rebuilds the others from the log.
//!
//! Source: `IndexService.load`, `IndexService.buildIndex`. RocketMQ deletes the other files and indexes only records that
//! recovery dispatches.
use super::log_end::Extent;
use crate::file::disk::{self, create_directories, sync_directory};
use crate::file::{AllocatedFile, place};
use crate::format::index::IndexEntry;
use crate::format::message::{Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::properties::KnownProperties;
use crate::store::append::flusher::SyncList;
use crate::store::append::index_writer::{Geometry, IndexWriter, TopicHash, key_hash};
use crate::store::append::options::AppendOptions;
use crate::store::index_files::IndexFile;
use crate::store::message_store::MessageStore;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Name of the directory that holds the new files until they replace the old files.
const REBUILT: &str = "index.rebuilt";
/// Maximum number of keys of one message that are counted.
const MAX_KEYS: u32 = 1 << 14;

#[derive(Debug)]
pub struct IndexRepair {
    writer: IndexWriter,
    directory: PathBuf,
    rebuilt: PathBuf,
    replaced: Vec<PathBuf>,
    /// Offset of the first record whose index entries may be missing.
    from: u64,
    /// Number of keys of the record at `from` that are already in a full file.
    skip: usize,
    topic_hash: TopicHash,
    store_ms: i64,
    local_ms: i64,
    written: u64,
}

impl IndexRepair {
    /// Keeps the flushed files, unless everything must be rebuilt. New files are named after `local_ms`, and replace
    /// the other files at the end.
    pub fn open(store: &MessageStore, options: &AppendOptions, extent: Extent, local_ms: i64) -> Result<Self> {
        let (directory, rebuilt) = (store.root().join("index"), store.root().join(REBUILT));
        let _ = fs::remove_dir_all(&rebuilt); // An interrupted recovery may have left files.
        for path in [&directory, &rebuilt] {
            create_directories(path)?;
        }
        let mut files = IndexFile::list(&directory)?;
        let (slots, entries) = geometry_of(&files, (options.index_slots, options.index_entries));
        let replaced = files.drain(count_flushed(store, &files, extent)?..).map(|file| file.path).collect();
        let last = files.last();
        let (from, skip) = match last {
            Some(file) => (file.header.end_phy_offset as u64, keys_of_last(file)?),
            None => (store.log().min_offset(), 0),
        };
        let newest = last.map(|file| Ok::<_, Error>((name_of(file), AllocatedFile::open(&file.path)?))).transpose()?;
        let writer = IndexWriter::new(rebuilt.clone(), Geometry { slots, entries }, newest)?;
        let topic_hash = TopicHash::default();
        Ok(Self { writer, directory, rebuilt, replaced, from, skip, topic_hash, store_ms: 0, local_ms, written: 0 })
    }

    /// Returns the offset of the first record whose index entries may be missing.
    pub fn from(&self) -> u64 {
        self.from
    }

    pub fn entries_written(&self) -> u64 {
        self.written
    }

    pub fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        let offset = message.physical_offset();
        // As in a broker, half messages are indexed, but rolled back messages are not.
        let is_rolled_back = message.layout().sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK;
        if (offset as u64) < self.from || is_rolled_back {
            return Ok(());
        }
        // Entries are written with one store time at a time.
        if message.store_timestamp() != self.store_ms {
            self.write()?;
            self.store_ms = message.store_timestamp();
        }
        // The keys of the first record may be spread over two files.
        let skip = if offset as u64 == self.from { std::mem::take(&mut self.skip) } else { 0 };
        let topic_hash = self.topic_hash.of(message.topic());
        let keys = KnownProperties::of(message.properties()).index_keys();
        let mut count = 0;
        for key in keys {
            count += 1;
            if count > skip {
                self.writer.push(key_hash(topic_hash, key), offset);
                self.written += 1;
            }
        }
        if count == 0 {
            self.writer.push_none();
        }
        Ok(())
    }

    pub fn write(&mut self) -> Result<()> {
        self.writer.write(self.store_ms, self.local_ms)
    }

    /// Flushes the new files and moves them into place. Returns the store time up to which all keys are in full
    /// files.
    pub fn finish(&mut self) -> Result<i64> {
        self.write()?;
        let mut unsynced = SyncList::default();
        let indexed_until = self.writer.take_unsynced(&mut unsynced);
        unsynced.sync()?;
        // Old files are removed last, so that they survive an interrupted recovery.
        for path in self.replaced.drain(..) {
            disk::remove_file(&path)?;
        }
        for path in place::list(&self.rebuilt)? {
            let name = path.file_name().unwrap_or_default();
            disk::rename(&path, &self.directory.join(name))?;
        }
        fs::remove_dir(&self.rebuilt).map_err(|e| Error::io(&self.rebuilt, e))?;
        sync_directory(&self.directory)?;
        Ok(indexed_until)
    }
}

/// Removes the files that will be rebuilt. Called when the disk has no room for the old and the new files together.
pub fn remove_replaced(store: &MessageStore, extent: Extent) -> Result<()> {
    let _ = fs::remove_dir_all(store.root().join(REBUILT));
    let files = IndexFile::list(&store.root().join("index"))?;
    files[count_flushed(store, &files, extent)?..].iter().try_for_each(|file| disk::remove_file(&file.path))
}

/// Returns the slots and entries that most files have, because a damaged file may have any length.
fn geometry_of(files: &[IndexFile], fallback: (u32, u32)) -> (u32, u32) {
    let mut counts = BTreeMap::new();
    for geometry in files.iter().filter_map(|file| file.geometry) {
        *counts.entry(geometry).or_insert(0) += 1;
    }
    let most = counts.into_iter().max_by_key(|(geometry, count)| (*count, *geometry == fallback));
    most.map_or(fallback, |(geometry, _)| geometry)
}

/// Returns the number of files at the start of the list that are full and flushed. Returns 0 if everything must be
/// rebuilt.
fn count_flushed(store: &MessageStore, files: &[IndexFile], extent: Extent) -> Result<usize> {
    if extent == Extent::Whole {
        return Ok(0);
    }
    // A broker writes the index time of the checkpoint only when a file is full.
    let until = store.checkpoint()?.map_or(0, |checkpoint| checkpoint.index_msg_timestamp);
    let (start, end) = (store.log().min_offset(), store.log().segments().end());
    let mut last = -1;
    let is_kept = |file: &&IndexFile| {
        let is_full = file.geometry.is_some_and(|(_, entries)| file.entries() + 1 >= entries);
        let offset = file.header.end_phy_offset;
        let follows = offset > last && (start..end).contains(&(offset.max(0) as u64));
        last = offset;
        is_full && follows && file.header.end_timestamp <= until
    };
    Ok(files.iter().take_while(is_kept).count())
}

/// Returns the number of entries in a full file that point to its last record.
fn keys_of_last(file: &IndexFile) -> Result<usize> {
    let Some(mut reader) = file.open()? else { return Ok(0) };
    let mut count = 0;
    while count < file.entries().min(MAX_KEYS) {
        let entry = IndexEntry::decode(reader.entries(file.entries() - count, 1)?);
        if entry.is_none_or(|entry| entry.physical_offset != file.header.end_phy_offset) {
            break;
        }
        count += 1;
    }
    Ok(count as usize)
}

fn name_of(file: &IndexFile) -> String {
    file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
