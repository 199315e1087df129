//! A store's files in memory, with a count of each request. So tests see which bytes a reader asks for.
use super::local::{no_file, other_than_file};
use super::storage::{Entry, Kind, Part, Place, RangeFile, Stat, Storage};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::iter::Sum;
use std::ops::{Add, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files in memory. They have no holes, as objects of an object store have none.
#[derive(Debug)]
pub struct MemoryFiles {
    files: BTreeMap<PathBuf, Content>,
    directories: BTreeMap<PathBuf, Vec<Entry>>,
    gap: u64,
    counts: Arc<Counts>,
}

/// The bytes of a file up to its last one that is not zero.
#[derive(Clone, Debug)]
struct Content {
    bytes: Arc<[u8]>,
    stat: Stat,
}

type Counts = Mutex<BTreeMap<PathBuf, Requests>>;

/// The requests to a file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub lists: u64,
    pub looks: u64,
    pub opens: u64,
    pub reads: u64,
    /// The ranges of all reads. A read may have many.
    pub ranges: u64,
    pub bytes: u64,
    /// The bytes that were read behind the last written one.
    pub unwritten: u64,
}

impl Requests {
    pub fn total(&self) -> u64 {
        self.lists + self.looks + self.opens + self.reads
    }
}

impl Add for Requests {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lists: self.lists + other.lists,
            looks: self.looks + other.looks,
            opens: self.opens + other.opens,
            reads: self.reads + other.reads,
            ranges: self.ranges + other.ranges,
            bytes: self.bytes + other.bytes,
            unwritten: self.unwritten + other.unwritten,
        }
    }
}

impl Sum for Requests {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl MemoryFiles {
    /// Reads all files below the local `directory`. They appear below `path`. Ranges that are at most `gap` bytes apart
    /// are worth one read.
    pub fn read(directory: &Path, path: &Path, gap: u64) -> Result<Self> {
        let mut memory = Self { files: BTreeMap::new(), directories: BTreeMap::new(), gap, counts: Arc::default() };
        memory.add(directory, path)?;
        Ok(memory)
    }

    fn add(&mut self, directory: &Path, path: &Path) -> Result<()> {
        let listed = |e| Error::io(directory, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory).map_err(listed)? {
            let (source, name) = entry.map(|entry| (entry.path(), path.join(entry.file_name()))).map_err(listed)?;
            let stat = if source.is_dir() {
                self.add(&source, &name)?;
                Stat::new(Kind::Directory, 0, None)
            } else {
                let failed = |e| Error::io(&source, e);
                let mut bytes = fs::read(&source).map_err(failed)?;
                let len = bytes.len() as u64;
                bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                let stat = Stat::new(Kind::File, len, source.metadata().map_err(failed)?.modified().ok());
                self.files.insert(name.clone(), Content { bytes: bytes.into(), stat });
                stat
            };
            entries.push(Entry { path: name, stat: Some(stat) });
        }
        self.directories.insert(path.to_path_buf(), entries);
        Ok(())
    }

    /// Returns the requests by path, and forgets them.
    pub fn take_counts(&self) -> BTreeMap<PathBuf, Requests> {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn count(counts: &Counts, path: &Path, change: impl FnOnce(&mut Requests)) {
    change(counts.lock().unwrap_or_else(PoisonError::into_inner).entry(path.to_path_buf()).or_default());
}

impl Storage for MemoryFiles {
    fn look(&self, path: &Path) -> Result<Place> {
        count(&self.counts, path, |requests| requests.looks += 1);
        Ok(match (self.files.get(path), self.directories.get(path)) {
            (Some(file), _) => Place::There(file.stat),
            (None, Some(_)) => Place::There(Stat::new(Kind::Directory, 0, None)),
            (None, None) => Place::Absent,
        })
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        count(&self.counts, directory, |requests| requests.lists += 1);
        Ok(self.directories.get(directory).cloned().unwrap_or_default())
    }

    fn read_small(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
        count(&self.counts, path, |requests| {
            requests.reads += 1;
            requests.ranges += 1;
        });
        let Some(file) = self.files.get(path) else {
            return if self.directories.contains_key(path) { Err(other_than_file(path)) } else { Ok(None) };
        };
        let mut bytes = vec![0; file.stat.len().min(most) as usize];
        file.copy(0, &mut bytes);
        count(&self.counts, path, |requests| requests.bytes += bytes.len() as u64);
        Ok(Some(bytes))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RangeFile>> {
        count(&self.counts, path, |requests| requests.opens += 1);
        match self.files.get(path) {
            Some(content) => {
                let (content, counts) = (content.clone(), self.counts.clone());
                Ok(Arc::new(MemoryFile { path: path.to_path_buf(), content, gap: self.gap, counts }))
            }
            None if self.directories.contains_key(path) => Err(no_file(path)),
            None => Err(Error::io(path, ErrorKind::NotFound.into())),
        }
    }
}

impl Content {
    /// Copies the bytes from `at` into `buffer`. Returns the number of bytes before the end of the file.
    fn copy(&self, at: u64, buffer: &mut [u8]) -> usize {
        let count = self.stat.len().saturating_sub(at).min(buffer.len() as u64) as usize;
        let start = (at as usize).min(self.bytes.len());
        let written = &self.bytes[start..self.bytes.len().min(start.saturating_add(count))];
        buffer[..written.len()].copy_from_slice(written);
        buffer[written.len()..count].fill(0);
        count
    }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    content: Content,
    gap: u64,
    counts: Arc<Counts>,
}

impl RangeFile for MemoryFile {
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.content.stat.len())
    }

    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        let (mut bytes, mut unwritten) = (0, 0);
        for part in &mut *parts {
            part.count = self.content.copy(part.at, part.buffer);
            let (len, written) = (part.count as u64, self.content.bytes.len() as u64);
            bytes += len;
            unwritten += len.min((part.at + len).saturating_sub(written));
        }
        count(&self.counts, &self.path, |requests| {
            requests.reads += 1;
            requests.ranges += parts.len() as u64;
            requests.bytes += bytes;
            requests.unwritten += unwritten;
        });
        Ok(())
    }

    fn is_replaced(&self) -> bool {
        false
    }

    fn stored_ranges(&self, from: u64, end: u64) -> Vec<Range<u64>> {
        let whole = from..end.min(self.content.stat.len());
        Some(whole).filter(|whole| !whole.is_empty()).into_iter().collect()
    }

    fn next_stored(&self, at: u64, _end: u64) -> u64 {
        at
    }

    fn gap(&self) -> u64 {
        self.gap
    }
}
