//! The reading side of an HA connection. It turns frames into a stream of log bytes without gaps.
//!
//! Source: `HAClient.connectMaster`, `HAClient.processReadEvent`, `HAClient.dispatchReadRequest`,
//! `HAConnection.ReadSocketService`, `HAClient.isTimeToReportOffset`.
use crate::wire::{End, HEADER_LEN, Header, NO_REPLICA, Wire, report};
use rmqfast_remoting::ClientTls;
use std::io::{ErrorKind, IoSliceMut};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time without any bytes, after which the connection counts as lost. A master sends a keep-alive every 5
/// seconds.
pub const SILENCE: Duration = Duration::from_secs(20);
// Timeout for sending a report.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Connection {
    wire: Arc<Wire>,
    wait: Duration,
    position: u64,
    left: usize,
    header: [u8; HEADER_LEN],
    header_len: usize,
    has_heard: bool,
    is_drained: bool,
}

impl Connection {
    /// Connects to `address` (`host:port`) and requests the log from `position` on. Each read waits for at most `wait`.
    pub fn open(address: &str, tls: Option<&ClientTls>, position: u64, wait: Duration) -> Result<Self, End> {
        let failed = |source| End::Connect { address: address.to_owned(), source };
        let wire = Arc::new(Wire::connect(address, tls)?);
        wire.set(wait, WRITE_TIMEOUT).map_err(failed)?;
        // never 0, which means "from the start of the master's last file"
        let start = i64::try_from(position.max(1)).map_err(|_| failed(ErrorKind::InvalidInput.into()))?;
        wire.write_all(&report(start), &[]).map_err(failed)?;
        Ok(Self {
            wire,
            wait,
            position,
            left: 0,
            header: [0; HEADER_LEN],
            header_len: 0,
            has_heard: false,
            is_drained: false,
        })
    }

    pub fn report(&mut self, position: i64) -> Result<(), End> {
        self.wire.write_all(&report(position), &[]).map_err(End::Closed)
    }

    /// Returns the wire, with which another thread can write to the connection or end it.
    pub fn wire(&self) -> Arc<Wire> {
        self.wire.clone()
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether any byte from the master has arrived. Before that no report may be sent, because the master
    /// could take it for the request that begins the connection.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Returns whether the last read has returned all received bytes and ended at the end of a frame.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Reads bytes of the log, until `room` is full or all received bytes are read. Returns the number of bytes, which is 0
    /// after a keep-alive. Fails with [`End::Frame`], [`End::Closed`]; [`End::Silent`] after `wait` without bytes. After
    /// `Silent` the call may be repeated.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, End> {
        if self.position == 0
            && let [first, ..] = room
        {
            // position 1 was requested instead of 0, and the first byte is known: a record's size below 16 MiB starts
            // with 0
            (*first, self.position) = (0, 1);
            return Ok(1);
        }
        let mut filled = 0;
        self.is_drained = false;
        loop {
            if self.left == 0 {
                match self.read_header() {
                    // returns the bytes; the next call reports the end
                    Err(End::Silent(_) | End::Closed(_)) if filled > 0 => return Ok(filled),
                    header => header?,
                }
                if self.left == 0 {
                    return Ok(filled);
                }
            }
            let part = self.left.min(room.len() - filled);
            // reads the next header in the same call if this completes the frame: half as many system calls
            let also = if part == self.left { HEADER_LEN } else { 0 };
            let (mut next, into) = ([0; HEADER_LEN], &mut room[filled..filled + part]);
            let count = match self.read_some(&mut [IoSliceMut::new(into), IoSliceMut::new(&mut next[..also])]) {
                Err(End::Silent(_) | End::Closed(_)) if filled > 0 => return Ok(filled),
                count => count?,
            };
            let body = count.min(part);
            (filled, self.left, self.position) = (filled + body, self.left - body, self.position + body as u64);
            (self.header, self.header_len) = (next, count - body);
            // no more bytes were received, so return these without a further wait
            if filled == room.len() || self.header_len == 0 {
                self.is_drained = self.left == 0 && self.header_len == 0;
                return Ok(filled);
            }
        }
    }

    fn read_header(&mut self) -> Result<(), End> {
        while self.header_len < HEADER_LEN {
            let (from, mut header) = (self.header_len, self.header);
            self.header_len += self.read_some(&mut [IoSliceMut::new(&mut header[from..])])?;
            self.header = header;
        }
        self.header_len = 0;
        self.left = Header::decode(self.header, self.position)?.size;
        Ok(())
    }

    fn read_some(&mut self, into: &mut [IoSliceMut<'_>]) -> Result<usize, End> {
        loop {
            match self.wire.read_vectored(into) {
                Ok(0) => return Err(End::Closed(ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.has_heard = true;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(End::Silent(self.wait.as_secs()));
                }
                Err(error) => return Err(End::Closed(error)),
            }
        }
    }
}

/// Interval of reports. A master closes a connection after 20 seconds without a report.
pub const REPORT_EVERY: Duration = Duration::from_secs(5);
// Maximum time of a write, during which nothing is read: the master keeps old files that it must still send.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Keeps a connection alive while another thread reads from it and writes the copy: sends reports to the master. Ends
/// the connection if a write takes too long, since nothing is read meanwhile.
///
/// A follower is no replica, unless configured as a slave: it reports a position below all that sends wait for. The first
/// report is sent only after bytes arrived, because if a master reads two reports at once, it takes the second for the
/// request.
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

    /// Called before each write to the copy, with true, and after it, with false.
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

    /// Sends reports, until [`end`](Self::end). Fails with [`End::Stalled`] if the current write takes too long, and if
    /// a report cannot be sent.
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
