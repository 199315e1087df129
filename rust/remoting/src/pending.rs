//! Requests that this side has sent and that are not answered yet.
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

/// Waiting callers, by the number of their request. An answer for which nobody waits is dropped.
#[derive(Debug)]
pub struct Pending {
    next_opaque: AtomicI32,
    /// The waiting callers; `None` after the connection was closed.
    waiting: Mutex<Option<Waiting>>,
}

#[derive(Debug)]
enum Waiter {
    /// A thread is blocked and checks its timeout itself.
    Caller(SyncSender<OwnedCommand>),
    /// No thread is blocked. The result goes to the completions of the ticket.
    Ticket(Ticket),
}

/// An asynchronous request. Its result goes to `completions`.
#[derive(Debug)]
pub struct Ticket {
    pub completions: Arc<Completions>,
    /// Number that the caller has chosen to identify the request.
    pub token: u64,
    /// Time at which the request was sent.
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

    /// Returns the number for the next request.
    pub fn opaque(&self) -> i32 {
        self.next_opaque.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a blocked caller. Returns the number of its request and the receiver of the answer, or `None` if the
    /// connection is closed.
    pub fn wait(&self) -> Option<(i32, Receiver<OwnedCommand>)> {
        let opaque = self.opaque();
        // room for the one answer, so that the session never blocks
        let (sender, receiver) = sync_channel(1);
        self.lock().as_mut()?.insert(opaque, Waiter::Caller(sender));
        Some((opaque, receiver))
    }

    /// Registers an asynchronous request. Returns its number, or `None` if the connection is closed.
    pub fn take_ticket(&self, ticket: Ticket) -> Option<i32> {
        let opaque = self.opaque();
        let completions = ticket.completions.clone();
        self.lock().as_mut()?.insert(opaque, Waiter::Ticket(ticket));
        // after the insertion, as the task that this wakes looks for requests that time out
        completions.note_asked();
        Some(opaque)
    }

    /// Removes a waiting caller. Returns whether its request had no result yet.
    pub fn forget(&self, opaque: i32) -> bool {
        let forgotten = self.lock().as_mut().and_then(|waiting| waiting.remove(&opaque));
        if let Some(Waiter::Ticket(ticket)) = &forgotten {
            ticket.completions.note_forgotten();
        }
        forgotten.is_some()
    }

    /// Passes an answer to the caller that waits for it. An answer for which nobody waits is not copied.
    pub fn answer(&self, answer: &Command<'_>) {
        // unlocked after this line, as completions have their own lock
        let waiter = self.lock().as_mut().and_then(|waiting| waiting.remove(&answer.opaque));
        match waiter {
            // a caller that gave up has dropped the receiver
            Some(Waiter::Caller(sender)) => drop(sender.try_send(answer.into())),
            Some(Waiter::Ticket(ticket)) => ticket.completions.put(ticket.token, Ok(answer.into())),
            None => {}
        }
    }

    /// Fails the asynchronous requests that have timed out. Returns the time at which the oldest of them was sent.
    pub fn expire(&self, address: &str, now: Instant) -> Option<Instant> {
        // collected first, so that completions are not locked within this lock
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

    /// Fails all waiting callers. Called when the connection was closed.
    pub fn close(&self, address: &str) {
        // from here on no waiter can be registered
        let waiting = self.lock().take();
        for waiter in waiting.into_iter().flat_map(HashMap::into_values) {
            // a blocked caller notices that its channel ended
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
