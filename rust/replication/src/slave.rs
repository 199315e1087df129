//! One connection on the master's side. One thread sends frames, another reads reports.
//!
//! Source: `HAConnection.WriteSocketService`, `HAConnection.ReadSocketService`.
use crate::replicas::{HaOptions, Replicas};
use crate::wire::{Header, REPORT_LEN, Wire};
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::serve::Live;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

// Maximum bytes of reports per read. A slave sends a report for each frame.
const REPORTS_LEN: usize = 4096;
// Value of `asked` before the first request.
const NOTHING: u64 = u64::MAX;

/// The reason why a connection ended, to be written to the broker's log file.
type Reason = String;

#[derive(Debug)]
pub struct Slave {
    appender: Arc<Appender>,
    live: Live,
    replicas: Arc<Replicas>,
    number: u64,
    asked: AtomicU64,
    sent_to: AtomicU64,
    is_over: AtomicBool,
    reason: Mutex<Option<Reason>>,
}

impl Slave {
    /// Creates the state of a connection on which no position was requested yet.
    pub fn new(appender: Arc<Appender>, replicas: Arc<Replicas>, number: u64) -> Self {
        Self {
            live: appender.live(),
            appender,
            replicas,
            number,
            asked: AtomicU64::new(NOTHING),
            sent_to: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            reason: Mutex::default(),
        }
    }

    /// Serves the connection until its end. Returns the reason if it should be logged, which is so if this side ended
    /// the connection or the peer was a replica.
    pub fn serve(&self, wire: &Wire, options: &HaOptions) -> Option<Reason> {
        thread::scope(|scope| {
            let hear = || self.over(wire, self.hear(wire, options));
            match thread::Builder::new().name("rmqfast-ha-hear".into()).spawn_scoped(scope, hear) {
                Ok(_) => self.over(wire, self.send_all(wire, options)),
                Err(error) => self.over(wire, Err(error.to_string())),
            }
        });
        self.replicas.gone(self.number);
        self.reason().take()
    }

    /// Ends both threads. Only the first caller's reason is kept, because the other thread only sees that the
    /// connection has ended.
    fn over(&self, wire: &Wire, end: Result<(), Reason>) {
        if !self.is_over.swap(true, Ordering::SeqCst) {
            *self.reason() = end.err();
        }
        wire.end();
        self.live.growth().notify();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Reads reports until the slave closes the connection.
    fn hear(&self, wire: &Wire, options: &HaOptions) -> Result<(), Reason> {
        let (mut bytes, mut len) = ([0; REPORTS_LEN], 0);
        loop {
            match wire.read(&mut bytes[len..]) {
                Ok(0) => return self.leave("it closed the connection"),
                Ok(count) => len += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_timeout(&error) => {
                    return Err(format!("nothing was heard of it for {} ms", options.housekeeping.as_millis()));
                }
                Err(error) => return self.leave(&error.to_string()),
            }
            let whole = len - len % REPORT_LEN;
            // only the last report matters
            if let Some(report) = bytes[..whole].last_chunk() {
                self.take(i64::from_be_bytes(*report))?;
            }
            bytes.copy_within(whole..len, 0);
            len -= whole;
        }
    }

    /// Fails with `how`, the reason to log, if the peer is a replica. Returns `Ok` for other peers, which disconnect
    /// all the time.
    fn leave(&self, how: &str) -> Result<(), Reason> {
        if self.replicas.has(self.number) { Err(how.to_owned()) } else { Ok(()) }
    }

    /// Handles a report. The first report requests a position, later reports acknowledge positions.
    fn take(&self, report: i64) -> Result<(), Reason> {
        if self.asked.load(Ordering::Acquire) == NOTHING {
            let from = self.start(report)?;
            self.sent_to.store(from, Ordering::Release);
            self.asked.store(from, Ordering::Release);
            // wakes the sending thread, which waits for growth of the log
            self.live.growth().notify();
            return Ok(());
        }
        let end = self.sent_to.load(Ordering::Acquire);
        match u64::try_from(report) {
            Ok(acked) if acked > end => Err(format!("it reports {acked}, and was sent the log up to {end}")),
            // a negative position: a reader that is not a replica
            acked => {
                self.replicas.on_report(self.number, acked.ok());
                Ok(())
            }
        }
    }

    /// Returns the first position to send. A new slave gets the whole log, while RocketMQ sends only the last file.
    fn start(&self, asked: i64) -> Result<u64, Reason> {
        let (min, max) = self.live.log_bounds();
        match u64::try_from(asked) {
            Ok(0) => Ok(min),
            // 1 is valid even for an empty log: a slave that wants everything requests 1, as 0 has another meaning
            Ok(asked) if (min..=max.max(1)).contains(&asked) => Ok(asked),
            // RocketMQ accepts this, sends keep-alives, and later bytes from the middle of a record
            _ => Err(format!(
                "it asks for {asked}, and the log goes from {min} to {max}: its copy is of another log, of an end that this one lost, or too old; begin a new one"
            )),
        }
    }

    fn send_all(&self, wire: &Wire, options: &HaOptions) -> Result<(), Reason> {
        self.wait_for_request(options)?;
        // the first frame is sent at once, even without bytes, as our slaves report only after they received a frame
        let mut due = Instant::now();
        while !self.is_over() {
            let position = self.sent_to.load(Ordering::Acquire);
            let wait = due.saturating_duration_since(Instant::now());
            self.live.growth().wait(wait, || self.is_over() || self.appender.sendable_to() > position);
            let end = self.appender.sendable_to();
            if self.is_over() || end <= position && Instant::now() < due {
                continue;
            }
            if let Some((path, harm)) = self.appender.harm() {
                return Err(format!("another process has changed {}: {harm}", path.display()));
            }
            let size = self.frame_size(position, end, options);
            // set before the send, as the slave may report the position at once
            self.sent_to.store(position + size as u64, Ordering::Release);
            if let Err(error) = self.send(wire, position, size) {
                return self.on_send_error(&error, position, options);
            }
            due = Instant::now() + options.heartbeat;
        }
        Ok(())
    }

    fn wait_for_request(&self, options: &HaOptions) -> Result<(), Reason> {
        let is_asked = || self.asked.load(Ordering::Acquire) != NOTHING;
        self.live.growth().wait(options.housekeeping, || self.is_over() || is_asked());
        if self.is_over() || is_asked() {
            return Ok(());
        }
        Err(format!("it asked for nothing for {} ms", options.housekeeping.as_millis()))
    }

    /// Returns the number of log bytes in the next frame; 0 for a keep-alive. A frame never crosses the end of a
    /// file.
    fn frame_size(&self, position: u64, end: u64, options: &HaOptions) -> usize {
        let file_size = self.live.log_file_size();
        let rest = end.saturating_sub(position).min(file_size - position % file_size);
        usize::try_from(rest).unwrap_or(usize::MAX).min(options.max_frame)
    }

    /// Sends `size` bytes of the log, starting at `position`. They must be in one file. The operating system, not this
    /// process, reads the mapped file: if another process has truncated it, the call fails instead of raising SIGBUS.
    fn send(&self, wire: &Wire, position: u64, size: usize) -> io::Result<()> {
        let header = Header { offset: position, size }.encode();
        if size == 0 {
            return wire.write_all(&header, &[]);
        }
        // looked up for each frame, so that a slow reader does not keep removed files
        let file = self.live.log_file(position).map_err(io::Error::other)?.ok_or(ErrorKind::NotFound)?;
        let there = |_: &&[u8]| file.has(position + size as u64);
        let bytes = file.slice(position, size).filter(there).ok_or(ErrorKind::UnexpectedEof)?;
        if !wire.is_sealed() {
            return wire.write_all(&header, bytes);
        }
        // TLS would read the map itself, so copy first and check that the file was not truncated
        let read = bytes.to_vec();
        let read = Some(&*read).filter(there).ok_or(ErrorKind::UnexpectedEof)?;
        wire.write_all(&header, read)
    }

    fn on_send_error(&self, error: &io::Error, position: u64, options: &HaOptions) -> Result<(), Reason> {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.leave(&error.to_string()),
            ErrorKind::NotFound => Err(format!("the log does not have {position} any more: it was too old")),
            _ if is_timeout(error) => Err(format!("it took nothing for {} ms", options.housekeeping.as_millis())),
            _ => Err(format!("sending it {position}: {error}")),
        }
    }

    fn reason(&self) -> MutexGuard<'_, Option<Reason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
