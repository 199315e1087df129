//! The master's side: listens at the HA port, and serves the log to who connects there.
//!
//! The protocol has no authentication, and what is sent is all that the log has. So a list says who may connect, and without one
//! only this machine may.
//!
//! Source: `HAService.AcceptSocketService`.
use crate::ha_options::HaOptions;
use crate::replicas::Replicas;
use crate::slave::Slave;
use rmqfast_store::store::append::Appender;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections at the same time, at most: each has two threads.
const MAX_SLAVES: usize = 64;
/// Between two lines that tell of refused connections.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// After an error of the operating system, as where the process has no file left.
const PAUSE: Duration = Duration::from_millis(100);

/// Is told what an administrator should know.
pub type Tell = dyn Fn(String) + Send + Sync;

/// A listener, and the connections that it accepted.
pub struct HaService {
    shared: Arc<Shared>,
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
    open: HashMap<SocketAddr, TcpStream>,
    /// Refused ones of which no line has told.
    refused: u64,
    told_at: Option<Instant>,
}

impl HaService {
    /// Listens at `address` and serves the log of `appender`.
    ///
    /// # Errors
    /// What the operating system says where it cannot listen there.
    pub fn start(
        address: SocketAddr,
        appender: Arc<Appender>,
        replicas: Arc<Replicas>,
        options: HaOptions,
        tell: Box<Tell>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        if appender.sendable_to() < appender.live().log_bounds().1 {
            // nobody has asked the disk yet for what was there before
            appender.flush().map_err(io::Error::other)?;
        }
        let address = listener.local_addr()?;
        let (connections, ended) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { appender, replicas, options, tell, connections, ended });
        let accept = {
            let shared = shared.clone();
            move || shared.accept_all(&listener)
        };
        let thread = thread::Builder::new().name("rmqfast-ha-accept".into()).spawn(accept)?;
        Ok(Self { shared, address, accepting: Some(thread).into() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections. Returns once nobody reads the log any more. A second call does nothing.
    pub fn close(&self) {
        self.shared.connections().is_closed = true;
        let thread = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // who accepts sleeps until somebody comes
            let _ = TcpStream::connect_timeout(&self.own_address(), LINE_EVERY);
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

    fn own_address(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        (ip, self.address.port()).into()
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

impl Shared {
    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.connections().is_closed {
                return;
            }
            match accepted {
                Ok((socket, peer)) => self.begin(socket, peer),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) {
        if !self.options.peers.has(peer.ip()) {
            return self.refuse(peer, "it is not among those that may connect (haSlaveAddresses)");
        }
        if self.connections().open.len() >= MAX_SLAVES {
            return self.refuse(peer, &format!("{MAX_SLAVES} are connected"));
        }
        let begun = self.prepare(&socket, peer).and_then(|()| {
            let shared = self.clone();
            let serve = move || shared.serve(&socket, peer);
            thread::Builder::new().name("rmqfast-ha-send".into()).spawn(serve)
        });
        if let Err(error) = begun {
            self.forget(peer);
            self.refuse(peer, &error.to_string());
        }
    }

    fn prepare(&self, socket: &TcpStream, peer: SocketAddr) -> io::Result<()> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.options.housekeeping))?;
        socket.set_write_timeout(Some(self.options.housekeeping))?;
        self.connections().open.insert(peer, socket.try_clone()?);
        Ok(())
    }

    fn serve(&self, socket: &TcpStream, peer: SocketAddr) {
        let slave = Slave::new(self.appender.clone(), self.replicas.clone(), peer);
        let reason = slave.serve(socket, &self.options);
        drop(slave);
        if let Some(reason) = reason.filter(|_| !self.connections().is_closed) {
            (self.tell)(format!("the connection of the slave {peer} ended: {reason}"));
        }
        self.forget(peer);
    }

    fn forget(&self, peer: SocketAddr) {
        self.connections().open.remove(&peer);
        self.ended.notify_all();
    }

    /// Tells of it, unless a line has told of another one a moment ago.
    fn refuse(&self, peer: SocketAddr, reason: &str) {
        let mut connections = self.connections();
        connections.refused += 1;
        if connections.told_at.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            return;
        }
        connections.told_at = Some(Instant::now());
        let more = std::mem::take(&mut connections.refused) - 1;
        drop(connections);
        let more = if more > 0 { format!("; {more} more since the last time") } else { String::new() };
        (self.tell)(format!("{peer} was refused the log: {reason}{more}"));
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
