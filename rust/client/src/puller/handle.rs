//! The handle of a puller, which any thread may use.
use super::options::Queue;
use super::options::{Assignment, Broker, PullerOptions, Subscription, Threshold};
use super::pull_queue::Volume;
use super::pulled_answer::{Item, PulledAnswer};
use super::state::State;
use super::worker::{OnReady, Shared, Worker};
use crate::error::{Error, Result};
use rmqfast_os::bell::{Bell, bell};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pulls many queues of many brokers. Each broker has one connection and one thread. Any thread may take the answers.
pub struct Puller {
    shared: Arc<Shared>,
    /// Indexed by the broker's number.
    threads: Mutex<Vec<BrokerThread>>,
}

struct BrokerThread {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Puller {
    /// Creates a puller without queues.
    ///
    /// # Arguments
    /// * `on_ready` - called by any thread when the first item becomes ready, and at the end. It must not block or call
    ///   the puller.
    ///   Meant for event loops, which cannot wait in [`take`](Self::take).
    pub fn new(options: PullerOptions, on_ready: Option<Arc<OnReady>>) -> Self {
        Self { shared: Shared::new(options, on_ready).into(), threads: Mutex::default() }
    }

    pub fn options(&self) -> &PullerOptions {
        &self.shared.options
    }

    /// Starts pulling a queue and returns its epoch. The broker's thread connects to the broker.
    ///
    /// # Errors
    /// [`Error::Remoting`] if a thread cannot be started; [`Error::Closed`].
    pub fn assign(&self, broker: Broker, queue: Queue, assignment: Assignment) -> Result<u64> {
        let (threads, broker) = self.thread_of(broker)?;
        let epoch = self.shared.lock().assign(broker, queue, assignment);
        threads[broker].bell.ring();
        drop(threads);
        // an empty range is at its end at once, so there is an item to take
        self.shared.notify();
        Ok(epoch)
    }

    /// Pulls the queue from another broker. See [`State::move_to`].
    ///
    /// # Errors
    /// Fails like [`assign`](Self::assign).
    pub fn move_to(&self, broker: Broker, queue: &Queue) -> Result<bool> {
        let (threads, broker) = self.thread_of(broker)?;
        let was_pulled = self.shared.lock().move_to(broker, queue);
        threads[broker].bell.ring();
        Ok(was_pulled)
    }

    /// Extends the range of a queue whose messages were read ahead. See [`State::resume`].
    ///
    /// # Errors
    /// Fails like [`assign`](Self::assign).
    pub fn resume(&self, broker: Broker, queue: &Queue, assignment: &Assignment) -> Result<Option<u64>> {
        let (threads, broker) = self.thread_of(broker)?;
        let epoch = self.shared.lock().resume(broker, queue, assignment);
        threads[broker].bell.ring();
        drop(threads);
        self.shared.notify();
        Ok(epoch)
    }

    pub fn position(&self, queue: &Queue) -> Option<i64> {
        self.shared.lock().position(queue)
    }

    pub fn has_queues(&self) -> bool {
        self.shared.lock().has_queues()
    }

    /// Returns whether a connection was lost, which [`take`](Self::take) has not reported yet, or a thread panicked.
    pub fn was_lost(&self) -> bool {
        self.shared.lock().was_lost() || self.has_ended()
    }

    pub fn retain(&self, is_kept: impl FnMut(&Queue) -> bool) {
        self.change(|state| state.retain(is_kept));
    }

    /// Stops pulling the queue. Returns false if it was not pulled.
    pub fn remove(&self, queue: &Queue) -> bool {
        self.change(|state| state.remove(queue)).is_some()
    }

    pub fn seek(&self, queue: &Queue, offset: i64) -> Option<u64> {
        self.change(|state| state.seek(queue, offset))
    }

    pub fn pause(&self, queue: &Queue, is_paused: bool) -> bool {
        self.change(|state| state.pause(queue, is_paused))
    }

    pub fn subscribe(&self, topic: &str, subscription: Subscription) {
        self.change(|state| state.subscribe(topic, &subscription.into()));
    }

    pub fn set_threshold(&self, of_queue: Threshold) {
        self.change(|state| state.set_threshold(of_queue));
    }

    pub fn acknowledge(&self, epoch: u64, volume: Volume, position: i64) {
        let woken = self.shared.lock().acknowledge(epoch, volume, position);
        self.ring(&woken);
    }

    pub fn give_back(&self, fetched: PulledAnswer) {
        self.shared.lock().give_back(fetched);
        self.shared.notify();
    }

    /// Takes at most `max` items. Waits until `until` for the first item, and then at most `gather.pause` for the
    /// volume in `gather`.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`close`](Self::close).
    pub fn take(&self, until: Instant, max: usize) -> Result<Vec<Item>> {
        let mut state = self.shared.lock();
        let mut until = until;
        let mut was_ready = false;
        loop {
            if self.shared.is_closed() {
                return Err(Error::Closed);
            }
            if max == 0 || state.is_ready() && state.is_gathered(max) {
                break;
            }
            let now = Instant::now();
            if state.is_ready() && !was_ready {
                was_ready = true;
                // the first item is ready: from now on `gather.pause` limits the wait
                until = until.min(now + self.shared.options.gather.pause);
            }
            let remaining = until.saturating_duration_since(now);
            if remaining.is_zero() {
                break;
            }
            // a thread that panicked notifies nobody, so look again every second
            let remaining = remaining.min(Duration::from_secs(1));
            // a caller that waits here has handled everything it took: see `is_handled`
            state.takers += 1;
            state = self.shared.ready.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
            state.takers -= 1;
            if !state.is_ready() {
                // lock order: threads before state
                drop(state);
                if self.has_ended() {
                    return Err(Error::Closed);
                }
                state = self.shared.lock();
            }
        }
        let (items, woken) = state.take(max);
        // `ring` locks the threads, which must never happen while the state is locked
        drop(state);
        self.ring(&woken);
        Ok(items)
    }

    /// Returns two totals over all queues: messages that were received but not taken, and messages that were taken but
    /// not acknowledged.
    pub fn backlog(&self) -> (Volume, Volume) {
        let state = self.shared.lock();
        (state.ready_or_waiting(), state.in_hand())
    }

    pub fn is_handled(&self) -> bool {
        self.shared.lock().is_handled()
    }

    pub fn full_times(&self) -> u64 {
        self.shared.lock().full_times()
    }

    /// Closes the connections and waits for the threads to end, at most for the connect timeout.
    pub fn close(&self) {
        self.end();
        // joined without the lock: other callers must get `Error::Closed` at once
        let threads: Vec<_> = self.threads().iter_mut().filter_map(|broker| broker.thread.take()).collect();
        for thread in threads {
            // the panic was already printed
            let _ = thread.join();
        }
    }

    fn end(&self) {
        // set before the bells ring, as a woken thread reads this flag
        self.shared.is_closed.store(true, Ordering::Release);
        self.threads().iter().for_each(|broker| broker.bell.ring());
        self.shared.notify();
    }

    fn has_ended(&self) -> bool {
        self.threads().iter().any(|broker| broker.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    fn threads(&self) -> MutexGuard<'_, Vec<BrokerThread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the broker's thread if it is not running yet. Returns all threads, locked, and the number of the broker.
    fn thread_of(&self, broker: Broker) -> Result<(MutexGuard<'_, Vec<BrokerThread>>, usize)> {
        let mut threads = self.threads();
        if self.shared.is_closed() {
            return Err(Error::Closed);
        }
        // the threads have been locked since `is_closed` was read, so `close` joins every thread that starts here
        let number = self.shared.lock().broker(broker);
        while threads.len() <= number {
            let address = self.shared.lock().address(threads.len());
            let thread = self.start(threads.len(), address)?;
            threads.push(thread);
        }
        Ok((threads, number))
    }

    fn start(&self, broker: usize, address: Arc<str>) -> Result<BrokerThread> {
        let failed = |source| rmqfast_remoting::Error::Io { what: "starting a puller".to_owned(), source };
        let (bell, ear) = bell().map_err(failed)?;
        let now = Instant::now();
        let (shared, link, failures) = (self.shared.clone(), None, 0);
        let worker = Worker { shared, ear, broker, address, link, failures, retry_at: now, heard_at: now };
        let named = std::thread::Builder::new().name("rmqfast-puller".into());
        let thread = Some(named.spawn(|| worker.run()).map_err(failed)?);
        Ok(BrokerThread { bell, thread })
    }

    /// Changes the state, wakes all threads, and returns the result of `change`.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.shared.lock());
        self.threads().iter().for_each(|broker| broker.bell.ring());
        result
    }

    fn ring(&self, brokers: &[usize]) {
        if !brokers.is_empty() {
            let threads = self.threads();
            brokers.iter().filter_map(|broker| threads.get(*broker)).for_each(|broker| broker.bell.ring());
        }
    }
}

impl fmt::Debug for Puller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Puller").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Drop for Puller {
    fn drop(&mut self) {
        // not joined: a drop must not wait for the connect timeout
        self.end();
    }
}
