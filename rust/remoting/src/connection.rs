//! One open connection, shared by all threads that send over it.
//!
//! Frames of other threads are queued here, and the connection's session writes them together.
//!
//! Source: `NettyRemotingAbstract.invokeSyncImpl`, `invokeOnewayImpl`, `processResponseCommand`.
use crate::command::{Command, Header, ONEWAY, OwnedCommand, Value};
use crate::error::{Error, Result};
use crate::frame::SerializeType;
use crate::interrupt::{Ask, SLICE};
use crate::outgoing::Outgoing;
use crate::pending::{Pending, Ticket};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

// After this time without any bytes although a request is pending, the peer counts as gone.
const HALF_OPEN: Duration = Duration::from_secs(3);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns milliseconds since the first call in this process, plus 1, so that 0 can stand for "never".
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
    /// Maximum size of a buffer that is kept for further frames after its frames were written. A larger buffer is
    /// freed.
    kept: usize,
    outgoing: Mutex<Outgoing>,
    taken: Condvar,
    /// Whether the session is writing frames that it took from `outgoing`.
    is_writing: AtomicBool,
    pending: Pending,
    oneway: Oneway,
    is_open: AtomicBool,
    pub(crate) sent: Notify,
    pub(crate) closing: Notify,
    pub(crate) watch: Watch,
}

/// Times of the last events, in milliseconds of [`now_ms`]. A background task reads them to detect timeouts.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Time of the last read or write.
    pub active: AtomicU64,
    pub heard: AtomicU64,
    /// Time at which the first bytes of an incomplete frame arrived; 0 if there is no incomplete frame.
    pub frame_began: AtomicU64,
    /// Time at which the current write began; 0 if there is none.
    pub write_began: AtomicU64,
    pub written: AtomicU64,
}

/// Counts oneway requests. They have no answer, so only these counts show how many were never written.
#[derive(Debug, Default)]
struct Oneway {
    /// Number of requests that were ever queued. Changed under the lock of `outgoing`, like `taken`.
    gathered: AtomicU64,
    /// Number of requests that the session has taken to write them.
    taken: AtomicU64,
    /// Number of requests that were written or reported as lost.
    settled: AtomicU64,
}

impl Watch {
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

    /// Sets the maximum size of a buffer that is kept for further frames. A large size suits connections with heavy
    /// traffic.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Returns the number of the connection, which is unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the peer as `host:port`. For a client this is the address as the application gave it.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn local(&self) -> SocketAddr {
        self.local
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Closes the connection. Queued output is dropped.
    pub fn close(&self) {
        // first: `submit` reads this after queueing its frame, so that no request is left behind unnoticed
        self.is_open.store(false, Ordering::Release);
        self.pending.close(&self.address);
        // a session that is not waiting gets this at its next wait
        self.closing.notify_one();
        // other owners of the connection must not keep the memory
        *self.outgoing() = Outgoing::default();
        self.taken.notify_all();
    }

    /// Queues the frames that `write` appends to its buffer. Returns false if the connection is closed. If too much
    /// output is queued, closes the connection.
    pub fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.gather(|outgoing| write(outgoing.frames()))
    }

    /// Queues `frames`, as [`send`](Self::send) does.
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
            // a peer that does not read must not use the memory of all others
            self.close();
            return false;
        }
        self.sent.notify_one();
        true
    }

    /// Moves the queued output to the end of `out`.
    pub(crate) fn take_outgoing(&self, out: &mut Outgoing) {
        let mut outgoing = self.outgoing();
        if outgoing.is_empty() {
            return;
        }
        // set under the lock, or `is_drained` could see an empty queue before it sees the write
        self.is_writing.store(true, Ordering::Release);
        out.append(&mut outgoing);
        self.oneway.taken.store(self.oneway.gathered.load(Ordering::Relaxed), Ordering::Relaxed);
        drop(outgoing);
        self.taken.notify_all();
    }

    /// Notes that frames were written. Reuses their buffer unless it is too large.
    pub(crate) fn wrote(&self, written: &mut Outgoing) {
        written.clear();
        // the maximum, as `lost_oneway` may have settled all requests meanwhile
        self.oneway.settled.fetch_max(self.oneway.taken.load(Ordering::Relaxed), Ordering::Relaxed);
        if written.frames().capacity() <= self.kept {
            let mut outgoing = self.outgoing();
            if outgoing.frames().capacity() == 0 {
                std::mem::swap(written, &mut outgoing);
            }
        }
        self.is_writing.store(false, Ordering::Release);
    }

    /// Returns whether all output was written. Also true for a closed connection.
    pub(crate) fn is_drained(&self) -> bool {
        !self.is_open() || self.outgoing().is_empty() && !self.is_writing.load(Ordering::Acquire)
    }

    /// Returns the number of oneway requests that were never written. Each of them is counted by one call only.
    pub(crate) fn lost_oneway(&self) -> u64 {
        let gathered = self.oneway.gathered.load(Ordering::Relaxed);
        // fetch_max returns the count settled before, so that each request is reported once
        gathered - self.oneway.settled.fetch_max(gathered, Ordering::Relaxed).min(gathered)
    }

    pub fn send_oneway(&self, code: i32, fields: &[(&str, Value<'_>)], body: &[u8]) -> bool {
        let header = Header { flag: ONEWAY, ..Header::request(code, self.pending.opaque(), fields) };
        self.send(|out| header.write(body, out))
    }

    /// Sends a request and waits for the answer. The thread that reads from the connection must not call this.
    pub fn request(
        &self,
        code: i32,
        fields: &[(&str, Value<'_>)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<OwnedCommand> {
        self.ask(Ask::new(code, fields, body, timeout))
    }

    /// Sends a request as [`request`](Self::request) does. The interrupt can end the wait early.
    pub fn ask(&self, ask: Ask<'_>) -> Result<OwnedCommand> {
        let Ask { code, fields, body, timeout, interrupt } = ask;
        let until = Instant::now() + timeout;
        let (opaque, answer) = self.pending.wait().ok_or_else(|| self.closed_error())?;
        if !self.send(|out| Header::request(code, opaque, fields).write(body, out)) {
            return Err(self.closed_error());
        }
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            // in slices, so that the interrupt is checked
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

    /// Sends a request. Its result goes to the completions of the ticket. Waits until `until` if too much output is
    /// queued; with `None` does not wait. Fails with [`Error::Closed`], [`Error::TooManyRequests`],
    /// [`Error::Interrupted`]. After an error the request was not sent.
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
        // `close` ran meanwhile: it either failed the request already, or did not see it
        if self.pending.forget(opaque) { Err(self.closed_error()) } else { Ok(()) }
    }

    /// Sends a oneway request. If too much output is queued, waits as [`submit`](Self::submit) does.
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
        // a request larger than the limit is sent alone
        while self.is_open() && !outgoing.is_empty() && outgoing.len() + bytes > self.max_outgoing / 2 {
            let remaining = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            if remaining.is_zero() {
                return Err(Error::TooManyRequests { address: self.address.clone(), limit: self.max_outgoing / 2 });
            }
            drop(self.taken.wait_timeout(outgoing, remaining.min(SLICE)).unwrap_or_else(PoisonError::into_inner));
            // called without the lock, as it runs code of the caller
            (ask.interrupt)()?;
            outgoing = self.outgoing();
        }
        if self.is_open() { Ok(outgoing) } else { Err(self.closed_error()) }
    }

    /// Fails the requests that have timed out. If no bytes have arrived since the oldest of them was sent, closes the
    /// connection, because the peer is probably gone.
    pub(crate) fn expire(&self, now: Instant) {
        let Some(asked_at) = self.pending.expire(&self.address, now) else { return };
        let waited = now.saturating_duration_since(asked_at);
        let asked_at = now_ms().saturating_sub(waited.as_millis() as u64);
        if waited >= HALF_OPEN && !self.has_heard_since(asked_at) {
            self.close();
        }
    }

    /// Returns whether bytes arrived at `time` or later, in milliseconds of [`now_ms`].
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

/// Everything that is needed to answer a request later, above all its connection and its number.
#[derive(Clone, Debug)]
pub struct Answer {
    pub connection: Arc<Connection>,
    pub opaque: i32,
    /// Encoding of the request's header. The answer uses the same encoding.
    pub serialize_type: SerializeType,
    pub is_oneway: bool,
    pub asked_at: Instant,
}

impl Answer {
    pub fn to(connection: &Arc<Connection>, request: &Command<'_>) -> Self {
        Self {
            connection: connection.clone(),
            opaque: request.opaque,
            serialize_type: request.serialize_type,
            is_oneway: request.is_oneway(),
            asked_at: Instant::now(),
        }
    }

    /// Sends the answer, with the number and the encoding of the request. Returns false for a oneway request or a
    /// closed connection.
    pub fn send(&self, header: &Header<'_>, body: &[u8]) -> bool {
        let header = Header { opaque: self.opaque, serialize_type: self.serialize_type, ..*header };
        !self.is_oneway && self.connection.send(|out| header.write(body, out))
    }
}
