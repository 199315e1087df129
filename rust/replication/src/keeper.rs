//! Keeps a connection while its thread reads and writes: sends what a master wants to hear, and ends a connection that nobody reads.
//!
//! A follower is no replica, unless it is told to count: after its request it reports a position below all that a send waits for.
//! Only once something came, as of two reports in one read a master takes the second for the request.
//!
//! Source: `HAConnection.ReadSocketService`, `HAClient.isTimeToReportOffset`.
use crate::end::End;
use crate::frame::{NO_REPLICA, report};
use crate::wire::Wire;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two reports: a master closes a connection over which it hears nothing for 20 seconds.
pub const REPORT_EVERY: Duration = Duration::from_secs(5);
// Time without reads while this side writes: a master keeps old files that it still has to send.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// State that the reading thread shares with the keeper.
#[derive(Debug)]
pub struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    /// The position to report: of a replica, the end of its log.
    position: AtomicI64,
    /// Two threads report: whoever has it writes a whole one.
    wire: Mutex<Option<Arc<Wire>>>,
}

impl Default for Keeper {
    fn default() -> Self {
        let (state, changed, wire) = (Mutex::default(), Condvar::new(), Mutex::default());
        Self { state, changed, position: AtomicI64::new(NO_REPLICA), wire }
    }
}

#[derive(Debug, Default)]
struct State {
    has_read: bool,
    /// Since when what was read is written.
    writing_since: Option<Instant>,
    is_over: bool,
}

impl Keeper {
    pub fn has_read(&self) {
        let mut state = self.state();
        if !state.has_read {
            state.has_read = true;
            self.changed.notify_all();
        }
    }

    /// Begins or ends a write of what came.
    pub fn writes(&self, is_begun: bool) {
        self.state().writing_since = is_begun.then(Instant::now);
    }

    /// The connection is over.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub fn begin(&self, wire: Arc<Wire>) {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire);
    }

    /// Reports now that the copy has all before `position`, as a slave does, and so from now on.
    ///
    /// # Errors
    /// [`End::Closed`].
    pub fn has_copied(&self, position: u64) -> Result<(), End> {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        if self.position.swap(position, Ordering::Relaxed) == position { Ok(()) } else { self.report() }
    }

    fn report(&self) -> Result<(), End> {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        // under the lock: the last report is the newest
        let position = self.position.load(Ordering::Relaxed);
        wire.as_ref().map_or(Ok(()), |wire| wire.write_all(&report(position), &[]).map_err(End::Closed))
    }

    /// Keeps the connection until it is over.
    ///
    /// # Errors
    /// [`End::Stalled`], [`End::Closed`].
    pub fn keep(&self) -> Result<(), End> {
        let mut last_report: Option<Instant> = None;
        loop {
            let state = self.changed.wait_timeout(self.state(), LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            if state.is_over {
                return Ok(());
            }
            if state.writing_since.is_some_and(|since| since.elapsed() >= PATIENCE) {
                return Err(End::Stalled(PATIENCE.as_secs()));
            }
            let is_due = state.has_read && last_report.is_none_or(|last| last.elapsed() >= REPORT_EVERY);
            drop(state);
            if is_due {
                self.report()?;
                last_report = Some(Instant::now());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
