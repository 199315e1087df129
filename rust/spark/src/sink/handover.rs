//! Hands things from one thread to another, a few at a time: rows must not pile up in memory while a broker is slow.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue of bounded length.
#[derive(Debug)]
pub struct Handover<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

/// What became of an item that was to be handed over.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed<T> {
    /// It will be taken.
    Done,
    /// There was no room in time.
    Full(T),
    /// Nobody takes any more.
    Closed,
}

impl<T> Handover<T> {
    /// Holds so many.
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::new(State { items: VecDeque::new(), is_closed: false }), changed: Condvar::new(), most }
    }

    /// Hands an item over; waits so long for room.
    pub fn push(&self, item: T, wait: Duration) -> Pushed<T> {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        while state.items.len() >= self.most && !state.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Pushed::Full(item);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_closed {
            return Pushed::Closed;
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_all();
        Pushed::Done
    }

    /// Takes the next item; waits for it. None once it is closed and empty.
    pub fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                drop(state);
                self.changed.notify_all();
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes it on every way out, a panic included: whoever hands over must not wait for ever.
pub struct ClosedAtEnd<'a, T>(pub &'a Handover<T>);

impl<T> Drop for ClosedAtEnd<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_and_no_more_than_there_is_room_for() {
        let handover = Handover::new(2);
        let at_once = Duration::ZERO;
        assert_eq!((handover.push(1, at_once), handover.push(2, at_once)), (Pushed::Done, Pushed::Done));
        assert_eq!(handover.push(3, at_once), Pushed::Full(3));
        assert_eq!(handover.take(), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| handover.push(3, Duration::from_secs(60)));
            assert_eq!((handover.take(), handover.take()), (Some(2), Some(3)));
        });
        assert_eq!(handover.push(4, at_once), Pushed::Done);
        drop(ClosedAtEnd(&handover));
        // what is there is still taken
        assert_eq!((handover.take(), handover.take()), (Some(4), None));
        assert_eq!(handover.push(5, Duration::from_secs(60)), Pushed::Closed);
    }
}
