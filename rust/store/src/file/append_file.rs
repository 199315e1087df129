//! A file to which records are appended. Writes go through a map if the file system writes into allocated blocks,
//! otherwise through `pwrite`.
//!
//! A write through a map is a copy in memory, while a system call takes longer than copying a small record. Blocks are allocated first,
//! since a write through a map to a full disk raises a signal. A file system that copies on write may need new blocks even for allocated
//! bytes, so it gets no map.
//!
//! Source: `MappedFile.appendMessagesInner`.
use super::allocated::AllocatedFile;
use super::disk::{self, Call};
use super::mmap::{Pages, WriteMap};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug)]
pub struct AppendFile {
    file: Arc<AllocatedFile>,
    map: Option<WriteMap>,
}

impl AppendFile {
    /// Creates the writer, with a map of `file` if writes through a map are safe on its file system.
    pub fn new(file: AllocatedFile) -> Result<Self> {
        Ok(Self { map: file.write_map()?, file: file.into() })
    }

    /// Creates the writer without a map. For a single write a map costs more than it saves.
    pub fn without_map(file: AllocatedFile) -> Self {
        Self { file: file.into(), map: None }
    }

    pub fn file(&self) -> &Arc<AllocatedFile> {
        &self.file
    }

    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Writes `bytes` at `at`. The bytes of the range `last` are written after all others, so a reader that sees
    /// these bytes sees all bytes. After an error any part may be written.
    pub fn write(&mut self, bytes: &[u8], at: u64, last: Range<usize>) -> Result<()> {
        match &mut self.map {
            Some(map) => disk::call(Call::Write, self.file.path(), || map.write(bytes, at, last)),
            None => self.file.write(bytes, at),
        }
    }

    /// Fails if another process has truncated the file. `len` is the expected length of the file. If the map shows
    /// that the bytes up to `end` still exist, the check costs no system call.
    #[inline]
    pub fn check(&self, end: u64, len: u64) -> Result<()> {
        match self.map.as_ref().and_then(|map| map.has(end)) {
            Some(true) => Ok(()),
            _ => self.check_len(len),
        }
    }

    #[cold]
    fn check_len(&self, len: u64) -> Result<()> {
        match self.file.facts()?.len {
            // A lost page is an error even if the file has its old length again, since writes to that page are lost.
            now if now < len || self.is_lost() => Err(self.cut_off(len, now)),
            _ => Ok(()),
        }
    }

    /// Fails if a write hit pages that another process has truncated. Makes no other check, which is enough for files
    /// that can be rebuilt from the log.
    #[inline]
    pub fn check_lost(&self, len: u64) -> Result<()> {
        if self.is_lost() { self.check_len(len) } else { Ok(()) }
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.map.as_ref().is_some_and(WriteMap::is_lost)
    }

    fn cut_off(&self, len: u64, now: u64) -> Error {
        Error::changed_by_another(self.file.path(), format!("expected {len} bytes, got {now}"))
    }

    pub fn word(&self, at: u64) -> Option<[u8; 8]> {
        match &self.map {
            Some(map) => map.word(at),
            None => self.file.word(at),
        }
    }

    pub fn pages(&self) -> Option<Pages> {
        self.map.as_ref().map(WriteMap::pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_in_the_file_with_a_map_and_without() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, make) in [("a", AppendFile::new as fn(_) -> _), ("b", |file| Ok(AppendFile::without_map(file)))] {
            let path = dir.path().join(name);
            let mut file = make(AllocatedFile::create(&path, 10_000).expect("created")).expect("made");
            if let Some(pages) = file.pages() {
                pages.touch(5_000..20_000);
            }
            file.write(b"0123456789", 4_090, 0..4).expect("written");
            file.write(b"ab", 9_998, 1..2).expect("written");
            let bytes = std::fs::read(&path).expect("read");
            assert_eq!((&bytes[4_089..4_101], &bytes[9_998..]), (&b"\x000123456789\0"[..], &b"ab"[..]));
            assert_eq!(bytes.len(), 10_000);
        }
    }

    #[test]
    fn nothing_is_written_past_the_end_of_a_map() {
        let dir = tempfile::tempdir().expect("dir");
        let file = AllocatedFile::create(&dir.path().join("a"), 100).expect("created");
        let mut map = file.write_map().expect("mapped").expect("a file system that keeps blocks");
        for at in [99, 100, u64::MAX] {
            assert!(map.write(b"ab", at, 0..1).is_err(), "{at}");
        }
        assert!(map.write(b"ab", 0, 1..3).is_err());
        map.write(b"ab", 98, 0..2).expect("written");
    }
}
