//! A connection over which a slave gets the log: one thread sends frames, one hears reports.
//!
//! Source: `HAConnection.WriteSocketService`, `HAConnection.ReadSocketService`.
use crate::frame::{Header, REPORT_LEN};
use crate::ha_options::HaOptions;
use crate::replicas::Replicas;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::serve::Live;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Bytes of reports that are read at once. A slave sends one for each frame.
const REPORTS_LEN: usize = 4096;
/// A shorter frame is read and sent at once; of a longer one the system copies the file to the socket by itself.
const SHORT: usize = 64 << 10;
/// Before anything was asked for.
const NOTHING: u64 = u64::MAX;

/// Why a connection is ended, in words for a person.
type Reason = String;

/// One connection.
#[derive(Debug)]
pub struct Slave {
    appender: Arc<Appender>,
    live: Live,
    replicas: Arc<Replicas>,
    peer: SocketAddr,
    /// Where it asked to begin.
    asked: AtomicU64,
    /// Up to where it was sent the log, or is being sent it.
    sent_to: AtomicU64,
    is_over: AtomicBool,
    reason: Mutex<Option<Reason>>,
}

impl Slave {
    /// One that has asked for nothing.
    pub fn new(appender: Arc<Appender>, replicas: Arc<Replicas>, peer: SocketAddr) -> Self {
        Self {
            live: appender.live(),
            appender,
            replicas,
            peer,
            asked: AtomicU64::new(NOTHING),
            sent_to: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            reason: Mutex::default(),
        }
    }

    /// Serves it until the connection ends. Returns why, where this side ended it or it was a replica.
    pub fn serve(&self, socket: &TcpStream, options: &HaOptions) -> Option<Reason> {
        self.replicas.connected(self.peer);
        thread::scope(|scope| {
            let hear = || self.over(socket, self.hear(socket, options));
            match thread::Builder::new().name("rmqfast-ha-hear".into()).spawn_scoped(scope, hear) {
                Ok(_) => self.over(socket, self.send_all(socket, options)),
                Err(error) => self.over(socket, Err(error.to_string())),
            }
        });
        self.replicas.gone(self.peer);
        self.reason().take()
    }

    /// Ends both threads. The first reason counts.
    fn over(&self, socket: &TcpStream, end: Result<(), Reason>) {
        if let Err(reason) = end {
            self.reason().get_or_insert(reason);
        }
        self.is_over.store(true, Ordering::SeqCst);
        // already closed is as good
        let _ = socket.shutdown(Shutdown::Both);
        self.live.growth().tell();
    }

    /// Hears reports until the slave closes the connection.
    fn hear(&self, mut socket: &TcpStream, options: &HaOptions) -> Result<(), Reason> {
        let (mut bytes, mut len) = ([0; REPORTS_LEN], 0);
        loop {
            match socket.read(&mut bytes[len..]) {
                Ok(0) => return self.left("it closed the connection"),
                Ok(count) => len += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(format!("nothing was heard of it for {} s", options.housekeeping.as_secs()));
                }
                Err(error) => return self.left(&error.to_string()),
            }
            let whole = len - len % REPORT_LEN;
            // the last one says all that those before it do
            if let Some(report) = bytes[..whole].last_chunk() {
                self.take(i64::from_be_bytes(*report))?;
            }
            bytes.copy_within(whole..len, 0);
            len -= whole;
        }
    }

    /// Worth a word only of a replica: readers come and go.
    fn left(&self, how: &str) -> Result<(), Reason> {
        let is_replica = self.replicas.all().iter().any(|other| other.peer == self.peer && other.acked.is_some());
        if is_replica { Err(how.to_owned()) } else { Ok(()) }
    }

    /// Takes a report: the first one asks for the log, the others tell how much of it is there.
    fn take(&self, report: i64) -> Result<(), Reason> {
        if self.asked.load(Ordering::Acquire) == NOTHING {
            let from = self.start(report)?;
            self.sent_to.store(from, Ordering::Release);
            self.asked.store(from, Ordering::Release);
            self.live.growth().tell();
            return Ok(());
        }
        let sent = self.sent_to.load(Ordering::Acquire);
        match u64::try_from(report) {
            Ok(acked) if acked > sent => Err(format!("it reports {acked}, and was sent the log up to {sent}")),
            // below zero: a reader that is no replica
            acked => {
                self.replicas.reported(self.peer, acked.ok());
                Ok(())
            }
        }
    }

    /// Where to begin. A new slave gets all of the log: RocketMQ sends it the last file.
    fn start(&self, asked: i64) -> Result<u64, Reason> {
        let (min, max) = self.live.log_bounds();
        match u64::try_from(asked) {
            Ok(0) => Ok(min),
            Ok(asked) if (min..=max).contains(&asked) => Ok(asked),
            // RocketMQ says nothing, sends keep-alives, and then bytes from the middle of a record
            _ => Err(format!(
                "it asks for {asked}, and the log goes from {min} to {max}: its copy is of another log, of an end that this one lost, or too old; begin a new one"
            )),
        }
    }

    fn send_all(&self, socket: &TcpStream, options: &HaOptions) -> Result<(), Reason> {
        let mut sending = Sending { socket, file: None, buffer: Vec::new() };
        let mut last = Instant::now();
        loop {
            let asked = self.asked.load(Ordering::Acquire);
            let position = if asked == NOTHING { NOTHING } else { self.sent_to.load(Ordering::Acquire) };
            let due = options.heartbeat.saturating_sub(last.elapsed());
            self.live.growth().wait(due, || {
                self.is_over.load(Ordering::SeqCst)
                    || self.asked.load(Ordering::Acquire) != asked
                    || self.appender.sendable_to() > position
            });
            if self.is_over.load(Ordering::SeqCst) {
                return Ok(());
            }
            let end = self.appender.sendable_to();
            if position == NOTHING || end <= position && last.elapsed() < options.heartbeat {
                continue;
            }
            let size = self.frame_size(position, end, options);
            // before: a slave may report it as soon as it has it
            self.sent_to.store(position + size as u64, Ordering::Release);
            sending.frame(&self.live, position, size).map_err(|error| self.explained(&error, position, options))?;
            last = Instant::now();
        }
    }

    /// Bytes of the next frame: none where it only keeps the connection, and none behind the end of a file.
    fn frame_size(&self, position: u64, end: u64, options: &HaOptions) -> usize {
        let file_size = self.live.log_file_size();
        let left = end.saturating_sub(position).min(file_size - position % file_size);
        usize::try_from(left).unwrap_or(usize::MAX).min(options.max_frame)
    }

    fn explained(&self, error: &io::Error, position: u64, options: &HaOptions) -> Reason {
        match error.kind() {
            ErrorKind::NotFound => format!("the log does not have {position} any more: it was too old"),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("it took nothing for {} s", options.housekeeping.as_secs())
            }
            _ => format!("sending it {position}: {error}"),
        }
    }

    fn reason(&self) -> MutexGuard<'_, Option<Reason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending side of a connection.
struct Sending<'a> {
    socket: &'a TcpStream,
    /// The file that was sent from last, by where it begins.
    file: Option<(u64, File)>,
    buffer: Vec<u8>,
}

impl Sending<'_> {
    /// Sends `size` bytes of the log, which stand at `position` and in one file.
    fn frame(&mut self, live: &Live, position: u64, size: usize) -> io::Result<()> {
        let header = Header { offset: position, size }.encode();
        if size == 0 {
            return self.socket.write_all(&header);
        }
        let base = position - position % live.log_file_size();
        if self.file.as_ref().is_none_or(|(of, _)| *of != base) {
            let file = live.open_log_file(position).map_err(io::Error::other)?;
            self.file = Some((base, file.ok_or(ErrorKind::NotFound)?));
        }
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        if size <= SHORT {
            self.buffer.clear();
            self.buffer.extend_from_slice(&header);
            self.buffer.resize(header.len() + size, 0);
            file.read_exact_at(&mut self.buffer[header.len()..], position - base)?;
            return self.socket.write_all(&self.buffer);
        }
        self.socket.write_all(&header)?;
        file.seek(SeekFrom::Start(position - base))?;
        let sent = io::copy(&mut file.take(size as u64), &mut self.socket)?;
        // a file that another process has cut off
        if sent == size as u64 { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}
