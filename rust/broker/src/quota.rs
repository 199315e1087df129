//! Limits the number of names that a connection may add permanently: a number at once, then a rate per second.
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket for each connection.
#[derive(Debug)]
pub struct Quota {
    burst: f64,
    per_second: f64,
    /// For each connection, its tokens and the time at which they were computed. A connection that never asked for a
    /// token has no entry.
    budgets: Mutex<HashMap<u64, (f64, Instant)>>,
}

impl Quota {
    /// Allows `burst` names at once, and `per_second` names per second.
    pub fn new(burst: u32, per_second: u32) -> Self {
        Self { burst: burst.into(), per_second: per_second.into(), budgets: Mutex::default() }
    }

    /// Takes a token of a connection. Returns false if the connection has no token left.
    pub fn take(&self, connection: u64, now: Instant) -> bool {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = budgets.entry(connection).or_insert((self.burst, now));
        // tokens since the last call, up to the burst
        let gained = now.saturating_duration_since(*at).as_secs_f64() * self.per_second;
        (*tokens, *at) = ((*tokens + gained).min(self.burst), now);
        let is_there = *tokens >= 1.0;
        *tokens -= f64::from(u8::from(is_there));
        is_there
    }

    /// Removes the entry of a closed connection.
    pub fn forget(&self, connection: u64) {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner).remove(&connection);
    }

    /// Returns the limits in words, for the refusal of a request.
    pub fn limits(&self) -> String {
        format!("{} at once and {} a second", self.burst, self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_connection_has_its_burst_and_then_what_time_brings() {
        let (quota, start) = (Quota::new(3, 2), Instant::now());
        let taken = |connection, seconds: f64| {
            let now = start + Duration::from_secs_f64(seconds);
            (0..10).filter(|_| quota.take(connection, now)).count()
        };
        assert_eq!([taken(1, 0.0), taken(1, 0.0), taken(1, 1.0), taken(1, 100.0)], [3, 0, 2, 3]);
        assert_eq!(taken(2, 100.0), 3);
        quota.forget(1);
        assert_eq!(taken(1, 100.0), 3);
    }
}
