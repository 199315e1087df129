//! The first failure of a task's threads, and a signal that stops the other threads.
use crate::error::Error;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The reason why rows could not be sent. `code` is the broker's response code, or -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub text: String,
    pub code: i32,
}

impl From<Failure> for Error {
    fn from(Failure { text, code }: Failure) -> Self {
        Self::Send { text, code }
    }
}

/// Tells waiting threads to stop, and keeps the first failure.
#[derive(Debug, Default)]
pub struct Stop {
    state: Mutex<State>,
    set: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    failure: Option<Failure>,
}

impl Stop {
    pub fn set(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_set = true;
        self.set.notify_all();
    }

    /// Stops all threads because one failed.
    pub fn fail(&self, failure: Failure) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // later failures mostly follow from the first one
        if !state.is_set {
            state.failure = Some(failure);
        }
        drop(state);
        self.set();
    }

    pub fn is_set(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_set
    }

    /// Returns the first failure as an error.
    ///
    /// # Errors
    /// A thread has failed.
    pub fn check(&self) -> Result<(), Failure> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.clone().map_or(Ok(()), Err)
    }

    /// Waits for `pause`, or until the threads must stop. Returns whether the threads must stop.
    pub fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // a loop, since a condition variable may wake up without a reason
        while !state.is_set {
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
            state = self.set.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_counts_and_whoever_waits_goes_on_at_once() {
        let stop = Stop::default();
        assert!(!stop.wait(Duration::ZERO) && stop.check().is_ok());
        let failure = |text: &str| Failure { text: text.to_owned(), code: -1 };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| stop.wait(Duration::from_secs(600)));
            stop.fail(failure("first"));
            assert!(waiting.join().expect("it waits"));
        });
        stop.fail(failure("second"));
        assert_eq!(stop.check(), Err(failure("first")));
    }
}
