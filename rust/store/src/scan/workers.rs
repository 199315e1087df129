//! Threads that take jobs from a list and hand over results through a bounded channel, in any order.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of results, per thread, that the caller has not taken.
const WAITING: usize = 2;
/// Interval between calls of `interrupt` while no result arrives.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// Threads at work. Dropping it stops them.
pub struct Workers<T, E> {
    is_stopped: Arc<AtomicBool>,
    results: Option<Receiver<Result<T, E>>>,
    threads: Vec<JoinHandle<()>>,
    joins_on_drop: bool,
}

/// The place where a thread puts its results.
pub struct Outlet<T, E> {
    results: SyncSender<Result<T, E>>,
    is_stopped: Arc<AtomicBool>,
}

impl<T, E> Outlet<T, E> {
    /// Hands over a result, once there is room. Returns whether someone takes it.
    pub fn send(&self, result: T) -> bool {
        self.results.send(Ok(result)).is_ok()
    }

    /// Returns whether nobody takes results any more, so that the thread should end.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns the flag behind [`is_stopped`](Self::is_stopped), for work that cannot borrow the outlet.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.is_stopped.clone()
    }
}

impl<T: Send + 'static, E: Send + 'static> Workers<T, E> {
    /// Starts at most `threads` threads. Each takes the next job until there is none, or until a job fails.
    pub fn start<J: Send + 'static>(
        jobs: Vec<J>,
        threads: usize,
        work: impl Fn(J, &Outlet<T, E>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        let threads = threads.clamp(1, jobs.len().max(1));
        // The channel is bounded, so that threads wait for the caller and memory does not grow.
        let (sender, receiver) = sync_channel(threads * WAITING);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (jobs, work) = (Arc::new(Mutex::new(jobs.into_iter())), Arc::new(work));
        let spawn = |_| {
            let outlet = Outlet { results: sender.clone(), is_stopped: is_stopped.clone() };
            let (jobs, work) = (jobs.clone(), work.clone());
            std::thread::spawn(move || {
                // A panic in another thread leaves the jobs intact, and `next` reports the panic.
                let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some(job) = next() {
                    if let Err(error) = work(job, &outlet) {
                        // The caller may be gone, so there may be nobody to send to.
                        let _ = outlet.results.send(Err(error));
                        return;
                    }
                    if outlet.is_stopped() {
                        return;
                    }
                }
            })
        };
        let threads = (0..threads).map(spawn).collect();
        Self { is_stopped, results: Some(receiver), threads, joins_on_drop: true }
    }

    /// Makes a drop stop the threads without waiting for them, because they may wait for the thread that drops.
    #[must_use]
    pub fn without_joining(mut self) -> Self {
        self.joins_on_drop = false;
        self
    }

    /// Returns the next result, or `None` at the end. `interrupt` is called now and then; its error ends the wait.
    /// If a thread has panicked, panics with the same message at the end.
    pub fn next(&mut self, interrupt: &mut dyn FnMut() -> Result<(), E>) -> Result<Option<T>, E> {
        let Some(results) = &self.results else { return Ok(None) };
        loop {
            interrupt()?; // Each time, so that Ctrl-C works even if a result is always ready.
            match results.recv_timeout(ASK_INTERVAL) {
                Ok(result) => return result.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.results = None;
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(None)
    }
}

impl<T, E> Drop for Workers<T, E> {
    fn drop(&mut self) {
        // Running threads stop at their next look.
        self.is_stopped.store(true, Ordering::Relaxed);
        // Without a receiver a blocked send fails at once, so the threads end.
        self.results = None;
        if self.joins_on_drop {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}
