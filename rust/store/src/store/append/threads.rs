//! The threads of a store that is appended to: one flushes and removes what is old, one prepares what the next records need.
//!
//! Source: `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`, `AllocateMappedFileService`.
use super::appender::OwnedStore;
use super::cleaning::InThread;
use super::options::Flush;
use super::timer::{INTERVAL, Timer};
use crate::store::retain::Clock;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often queues and index are flushed, too, and the checkpoint is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// They run until this is dropped.
#[derive(Debug)]
pub struct Threads {
    ahead: Timer,
    _flush: Timer,
}

impl Threads {
    /// Starts them for `store`.
    ///
    /// # Errors
    /// What the operating system says where it has no thread left.
    pub(super) fn start(store: &Arc<OwnedStore>) -> io::Result<Self> {
        let ahead = Timer::start("rmqfast-ahead", preparing(store.clone()))?;
        Ok(Self { ahead, _flush: Timer::start("rmqfast-flush", flushing(store.clone()))? })
    }

    /// The log wants pages or a file.
    pub fn call_ahead(&self) {
        self.ahead.call();
    }
}

/// With a wait after each append, a page that is ready early is written to the disk twice.
fn preparing(store: Arc<OwnedStore>) -> impl FnMut(bool) + Send {
    move |_| {
        if store.options.flush == Flush::Async {
            store.touch_ahead();
        }
        // a full disk is told to the append that needs the file
        let _ = store.create_ahead();
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
