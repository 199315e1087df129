//! Follows a master's log into a copy. One thread reads and appends records. One adds the appended records to consume
//! queues and index. One sends reports and checks timeouts.
//!
//! Each record is checked before it is written: its own position, its lengths, and the CRC of its body. At the start
//! the last bytes of the copy are requested again and compared, because the protocol does not tell whether the master
//! has lost its last bytes.
use crate::connection::{Connection, Keeper, SILENCE};
use crate::log_copy::{CopyProgress, Listing, LogCopy, LogSink};
use crate::mark::Places;
use crate::topic_copy::TopicCopy;
use crate::wire::{End, Wire};
use rmqfast_remoting::ClientTls;
use rmqfast_store::store::append::Appender;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

// Pause after all received bytes were read. Otherwise a master that sends single messages would wake this side for each
// of them, some hundred times a second. A slave does not pause, as sends may wait for its report.
const MOMENT: Duration = Duration::from_millis(2);

/// Limits the rate at which old parts of the log are read. The master must read them from its disk, which pushes data
/// that its consumers need out of its cache.
#[derive(Clone, Copy, Debug)]
pub struct ColdRead {
    pub rate: u64,
    /// Position before which the rate is limited.
    pub before: u64,
}

#[derive(Clone, Debug)]
pub struct Follow {
    /// `host:port` of the master's HA port.
    pub address: String,
    pub tls: Option<ClientTls>,
    /// First position to read. This is the end of the copy, or an earlier record, to compare the copy with the log.
    pub from: u64,
    pub max_record: usize,
    /// Limits the rate of reading old parts of the log; `None` for no limit.
    pub cold: Option<ColdRead>,
    /// Whether the follower builds consume queues and index.
    pub lists: bool,
    /// Whether the follower is a slave. A slave reports its position, so that sends may wait for it.
    pub counts: bool,
    /// Topics to copy; empty to copy the whole log. A copy of topics has a [mark](crate::mark).
    pub topics: Vec<String>,
}

/// Progress of a follower. All positions are offsets of the master's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// End of the last copied record.
    pub position: u64,
    /// Position up to which consume queues and index are built.
    pub listed_to: u64,
    /// Position up to which copy and log were compared. At first this is the position at which the follower starts.
    pub compared_to: u64,
    /// Whether the copy was compared up to its end.
    pub is_compared: bool,
    /// Store time of the last copied record, in milliseconds; 0 if no record was copied.
    pub last_store_ms: i64,
}

#[derive(Debug)]
struct Shared {
    position: AtomicU64,
    compared_to: AtomicU64,
    is_compared: AtomicBool,
    last_store_ms: AtomicI64,
    ending: Mutex<Ending>,
    ended: Condvar,
    keeper: Keeper,
    listing: Listing,
    lists: bool,
    /// Maps positions of the copy to positions of the master's log, for a copy of some topics. `None` for a full copy,
    /// whose positions are the master's.
    places: Option<Arc<Places>>,
}

/// Holds the reason for the end, and the number of threads that are still running.
#[derive(Debug, Default)]
struct Ending {
    end: Option<Arc<End>>,
    wire: Option<Arc<Wire>>,
    running: usize,
}

/// A copy of a master's log that follows its master in background threads.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Follower {
    /// Starts to copy a master's log into `copy`, whose directory is `root`. Fails with [`End::Store`] if the copy cannot be
    /// continued; [`End::Closed`] if no thread can be started.
    pub fn start(copy: Arc<Appender>, root: &Path, follow: Follow) -> Result<Self, End> {
        let (log, shared): (Box<dyn LogSink>, _) = if follow.topics.is_empty() {
            let log = LogCopy::new(copy.clone(), root, follow.from, follow.max_record)?;
            let shared = Shared::new(log.progress(), log.progress().position, None, follow.lists);
            (Box::new(log), shared)
        } else {
            let log = TopicCopy::new(copy.clone(), root, &follow.topics, follow.from, follow.max_record)?;
            let shared = Shared::new(log.progress(), log.copy_end(), Some(log.places().clone()), follow.lists);
            (Box::new(log), shared)
        };
        let shared = Arc::new(shared);
        let follower = Self { shared, threads: Mutex::default() };
        // dropped on an error, which ends threads already started
        follower.spawn("rmqfast-ha-copy", move |shared| shared.copy(&follow, log))?;
        follower.spawn("rmqfast-ha-list", move |shared| shared.listing.run(&copy))?;
        Ok(follower)
    }

    pub fn progress(&self) -> Progress {
        let shared = &self.shared;
        let position = shared.position.load(Ordering::Acquire);
        let compared_to = shared.compared_to.load(Ordering::Acquire);
        Progress {
            position,
            // a block may be indexed before its position is published
            listed_to: if shared.lists { shared.end_of_lists().min(position) } else { position },
            compared_to,
            // read last: if it is true, `compared_to` is up to date
            is_compared: shared.is_compared.load(Ordering::Acquire),
            last_store_ms: shared.last_store_ms.load(Ordering::Acquire),
        }
    }

    /// Waits up to `timeout` until all threads have ended and all bytes read are written. Returns the reason for the
    /// end, or `None` if the follower is still running.
    pub fn wait(&self, timeout: Duration) -> Option<Arc<End>> {
        let runs = |ending: &mut Ending| ending.running > 0;
        let waited = self.shared.ended.wait_timeout_while(self.shared.ending(), timeout, runs);
        let (ending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ending.end.clone().filter(|_| ending.running == 0)
    }

    /// Stops following. Complete records that were received are written first. Returns when all threads have ended.
    pub fn stop(&self) {
        self.shared.end(End::Stopped);
        for thread in std::mem::take(&mut *self.threads()) {
            // a panic was already printed
            let _ = thread.join();
        }
    }

    fn spawn<F>(&self, name: &str, work: F) -> Result<(), End>
    where
        F: FnOnce(&Shared) -> Result<(), End> + Send + 'static,
    {
        let shared = self.shared.clone();
        shared.ending().running += 1;
        let running = Running(shared.clone());
        let run = move || {
            let running = running;
            if let Err(end) = work(&running.0) {
                running.0.end(end);
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).map_err(End::Closed)?;
        self.threads().push(thread);
        Ok(())
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Counts a thread as running until it is dropped, even after a panic.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut ending = self.0.ending();
        ending.running -= 1;
        if ending.running == 0 {
            // no reason is set after a panic
            ending.end.get_or_insert_with(|| End::Stopped.into());
        }
        self.0.ended.notify_all();
    }
}

/// Marks the end of the queue of blocks when it is dropped, even after a panic.
struct ListingEnd<'a>(&'a Listing);

impl Drop for ListingEnd<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Shared {
    /// Creates the state for a copy whose log ends at `copy_end`. Queues and index are complete up to there.
    fn new(progress: CopyProgress, copy_end: u64, places: Option<Arc<Places>>, lists: bool) -> Self {
        Self {
            position: AtomicU64::new(progress.position),
            compared_to: AtomicU64::new(progress.compared_to),
            is_compared: AtomicBool::new(progress.is_compared),
            last_store_ms: AtomicI64::new(progress.last_store_ms),
            ending: Mutex::default(),
            ended: Condvar::new(),
            keeper: Keeper::default(),
            listing: Listing::new(copy_end),
            lists,
            places,
        }
    }

    /// Returns the position in the master's log up to which consume queues and index are built.
    fn end_of_lists(&self) -> u64 {
        let listed = self.listing.end_of_lists();
        self.places.as_ref().map_or(listed, |places| places.position_at(listed))
    }

    fn show(&self, progress: CopyProgress) {
        self.last_store_ms.store(progress.last_store_ms, Ordering::Release);
        self.is_compared.store(progress.is_compared, Ordering::Release);
        self.compared_to.store(progress.compared_to, Ordering::Release);
        // the position last, as `progress` reads it first
        self.position.store(progress.position, Ordering::Release);
    }

    /// Reads the log and appends it to the copy, until a reason to end occurs.
    fn copy(&self, follow: &Follow, mut log: Box<dyn LogSink>) -> Result<(), End> {
        let _ending = ListingEnd(&self.listing);
        let copied = self.connect(follow).and_then(|mut connection| {
            self.keeper.begin(connection.wire());
            thread::scope(|scope| {
                let keeping = scope.spawn(|| self.keeper.keep().inspect_err(|_| self.cut_off()));
                let copied = self.copy_all(follow, &mut connection, &mut *log);
                self.keeper.end();
                // the keeper's reason for cutting the connection explains more than the error that the cut causes
                keeping.join().unwrap_or(Ok(())).and(copied)
            })
        });
        match copied {
            // after a failed write the state of the copy is unknown
            Err(End::Store(_)) => copied,
            _ => log.finish().and(copied),
        }
    }

    fn connect(&self, follow: &Follow) -> Result<Connection, End> {
        let connection = Connection::open(&follow.address, follow.tls.as_ref(), follow.from, SILENCE)?;
        let mut ending = self.ending();
        ending.wire = Some(connection.wire());
        // `stop` ran meanwhile and had no connection to end
        if ending.end.is_some() { Err(End::Stopped) } else { Ok(connection) }
    }

    fn copy_all(&self, follow: &Follow, connection: &mut Connection, log: &mut dyn LogSink) -> Result<(), End> {
        let listing = follow.lists.then_some(&self.listing);
        loop {
            let count = connection.read(log.room())?;
            if connection.has_heard() {
                self.keeper.has_read();
            }
            // the keeper limits the time of a write: a slow disk must not keep the master from removing old files
            self.keeper.writes(true);
            let outcome = log.take(count, listing);
            self.keeper.writes(false);
            let progress = log.progress();
            self.show(progress);
            outcome?;
            if follow.counts && connection.has_heard() {
                // before the comparison is complete, the rest of the copy may differ from the master
                self.keeper.has_copied(if progress.is_compared { progress.position } else { progress.compared_to })?;
            }
            // no send waits for a reader that is not a replica, so it may read less often
            if !follow.counts && connection.is_drained() {
                self.pause(MOMENT);
            }
            if let Some(cold) = follow.cold.filter(|cold| cold.rate > 0 && connection.position() < cold.before) {
                self.pause(Duration::from_secs_f64(count as f64 / cold.rate as f64));
            }
        }
    }

    /// Sleeps for `duration`, but not longer than the follower runs.
    fn pause(&self, duration: Duration) {
        let goes_on = |ending: &mut Ending| ending.end.is_none();
        drop(self.ended.wait_timeout_while(self.ending(), duration, goes_on));
    }

    /// Stores the reason for the end, and ends the connection. A failure to write the copy replaces an earlier
    /// reason.
    fn end(&self, end: End) {
        let mut ending = self.ending();
        if ending.end.as_deref().is_none_or(|noted| tells(&end) > tells(noted)) {
            ending.end = Some(end.into());
        }
        drop(ending);
        self.ended.notify_all();
        self.cut_off();
    }

    fn cut_off(&self) {
        if let Some(wire) = &self.ending().wire {
            wire.end();
        }
    }

    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the rank of a reason. After a failed write, other threads fail with less specific reasons, which have a
/// lower rank.
fn tells(end: &End) -> u8 {
    match end {
        End::Store(error) if error.is_disk_full() => 2,
        End::Store(_) => 1,
        _ => 0,
    }
}
