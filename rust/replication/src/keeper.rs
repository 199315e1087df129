//! Keeps a connection while its thread reads and writes: sends what a master wants to hear, and ends a connection that nobody reads.
//!
//! A follower is no replica: after its request it reports a position below all that a send waits for. Only once something came, as
//! of two reports in one read a master takes the second for the request.
//!
//! Source: `HAConnection.ReadSocketService`, `HAClient.isTimeToReportOffset`.
use crate::end::End;
use crate::frame::{NO_REPLICA, report};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two reports: a master closes a connection over which it hears nothing for 20 seconds.
pub const REPORT_EVERY: Duration = Duration::from_secs(5);
/// How long nothing may be read while this side writes: a master keeps old files that it still has to send.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the thread that reads tells.
#[derive(Debug, Default)]
pub struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_read: bool,
    /// Since when what was read is written.
    writing_since: Option<Instant>,
    is_over: bool,
}

impl Keeper {
    /// Something came.
    pub fn has_read(&self) {
        let mut state = self.state();
        if !state.has_read {
            state.has_read = true;
            self.changed.notify_all();
        }
    }

    /// What came is written from now on, or not any more.
    pub fn writes(&self, is_begun: bool) {
        self.state().writing_since = is_begun.then(Instant::now);
    }

    /// The connection is over.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Keeps the connection until it is over.
    ///
    /// # Errors
    /// [`End::Stalled`], [`End::Closed`].
    pub fn keep(&self, mut socket: TcpStream) -> Result<(), End> {
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
                socket.write_all(&report(NO_REPLICA)).map_err(End::Closed)?;
                last_report = Some(Instant::now());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
