//! A bounded queue between two threads, so that rows do not fill the memory while a broker is slow.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue that holds at most `most` items.
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

#[derive(Debug, PartialEq, Eq)]
pub enum HandoverResult<T> {
    Done,
    /// The queue was full during the whole wait. The item is returned.
    Full(T),
    /// The receiver has stopped. The item is dropped.
    Closed,
}

impl<T> Handover<T> {
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::new(State { items: VecDeque::new(), is_closed: false }), changed: Condvar::new(), most }
    }

    /// Adds an item. Waits up to `wait` for room.
    pub fn push(&self, item: T, wait: Duration) -> HandoverResult<T> {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        // a loop, since a condition variable may wake up without a reason
        while state.items.len() >= self.most && !state.is_closed {
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return HandoverResult::Full(item);
            }
            state = self.changed.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_closed {
            return HandoverResult::Closed;
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_all();
        HandoverResult::Done
    }

    /// Waits for the next item and returns it. `None` if the queue is closed and empty.
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

    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the queue when dropped, also after a panic, so that the sending thread does not wait forever.
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
        assert_eq!(
            (handover.push(1, at_once), handover.push(2, at_once)),
            (HandoverResult::Done, HandoverResult::Done)
        );
        assert_eq!(handover.push(3, at_once), HandoverResult::Full(3));
        assert_eq!(handover.take(), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| handover.push(3, Duration::from_secs(60)));
            assert_eq!((handover.take(), handover.take()), (Some(2), Some(3)));
        });
        assert_eq!(handover.push(4, at_once), HandoverResult::Done);
        drop(ClosedAtEnd(&handover));
        // items that are queued at closing are still taken
        assert_eq!((handover.take(), handover.take()), (Some(4), None));
        assert_eq!(handover.push(5, Duration::from_secs(60)), HandoverResult::Closed);
    }
}
