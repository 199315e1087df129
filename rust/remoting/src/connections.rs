//! All connections of a client, by address. Each address has connections that a single caller reads and writes
//! itself, and one shared connection over which both sides send requests.
//!
//! Source: `NettyRemotingClient`.
use crate::address::Address;
use crate::client::{Client, ReceivedFrame};
use crate::command::OwnedCommand;
use crate::connection::{Connection, now_ms};
use crate::dial::{DialledStream, dial};
use crate::error::{Error, Result};
use crate::frame::Limits;
use crate::interrupt::{self, Ask, Interrupt};
use crate::pending::{Completions, Ticket};
use crate::server::Patience;
use crate::session::{self, Handler};
use crate::tls::ClientTls;
use crate::{process, runtime};
use std::collections::HashMap;
use std::fmt;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

// Interval of the check for expired requests while any are in flight.
const TICK: Duration = Duration::from_millis(50);
// Interval of the check for connections to close.
const ROUND: Duration = Duration::from_secs(1);

// Bytes of buffer that a shared connection keeps.
const KEPT: usize = 1 << 20;

// Time that `drain` waits for a peer that reads nothing.
const LAST_WORDS: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct ConnectionsOptions {
    /// TLS of the connections; `None` for connections without TLS.
    pub tls: Option<ClientTls>,
    pub limits: Limits,
    /// Maximum time to connect, including the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum bytes of queued output per connection. Asynchronous and oneway requests may use only half of this.
    pub max_outgoing: usize,
    /// Maximum time without traffic. After this time a shared connection is closed.
    pub max_idle: Duration,
    pub max_frame_time: Duration,
    pub max_write_time: Duration,
}

impl Default for ConnectionsOptions {
    fn default() -> Self {
        Self {
            tls: None,
            limits: Limits::default(),
            connect_timeout: Duration::from_secs(3),
            max_outgoing: 64 << 20,
            max_idle: Duration::from_secs(120),
            max_frame_time: Duration::from_secs(30),
            max_write_time: Duration::from_secs(60),
        }
    }
}

/// All connections of a client. Dropping this closes them.
pub struct Connections {
    shared: Arc<Shared>,
    pid: u32,
}

struct Shared {
    options: ConnectionsOptions,
    handler: Arc<dyn Handler>,
    completions: Arc<Completions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    addresses: HashMap<String, Arc<Address>>,
    /// Sockets of the connections that callers read and write themselves. `close` uses them to wake the callers.
    sockets: Vec<Weak<TcpStream>>,
    housekeeping: Option<AbortHandle>,
    is_closed: bool,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Connections {
    /// Creates the table, without connections. `handler` gets the requests that peers send over shared connections,
    /// and is notified when a shared connection ends.
    pub fn new(options: ConnectionsOptions, handler: Arc<dyn Handler>, completions: Arc<Completions>) -> Self {
        let shared = Shared { options, handler, completions, state: Mutex::default() };
        Self { shared: shared.into(), pid: process::id() }
    }

    /// Returns the queue with the results of [`submit`](Self::submit).
    pub fn completions(&self) -> &Arc<Completions> {
        &self.shared.completions
    }

    /// Sends a request over a connection that only this thread uses, and waits for the answer. Passes the answer and
    /// its body to `take`, and returns the result of `take`.
    ///
    /// An idle connection that its peer has closed is not used. If no byte of the request could be written to an idle
    /// connection, another connection is opened, but only once. A request that the peer may have read is never sent
    /// again.
    pub fn request<T>(&self, address: &str, ask: Ask<'_>, take: impl FnOnce(&ReceivedFrame, &[u8]) -> T) -> Result<T> {
        let (client, received) = self.request_with(address, ask)?;
        let answer = take(&received, client.body(&received));
        self.give_back(client)?;
        Ok(answer)
    }

    /// Sends a request as [`request`](Self::request) does, for a caller that reads the body later. The body is in the
    /// returned connection. The caller must give the connection back.
    pub fn request_with(&self, address: &str, ask: Ask<'_>) -> Result<(Client, ReceivedFrame)> {
        let address = self.address(address)?;
        // dead connections are dropped until a live one is found
        let idle =
            std::iter::from_fn(|| address.take_idle()).find_map(|mut client| client.is_alive().then_some(client));
        if let Some(mut client) = idle {
            match client.ask(ask) {
                Ok(received) => return Ok((client, received)),
                // no byte was written, so the peer cannot have executed the request
                Err(Error::Closed { .. }) if client.is_unsent() => {}
                Err(error) => return Err(error),
            }
        }
        let (shared, interrupt) = (&self.shared, ask.interrupt);
        let mut client =
            address.open(shared.options.connect_timeout, interrupt, || shared.open(&address, interrupt))?;
        let received = client.ask(ask)?;
        Ok((client, received))
    }

    /// Takes back a connection that [`request_with`](Self::request_with) lent to the caller, for further requests.
    pub fn give_back(&self, client: Client) -> Result<()> {
        match self.address(client.address()) {
            Ok(address) => address.give_back(client),
            // the request is answered, so a closed table is no error
            Err(Error::Closed { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends a request over the shared connection and waits for the answer. If the call times out and the peer has
    /// sent no bytes meanwhile, the connection is closed.
    pub fn control(&self, address: &str, ask: Ask<'_>) -> Result<OwnedCommand> {
        let connection = self.connection(address, ask.interrupt)?;
        let asked_at = now_ms();
        let answer = connection.ask(ask);
        // since the request, not since now minus the timeout: this thread may be woken late
        if matches!(answer, Err(Error::Timeout { .. })) && !connection.has_heard_since(asked_at) {
            connection.close();
        }
        answer
    }

    /// Sends a request as [`submit`](Self::submit) does. Returns false if it would have to connect, or to wait
    /// because too many requests are queued.
    pub fn try_submit(&self, address: &str, ask: Ask<'_>, token: u64) -> Result<bool> {
        let Some(connection) = self.address(address)?.shared() else { return Ok(false) };
        let (asked_at, completions) = (Instant::now(), &self.shared.completions);
        // no wait, so no interrupt
        let ask = Ask { interrupt: &interrupt::never, ..ask };
        let submitted = completions.reserve(address, Some(asked_at), ask.interrupt).and_then(|()| {
            let ticket = Ticket { completions: completions.clone(), token, asked_at, timeout: ask.timeout };
            let submitted = connection.submit(ask, ticket, None);
            submitted.inspect_err(|_| completions.release())
        });
        match submitted {
            Err(Error::TooManyRequests { .. }) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Sends a request over the shared connection. Its result is put into the completions exactly once, unless this call
    /// fails. If too many requests are in flight or queued, the call waits up to `ask.timeout` if `waits` is true, and fails
    /// otherwise. Fails with [`Error::TooManyRequests`], the errors of [`Client::open`], [`Error::Closed`], [`Error::Forked`],
    /// [`Error::Interrupted`].
    pub fn submit(&self, address: &str, ask: Ask<'_>, token: u64, waits: bool) -> Result<()> {
        let asked_at = Instant::now();
        let until = waits.then(|| asked_at + ask.timeout);
        let connection = self.connection(address, ask.interrupt)?;
        let completions = &self.shared.completions;
        completions.reserve(address, until, ask.interrupt)?;
        let ticket = Ticket { completions: completions.clone(), token, asked_at, timeout: ask.timeout };
        let submitted = connection.submit(ask, ticket, until);
        submitted.inspect_err(|_| completions.release())
    }

    /// Sends a oneway request over the shared connection. If too many requests are queued, waits as
    /// [`submit`](Self::submit) does.
    pub fn send_oneway(&self, address: &str, ask: Ask<'_>, waits: bool) -> Result<()> {
        let until = waits.then(|| Instant::now() + ask.timeout);
        self.connection(address, ask.interrupt)?.tell(ask, until)
    }

    /// Returns the shared connection of an address. Opens the connection if there is none.
    pub fn connection(&self, address: &str, interrupt: Interrupt<'_>) -> Result<Arc<Connection>> {
        let address = self.address(address)?;
        if let Some(connection) = address.shared() {
            return Ok(connection);
        }
        let shared = &self.shared;
        let timeout = shared.options.connect_timeout;
        let connection = address.share(timeout, interrupt, || shared.open_shared(&address, interrupt))?;
        if shared.lock().is_closed {
            // `close` ran meanwhile and did not see this connection
            connection.close();
        }
        Ok(connection)
    }

    /// Refuses further requests. Waits until queued oneway requests are written, but not for peers that do not read.
    pub fn drain(&self, interrupt: Interrupt<'_>) -> Result<()> {
        if self.pid != process::id() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        state.is_closed = true;
        let shared: Vec<_> = state.addresses.values().filter_map(|address| address.shared()).collect();
        drop(state);
        let written = || shared.iter().map(|connection| connection.watch.written.load(Ordering::Relaxed)).sum::<u64>();
        let (mut seen, mut until) = (written(), Instant::now() + LAST_WORDS);
        while !shared.iter().all(|connection| connection.is_drained()) && Instant::now() < until {
            interrupt()?;
            // polled, as sessions do not signal that their output is empty
            std::thread::sleep(Duration::from_millis(1));
            // progress restarts the wait
            if written() != seen {
                (seen, until) = (written(), Instant::now() + LAST_WORDS);
            }
        }
        Ok(())
    }

    /// Closes all connections. Requests in flight fail. Does nothing in a fork of the process.
    ///
    /// Returns the number of oneway requests that were never written, by address.
    pub fn close(&self) -> Vec<(String, u64)> {
        // a fork shares the sockets, and must not end its parent's connections
        if self.pid != process::id() {
            return Vec::new();
        }
        let mut state = self.shared.lock();
        state.is_closed = true;
        let (addresses, sockets) = (std::mem::take(&mut state.addresses), std::mem::take(&mut state.sockets));
        let housekeeping = state.housekeeping.take();
        drop(state);
        let shared = addresses.values().filter_map(|address| address.shared());
        let unwritten = shared.map(|connection| (connection.address().to_owned(), connection.lost_oneway()));
        let unwritten = unwritten.filter(|(_, count)| *count > 0).collect();
        addresses.values().for_each(|address| address.close());
        for socket in sockets.iter().filter_map(Weak::upgrade) {
            // fails if the peer already closed the connection
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.shared.completions.close();
        housekeeping.inspect(AbortHandle::abort);
        unwritten
    }

    fn address(&self, name: &str) -> Result<Arc<Address>> {
        if self.pid != process::id() {
            return Err(Error::Forked);
        }
        let mut state = self.shared.lock();
        if state.is_closed {
            return Err(Error::Closed { address: name.to_owned() });
        }
        if let Some(address) = state.addresses.get(name) {
            return Ok(address.clone());
        }
        // started with the first address, as an unused client needs no thread
        if state.housekeeping.is_none() {
            // weak, so that the task does not keep the connections alive
            let task = runtime::of_clients()?.spawn(keep_house(Arc::downgrade(&self.shared)));
            state.housekeeping = Some(task.abort_handle());
        }
        let address = Arc::new(Address::new(name));
        state.addresses.insert(name.to_owned(), address.clone());
        Ok(address)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn open(&self, address: &Address, interrupt: Interrupt<'_>) -> Result<Client> {
        let options = &self.options;
        let client = Client::open(address.name(), options.tls.as_ref(), options.connect_timeout, interrupt)?;
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::Closed { address: address.name().to_owned() });
        }
        // removes closed sockets, or the list would grow with each connection
        state.sockets.retain(|socket| socket.strong_count() > 0);
        state.sockets.push(Arc::downgrade(client.socket()));
        Ok(client)
    }

    fn open_shared(self: &Arc<Self>, address: &Address, interrupt: Interrupt<'_>) -> Result<Arc<Connection>> {
        let (name, options) = (address.name(), &self.options);
        let dialled = dial(name, options.tls.as_ref(), options.connect_timeout, interrupt)?;
        let refused = |source| Error::Connect { address: name.to_owned(), source };
        let (peer, local) = (dialled.socket().peer_addr(), dialled.socket().local_addr());
        let (peer, local) = (peer.map_err(refused)?, local.map_err(refused)?);
        let connection = Arc::new(Connection::new(name.to_owned(), peer, local, options.max_outgoing).keeping(KEPT));
        if self.lock().is_closed {
            return Err(Error::Closed { address: name.to_owned() });
        }
        let open = Open { connection: connection.clone(), handler: self.handler.clone(), reason: None };
        runtime::of_clients()?.spawn(converse(dialled, open, options.limits));
        Ok(connection)
    }

    fn addresses(&self) -> Vec<Arc<Address>> {
        self.lock().addresses.values().cloned().collect()
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expire(&self) {
        let now = Instant::now();
        for connection in self.addresses().iter().filter_map(|address| address.shared()) {
            connection.expire(now);
        }
    }

    /// Closes connections that were idle for too long, that receive a frame too slowly, or whose peers do not read
    /// requests.
    fn sweep(&self) {
        let options = &self.options;
        let patience =
            Patience { idle: options.max_idle, frame: options.max_frame_time, write: options.max_write_time };
        for address in self.addresses() {
            address.end_idle(Instant::now());
            if let Some(connection) = address.shared().filter(|open| patience.has_ended(open, now_ms())) {
                connection.close();
            }
        }
    }
}

/// A connection in the table while its session runs. Dropping it removes the connection from the table.
struct Open {
    connection: Arc<Connection>,
    handler: Arc<dyn Handler>,
    reason: Option<Error>,
}

// on drop, so that the handler learns of the end even after a panic
impl Drop for Open {
    fn drop(&mut self) {
        self.connection.close();
        let count = self.connection.lost_oneway();
        if count > 0 {
            self.handler.on_warning(&Error::OnewayLost { address: self.connection.address().to_owned(), count });
        }
        self.handler.on_closed(&self.connection, self.reason.as_ref());
    }
}

async fn converse(dialled: DialledStream, mut open: Open, limits: Limits) {
    let run = match dialled {
        DialledStream::Plain(stream) => session::run(stream, &open.connection, &limits, &*open.handler).await,
        DialledStream::Tls(stream) => session::run(stream, &open.connection, &limits, &*open.handler).await,
    };
    open.reason = run.err();
}

/// Checks all timeouts regularly, until the connections are dropped.
async fn keep_house(shared: Weak<Shared>) {
    let Some(completions) = shared.upgrade().map(|shared| shared.completions.clone()) else { return };
    let mut next_round = Instant::now() + ROUND;
    loop {
        if completions.is_waiting() {
            tokio::time::sleep(TICK).await;
        } else {
            // nothing is in flight, so one check per second is enough
            let rest = next_round.saturating_duration_since(Instant::now());
            // a request that arrives meanwhile is checked one tick later
            let _ = tokio::time::timeout(rest, completions.has_unanswered.notified()).await;
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.expire();
        if Instant::now() >= next_round {
            shared.sweep();
            next_round = Instant::now() + ROUND;
        }
    }
}
