//! Follows a master's log into a copy of it. One thread reads and appends, one lists what was appended, one keeps the connection.
//!
//! Nothing is written that does not prove itself: each record tells its own place, its lengths agree, and its body has its CRC.
//! What the copy has already is asked for once more, and compared, as nothing on the wire tells that a master lost its tail.
use crate::connection::{Connection, SILENCE};
use crate::end::End;
use crate::keeper::Keeper;
use crate::listing::Listing;
use crate::log_copy::LogCopy;
use crate::log_sink::{CopyProgress, LogSink};
use crate::places::Places;
use crate::topic_copy::TopicCopy;
use crate::wire::Wire;
use rmqfast_remoting::ClientTls;
use rmqfast_store::store::append::Appender;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

// After all that had come was read, the next read is a moment later: a master that sends single messages wakes this side some
// hundred times a second, not for each of them. A slave reads at once, as sends may wait for its report.
const MOMENT: Duration = Duration::from_millis(2);

/// Limits the reading of old parts of the log: a master reads them from its disk, and its consumers lose their cache.
#[derive(Clone, Copy, Debug)]
pub struct ColdRead {
    pub rate: u64,
    /// From here on the log is young.
    pub before: u64,
}

/// Options of a follower.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The master's HA port, `host:port`.
    pub address: String,
    /// TLS, where that port has it.
    pub tls: Option<ClientTls>,
    /// First position to read: the end of the copy or before it, where it has bytes to compare.
    pub from: u64,
    /// Bytes of a record at most.
    pub max_record: usize,
    /// Limits the reading of old parts; `None` has no limit.
    pub cold: Option<ColdRead>,
    /// Whether queues and index list what comes.
    pub lists: bool,
    /// Whether it is a slave, which reports what it has: sends may wait for that.
    pub counts: bool,
    /// The topics that the copy keeps; all of the log where there are none. A copy of topics has a [mark](crate::mark).
    pub topics: Vec<String>,
}

/// Progress of a follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Offset behind the last record that was taken.
    pub position: u64,
    /// Up to where queues and index list the log.
    pub listed_to: u64,
    /// Up to where copy and log were compared; the start until then.
    pub compared_to: u64,
    /// Whether all that the copy had was compared.
    pub is_compared: bool,
    /// Store time of the last record that was taken; 0 before the first one.
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
    /// Of a copy whose places are not those of the log.
    places: Option<Arc<Places>>,
}

/// Why it ended, and whether all threads are through.
#[derive(Debug, Default)]
struct Ending {
    end: Option<Arc<End>>,
    wire: Option<Arc<Wire>>,
    running: usize,
}

/// A copy that grows with its master's log, until it ends for one reason or another.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Follower {
    /// Begins to follow into `copy`, whose directory is `root`.
    ///
    /// # Errors
    /// [`End::Store`] where the copy takes nothing; [`End::Closed`] where there is no thread left.
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
        // dropped on an error, which ends those that run
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
            // a block may be listed before its position is shown
            listed_to: if shared.lists { shared.end_of_lists().min(position) } else { position },
            compared_to,
            // looked at last: where all up to there was compared, it is no less than what belongs to that
            is_compared: shared.is_compared.load(Ordering::Acquire),
            last_store_ms: shared.last_store_ms.load(Ordering::Acquire),
        }
    }

    /// Waits until it ended, and all that was read is written, or for `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Arc<End>> {
        let runs = |ending: &mut Ending| ending.running > 0;
        let waited = self.shared.ended.wait_timeout_while(self.shared.ending(), timeout, runs);
        let (ending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ending.end.clone().filter(|_| ending.running == 0)
    }

    /// Ends it, unless it has; whole records that were read are written first. Returns once its threads are gone.
    pub fn stop(&self) {
        self.shared.end(End::Stopped);
        for thread in std::mem::take(&mut *self.threads()) {
            // a panic of it was told already, by the thread itself
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

/// A thread that runs; dropped at its end, be that a panic.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut ending = self.0.ending();
        ending.running -= 1;
        if ending.running == 0 {
            // after a panic, of which its thread has told
            ending.end.get_or_insert_with(|| End::Stopped.into());
        }
        self.0.ended.notify_all();
    }
}

/// Whoever gives blocks to be listed; gone, also for a panic, no more come.
struct ListingEnd<'a>(&'a Listing);

impl Drop for ListingEnd<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Shared {
    /// Of a log that is taken so far; the copy's own ends at `copy_end`, and is listed.
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

    /// Up to where queues and index list the log.
    fn end_of_lists(&self) -> u64 {
        let listed = self.listing.end_of_lists();
        self.places.as_ref().map_or(listed, |places| places.position_at(listed))
    }

    fn show(&self, progress: CopyProgress) {
        self.last_store_ms.store(progress.last_store_ms, Ordering::Release);
        self.is_compared.store(progress.is_compared, Ordering::Release);
        self.compared_to.store(progress.compared_to, Ordering::Release);
        self.position.store(progress.position, Ordering::Release);
    }

    /// Reads the log and appends it, until something ends that.
    fn copy(&self, follow: &Follow, mut log: Box<dyn LogSink>) -> Result<(), End> {
        let _ending = ListingEnd(&self.listing);
        let copied = self.connect(follow).and_then(|mut connection| {
            self.keeper.begin(connection.wire());
            thread::scope(|scope| {
                let keeping = scope.spawn(|| self.keeper.keep().inspect_err(|_| self.cut_off()));
                let copied = self.copy_all(follow, &mut connection, &mut *log);
                self.keeper.end();
                // why it ended the connection tells more than that this ended
                keeping.join().unwrap_or(Ok(())).and(copied)
            })
        });
        match copied {
            // nobody knows what it has then
            Err(End::Store(_)) => copied,
            _ => log.finish().and(copied),
        }
    }

    fn connect(&self, follow: &Follow) -> Result<Connection, End> {
        let connection = Connection::open(&follow.address, follow.tls.as_ref(), follow.from, SILENCE)?;
        let mut ending = self.ending();
        ending.wire = Some(connection.wire());
        // stopped meanwhile: nobody had a connection to end
        if ending.end.is_some() { Err(End::Stopped) } else { Ok(connection) }
    }

    fn copy_all(&self, follow: &Follow, connection: &mut Connection, log: &mut dyn LogSink) -> Result<(), End> {
        let listing = follow.lists.then_some(&self.listing);
        loop {
            let count = connection.read(log.room())?;
            if connection.has_heard() {
                self.keeper.has_read();
            }
            // the keeper measures how long the write takes: a slow disk must not hold old files back at the master
            self.keeper.writes(true);
            let outcome = log.take(count, listing);
            self.keeper.writes(false);
            let progress = log.progress();
            self.show(progress);
            outcome?;
            if follow.counts && connection.has_heard() {
                // before all was compared, the copy may have other bytes than its master
                self.keeper.has_copied(if progress.is_compared { progress.position } else { progress.compared_to })?;
            }
            // no send waits for a reader that is no replica, so that it may be woken less often
            if !follow.counts && connection.is_drained() {
                self.pause(MOMENT);
            }
            if let Some(cold) = follow.cold.filter(|cold| cold.rate > 0 && connection.position() < cold.before) {
                self.pause(Duration::from_secs_f64(count as f64 / cold.rate as f64));
            }
        }
    }

    /// Waits for so long, unless it ends.
    fn pause(&self, duration: Duration) {
        let goes_on = |ending: &mut Ending| ending.end.is_none();
        drop(self.ended.wait_timeout_while(self.ending(), duration, goes_on));
    }

    /// Notes why it ended, and ends the connection. What was wrong with the copy tells more than how the connection ended.
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

/// Rank of an end, where threads end for different reasons: behind a write that failed, others find that nothing is taken.
fn tells(end: &End) -> u8 {
    match end {
        End::Store(error) if error.is_disk_full() => 2,
        End::Store(_) => 1,
        _ => 0,
    }
}
