//! A file that is appended to: through a map where the file system keeps what it promised, else by `pwrite`.
//!
//! A write through a map is a copy: no call to the operating system, which for a small record takes longer than the record.
//! Blocks are allocated before, so that a full disk is no signal; where a file system copies on write, an allocated block is
//! no promise, and there is no map.
//!
//! Source: `MappedFile.appendMessagesInner`.
use super::allocated::Allocated;
use super::disk::{self, Call};
use super::mmap::{Pages, WriteMap};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The file, with a map or without.
#[derive(Debug)]
pub struct Mapped {
    file: Arc<Allocated>,
    map: Option<WriteMap>,
}

impl Mapped {
    /// Maps `file` if it may be.
    pub fn new(file: Allocated) -> Result<Self> {
        Ok(Self { map: file.write_map()?, file: file.into() })
    }

    /// Goes without a map: for one write it does not pay.
    pub fn unmapped(file: Allocated) -> Self {
        Self { file: file.into(), map: None }
    }

    pub fn file(&self) -> &Arc<Allocated> {
        &self.file
    }

    /// Whether a write is a copy, and no system call.
    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Writes all of `bytes` at `at`; a reader that finds those of `last` finds all.
    ///
    /// # Errors
    /// [`Error::Io`]; any part of the bytes may have been written.
    pub fn write(&mut self, bytes: &[u8], at: u64, last: Range<usize>) -> Result<()> {
        match &mut self.map {
            Some(map) => disk::call(Call::Write, self.file.path(), || map.write(bytes, at, last)),
            None => self.file.write(bytes, at),
        }
    }

    /// Looks whether what was written before `end` is in the file, which was `len` bytes long: not where another process cut it off.
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
            // also where it has its length again: what was written meanwhile is gone
            now if now < len || self.is_lost() => Err(self.cut_off(len, now)),
            _ => Ok(()),
        }
    }

    /// As [`check`](Self::check), for what can be made anew: only whether a write fell on pages that are gone.
    #[inline]
    pub fn check_lost(&self, len: u64) -> Result<()> {
        if self.is_lost() { self.check_len(len) } else { Ok(()) }
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.map.as_ref().is_some_and(WriteMap::is_lost)
    }

    fn cut_off(&self, len: u64, now: u64) -> Error {
        Error::harmed(self.file.path(), format!("expected {len} bytes, got {now}"))
    }

    /// The eight bytes at `at`, as they are in the file now.
    #[inline]
    pub fn word(&self, at: u64) -> Option<[u8; 8]> {
        match &self.map {
            Some(map) => map.word(at),
            None => self.file.word(at),
        }
    }

    /// Its pages, where it has a map.
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
        for (name, make) in [("a", Mapped::new as fn(_) -> _), ("b", |file| Ok(Mapped::unmapped(file)))] {
            let path = dir.path().join(name);
            let mut file = make(Allocated::create(&path, 10_000).expect("created")).expect("made");
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
        let file = Allocated::create(&dir.path().join("a"), 100).expect("created");
        let mut map = file.write_map().expect("mapped").expect("a file system that keeps blocks");
        for at in [99, 100, u64::MAX] {
            assert!(map.write(b"ab", at, 0..1).is_err(), "{at}");
        }
        assert!(map.write(b"ab", 0, 1..3).is_err());
        map.write(b"ab", 98, 0..2).expect("written");
    }
}
