//! Why rows could not be sent, and what the others are to do then.
use crate::error::Error;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why rows could not be sent: the words, and the code of the response that it comes from, or -1.
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

/// Says that nothing more is to be done, to threads that wait, and why.
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

    /// Stops because something failed.
    pub fn fail(&self, failure: Failure) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // what comes after the first failure, or after the end, mostly follows from it
        if !state.is_set {
            state.failure = Some(failure);
        }
        drop(state);
        self.set();
    }

    /// Whether nothing more is to be done.
    pub fn is_set(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_set
    }

    /// The first failure.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<(), Failure> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.clone().map_or(Ok(()), Err)
    }

    /// Waits so long, or until nothing more is to be done: whether that is so.
    pub fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
