//! One open connection, for all who send over it or ask the peer.
//!
//! Frames that others than the connection's own session send are gathered here and written by the session in one go.
//!
//! Source: `NettyRemotingAbstract.invokeSyncImpl`, `invokeOnewayImpl`, `processResponseCommand`.
use crate::command::{Command, ONEWAY};
use crate::error::{Error, Result};
use crate::frame::SerializeType;
use crate::header::{Header, Value};
use crate::interrupt::Ask;
use crate::interrupt::SLICE;
use crate::outgoing::Outgoing;
use crate::owned_command::OwnedCommand;
use crate::pending::{Pending, Ticket};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

// A peer that says nothing for so long, though it was asked, is gone.
const HALF_OPEN: Duration = Duration::from_secs(3);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since the process began to ask, from 1 on.
pub(crate) fn now_ms() -> u64 {
    STARTED.elapsed().as_millis() as u64 + 1
}

#[derive(Debug)]
pub struct Connection {
    id: u64,
    address: String,
    peer: SocketAddr,
    local: SocketAddr,
    max_outgoing: usize,
    /// Memory for frames that it keeps.
    kept: usize,
    outgoing: Mutex<Outgoing>,
    taken: Condvar,
    /// The session writes what was gathered here.
    is_writing: AtomicBool,
    pending: Pending,
    oneway: Oneway,
    is_open: AtomicBool,
    pub(crate) sent: Notify,
    pub(crate) closing: Notify,
    pub(crate) watch: Watch,
}

/// When what happened, in milliseconds: what the sweeper looks at.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Something was read or written.
    pub active: AtomicU64,
    /// Time of the last read.
    pub heard: AtomicU64,
    /// A frame began that is not all there; 0 where none has.
    pub frame_began: AtomicU64,
    /// A write began that is not done; 0 where none has.
    pub write_began: AtomicU64,
    /// Bytes that were written in all.
    pub written: AtomicU64,
}

/// Counts of oneway requests: nobody else would know of those that were never written.
#[derive(Debug, Default)]
struct Oneway {
    /// Gathered. Changes under the lock of what is gathered, as `taken` does.
    gathered: AtomicU64,
    /// Taken by the session, to be written.
    taken: AtomicU64,
    /// With the operating system, or spoken of as lost.
    settled: AtomicU64,
}

impl Watch {
    /// Notes that bytes came.
    pub fn heard(&self) {
        let now = now_ms();
        self.active.store(now, Ordering::Relaxed);
        self.heard.store(now, Ordering::Relaxed);
    }
}

impl Connection {
    pub(crate) fn new(address: String, peer: SocketAddr, local: SocketAddr, max_outgoing: usize) -> Self {
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            address,
            peer,
            local,
            max_outgoing,
            kept: 0,
            outgoing: Mutex::default(),
            taken: Condvar::new(),
            is_writing: AtomicBool::new(false),
            pending: Pending::new(),
            oneway: Oneway::default(),
            is_open: AtomicBool::new(true),
            sent: Notify::new(),
            closing: Notify::new(),
            watch: Watch { active: AtomicU64::new(now_ms()), ..Watch::default() },
        }
    }

    /// Returns the same, with memory for frames that it keeps, for one of few over which much is sent.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Returns a number that no other connection of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the other end, as whoever opened the connection calls it: `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether something may still be sent.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Ends the connection; what was not sent yet is lost.
    pub fn close(&self) {
        // first: `submit` looks at it once its frame is in, so that no frame stays behind the clean-up unseen
        self.is_open.store(false, Ordering::Release);
        self.pending.close(&self.address);
        // a session that does not wait just now finds this at its next wait
        self.closing.notify_one();
        // those who still know of the connection are not to keep it
        *self.outgoing() = Outgoing::default();
        self.taken.notify_all();
    }

    /// Sends what `write` appends. Returns false where the connection is gone. A peer that lets too much gather is cut off.
    pub fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.gather(|outgoing| write(outgoing.frames()))
    }

    /// Sends `frames`, as [`send`](Self::send).
    pub fn send_frames(&self, mut frames: Outgoing) -> bool {
        self.gather(|outgoing| outgoing.append(&mut frames))
    }

    fn gather(&self, add: impl FnOnce(&mut Outgoing)) -> bool {
        if !self.is_open() {
            return false;
        }
        let mut outgoing = self.outgoing();
        add(&mut outgoing);
        let gathered = outgoing.len();
        drop(outgoing);
        if gathered > self.max_outgoing {
            // a peer that does not read must not take the memory of all others
            self.close();
            return false;
        }
        self.sent.notify_one();
        true
    }

    /// Moves what was sent to the end of `out`.
    pub(crate) fn take_outgoing(&self, out: &mut Outgoing) {
        let mut outgoing = self.outgoing();
        if outgoing.is_empty() {
            return;
        }
        // under the lock, or `is_drained` could see neither the frames nor that somebody writes them
        self.is_writing.store(true, Ordering::Release);
        out.append(&mut outgoing);
        self.oneway.taken.store(self.oneway.gathered.load(Ordering::Relaxed), Ordering::Relaxed);
        drop(outgoing);
        self.taken.notify_all();
    }

    /// Records that frames were handed to the operating system; keeps their memory for the next ones, unless it is much.
    pub(crate) fn wrote(&self, written: &mut Outgoing) {
        written.clear();
        // the greater: `lost_oneway` may have settled all of them by now
        self.oneway.settled.fetch_max(self.oneway.taken.load(Ordering::Relaxed), Ordering::Relaxed);
        if written.frames().capacity() <= self.kept {
            let mut outgoing = self.outgoing();
            if outgoing.frames().capacity() == 0 {
                std::mem::swap(written, &mut outgoing);
            }
        }
        self.is_writing.store(false, Ordering::Release);
    }

    /// Returns whether nothing waits to be written, or can be.
    pub(crate) fn is_drained(&self) -> bool {
        !self.is_open() || self.outgoing().is_empty() && !self.is_writing.load(Ordering::Acquire)
    }

    /// Returns the number of oneway requests that were never written. To be called once, at the end: it counts each
    /// once.
    pub(crate) fn lost_oneway(&self) -> u64 {
        let gathered = self.oneway.gathered.load(Ordering::Relaxed);
        gathered - self.oneway.settled.fetch_max(gathered, Ordering::Relaxed).min(gathered)
    }

    /// Sends a request that is not answered.
    pub fn send_oneway(&self, code: i32, fields: &[(&str, Value<'_>)], body: &[u8]) -> bool {
        let header = Header { flag: ONEWAY, ..Header::request(code, self.pending.opaque(), fields) };
        self.send(|out| header.write(body, out))
    }

    /// Asks the peer, and waits for its answer: not to be called by who reads from the connection.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Timeout`].
    pub fn request(
        &self,
        code: i32,
        fields: &[(&str, Value<'_>)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<OwnedCommand> {
        self.ask(Ask::new(code, fields, body, timeout))
    }

    /// [`request`](Self::request) with an interrupt.
    ///
    /// # Errors
    /// As [`request`](Self::request), [`Error::Interrupted`].
    pub fn ask(&self, ask: Ask<'_>) -> Result<OwnedCommand> {
        let Ask { code, fields, body, timeout, interrupt } = ask;
        let until = Instant::now() + timeout;
        let (opaque, answer) = self.pending.wait().ok_or_else(|| self.closed_error())?;
        if !self.send(|out| Header::request(code, opaque, fields).write(body, out)) {
            return Err(self.closed_error());
        }
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            // in slices, so that Ctrl-C ends the wait
            let error = match answer.recv_timeout(remaining.min(SLICE)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => self.closed_error(),
                Err(RecvTimeoutError::Timeout) if remaining > SLICE => match interrupt() {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(RecvTimeoutError::Timeout) => self.timeout_error(timeout),
            };
            self.pending.forget(opaque);
            return Err(error);
        }
    }

    /// Asks the peer; the end goes where the ticket says. Waits until the frames before it leave room for one more, until
    /// `until`; without, it does not wait.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::TooManyRequests`], [`Error::Interrupted`]: nothing was asked then.
    pub(crate) fn submit(&self, ask: Ask<'_>, ticket: Ticket, until: Option<Instant>) -> Result<()> {
        let Ask { code, fields, body, .. } = ask;
        let mut outgoing = self.room_for(&ask, until)?;
        let opaque = self.pending.take_ticket(ticket).ok_or_else(|| self.closed_error())?;
        Header::request(code, opaque, fields).write(body, outgoing.frames());
        drop(outgoing);
        if self.is_open() {
            self.sent.notify_one();
            return Ok(());
        }
        // who closed the connection may have ended the request, or not have seen it
        if self.pending.forget(opaque) { Err(self.closed_error()) } else { Ok(()) }
    }

    /// Sends a request that is not answered; waits for room as [`submit`](Self::submit) does.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(crate) fn tell(&self, ask: Ask<'_>, until: Option<Instant>) -> Result<()> {
        let mut outgoing = self.room_for(&ask, until)?;
        let header = Header { flag: ONEWAY, ..Header::request(ask.code, self.pending.opaque(), ask.fields) };
        header.write(ask.body, outgoing.frames());
        self.oneway.gathered.fetch_add(1, Ordering::Relaxed);
        drop(outgoing);
        self.sent.notify_one();
        Ok(())
    }

    fn room_for(&self, ask: &Ask<'_>, until: Option<Instant>) -> Result<MutexGuard<'_, Outgoing>> {
        let bytes = ask.body.len();
        let mut outgoing = self.outgoing();
        // a request that is larger than the limit goes out alone
        while self.is_open() && !outgoing.is_empty() && outgoing.len() + bytes > self.max_outgoing / 2 {
            let remaining = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            if remaining.is_zero() {
                return Err(Error::TooManyRequests { address: self.address.clone(), limit: self.max_outgoing / 2 });
            }
            drop(self.taken.wait_timeout(outgoing, remaining.min(SLICE)).unwrap_or_else(PoisonError::into_inner));
            // without the lock, as this runs code of the caller
            (ask.interrupt)()?;
            outgoing = self.outgoing();
        }
        if self.is_open() { Ok(outgoing) } else { Err(self.closed_error()) }
    }

    /// Ends requests that have waited for too long. Where nothing at all has come since the first of them was asked, long ago,
    /// nobody is there any more.
    pub(crate) fn expire(&self, now: Instant) {
        let Some(asked_at) = self.pending.expire(&self.address, now) else { return };
        let waited = now.saturating_duration_since(asked_at);
        let asked_at = now_ms().saturating_sub(waited.as_millis() as u64);
        if waited >= HALF_OPEN && !self.has_heard_since(asked_at) {
            self.close();
        }
    }

    /// Returns whether something came since a time of [`now_ms`].
    pub(crate) fn has_heard_since(&self, time: u64) -> bool {
        self.watch.heard.load(Ordering::Relaxed) >= time
    }

    pub(crate) fn on_answer(&self, response: &Command<'_>) {
        self.pending.answer(response);
    }

    fn closed_error(&self) -> Error {
        Error::Closed { address: self.address.clone() }
    }

    fn timeout_error(&self, timeout: Duration) -> Error {
        Error::Timeout { address: self.address.clone(), timeout_ms: timeout.as_millis() as u64 }
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub connection: Arc<Connection>,
    /// Number of the request.
    pub opaque: i32,
    /// Encoding of the request's header, which the answer uses, too.
    pub serialize_type: SerializeType,
    pub is_oneway: bool,
    /// When the request came.
    pub asked_at: Instant,
}

impl Answer {
    /// Of a request that came over `connection`.
    pub fn to(connection: &Arc<Connection>, request: &Command<'_>) -> Self {
        Self {
            connection: connection.clone(),
            opaque: request.opaque,
            serialize_type: request.serialize_type,
            is_oneway: request.is_oneway(),
            asked_at: Instant::now(),
        }
    }

    /// Sends an answer; its header's number and way of writing are the request's. Nothing is sent where nobody waits.
    pub fn send(&self, header: &Header<'_>, body: &[u8]) -> bool {
        let header = Header { opaque: self.opaque, serialize_type: self.serialize_type, ..*header };
        !self.is_oneway && self.connection.send(|out| header.write(body, out))
    }
}
