//! Background threads of an open store, and the work that appends leave to them.
//!
//! Source: `CommitLog.FlushRealTimeService`, `DefaultMessageStore.FlushConsumeQueueService`, `AllocateMappedFileService`.
use crate::file::mmap::Pages;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the flushing thread runs (`flushIntervalCommitLog`).
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Owns a background thread. Dropping the timer stops the thread.
#[derive(Debug)]
pub struct Timer {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

/// Wakes the thread of a timer. A signal may be created before its thread.
#[derive(Debug, Default)]
pub struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_called: bool,
    is_over: bool,
}

impl Timer {
    /// Starts a thread that calls `tick(true)` every `interval`, and `tick(false)` as soon as `signal` is
    /// [called](Signal::call).
    pub fn start(
        name: &str,
        interval: Duration,
        signal: Arc<Signal>,
        mut tick: impl FnMut(bool) + Send + 'static,
    ) -> std::io::Result<Self> {
        // The thread must not own the timer, which waits for the thread when it is dropped.
        let theirs = signal.clone();
        let run = move || {
            while let Some(is_time) = theirs.wait(interval) {
                tick(is_time);
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { signal, thread: Some(thread), process: std::process::id() })
    }
}

impl Signal {
    pub fn call(&self) {
        if !std::mem::replace(&mut self.lock().is_called, true) {
            self.changed.notify_one();
        }
    }

    /// Waits for a call of the signal. Returns true if the interval ended before a call, and `None` after the timer
    /// was dropped.
    fn wait(&self, interval: Duration) -> Option<bool> {
        let idle = |state: &mut State| !state.is_called && !state.is_over;
        let result = self.changed.wait_timeout_while(self.lock(), interval, idle);
        let (mut state, timeout) = result.unwrap_or_else(PoisonError::into_inner);
        // Cleared before the work, so that a call during the work leads to one more round.
        state.is_called = false;
        (!state.is_over).then_some(timeout.timed_out())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != std::process::id() {
            return std::mem::forget(thread); // A forked process does not have the thread, so it cannot wait for the thread.
        }
        self.signal.lock().is_over = true;
        self.signal.changed.notify_one();
        let _ = thread.join();
    }
}

#[derive(Debug, Default)]
pub struct BackgroundWork {
    pub(super) signal: Arc<Signal>,
    pages: Mutex<Vec<(Pages, Range<u64>)>>,
}

impl BackgroundWork {
    /// Adds pages that the background thread shall fault in.
    pub fn touch(&self, pages: Pages, range: Range<u64>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push((pages, range));
        self.signal.call();
    }

    /// Wakes the background thread, which creates the log's next file if one is needed soon.
    pub fn create(&self) {
        self.signal.call();
    }

    /// Wakes the background thread, which checks the files for changes by other processes.
    pub fn look(&self) {
        self.signal.call();
    }

    pub(super) fn next_pages(&self) -> Option<(Pages, Range<u64>)> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        (!pages.is_empty()).then(|| pages.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_waiting::PATIENCE;
    use std::sync::mpsc::channel;

    #[test]
    fn it_ticks_when_called_and_by_itself_and_ends_when_dropped() {
        let (send, receive) = channel();
        let signal = Arc::new(Signal::default());
        let timer =
            Timer::start("test", INTERVAL, signal.clone(), move |is_time| send.send(is_time).expect("received"))
                .expect("started");
        let mut ticks = std::iter::from_fn(|| receive.recv_timeout(PATIENCE).ok());
        signal.call();
        // Intervals may have passed while this thread slept.
        assert!(ticks.any(|is_time| !is_time));
        assert_eq!(ticks.next(), Some(true));
        drop(timer);
        // ends only when the timer's thread has ended
        assert!(receive.iter().all(|is_time| is_time));
    }
}
