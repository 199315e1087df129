//! Reads records by physical offset while this process appends to the log. Only records that the appender has
//! published are visible.
//!
//! Source: `CommitLog.getMessage`, `getData`, `getMinOffset`, `getMaxOffset`, `pickupStoreTimestamp`, `WaitNotifyObject`,
//! `HAService.getWaitNotifyObject`.
use super::map_cache::{FileMap, MapCache};
use crate::Result;
use crate::format::cursor::{i32_at, i64_at};
use crate::format::message::{BORN_HOST_V6, MAGIC_V1, MAGIC_V2, MIN_LEN, Message};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Bytes from the start of a record to the end of its physical offset. The fields in these bytes show whether the
/// record belongs to its place.
pub(super) const PROOF_LEN: usize = 36;

/// The commit log of a store that this process appends to. One thread writes, and readers see everything before the
/// published end.
#[derive(Debug)]
pub struct LiveLog {
    files: MapCache,
    min_offset: AtomicU64,
    end: AtomicU64,
    checks_bodies: AtomicBool,
}

#[derive(Clone, Debug)]
pub struct LiveRecord {
    file: Arc<FileMap>,
    at: u64,
    len: usize,
}

impl LiveLog {
    pub fn new(directory: PathBuf, file_size: u64, end: u64) -> Self {
        let files = MapCache::new(directory, file_size, Arc::default());
        Self { files, min_offset: AtomicU64::new(0), end: AtomicU64::new(end), checks_bodies: AtomicBool::new(false) }
    }

    pub fn min_offset(&self) -> u64 {
        self.min_offset.load(Ordering::Acquire)
    }

    #[inline]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub fn file_size(&self) -> u64 {
        self.files.file_size()
    }

    pub fn checks_bodies(&self) -> bool {
        self.checks_bodies.load(Ordering::Relaxed)
    }

    pub fn check_bodies(&self, is_asked: bool) {
        self.checks_bodies.store(is_asked, Ordering::Relaxed);
    }

    pub fn directory(&self) -> &PathBuf {
        self.files.directory()
    }

    /// Makes everything before `end` visible to readers.
    #[inline]
    pub fn publish(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// Sets the start of the log to `offset`. Each file that begins before `offset` is unmapped when its last reader is
    /// done.
    pub fn begin_at(&self, offset: u64) {
        // The start moves before the files are released, so that no reader expects them.
        self.min_offset.fetch_max(offset, Ordering::AcqRel);
        self.files.forget_before(offset);
    }

    /// Returns the file that contains the byte at `offset`, or `None` if the file is removed.
    pub fn file_of(&self, offset: u64) -> Result<Option<Arc<FileMap>>> {
        self.files.file_of(offset)
    }

    /// Returns the published record at `offset`; `None` if no record begins there.
    pub fn record(&self, offset: u64) -> Result<Option<LiveRecord>> {
        let end = self.end();
        // No record is shorter, so none can begin here.
        if offset.saturating_add(MIN_LEN as u64) > end {
            return Ok(None);
        }
        let Some(file) = self.file_of(offset)? else { return Ok(None) };
        let len = file.slice(offset, 4).and_then(|head| i32_at(head, 0)).and_then(|len| usize::try_from(len).ok());
        // A caller may pass any offset, so these bytes may not be the size of a record.
        let len = len.filter(|len| *len >= MIN_LEN && offset + *len as u64 <= end);
        // The file is checked after the record was read, because pages that another process has cut off read as zeroes.
        let is_there = |len: &usize| record_in(&file, offset, *len).is_some() && file.has(offset + *len as u64);
        let Some(len) = len.filter(is_there) else { return Ok(None) };
        Ok(Some(LiveRecord { file, at: offset, len }))
    }

    /// Returns the store time of the record of `len` bytes at `offset`, in milliseconds; -1 if there is no record.
    pub fn store_time(&self, offset: i64, len: i32) -> Result<i64> {
        let (Ok(offset), Ok(len)) = (u64::try_from(offset), usize::try_from(len)) else { return Ok(-1) };
        if offset.saturating_add(len as u64) > self.end() {
            return Ok(-1);
        }
        let file = self.file_of(offset)?;
        let record = file.as_ref().and_then(|file| record_in(file, offset, len));
        Ok(record.and_then(store_timestamp).unwrap_or(-1))
    }
}

/// Returns the published record of `len` bytes at `offset`; `None` if its size, magic code or physical offset is wrong.
#[inline]
pub fn record_in(file: &FileMap, offset: u64, len: usize) -> Option<&[u8]> {
    let record = file.slice(offset, len).filter(|record| record.len() >= PROOF_LEN)?;
    let is_message = matches!(i32_at(record, 4)?, MAGIC_V1 | MAGIC_V2);
    let is_here = i32_at(record, 0)? as usize == len && i64_at(record, 28)? == offset as i64;
    (is_message && is_here).then_some(record)
}

/// Reads the store timestamp without parsing the whole record.
fn store_timestamp(record: &[u8]) -> Option<i64> {
    let is_v6 = i32_at(record, 36)? & BORN_HOST_V6 != 0;
    // The born host before the store timestamp has 8 or 20 bytes.
    i64_at(record, if is_v6 { 68 } else { 56 })
}

impl LiveRecord {
    pub fn message(&self) -> Option<Message<'_>> {
        Message::decode(self)
    }
}

impl Deref for LiveRecord {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.file.slice(self.at, self.len).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub struct LogGrowth {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    grown: Condvar,
}

impl LogGrowth {
    /// Wakes all waiting threads, which then check the log again.
    #[inline]
    pub fn notify(&self) {
        // Published bytes must be visible before the number of waiters is read.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A waiter checks under this lock. So it has either seen the growth, or waits now and is woken.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.grown.notify_all();
    }

    /// Waits until `is_enough` returns true, but at most for `timeout`. The condition is checked after each growth.
    pub fn wait(&self, timeout: Duration, is_enough: impl Fn() -> bool) {
        if is_enough() {
            return;
        }
        // Counted before the condition is checked again, so that `notify` sees this waiter.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.grown.wait_timeout_while(guard, timeout, |()| !is_enough()));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::name;
    use crate::format::host::Host;
    use crate::format::message::NewMessage;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::sync::atomic::AtomicU64;

    fn record(physical_offset: i64, ip: IpAddr, store_timestamp: i64) -> Vec<u8> {
        let born_host = Host { ip, port: 1 };
        let store_host = Host { ip: Ipv4Addr::LOCALHOST.into(), port: 2 };
        let message = NewMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            physical_offset,
            sys_flag: 0,
            born_timestamp: 7,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: b"body",
            topic: "T",
            properties: b"",
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect("encoded");
        bytes
    }

    /// Creates a log with two records in its second file. Returns their lengths, too.
    fn log(dir: &std::path::Path) -> (LiveLog, [usize; 2]) {
        let first = record(1_000, Ipv4Addr::LOCALHOST.into(), 50);
        let second = record(1_000 + first.len() as i64, Ipv6Addr::LOCALHOST.into(), 60);
        let mut bytes = [first.clone(), second.clone()].concat();
        bytes.resize(1_000, 0);
        std::fs::write(dir.join(name::of_offset(1_000)), bytes).expect("written");
        (LiveLog::new(dir.to_path_buf(), 1_000, 0), [first.len(), second.len()])
    }

    #[test]
    fn a_record_is_there_once_it_is_published_as_a_whole() {
        let dir = tempfile::tempdir().expect("dir");
        let (log, [first, second]) = log(dir.path());
        let ends = [0, 1_000, 1_000 + first as u64 - 1, 1_000 + first as u64, 1_000 + (first + second) as u64];
        let lengths = ends.map(|end| {
            log.publish(end);
            [1_000, 1_000 + first as u64].map(|at| log.record(at).expect("read").map_or(0, |record| record.len()))
        });
        assert_eq!(lengths, [[0, 0], [0, 0], [0, 0], [first, 0], [first, second]]);
        let times = [1_000, 1_000 + first as i64].map(|at| log.record(at as u64).expect("read").expect("there"));
        assert_eq!(times.map(|record| record.message().map(|m| m.store_timestamp())), [Some(50), Some(60)]);
        let at = 1_000 + first as i64;
        assert_eq!(log.store_time(1_000, first as i32).expect("read"), 50);
        assert_eq!(log.store_time(at, second as i32).expect("read"), 60);
        for (offset, len) in [(at, first as i32), (at + 1, 50), (at, 900), (-1, 100), (at, -1), (i64::MAX, i32::MAX)] {
            assert_eq!(log.store_time(offset, len).expect("read"), -1, "{offset} {len}");
        }
    }

    #[test]
    fn what_only_looks_like_a_record_is_none() {
        let dir = tempfile::tempdir().expect("dir");
        let (log, [first, _]) = log(dir.path());
        log.publish(2_000);
        assert!(log.record(1_000).expect("read").is_some());
        for (at, byte) in [(0, 0x7F), (3, 0), (4, 0), (7, 0), (28, 1), (35, 1)] {
            let path = dir.path().join(name::of_offset(1_000));
            let mut bytes = std::fs::read(&path).expect("read");
            bytes[at] = byte;
            let other = dir.path().join(format!("{at}"));
            std::fs::create_dir(&other).expect("made");
            std::fs::write(other.join(name::of_offset(1_000)), bytes).expect("written");
            let log = LiveLog::new(other, 1_000, 2_000);
            assert!(log.record(1_000).expect("read").is_none(), "byte {at}");
            assert_eq!(log.store_time(1_000, first as i32).expect("read"), -1, "byte {at}");
        }
    }

    #[test]
    fn a_log_that_begins_later_forgets_what_was_before() {
        let dir = tempfile::tempdir().expect("dir");
        let (log, _) = log(dir.path());
        log.publish(2_500);
        let held = log.record(1_000).expect("read").expect("there");
        log.begin_at(2_000);
        log.begin_at(1_000);
        assert_eq!((log.min_offset(), log.record(1_000).expect("read").is_none()), (2_000, true));
        assert_eq!(held.message().map(|message| message.body().to_vec()), Some(b"body".to_vec()));
    }

    #[test]
    fn no_growth_is_missed() {
        let (growth, end) = (LogGrowth::default(), AtomicU64::new(0));
        let seen = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let position = end.fetch_add(1, Ordering::Release) + 1;
                    growth.notify();
                    // The next growth waits until this growth was seen, so a missed notification ends the test.
                    growth.wait(Duration::from_secs(60), || seen.load(Ordering::Acquire) >= position);
                    assert!(seen.load(Ordering::Acquire) >= position, "missed {position}");
                }
            });
            let mut position = 0;
            while position < 20_000 {
                growth.wait(Duration::from_secs(60), || end.load(Ordering::Acquire) > position);
                position = end.load(Ordering::Acquire);
                seen.store(position, Ordering::Release);
                growth.notify();
            }
        });
    }
}
