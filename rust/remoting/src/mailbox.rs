//! The backlog of requests that threads of the control plane take and answer; they may wait.
use crate::command::Command;
use crate::connection::{Answer, Connection};
use crate::error::Error;
use crate::owned_command::OwnedCommand;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub enum Event {
    Request(Box<OwnedCommand>, Answer),
    /// A connection is gone, and why, unless it was closed.
    Closed(Arc<Connection>, Option<String>),
    /// Something is not as it should be, and no connection is to blame.
    Warning(String),
}

// Bytes of the requests that wait, at most: a single one may have 16 MiB.
const MAX_BYTES: usize = 256 << 20;

// A request with a longer body takes time: those have one thread.
const LARGE: usize = 16 << 10;
// Of the requests that may wait, a single connection has one in so many.
const SHARE: usize = 4;

// Between two warnings of dropped requests.
const WARNINGS: Duration = Duration::from_secs(1);

/// Events, as many as a limit allows. Connections take turns, each with its own in order, so that one that asks for much keeps
/// nobody from being answered; so do requests with large bodies, which only some threads take.
#[derive(Debug)]
pub struct Mailbox {
    events: Mutex<Events>,
    arrived: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Events {
    small: Turns,
    large: Turns,
    /// The last event that was taken by who takes large ones was one.
    was_large: bool,
    /// Of the requests that wait.
    bytes: usize,
    /// One-way requests that nobody was told of: no answer says so to who asked.
    dropped: u64,
    warned_at: Option<Instant>,
    is_closed: bool,
}

/// Events of some connections, which take turns.
#[derive(Debug, Default)]
struct Turns {
    next: VecDeque<u64>,
    waiting: HashMap<u64, VecDeque<Event>>,
    len: usize,
}

impl Turns {
    fn push(&mut self, connection: u64, event: Event) {
        let waiting = self.waiting.entry(connection).or_default();
        if waiting.is_empty() {
            self.next.push_back(connection);
        }
        waiting.push_back(event);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Event> {
        let connection = self.next.pop_front()?;
        let waiting = self.waiting.get_mut(&connection)?;
        let event = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&connection);
        } else {
            self.next.push_back(connection);
        }
        self.len -= usize::from(event.is_some());
        event
    }

    fn of(&self, connection: u64) -> usize {
        self.waiting.get(&connection).map_or(0, VecDeque::len)
    }
}

impl Events {
    fn len(&self) -> usize {
        self.small.len + self.large.len
    }

    /// Returns the next event; large ones and small ones take turns where both may be taken.
    fn next(&mut self, takes_large: bool) -> Option<Event> {
        let event = match (takes_large, self.was_large) {
            (false, _) => self.small.pop(),
            (true, false) => self.large.pop().or_else(|| self.small.pop()),
            (true, true) => self.small.pop().or_else(|| self.large.pop()),
        };
        if let Some(Event::Request(request, _)) = &event {
            self.bytes -= request.body.len();
        }
        if takes_large {
            self.was_large = matches!(&event, Some(Event::Request(request, _)) if request.body.len() > LARGE);
        }
        event
    }

    fn warning(&mut self) -> Option<Event> {
        let is_recent = self.warned_at.is_some_and(|at| at.elapsed() < WARNINGS);
        // at the end the last ones are reported at once: no second warning comes
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
        let (connection, is_large) = (answer.connection.id(), command.body.len() > LARGE);
        let mut events = self.lock();
        let bytes = events.bytes + command.body.len();
        let own = events.small.of(connection) + events.large.of(connection);
        // by connection as well: one that floods the mailbox is refused before the others are
        let is_full = events.len() >= self.capacity || own >= self.capacity.div_ceil(SHARE) || bytes > MAX_BYTES;
        if events.is_closed || is_full {
            events.dropped += u64::from(command.is_oneway());
            return false;
        }
        events.bytes = bytes;
        let event = Event::Request(Box::new(command.into()), answer);
        match is_large {
            true => events.large.push(connection, event),
            false => events.small.push(connection, event),
        }
        drop(events);
        match is_large {
            true => self.arrived.notify_all(), // not everybody takes it
            false => self.arrived.notify_one(),
        }
        true
    }

    /// Counts a one-way request that is not done; `take` warns of how many there were.
    pub fn note_dropped(&self) {
        self.lock().dropped += 1;
        self.arrived.notify_one();
    }

    /// Tells that a connection is gone.
    pub fn connection_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        // no limit counts here: who is gone has to be noticed however much waits
        let event = Event::Closed(connection.clone(), reason.map(ToString::to_string));
        self.lock().small.push(connection.id(), event);
        self.arrived.notify_one();
    }

    /// Tells of what no connection is to blame for.
    pub fn warn(&self, what: impl ToString) {
        // no connection has the number 0
        self.lock().small.push(0, Event::Warning(what.to_string()));
        self.arrived.notify_one();
    }

    /// Returns the next event; `None` where none came in time, or the mailbox is closed and empty.
    pub fn take(&self, timeout: Duration) -> Option<Event> {
        self.take_of(timeout, true)
    }

    /// [`take`](Self::take) that leaves requests with a large body: those are for threads that take all.
    pub fn take_small(&self, timeout: Duration) -> Option<Event> {
        self.take_of(timeout, false)
    }

    fn take_of(&self, timeout: Duration, takes_large: bool) -> Option<Event> {
        let until = Instant::now() + timeout;
        let mut events = self.lock();
        loop {
            if let Some(warning) = events.warning() {
                return Some(warning);
            }
            if let Some(event) = events.next(takes_large) {
                return Some(event);
            }
            let remaining = until.saturating_duration_since(Instant::now());
            if events.is_closed || remaining.is_zero() {
                return None;
            }
            events = self.arrived.wait_timeout(events, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes no more requests; whoever waits for one is woken.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Returns whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
