//! The master's side of replication. Listens at the HA port and sends the log to slaves.
//!
//! The protocol has no authentication and sends the whole log. So only listed addresses may connect, by default only
//! this machine.
//!
//! Source: `HAService.AcceptSocketService`.
use crate::replicas::{HaOptions, Replicas};
use crate::slave::Slave;
use crate::wire::Wire;
use rmqfast_store::store::append::Appender;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

// Maximum connections. Each has two threads.
const MAX_SLAVES: usize = 64;
// Minimum time between two log lines about connections.
const LINE_EVERY: Duration = Duration::from_secs(1);
// Pause after a failed accept, for example with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A function that writes lines to the broker's log file, for administrators.
pub type Tell = dyn Fn(String) + Send + Sync;

/// A listener, and the connections that it accepted.
pub struct HaService {
    shared: Arc<Shared>,
    listener: Arc<TcpListener>,
    address: SocketAddr,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    appender: Arc<Appender>,
    replicas: Arc<Replicas>,
    options: HaOptions,
    tell: Box<Tell>,
    connections: Mutex<Connections>,
    ended: Condvar,
}

#[derive(Default)]
struct Connections {
    is_closed: bool,
    last_number: u64,
    open: HashMap<u64, TcpStream>,
    untold: u64,
    told_at: Option<Instant>,
}

impl HaService {
    /// Listens at `address` and sends the log of `appender`. Fails with the error of the operating system if the address
    /// cannot be used; the error of the store if it cannot be flushed.
    pub fn start(
        address: SocketAddr,
        appender: Arc<Appender>,
        replicas: Arc<Replicas>,
        options: HaOptions,
        tell: Box<Tell>,
    ) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(address)?);
        if appender.sendable_to() < appender.live().log_bounds().1 {
            // the log from before the start may not be flushed yet, and only flushed bytes are sent
            appender.flush().map_err(io::Error::other)?;
        }
        let address = listener.local_addr()?;
        let (connections, ended) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { appender, replicas, options, tell, connections, ended });
        let accept = {
            let (shared, listener) = (shared.clone(), listener.clone());
            move || shared.accept_all(&listener)
        };
        let thread = thread::Builder::new().name("rmqfast-ha-accept".into()).spawn(accept)?;
        Ok(Self { shared, listener, address, accepting: Some(thread).into() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connections(&self) -> usize {
        self.shared.connections().open.len()
    }

    /// Stops listening, ends all connections and waits for their threads. Further calls do nothing.
    pub fn close(&self) {
        self.shared.connections().is_closed = true;
        let thread = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // wakes the accepting thread by a shutdown of the listener; where that has no effect, by a connection
            rmqfast_os::socket::shut_down(&self.listener);
            while !thread.is_finished() && TcpStream::connect_timeout(&self.address, PAUSE).is_ok() {}
            // a panic was already printed
            let _ = thread.join();
        }
        let connections = self.shared.connections();
        for socket in connections.open.values() {
            // an already closed socket is fine
            let _ = socket.shutdown(Shutdown::Both);
        }
        let is_served = |connections: &mut Connections| !connections.open.is_empty();
        drop(self.shared.ended.wait_while(connections, is_served).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for HaService {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for HaService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HaService").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A connection in the table. Dropping the entry removes the connection, even after a panic.
struct Entry {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.number);
        self.shared.ended.notify_all();
    }
}

impl Shared {
    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.connections().is_closed {
                return;
            }
            match accepted {
                Ok((socket, peer)) => {
                    if let Err(reason) = self.begin(socket, peer) {
                        self.tell(&format!("{peer} was refused the log: {reason}"));
                    }
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        if !self.options.peers.has(peer.ip(), socket.local_addr().map_err(text)?.ip()) {
            return Err("it is not among those that may connect (haSlaveAddresses)".into());
        }
        let entry = self.enter(socket.try_clone().map_err(text)?)?;
        let serve = move || entry.shared.serve(socket, peer, entry.number);
        thread::Builder::new().name("rmqfast-ha-send".into()).spawn(serve).map(drop).map_err(text)
    }

    fn enter(self: &Arc<Self>, socket: TcpStream) -> Result<Entry, String> {
        let mut connections = self.connections();
        if connections.open.len() >= MAX_SLAVES {
            return Err(format!("{MAX_SLAVES} are connected"));
        }
        connections.last_number += 1;
        let number = connections.last_number;
        connections.open.insert(number, socket);
        Ok(Entry { shared: self.clone(), number })
    }

    fn serve(&self, socket: TcpStream, peer: SocketAddr, number: u64) {
        let reason = match self.accept(socket) {
            Ok(wire) => Slave::new(self.appender.clone(), self.replicas.clone(), number).serve(&wire, &self.options),
            Err(reason) => Some(reason),
        };
        if let Some(reason) = reason.filter(|_| !self.connections().is_closed) {
            self.tell(&format!("the connection of the slave {peer} ended: {reason}"));
        }
    }

    fn accept(&self, socket: TcpStream) -> Result<Wire, String> {
        let patience = self.options.housekeeping;
        let wire = Wire::accept(socket, self.options.tls.as_ref(), patience).map_err(|error| error.to_string())?;
        wire.set(patience, patience).map_err(|error| error.to_string())?;
        Ok(wire)
    }

    /// Logs a line about a connection. Logs at most one line per second, so that peers cannot fill the log.
    fn tell(&self, line: &str) {
        let mut connections = self.connections();
        if connections.told_at.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            connections.untold += 1;
            return;
        }
        connections.told_at = Some(Instant::now());
        let untold = std::mem::take(&mut connections.untold);
        drop(connections);
        let more = if untold > 0 { format!(" ({untold} such lines before it were not told)") } else { String::new() };
        (self.tell)(format!("{line}{more}"));
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
