//! Queue of requests for the control plane, whose threads may block.
use crate::command::{Command, OwnedCommand};
use crate::connection::{Answer, Connection};
use crate::error::Error;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub enum Event {
    Request(Box<OwnedCommand>, Answer),
    /// A connection has ended. Holds the reason, unless the connection was closed regularly.
    Closed(Arc<Connection>, Option<String>),
    /// A warning that is not about a single connection.
    Warning(String),
}

// Maximum bytes of waiting requests. A single request may have 16 MiB.
const MAX_BYTES: usize = 256 << 20;

// Requests with larger bodies take long and are only handled by some threads.
const LARGE: usize = 16 << 10;
// One connection may use at most this fraction (1/SHARE) of the capacity.
const SHARE: usize = 4;

// Minimum time between two warnings about dropped requests.
const WARNINGS: Duration = Duration::from_secs(1);

/// A bounded queue of events. Connections take turns, so that a busy connection does not delay the others. The events
/// of a connection stay in order. Requests with large bodies have their own queue, which only some threads read.
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
    /// Whether a large request was returned by the last call of `next` with `takes_large`.
    was_large: bool,
    bytes: usize,
    /// Number of oneway requests that were dropped and not yet reported. The sender gets no answer, so only a warning
    /// shows the loss.
    dropped: u64,
    warned_at: Option<Instant>,
    is_closed: bool,
}

/// Events in one list for each connection. The connections take turns.
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
        // round robin: below, the connection goes to the back if it has more events
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

    /// Removes and returns the next event. With `takes_large`, large and small requests take turns.
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
        // after the close the rest is reported at once, as no later warning comes
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
    pub fn new(capacity: usize) -> Self {
        Self { events: Mutex::default(), arrived: Condvar::new(), capacity }
    }

    /// Adds a request. Returns false if the mailbox is full or closed.
    pub fn request(&self, command: &Command<'_>, answer: Answer) -> bool {
        let (connection, is_large) = (answer.connection.id(), command.body.len() > LARGE);
        let mut events = self.lock();
        let bytes = events.bytes + command.body.len();
        let own = events.small.of(connection) + events.large.of(connection);
        // a limit per connection too: a flooding connection is refused before others are
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

    /// Counts a dropped oneway request. A later `take` reports the number in a warning.
    pub fn note_dropped(&self) {
        self.lock().dropped += 1;
        self.arrived.notify_one();
    }

    /// Adds the event that a connection has ended.
    pub fn connection_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        // without a limit, as the end of a connection must never be lost
        let event = Event::Closed(connection.clone(), reason.map(ToString::to_string));
        self.lock().small.push(connection.id(), event);
        self.arrived.notify_one();
    }

    pub fn warn(&self, what: impl ToString) {
        // no connection has the id 0
        self.lock().small.push(0, Event::Warning(what.to_string()));
        self.arrived.notify_one();
    }

    /// Removes and returns the next event. Returns `None` after `timeout`, and if the mailbox is closed and empty.
    pub fn take(&self, timeout: Duration) -> Option<Event> {
        self.take_of(timeout, true)
    }

    /// Takes an event as [`take`](Self::take) does, but leaves requests with large bodies to other threads.
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

    /// Refuses further requests and wakes all waiting threads.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
