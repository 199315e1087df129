//! The files of a log or a queue. Each file is mapped on first use and released when it is removed.
//!
//! Source: `MappedFileQueue.findMappedFileByOffset`.
use crate::Result;
use crate::file::mmap::ReadMap;
use crate::file::{name, place};
use crate::format::message::{MIN_LEN, Message};
use rmqfast_os::pages;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Maximum number of cached maps of a store. A process may have 65,530 maps (`vm.max_map_count`).
const MAX_MAPS: usize = 16_384;

#[derive(Debug, Default)]
pub struct MapCount(AtomicUsize);

#[derive(Debug)]
pub struct MapCache {
    directory: PathBuf,
    file_size: u64,
    count: Arc<MapCount>,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    first: u64,
    maps: BTreeMap<u64, Arc<FileMap>>,
}

#[derive(Debug)]
pub struct FileMap {
    path: PathBuf,
    base: u64,
    map: ReadMap,
    checked: CheckedBodies,
    /// The counter of cached maps; `None` if this map is not cached.
    count: Option<Arc<MapCount>>,
}

impl MapCache {
    pub fn new(directory: PathBuf, file_size: u64, count: Arc<MapCount>) -> Self {
        Self { directory, file_size, count, state: RwLock::default() }
    }

    pub fn directory(&self) -> &PathBuf {
        &self.directory
    }

    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Returns the file that contains the byte at `offset`, or `None` if the file is removed.
    #[inline]
    pub fn file_of(&self, offset: u64) -> Result<Option<Arc<FileMap>>> {
        let base = offset - offset % self.file_size;
        let state = self.read();
        // A file about to be removed may still exist, but must not be opened again.
        if base < state.first {
            return Ok(None);
        }
        if let Some(map) = state.maps.get(&base) {
            return Ok(Some(map.clone()));
        }
        drop(state);
        self.open(base)
    }

    #[cold]
    fn open(&self, base: u64) -> Result<Option<Arc<FileMap>>> {
        let path = self.directory.join(name::of_offset(base));
        let map = match place::open(&path, || File::open(&path).and_then(|file| ReadMap::new(&file))) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let mut state = self.write();
        // The file was removed meanwhile. A file of that name may be a new file.
        if base < state.first {
            return Ok(None);
        }
        if let Some(map) = state.maps.get(&base) {
            return Ok(Some(map.clone()));
        }
        // Above the limit a map is not cached, so it is dropped with its last reader.
        let map = Arc::new(FileMap { path, base, map, checked: CheckedBodies::default(), count: self.count.reserve() });
        if map.count.is_some() {
            state.maps.insert(base, map.clone());
        }
        Ok(Some(map))
    }

    pub fn first(&self) -> u64 {
        self.read().first
    }

    /// Drops the maps of files that begin before `offset`. A map stays as long as a reader uses it.
    pub fn forget_before(&self, offset: u64) {
        let removed = {
            let mut state = self.write();
            state.first = state.first.max(offset);
            // The map keys are start offsets, so everything before `offset` is split off at once.
            let remaining = state.maps.split_off(&offset);
            std::mem::replace(&mut state.maps, remaining)
        };
        // Maps are dropped without the lock, because unmapping a file may take a while.
        drop(removed);
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MapCount {
    /// Counts a further cached map. Returns `None` if the limit is reached.
    fn reserve(self: &Arc<Self>) -> Option<Arc<Self>> {
        let increment = |count| (count < MAX_MAPS).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment).is_ok().then(|| self.clone())
    }
}

impl FileMap {
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns whether the body of the record at `offset` matches its CRC. A body that has matched once is not checked
    /// again.
    pub fn has_sound_body(&self, offset: u64, record: &[u8]) -> bool {
        self.checked.is_sound(offset.saturating_sub(self.base), self.map.bytes().len() as u64, record)
    }

    /// Returns whether the file still has all bytes before `offset`. If not, another process has truncated the file.
    #[inline]
    pub fn has(&self, offset: u64) -> bool {
        self.has_to(offset) >= offset
    }

    /// Returns the offset up to which the file surely has its bytes. It is at most the end of the page that contains
    /// `offset`.
    #[inline]
    pub fn has_to(&self, offset: u64) -> u64 {
        let position = offset.saturating_sub(self.base);
        match self.map.has(position) {
            // The page is gone, so only the file's length tells how much of the file is left.
            Some(false) => self.end_now(),
            _ => self.base + position.next_multiple_of(pages::size() as u64),
        }
    }

    /// Returns the present end of a truncated file, which may be inside a page.
    #[cold]
    fn end_now(&self) -> u64 {
        let len = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        self.lost_from().min(self.base + len)
    }

    /// Returns the offset of the first byte that was found missing; `u64::MAX` if all bytes were found.
    #[inline]
    pub fn lost_from(&self) -> u64 {
        self.map.lost_from().saturating_add(self.base)
    }

    /// Returns the bytes from `offset` on, all of which must be published. Returns `None` if some of them are not in
    /// this file.
    #[inline]
    pub fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.map.slice(offset.checked_sub(self.base)?, len)
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if let Some(count) = &self.count {
            count.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Bytes of a slot. No record is shorter, so at most one record begins in a slot.
const SLOT: u64 = 64;
const _: () = assert!(MIN_LEN as u64 >= SLOT);

/// One bit for each slot, set if the body of its record has matched its CRC. A file of 1 GiB needs 2 MiB, allocated on
/// first use.
#[derive(Debug, Default)]
pub struct CheckedBodies {
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl CheckedBodies {
    /// Returns whether the body of the record at `position` matches its CRC. A body that has matched once is not
    /// checked again. `len` is the length of the file.
    pub fn is_sound(&self, position: u64, len: u64, record: &[u8]) -> bool {
        let words = len.div_ceil(SLOT * u64::BITS as u64);
        let bits = self.bits.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let (word, bit) = (position / SLOT / u64::BITS as u64, 1 << (position / SLOT % u64::BITS as u64));
        let Some(word) = bits.get(word as usize) else { return true };
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let is_sound = Message::decode(record).is_some_and(|message| message.body_crc_matches());
        // Only sound bodies are remembered. A damaged body is checked again, because it may be repaired meanwhile.
        if is_sound {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        is_sound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn cache(dir: &std::path::Path) -> MapCache {
        for base in [0, 10, 20] {
            fs::write(dir.join(name::of_offset(base)), [b'0' + base as u8 / 10; 10]).expect("written");
        }
        MapCache::new(dir.to_path_buf(), 10, Arc::default())
    }

    fn byte(cache: &MapCache, offset: u64) -> Option<u8> {
        let file = cache.file_of(offset).expect("read")?;
        file.slice(offset, 1).map(|bytes| bytes[0])
    }

    #[test]
    fn a_file_is_mapped_once_and_let_go_when_it_is_gone() {
        let dir = tempfile::tempdir().expect("dir");
        let cache = cache(dir.path());
        assert_eq!(
            [0, 9, 15, 29, 30].map(|offset| byte(&cache, offset)),
            [b"0", b"0", b"1", b"2", b"x"].map(|b| (b[0] != b'x').then_some(b[0]))
        );
        assert_eq!(cache.count.0.load(Ordering::Relaxed), 3);
        let held = cache.file_of(3).expect("read").expect("there");
        fs::remove_file(dir.path().join(name::of_offset(0))).expect("removed");
        assert_eq!(byte(&cache, 3), Some(b'0'));
        cache.forget_before(20);
        assert_eq!([3, 15, 20].map(|offset| byte(&cache, offset)), [None, None, Some(b'2')]);
        assert_eq!((held.slice(9, 1), held.slice(9, 2)), (Some(&b"0"[..]), None));
        drop(held);
        assert_eq!(cache.count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn files_beyond_the_limit_are_read_and_not_kept() {
        let dir = tempfile::tempdir().expect("dir");
        let cache = cache(dir.path());
        cache.count.0.store(MAX_MAPS, Ordering::Relaxed);
        assert_eq!(byte(&cache, 15), Some(b'1'));
        assert!(cache.read().maps.is_empty());
        assert_eq!(cache.count.0.load(Ordering::Relaxed), MAX_MAPS);
    }
}
