//! Keeps a connection alive while its thread reads and writes. Sends reports to the master, and ends the connection
//! if the thread does not read it.
//!
//! Unless it is configured as a slave, a follower is not a replica and reports a position that is too low for any
//! send. The first report is sent only after bytes have arrived, because a master that reads two reports at once
//! takes the second for the request.
//!
//! Source: `HAConnection.ReadSocketService`, `HAClient.isTimeToReportOffset`.
use crate::end::End;
use crate::frame::{NO_REPLICA, report};
use crate::wire::Wire;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval of reports. A master closes a connection after 20 seconds without a report.
pub const REPORT_EVERY: Duration = Duration::from_secs(5);
// Maximum time of a write, during which nothing is read: the master keeps old files that it must still send.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// State that the reading thread and the keeper share.
#[derive(Debug)]
pub struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    /// Position to report. For a replica this is the end of the copy, otherwise [`NO_REPLICA`].
    position: AtomicI64,
    /// The wire. It is locked during a report, because two threads send reports.
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
    /// Time at which the current write to the copy began.
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

    /// Called before and after each write to the copy.
    pub fn writes(&self, is_begun: bool) {
        self.state().writing_since = is_begun.then(Instant::now);
    }

    /// Ends the keeper. Called when the connection has ended.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub fn begin(&self, wire: Arc<Wire>) {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire);
    }

    /// Reports that the copy is complete up to `position`. The reports that follow repeat this position.
    ///
    /// # Errors
    /// [`End::Closed`].
    pub fn has_copied(&self, position: u64) -> Result<(), End> {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        if self.position.swap(position, Ordering::Relaxed) == position { Ok(()) } else { self.report() }
    }

    fn report(&self) -> Result<(), End> {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        // read under the lock, so that the newest position is reported last
        let position = self.position.load(Ordering::Relaxed);
        wire.as_ref().map_or(Ok(()), |wire| wire.write_all(&report(position), &[]).map_err(End::Closed))
    }

    /// Sends reports and checks how long the current write takes, until [`end`](Self::end).
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
            // not before the first bytes, see the module's comment
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
