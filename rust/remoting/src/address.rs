//! Connections of a client to one address. After a failed attempt to connect, further attempts wait for a while.
//!
//! Source: `NettyRemotingClient.channelTables`, `ChannelWrapper`.
use crate::client::Client;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, SLICE};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// Pause after the first failure. Each further failure doubles it, up to the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
// Maximum idle connections.
const MAX_IDLE: usize = 64;
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// An address (`host:port`) and the connections to it.
#[derive(Debug)]
pub struct Address {
    name: String,
    state: Mutex<State>,
    changed: Condvar,
    /// Clock for the pause after failures. Tests replace it.
    clock: fn() -> Instant,
}

#[derive(Debug, Default)]
struct State {
    /// The shared connection, over which both sides send requests.
    shared: Option<Arc<Connection>>,
    /// Idle connections, each with the time at which it became idle. The connection that is idle longest comes first.
    idle: VecDeque<(Client, Instant)>,
    is_tried: bool,
    /// Number of failed attempts to connect since the last success.
    failures: u32,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    reason: Error,
    try_again_at: Instant,
}

impl Address {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: Mutex::default(), changed: Condvar::new(), clock: Instant::now }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn shared(&self) -> Option<Arc<Connection>> {
        self.lock().shared.as_ref().filter(|connection| connection.is_open()).cloned()
    }

    /// Returns the shared connection. If there is none, opens it by calling `open`. If another thread is already doing
    /// so, waits for the result of that thread instead.
    pub fn share(
        &self,
        timeout: Duration,
        interrupt: Interrupt<'_>,
        open: impl FnOnce() -> Result<Arc<Connection>>,
    ) -> Result<Arc<Connection>> {
        self.try_once(
            timeout,
            interrupt,
            |state| state.shared.clone().filter(|c| c.is_open()),
            || {
                let connection = open()?;
                self.lock().shared = Some(connection.clone());
                Ok(connection)
            },
        )
    }

    /// Calls `open` to open a connection that only the caller uses.
    pub fn open(
        &self,
        timeout: Duration,
        interrupt: Interrupt<'_>,
        open: impl FnOnce() -> Result<Client>,
    ) -> Result<Client> {
        self.try_once(timeout, interrupt, |_| None, open)
    }

    /// Removes and returns the idle connection that was used last, or `None` if there is none. The peer may have closed
    /// it.
    pub fn take_idle(&self) -> Option<Client> {
        self.lock().idle.pop_back().map(|(client, _)| client)
    }

    pub fn give_back(&self, mut client: Client) {
        client.shrink();
        let mut state = self.lock();
        // beyond this limit the connection is dropped, which closes it
        if state.idle.len() < MAX_IDLE {
            state.idle.push_back((client, Instant::now()));
        }
    }

    /// Closes connections that were idle for too long.
    pub fn end_idle(&self, now: Instant) {
        let mut state = self.lock();
        let waits = |since: Instant| now.saturating_duration_since(since) < MAX_IDLE_TIME;
        // the list is sorted by age, so old connections are at the front
        let old = state.idle.iter().take_while(|(_, since)| !waits(*since)).count();
        let ended: Vec<_> = state.idle.drain(..old).collect();
        drop(state);
        // dropped without the lock, as closing TLS writes to the socket
        drop(ended);
    }

    pub fn close(&self) {
        let mut state = self.lock();
        let (shared, idle) = (state.shared.take(), std::mem::take(&mut state.idle));
        drop(state);
        // as in `end_idle`: without the lock
        drop(idle);
        if let Some(connection) = shared {
            connection.close();
        }
        self.changed.notify_all();
    }

    /// Returns what `there` finds; if it finds nothing, the result of `attempt`. Only one attempt runs at a time, other
    /// callers wait for it. During the pause after a failed attempt none runs, and the call fails with the error of
    /// that attempt. Also fails with [`Error::Interrupted`].
    fn try_once<T>(
        &self,
        timeout: Duration,
        interrupt: Interrupt<'_>,
        there: impl Fn(&State) -> Option<T>,
        attempt: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(there) = self.wait_for_turn(timeout, interrupt, there)? {
            return Ok(there);
        }
        // the turn ends on drop, so also after a panic
        let turn = Turn(self);
        let tried = attempt();
        turn.0.note(tried.as_ref().err());
        tried
    }

    fn wait_for_turn<T>(
        &self,
        timeout: Duration,
        interrupt: Interrupt<'_>,
        there: impl Fn(&State) -> Option<T>,
    ) -> Result<Option<T>> {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(there) = there(&state) {
                return Ok(Some(there));
            }
            let is_left_alone = |failure: &&Failure| (self.clock)() < failure.try_again_at;
            if let Some(failure) = state.failure.as_ref().filter(is_left_alone) {
                return Err(failure.reason.duplicate());
            }
            if !state.is_tried {
                state.is_tried = true;
                return Ok(None);
            }
            // another caller is trying: its connection or its error is the result for this caller too
            let now = Instant::now();
            if now >= until {
                let source = std::io::ErrorKind::TimedOut.into();
                return Err(Error::Connect { address: self.name.clone(), source });
            }
            let slice = SLICE.min(until - now);
            drop(self.changed.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner));
            interrupt()?;
            state = self.lock();
        }
    }

    fn note(&self, error: Option<&Error>) {
        let mut state = self.lock();
        match error {
            None => (state.failures, state.failure) = (0, None),
            // an interrupt says nothing about the peer
            Some(Error::Interrupted) => {}
            Some(error) => {
                let try_again_at = (self.clock)() + pause(state.failures, random());
                state.failures = state.failures.saturating_add(1);
                state.failure = Some(Failure { reason: error.duplicate(), try_again_at });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to attempt a connection. Dropping it wakes the callers that wait for their turn.
struct Turn<'a>(&'a Address);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().is_tried = false;
        self.0.changed.notify_all();
    }
}

/// Returns the pause after a failure. `failures` is the number of failures before it. `random`, from 0 to 1, makes many
/// clients reconnect at different times.
fn pause(failures: u32, random: f64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
    // at least a quarter of the pause: otherwise some clients would hardly wait
    longest.mul_f64(0.25 + 0.75 * random)
}

fn random() -> f64 {
    let drawn = RandomState::new().build_hasher().finish();
    // 53 random bits, as many as a double holds exactly
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::never;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    static IS_LATER: AtomicBool = AtomicBool::new(false);

    /// A clock that first stands still, then jumps by the pause after a first failure.
    fn clock() -> Instant {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        *START + if IS_LATER.load(Ordering::Relaxed) { FIRST_PAUSE } else { Duration::ZERO }
    }

    fn refused() -> Error {
        Error::Connect { address: "a:1".into(), source: std::io::ErrorKind::ConnectionRefused.into() }
    }

    #[test]
    fn pauses_grow_up_to_the_longest_and_are_never_the_same() {
        assert_eq!([0, 1, 2, 9, u32::MAX].map(|n| pause(n, 1.0).as_millis()), [100, 200, 400, 5000, 5000]);
        assert_eq!(pause(3, 0.0), Duration::from_millis(200));
        let drawn = [random(), random(), random()];
        assert!(drawn.iter().all(|one| (0.0..1.0).contains(one)));
        assert!(drawn[0] != drawn[1] || drawn[1] != drawn[2]);
    }

    #[test]
    fn after_a_failure_others_are_told_why_at_once_and_later_one_tries_again() {
        let address = Address { clock, ..Address::new("a:1") };
        let tries = AtomicUsize::new(0);
        let attempt = || {
            address.try_once(
                Duration::from_secs(5),
                &never,
                |_| None::<()>,
                || {
                    tries.fetch_add(1, Ordering::Relaxed);
                    Err(refused())
                },
            )
        };
        for _ in 0..10 {
            assert_eq!(attempt().expect_err("refused").to_string(), refused().to_string());
        }
        assert_eq!(tries.load(Ordering::Relaxed), 1);
        IS_LATER.store(true, Ordering::Relaxed);
        assert!(attempt().is_err());
        assert_eq!(tries.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn one_tries_at_a_time_and_the_others_take_what_it_brings() {
        let (address, tries, came) = (Address::new("a:1"), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    came.fetch_add(1, Ordering::Relaxed);
                    let brought = address.try_once(
                        Duration::from_secs(20),
                        &never,
                        |state| {
                            (state.failures == 0 && tries.load(Ordering::Relaxed) > 0 && !state.is_tried).then_some(7)
                        },
                        || {
                            tries.fetch_add(1, Ordering::Relaxed);
                            while came.load(Ordering::Relaxed) < 8 {
                                std::thread::yield_now();
                            }
                            Ok(7)
                        },
                    );
                    assert_eq!(brought.expect("brought"), 7);
                });
            }
        });
        assert_eq!(tries.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn whoever_is_interrupted_says_nothing_of_the_peer() {
        let address = Address::new("a:1");
        let stopped = address.try_once(
            Duration::from_secs(5),
            &|| Err(Error::Interrupted),
            |_| None::<()>,
            || Err(Error::Interrupted),
        );
        assert!(matches!(stopped, Err(Error::Interrupted)));
        assert!(address.try_once(Duration::from_secs(5), &never, |_| None, || Ok(())).is_ok());
    }
}
