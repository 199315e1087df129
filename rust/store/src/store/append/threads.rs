//! The threads of a store that is appended to: one flushes and removes what is old, one prepares what the next records need,
//! and looks whether other processes leave the files alone.
//!
//! Source: `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`, `AllocateMappedFileService`.
use super::appender::OwnedStore;
use super::cleaning::InThread;
use super::lookout;
use super::timer::{INTERVAL, Signal, Timer};
use crate::file::mmap::Pages;
use crate::store::retain::Clock;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often queues and index are flushed, too, and the checkpoint is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// They run until this is dropped.
#[derive(Debug)]
pub struct Threads {
    _ahead: Timer,
    _flush: Timer,
}

/// What is to be prepared.
#[derive(Debug, Default)]
pub struct Ahead {
    signal: Arc<Signal>,
    pages: Mutex<Vec<(Pages, Range<u64>)>>,
}

impl Ahead {
    /// Has pages made ready.
    pub fn touch(&self, pages: Pages, range: Range<u64>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push((pages, range));
        self.signal.call();
    }

    /// Has the log's next file created.
    pub fn create(&self) {
        self.signal.call();
    }

    /// Has somebody look at the files now.
    pub fn look(&self) {
        self.signal.call();
    }

    fn next_pages(&self) -> Option<(Pages, Range<u64>)> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        (!pages.is_empty()).then(|| pages.remove(0))
    }
}

impl Threads {
    /// Starts them for `store`.
    ///
    /// # Errors
    /// What the operating system says where it has no thread left.
    pub(super) fn start(store: &Arc<OwnedStore>) -> io::Result<Self> {
        let _ahead =
            Timer::start("rmqfast-ahead", lookout::INTERVAL, store.ahead.signal.clone(), preparing(store.clone()))?;
        let _flush = Timer::start("rmqfast-flush", INTERVAL, Arc::default(), flushing(store.clone()))?;
        Ok(Self { _ahead, _flush })
    }
}

/// Without the append lock: a page fault may wait for the disk, and whoever appends goes on meanwhile.
fn preparing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    move |_| {
        while let Some((pages, range)) = store.ahead.next_pages() {
            pages.touch(range);
        }
        // a full disk is told to the append that needs the file
        let _ = store.create_ahead();
        store.lookout().look(&store);
    }
}

/// A failure shows at the next append.
fn flushing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    let mut ticks = 0;
    move |is_time| {
        // what fails now is tried again with the next run
        let _ = store.retention.tick(&InThread(&store), Clock::now());
        if !is_time {
            return;
        }
        ticks += 1;
        let _ = match ticks % (CHECKPOINT_EVERY.as_millis() / INTERVAL.as_millis()) {
            0 => store.flush(),
            _ => store.flush_log(),
        };
    }
}
