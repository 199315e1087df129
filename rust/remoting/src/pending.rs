//! The requests of this side that are in flight, until their answers come.
use crate::command::Command;
use crate::completions::Completions;
use crate::error::{Error, Result};
use crate::owned_command::OwnedCommand;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Waiting = HashMap<i32, Waiter>;

/// The waiters by opaque. An answer without one is dropped.
#[derive(Debug)]
pub struct Pending {
    next_opaque: AtomicI32,
    /// `None` once the connection is gone.
    waiting: Mutex<Option<Waiting>>,
}

#[derive(Debug)]
enum Waiter {
    /// A thread that waits itself: it looks at the clock, and at the other end of the channel.
    Caller(SyncSender<OwnedCommand>),
    /// No thread waits: the end goes to the completions.
    Ticket(Ticket),
}

/// A request whose end somebody takes later.
#[derive(Debug)]
pub struct Ticket {
    pub completions: Arc<Completions>,
    /// The caller's number for the request.
    pub token: u64,
    /// Since when it waits.
    pub asked_at: Instant,
    pub timeout: Duration,
}

impl Ticket {
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked_at) >= self.timeout
    }
}

impl Pending {
    pub fn new() -> Self {
        Self { next_opaque: AtomicI32::new(1), waiting: Mutex::new(Some(Waiting::new())) }
    }

    /// Returns a number for a request that nobody waits for.
    pub fn opaque(&self) -> i32 {
        self.next_opaque.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for the answer to a request of that number; `None` where the connection is gone.
    pub fn wait(&self) -> Option<(i32, Receiver<OwnedCommand>)> {
        let opaque = self.opaque();
        let (sender, receiver) = sync_channel(1);
        self.lock().as_mut()?.insert(opaque, Waiter::Caller(sender));
        Some((opaque, receiver))
    }

    /// Has the end of a request of that number put where the ticket says; `None` where the connection is gone.
    pub fn take_ticket(&self, ticket: Ticket) -> Option<i32> {
        let opaque = self.opaque();
        let completions = ticket.completions.clone();
        self.lock().as_mut()?.insert(opaque, Waiter::Ticket(ticket));
        // after the insertion: the task that this wakes looks for requests to expire
        completions.note_asked();
        Some(opaque)
    }

    /// Waits no longer. Returns whether the request had no end yet.
    pub fn forget(&self, opaque: i32) -> bool {
        let forgotten = self.lock().as_mut().and_then(|waiting| waiting.remove(&opaque));
        if let Some(Waiter::Ticket(ticket)) = &forgotten {
            ticket.completions.note_forgotten();
        }
        forgotten.is_some()
    }

    /// Hands an answer to who waits for it; one that nobody waits for is not even copied.
    pub fn answer(&self, answer: &Command<'_>) {
        // the lock ends with this line: completions have one of their own
        let waiter = self.lock().as_mut().and_then(|waiting| waiting.remove(&answer.opaque));
        match waiter {
            // who has given up waiting has dropped the other end
            Some(Waiter::Caller(sender)) => drop(sender.try_send(answer.into())),
            Some(Waiter::Ticket(ticket)) => ticket.completions.put(ticket.token, Ok(answer.into())),
            None => {}
        }
    }

    /// Ends requests that have waited for too long. Returns since when the longest of them did.
    pub fn expire(&self, address: &str, now: Instant) -> Option<Instant> {
        // gathered first, for the same reason as in `answer`
        let mut late = Vec::new();
        if let Some(waiting) = self.lock().as_mut() {
            late.extend(
                waiting.extract_if(|_, waiter| matches!(waiter, Waiter::Ticket(ticket) if ticket.is_late(now))),
            );
        }
        let mut oldest = None;
        for (_, waiter) in late {
            let Waiter::Ticket(ticket) = waiter else { continue };
            oldest = oldest.into_iter().chain([ticket.asked_at]).min();
            let timeout_ms = ticket.timeout.as_millis() as u64;
            ticket.completions.put(ticket.token, Err(Error::Timeout { address: address.to_owned(), timeout_ms }));
        }
        oldest
    }

    /// The connection is gone: whoever waits gets an error.
    pub fn close(&self, address: &str) {
        // from here on nobody begins to wait
        let waiting = self.lock().take();
        for waiter in waiting.into_iter().flat_map(HashMap::into_values) {
            // a caller notices that its channel has ended
            if let Waiter::Ticket(ticket) = waiter {
                let closed: Result<OwnedCommand> = Err(Error::Closed { address: address.to_owned() });
                ticket.completions.put(ticket.token, closed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
