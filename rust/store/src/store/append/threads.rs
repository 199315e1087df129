//! The threads of an appender. One thread flushes and runs retention. The other prepares pages and files for the next records,
//! and checks for changes by other processes.
//!
//! Source: `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`, `AllocateMappedFileService`.
use super::cleaning::InThread;
use super::file_watch::{self, FileWatch};
use super::owned_store::OwnedStore;
use super::timer::{INTERVAL, Timer};
use crate::store::retain::Clock;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval at which queues and index are flushed and the checkpoint is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Threads {
    _ahead: Timer,
    _flush: Timer,
}

impl Threads {
    pub(super) fn start(store: &Arc<OwnedStore>, watch: &Arc<Mutex<FileWatch>>) -> io::Result<Self> {
        let prepare = preparing(store.clone(), watch.clone());
        let _ahead = Timer::start("rmqfast-ahead", file_watch::INTERVAL, store.work.signal.clone(), prepare)?;
        let _flush = Timer::start("rmqfast-flush", INTERVAL, Arc::default(), flushing(store.clone()))?;
        Ok(Self { _ahead, _flush })
    }
}

/// Returns the work of the preparing thread. It does not hold the append lock, because a page fault may wait for the
/// disk.
fn preparing(store: Arc<OwnedStore>, watch: Arc<Mutex<FileWatch>>) -> impl FnMut(bool) + Send {
    move |_| {
        while let Some((pages, range)) = store.work.next_pages() {
            pages.touch(range);
        }
        // On a full disk, the append that needs the file reports the error.
        let _ = store.create_ahead();
        watch.lock().unwrap_or_else(PoisonError::into_inner).look(&store);
    }
}

/// Returns the work of the flushing thread. After a failed flush the next append fails.
fn flushing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    let mut ticks = 0;
    move |is_time| {
        // After an error, the next run of retention tries again.
        let _ = store.retention.tick(&InThread(&store), Clock::now());
        if !is_time {
            return;
        }
        // Most ticks flush only the log, which holds all data. The other files can be rebuilt from it.
        ticks += 1;
        let _ = match ticks % (CHECKPOINT_EVERY.as_millis() / INTERVAL.as_millis()) {
            0 => store.flush(),
            _ => store.flush_log(),
        };
    }
}
