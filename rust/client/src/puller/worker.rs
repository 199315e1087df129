//! The thread of a broker. It moves requests and answers through the connection, and reconnects after failures.
use super::answer::Answer;
use super::body::{Body, Pool};
use super::link::Link;
use super::options::PullerOptions;
use super::state::{Request, State};
use super::wire;
use crate::error::Result;
use rmqfast_os::bell::Ear;
use rmqfast_remoting::Command;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// Pause between two attempts to connect: first and maximum.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// State shared by the threads and the [`Puller`](super::Puller).
pub struct Shared {
    state: Mutex<State>,
    /// Notified when an item becomes ready, and when the puller closes.
    pub ready: Condvar,
    pub is_closed: AtomicBool,
    pub options: Arc<PullerOptions>,
    /// Called by any thread when the first item becomes ready, and when the puller closes.
    on_ready: Option<Arc<OnReady>>,
    pool: Arc<Pool>,
}

/// Callback for ready items. It must not block or call the puller.
pub type OnReady = dyn Fn() + Send + Sync;

impl Shared {
    pub fn new(options: PullerOptions, on_ready: Option<Arc<OnReady>>) -> Self {
        let options = Arc::new(options);
        Self {
            state: State::new(options.clone()).into(),
            ready: Condvar::new(),
            is_closed: false.into(),
            options,
            on_ready,
            pool: Arc::default(),
        }
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads that wait in `take`, and calls `on_ready`.
    pub fn notify(&self) {
        self.ready.notify_all();
        if let Some(on_ready) = &self.on_ready {
            on_ready();
        }
    }

    /// Returns the requests to send to a broker now, and whether the broker has nothing in flight even with these
    /// requests.
    fn requests(&self, broker: usize, now: Instant) -> (Vec<Request>, bool) {
        let mut state = self.lock();
        (state.requests(broker, now), state.is_idle(broker))
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

pub struct Worker {
    pub shared: Arc<Shared>,
    pub ear: Ear,
    /// Number of the broker in the state.
    pub broker: usize,
    pub address: Arc<str>,
    pub link: Option<Link>,
    pub failures: u32,
    pub retry_at: Instant,
    pub heard_at: Instant,
}

impl Worker {
    /// Sends requests and receives answers, until the puller is closed.
    pub fn run(mut self) {
        while !self.shared.is_closed() {
            if let Err(error) = self.turn() {
                self.disconnect(&error.to_string());
            }
        }
        self.shared.notify();
    }

    fn turn(&mut self) -> Result<()> {
        let now = Instant::now();
        self.expire(now);
        // no requests before the next attempt to connect: they would count as in flight without a connection
        if self.link.is_some() || now >= self.retry_at {
            let (requests, is_idle) = self.shared.requests(self.broker, now);
            if !requests.is_empty() {
                self.send(&requests)?;
            }
            // a caller in `take` may wait for more items, and none will come
            if is_idle {
                self.shared.ready.notify_all();
            }
        }
        self.wait();
        self.receive()
    }

    /// Fails requests that timed out. Closes the connection if nothing has arrived since they were sent.
    fn expire(&mut self, now: Instant) {
        let expired = self.shared.lock().expire(self.broker, now);
        if let Some(sent) = expired {
            self.shared.notify();
            if sent >= self.heard_at && self.link.is_some() {
                self.disconnect("the broker answers nothing any more");
            }
        }
    }

    fn send(&mut self, requests: &[Request]) -> Result<()> {
        let mut out = Vec::with_capacity(512 * requests.len());
        for request in requests {
            if let Err(reason) = wire::write(request, &self.shared.options, &mut out) {
                // a request that cannot be signed must not block the others
                let refused = Answer::failure(-1, format!("signing a pull failed: {reason}"));
                self.shared.lock().answer(request.opaque, refused, Instant::now());
                self.shared.notify();
            }
        }
        if out.is_empty() {
            return Ok(());
        }
        let options = &self.shared.options;
        let timeout = options.connect_timeout;
        let link = match &mut self.link {
            Some(link) => link,
            None => {
                let link = Link::connect(&self.address, options.tls.as_ref(), self.shared.pool.clone(), timeout)?;
                self.shared.lock().on_connect(self.broker);
                self.shared.notify();
                self.heard_at = Instant::now();
                self.link.insert(link)
            }
        };
        link.send(&out, timeout)
    }

    fn wait(&self) {
        let now = Instant::now();
        let mut timeout = self.shared.lock().deadline(self.broker, now);
        if self.link.is_none() && self.retry_at > now {
            // without a connection nothing can be sent before `retry_at`
            timeout = Some(timeout.map_or(self.retry_at - now, |timeout| timeout.max(self.retry_at - now)));
        }
        self.ear.wait(self.link.as_ref().map(Link::socket), timeout);
    }

    fn receive(&mut self) -> Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let shared = &self.shared;
        let was_ready = shared.lock().is_ready();
        let mut heard = false;
        let received = link.receive(|command, body| {
            heard = true;
            take(shared, command, body);
        });
        if heard {
            // only an answer resets the back-off: a broker that accepts and closes would be retried without a pause
            (self.heard_at, self.failures) = (Instant::now(), 0);
            // a caller that gathers is not woken for each answer
            if !was_ready || self.shared.lock().is_gathered(usize::MAX) {
                self.shared.notify();
            }
        }
        received.map(drop)
    }

    /// Closes the connection and schedules the next attempt. The pause doubles with each failure and has a random part,
    /// so that clients do not all reconnect at once.
    fn disconnect(&mut self, reason: &str) {
        self.link = None;
        let (first, most) = BACK_OFF;
        let pause = most.min(first * 2_u32.saturating_pow(self.failures));
        let part = (RandomState::new().hash_one(0) % 1024) as f64 / 2048.0;
        self.retry_at = Instant::now() + pause.mul_f64(0.5 + part);
        self.failures = (self.failures + 1).min(16);
        self.shared.lock().on_disconnect(self.broker, reason.to_owned());
        self.shared.notify();
    }
}

fn take(shared: &Shared, command: &Command<'_>, body: Body) {
    // brokers send requests only to clients that sent a heartbeat over this connection
    if !command.is_response() {
        return;
    }
    let pull = shared.lock().pull_of(command.opaque);
    if let Some((queue, offset, with_properties)) = pull {
        // parsed without the lock, so that callers of `take` need not wait
        let answer = Answer::of(command, body, &queue, offset, with_properties);
        shared.lock().answer(command.opaque, answer, Instant::now());
    }
}
