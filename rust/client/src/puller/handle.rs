//! The handle of a puller.
use super::fetched::{Item, Queue};
use super::options::{Assignment, PullerOptions};
use super::pull_queue::Held;
use super::state::State;
use super::worker::{Shared, Worker};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pulls many queues of one broker, in a thread and over a connection of its own; any thread may take what came.
#[derive(Debug)]
pub struct Puller {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Puller {
    /// Starts the thread; it connects to `host:port` as soon as a queue is assigned.
    ///
    /// # Errors
    /// [`Error::Remoting`] if the operating system gives no thread.
    pub fn open(address: &str, options: PullerOptions) -> Result<Self> {
        let options = Arc::new(options);
        let failed = |source| rmqfast_remoting::Error::Io { what: "starting a puller".to_owned(), source };
        let (shared, ear) = Shared::new(State::new(options.clone()), options.gather.pause).map_err(failed)?;
        let shared = Arc::new(shared);
        let now = Instant::now();
        let worker = Worker {
            shared: shared.clone(),
            ear,
            address: address.to_owned(),
            options,
            link: None,
            failures: 0,
            retry_at: now,
            heard_at: now,
        };
        let thread =
            std::thread::Builder::new().name("rmqfast-puller".into()).spawn(|| worker.run()).map_err(failed)?;
        Ok(Self { shared, thread: Some(thread).into() })
    }

    /// As [`State::assign`].
    pub fn assign(&self, queue: Queue, assignment: Assignment) -> u64 {
        let epoch = self.shared.lock().assign(queue, assignment);
        self.shared.ready.notify_all();
        self.shared.wake();
        epoch
    }

    /// As [`State::remove`]. Returns whether it was pulled.
    pub fn remove(&self, queue: &Queue) -> bool {
        let was_pulled = self.shared.lock().remove(queue).is_some();
        self.shared.wake();
        was_pulled
    }

    /// As [`State::seek`].
    pub fn seek(&self, queue: &Queue, offset: i64) -> Option<u64> {
        let epoch = self.shared.lock().seek(queue, offset);
        self.shared.wake();
        epoch
    }

    /// As [`State::pause`].
    pub fn pause(&self, queue: &Queue, is_paused: bool) -> bool {
        let was_pulled = self.shared.lock().pause(queue, is_paused);
        self.shared.wake();
        was_pulled
    }

    /// What came, at most `max` items; waits for the first of them until `until`, then for as much as is gathered.
    ///
    /// What is taken counts as held until the next call: who pauses a queue before gets no more of it than is allowed.
    ///
    /// # Errors
    /// [`Error::Closed`] once it was closed.
    pub fn take(&self, until: Instant, max: usize) -> Result<Vec<Item>> {
        let mut state = self.shared.lock();
        if state.release() {
            self.shared.wake();
        }
        let mut until = until;
        let mut was_ready = false;
        loop {
            if self.shared.is_closed() || self.has_ended() {
                return Err(Error::Closed);
            }
            if max == 0 || state.is_ready() && state.is_gathered(max) {
                break;
            }
            let now = Instant::now();
            if state.is_ready() && !was_ready {
                was_ready = true;
                until = until.min(now + self.shared.pause);
            }
            let left = until.saturating_duration_since(now);
            if left.is_zero() {
                break;
            }
            // a thread that came to a bad end rings no bell
            let left = left.min(Duration::from_secs(1));
            state = self.shared.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state.take(max))
    }

    /// What is held that nobody took.
    pub fn held(&self) -> Held {
        self.shared.lock().held()
    }

    /// Ends the thread and the connection, and waits for that: as long as a try to connect takes, at most.
    pub fn close(&self) {
        self.end();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // its panic was printed, and nothing is left to be done
            let _ = thread.join();
        }
    }

    fn end(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.wake();
        self.shared.ready.notify_all();
    }

    fn has_ended(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Puller {
    fn drop(&mut self) {
        self.end();
    }
}
