//! Requests that are answered elsewhere, as by Python: they are taken out by threads that may wait.
use crate::command::{Command, RESPONSE};
use crate::connection::{Answer, Connection};
use crate::error::Error;
use crate::frame::SerializeType;
use crate::language::Language;
use crate::owned_fields::OwnedFields;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A command of its own memory.
#[derive(Clone, Debug)]
pub struct OwnedCommand {
    /// What is asked for, or how it ended.
    pub code: i32,
    /// What the peer is written in.
    pub language: Language,
    /// Ordinal of the peer's release.
    pub version: i32,
    /// Which response belongs to which request.
    pub opaque: i32,
    /// As [`Command::flag`].
    pub flag: i32,
    /// What a person reads.
    pub remark: Option<String>,
    /// Header fields.
    pub fields: OwnedFields,
    /// How the header was written.
    pub serialize_type: SerializeType,
    /// The body.
    pub body: Vec<u8>,
}

impl From<&Command<'_>> for OwnedCommand {
    fn from(command: &Command<'_>) -> Self {
        Self {
            code: command.code,
            language: command.language,
            version: command.version,
            opaque: command.opaque,
            flag: command.flag,
            remark: command.remark.as_ref().map(ToString::to_string),
            fields: command.fields.iter().map(|(name, value)| (&**name, &**value)).collect(),
            serialize_type: command.serialize_type,
            body: command.body.to_vec(),
        }
    }
}

impl OwnedCommand {
    /// Whether this answers a request of this side.
    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    /// The command with borrowed texts.
    pub fn borrow(&self) -> Command<'_> {
        Command {
            code: self.code,
            language: self.language,
            version: self.version,
            opaque: self.opaque,
            flag: self.flag,
            remark: self.remark.as_deref().map(Into::into),
            fields: self.fields.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            serialize_type: self.serialize_type,
            body: &self.body,
        }
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Somebody asks.
    Request(Box<OwnedCommand>, Answer),
    /// A connection is gone, and why, unless it was closed.
    Closed(Arc<Connection>, Option<String>),
    /// Something is not as it should be, and no connection is to blame.
    Warning(String),
}

/// Bytes of the requests that wait, at most: a single one may have 16 MiB.
const MAX_BYTES: usize = 256 << 20;

/// How long at least between two warnings of requests that were dropped.
const WARNINGS: Duration = Duration::from_secs(1);

/// Events in the order in which they happened, as many as a limit allows.
#[derive(Debug)]
pub struct Mailbox {
    events: Mutex<Events>,
    arrived: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Events {
    queue: VecDeque<Event>,
    /// Of the requests in the queue.
    bytes: usize,
    /// One-way requests that nobody was told of: no answer says so to who asked.
    dropped: u64,
    warned_at: Option<Instant>,
    is_closed: bool,
}

impl Events {
    fn warning(&mut self) -> Option<Event> {
        let is_recent = self.warned_at.is_some_and(|at| at.elapsed() < WARNINGS);
        if self.dropped == 0 || is_recent && !self.is_closed {
            return None;
        }
        self.warned_at = Some(Instant::now());
        let count = std::mem::take(&mut self.dropped);
        Some(Event::Warning(format!(
            "{count} one-way requests are dropped: too many wait, or they waited for too long"
        )))
    }
}

impl Mailbox {
    /// Takes `capacity` requests at most.
    pub fn new(capacity: usize) -> Self {
        Self { events: Mutex::default(), arrived: Condvar::new(), capacity }
    }

    /// Puts a request in. Returns false where there are too many, or nobody takes them any more.
    pub fn request(&self, command: &Command<'_>, answer: Answer) -> bool {
        let mut events = self.lock();
        let bytes = events.bytes + command.body.len();
        if events.is_closed || events.queue.len() >= self.capacity || bytes > MAX_BYTES {
            events.dropped += u64::from(command.is_oneway());
            return false;
        }
        events.bytes = bytes;
        events.queue.push_back(Event::Request(Box::new(command.into()), answer));
        drop(events);
        self.arrived.notify_one();
        true
    }

    /// Counts a one-way request that is not done; `take` warns of how many there were.
    pub fn dropped(&self) {
        self.lock().dropped += 1;
        self.arrived.notify_one();
    }

    /// Tells that a connection is gone.
    pub fn connection_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.lock().queue.push_back(Event::Closed(connection.clone(), reason.map(ToString::to_string)));
        self.arrived.notify_one();
    }

    /// Tells of what no connection is to blame for.
    pub fn warned(&self, error: &Error) {
        self.lock().queue.push_back(Event::Warning(error.to_string()));
        self.arrived.notify_one();
    }

    /// The next event; `None` where none came in time, or the mailbox is closed and empty.
    pub fn take(&self, timeout: Duration) -> Option<Event> {
        let until = Instant::now() + timeout;
        let mut events = self.lock();
        loop {
            if let Some(warning) = events.warning() {
                return Some(warning);
            }
            if let Some(event) = events.queue.pop_front() {
                if let Event::Request(request, _) = &event {
                    events.bytes -= request.body.len();
                }
                return Some(event);
            }
            let left = until.saturating_duration_since(Instant::now());
            if events.is_closed || left.is_zero() {
                return None;
            }
            events = self.arrived.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many events wait to be taken.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes no more requests; whoever waits for one is woken.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
