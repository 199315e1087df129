//! The index in recovery: full files that the checkpoint says were flushed stay, the others are built again from the log.
//!
//! Source: `IndexService.load`, which deletes the others and indexes only what recovery dispatches; `IndexService.buildIndex`.
use super::extent::Extent;
use crate::file::disk::{self, sync_directory};
use crate::file::permission::create_directories;
use crate::file::{AllocatedFile, place};
use crate::format::index::IndexEntry;
use crate::format::message::{Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::properties::KnownProperties;
use crate::format::tag::java_hash;
use crate::store::append::index_writer::{Geometry, IndexWriter, key_hash};
use crate::store::append::options::AppendOptions;
use crate::store::append::unsynced::Unsynced;
use crate::store::index_files::IndexFile;
use crate::store::message_store::MessageStore;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Where new files stand until they take the places of the old ones, below the store's directory.
const REBUILT: &str = "index.rebuilt";
/// The keys of one message are no more than this.
const MAX_KEYS: u32 = 1 << 14;

/// The end of the index, built again.
#[derive(Debug)]
pub struct IndexRepair {
    writer: IndexWriter,
    directory: PathBuf,
    rebuilt: PathBuf,
    replaced: Vec<PathBuf>,
    from: u64,
    /// Keys of the record at `from` that a full file holds already.
    skip: usize,
    topic: (Vec<u8>, i32),
    store_ms: i64,
    local_ms: i64,
    written: u64,
}

impl IndexRepair {
    /// Keeps the files that were flushed, unless all is to be made anew; the new ones are named after `local_ms`, and take the
    /// places of the others at the end.
    pub fn open(store: &MessageStore, options: &AppendOptions, extent: Extent, local_ms: i64) -> Result<Self> {
        let (directory, rebuilt) = (store.root().join("index"), store.root().join(REBUILT));
        let _ = fs::remove_dir_all(&rebuilt); // of a recovery that was ended
        for path in [&directory, &rebuilt] {
            create_directories(path)?;
        }
        let mut files = IndexFile::list(&directory)?;
        let (slots, entries) = geometry_of(&files, (options.index_slots, options.index_entries));
        let replaced = files.drain(kept(store, &files, extent)?..).map(|file| file.path).collect();
        let last = files.last();
        let (from, skip) = match last {
            Some(file) => (file.header.end_phy_offset as u64, keys_of_last(file)?),
            None => (store.log().min_offset(), 0),
        };
        let newest = last.map(|file| Ok::<_, Error>((name_of(file), AllocatedFile::open(&file.path)?))).transpose()?;
        let writer = IndexWriter::new(rebuilt.clone(), Geometry { slots, entries }, newest)?;
        let topic = (Vec::new(), 0);
        Ok(Self { writer, directory, rebuilt, replaced, from, skip, topic, store_ms: 0, local_ms, written: 0 })
    }

    /// Offset of the first record that may miss entries.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Entries that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Puts the keys of a record.
    pub fn dispatch(&mut self, message: &Message<'_>) -> Result<()> {
        let offset = message.physical_offset();
        // a broker indexes half messages, but none that were rolled back
        let is_rolled_back = message.layout().sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK;
        if (offset as u64) < self.from || is_rolled_back {
            return Ok(());
        }
        // entries are written with one store time at a time
        if message.store_timestamp() != self.store_ms {
            self.write()?;
            self.store_ms = message.store_timestamp();
        }
        // the keys of one record may stand in two files
        let skip = if offset as u64 == self.from { std::mem::take(&mut self.skip) } else { 0 };
        let topic_hash = self.topic_hash(message.topic());
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

    fn topic_hash(&mut self, topic: &[u8]) -> i32 {
        if self.topic.0 != topic {
            self.topic = (topic.to_vec(), java_hash(&format!("{}#", String::from_utf8_lossy(topic))));
        }
        self.topic.1
    }

    /// Puts what was gathered into the file.
    pub fn write(&mut self) -> Result<()> {
        self.writer.write(self.store_ms, self.local_ms)
    }

    /// Waits until all is on the disk, and puts the new files in place. Returns the store time up to which full files hold it.
    pub fn finish(&mut self) -> Result<i64> {
        self.write()?;
        let mut unsynced = Unsynced::default();
        let indexed_until = self.writer.unsynced(&mut unsynced);
        unsynced.sync()?;
        // only now: a recovery that ends before this leaves the old files
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

/// Gives the room of files that are built again back before they are: where the disk has none for both.
pub fn give_back(store: &MessageStore, extent: Extent) -> Result<()> {
    let _ = fs::remove_dir_all(store.root().join(REBUILT));
    let files = IndexFile::list(&store.root().join("index"))?;
    files[kept(store, &files, extent)?..].iter().try_for_each(|file| disk::remove_file(&file.path))
}

/// Slots and entries of most of the files: the length of a damaged one says anything.
fn geometry_of(files: &[IndexFile], fallback: (u32, u32)) -> (u32, u32) {
    let mut counts = BTreeMap::new();
    for geometry in files.iter().filter_map(|file| file.geometry) {
        *counts.entry(geometry).or_insert(0) += 1;
    }
    let most = counts.into_iter().max_by_key(|(geometry, count)| (*count, *geometry == fallback));
    most.map_or(fallback, |(geometry, _)| geometry)
}

/// How many files, from the oldest, stay: those that are full and were flushed, unless all is made anew.
fn kept(store: &MessageStore, files: &[IndexFile], extent: Extent) -> Result<usize> {
    if extent == Extent::Whole {
        return Ok(0);
    }
    // a broker writes this time only when a file is full
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

/// How many entries at the end of a full file belong to the record of the last one.
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
