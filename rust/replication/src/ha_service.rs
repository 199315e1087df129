//! The master's side: listens at the HA port, and serves the log to who connects there.
//!
//! The protocol has no authentication, and what is sent is all that the log has. So a list says who may connect, and without one
//! only this machine may.
//!
//! Source: `HAService.AcceptSocketService`.
use crate::ha_options::HaOptions;
use crate::replicas::Replicas;
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

// Connections at the same time, at most: each has two threads.
const MAX_SLAVES: usize = 64;
// Between two lines that tell of connections.
const LINE_EVERY: Duration = Duration::from_secs(1);
// After an error of the operating system, as where the process has no file left.
const PAUSE: Duration = Duration::from_millis(100);

/// Is told what an administrator should know.
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
    /// Lines that were not told, as another was a moment ago.
    untold: u64,
    told_at: Option<Instant>,
}

impl HaService {
    /// Listens at `address` and serves the log of `appender`.
    ///
    /// # Errors
    /// What the operating system says where it cannot listen there; what the store says where it cannot be flushed.
    pub fn start(
        address: SocketAddr,
        appender: Arc<Appender>,
        replicas: Arc<Replicas>,
        options: HaOptions,
        tell: Box<Tell>,
    ) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(address)?);
        if appender.sendable_to() < appender.live().log_bounds().1 {
            // nobody has asked the disk yet for what was there before
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

    /// Ends all connections. Returns once nobody reads the log any more. A second call does nothing.
    pub fn close(&self) {
        self.shared.connections().is_closed = true;
        let thread = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // who accepts sleeps until somebody comes, or nobody can; where this does not wake it, a connection does
            rmqfast_os::socket::shut_down(&self.listener);
            while !thread.is_finished() && TcpStream::connect_timeout(&self.address, PAUSE).is_ok() {}
            // a panic of it has been printed by then
            let _ = thread.join();
        }
        let connections = self.shared.connections();
        for socket in connections.open.values() {
            // already closed is as good
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

/// A connection in the table; dropped at its end, be that a panic.
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

    /// Tells of a connection, unless another line came a moment ago: peers are to fill no log.
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
