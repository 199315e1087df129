//! A listening socket and its connections.
//!
//! Source: `NettyRemotingServer`.
use crate::accept::{self, Acceptor, Begun};
use crate::command::Command;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::key_material::KeyMaterial;
use crate::limits::Limits;
use crate::outgoing::Outgoing;
use crate::tls::{ServerTls, TlsMode};
use crate::{reload, runtime, session, sweeper};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Who answers what comes in.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request: appends a frame to `out`, perhaps with a body that stands elsewhere, or sends one later over the
    /// connection, or none. It must not wait.
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing);

    /// What to answer to a request whose body has so many bytes, in place of reading it: a code and a remark. It is asked once the
    /// header is there, before memory is taken for the body.
    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let _ = (request, body);
        None
    }

    /// A connection is gone; `reason` says why, unless the peer or this side closed it.
    fn closed(&self, connection: &Arc<Connection>, reason: Option<&Error>);

    /// Something is not as it should be, and no connection is to blame: as a new certificate that is of no use.
    fn warned(&self, error: &Error);
}

/// How a server treats its peers.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What a frame may ask for.
    pub limits: Limits,
    /// Connections at most; further ones are closed at once.
    pub max_connections: usize,
    /// Bytes that may wait for a peer that does not read.
    pub max_outgoing: usize,
    /// How long nothing needs to come or go.
    pub max_idle: Duration,
    /// How long a frame may take to come in.
    pub max_frame_time: Duration,
    /// How long a write may take.
    pub max_write_time: Duration,
    /// How long a TLS handshake may take.
    pub max_handshake_time: Duration,
    /// How often the files of TLS are looked at, as `FileWatchService.WATCH_INTERVAL`.
    pub reload_interval: Duration,
    /// TLS, unless all is plain.
    pub tls: Option<ServerTls>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            max_connections: 65_536,
            max_outgoing: 64 << 20,
            max_idle: Duration::from_secs(120),
            max_frame_time: Duration::from_secs(30),
            max_write_time: Duration::from_secs(60),
            max_handshake_time: Duration::from_secs(10),
            reload_interval: Duration::from_millis(500),
            tls: None,
        }
    }
}

/// How long [`Server::close`] waits at most until nobody listens any more and all connections have ended.
const LAST_ACCEPT: Duration = Duration::from_secs(10);

/// A server; dropped, it closes.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    pid: u32,
}

/// What the server's tasks share.
pub(crate) struct Shared {
    pub options: ServerOptions,
    pub handler: Arc<dyn Handler>,
    pub acceptor: Option<Arc<Acceptor>>,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    /// Takes no connection any more.
    is_closed: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens at `address`, `host:port`; port 0 is any that is free.
    ///
    /// # Errors
    /// [`Error::Io`] where the address cannot be had, [`Error::TlsFile`].
    pub fn bind(address: &str, options: ServerOptions, handler: Arc<dyn Handler>) -> Result<Self> {
        let runtime = runtime::shared()?;
        let (acceptor, material) = acceptor_of(&options)?.unzip();
        let bound = runtime.block_on(TcpListener::bind(address));
        let failed = |e| Error::io(format!("listening at {address}"), e);
        let listener = bound.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            options,
            handler,
            acceptor,
            connections: Mutex::default(),
            is_closed: AtomicBool::new(false),
        });
        let mut tasks =
            vec![runtime.spawn(accept(listener, shared.clone())), runtime.spawn(sweeper::run(Arc::downgrade(&shared)))];
        if let (Some(acceptor), Some(material)) = (&shared.acceptor, material.filter(KeyMaterial::is_of_files)) {
            tasks.push(runtime.spawn(reload::run(Arc::downgrade(&shared), acceptor.clone(), material)));
        }
        Ok(Self { address, shared, tasks, pid: std::process::id() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.lock().len()
    }

    /// Listens no more and ends all connections; has done both when it returns. In a fork of the process nothing happens.
    pub fn close(&self) {
        if self.pid != std::process::id() {
            return;
        }
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.close();
        // a task that is told to ends a little later, on a busy machine much later
        let until = Instant::now() + LAST_ACCEPT;
        let is_over = || self.tasks.iter().all(JoinHandle::is_finished) && self.connections() == 0;
        while !is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn close(&self) {
        let connections = self.lock();
        // with the lock: one that was accepted meanwhile is among them, or sees this
        self.is_closed.store(true, Ordering::Relaxed);
        let open: Vec<_> = connections.values().cloned().collect();
        drop(connections);
        open.iter().for_each(|connection| connection.close());
    }

    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn acceptor_of(options: &ServerOptions) -> Result<Option<(Arc<Acceptor>, KeyMaterial)>> {
    let tls = options.tls.as_ref().filter(|tls| tls.mode != TlsMode::Disabled);
    let opened = tls.map(Acceptor::open).transpose()?;
    Ok(opened.map(|(acceptor, material)| (acceptor.into(), material)))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => drop(tokio::spawn(serve(stream, peer, shared.clone()))),
            // as where there are too many open files: some may be closed soon
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let Ok(local) = stream.local_addr() else { return };
    let connection = Arc::new(Connection::new(peer.to_string(), peer, local, shared.options.max_outgoing));
    let Some(mut open) = Open::new(&connection, &shared) else { return };
    // Nagle's algorithm would hold answers back
    let _ = stream.set_nodelay(true);
    open.reason = converse(stream, &connection, &shared).await.err();
}

async fn converse(stream: TcpStream, connection: &Arc<Connection>, shared: &Shared) -> Result<()> {
    let begun = tokio::select! {
        biased;
        () = connection.closing.notified() => return Ok(()),
        begun = accept::begin(stream, connection, shared) => begun?,
    };
    let (limits, handler) = (&shared.options.limits, &*shared.handler);
    match begun {
        Begun::Plain(stream) => session::run(stream, connection, limits, handler).await,
        Begun::Tls(stream) => session::run(stream, connection, limits, handler).await,
        Begun::Ended => Ok(()),
    }
}

/// A connection while it is in the server's table.
struct Open<'a> {
    connection: &'a Arc<Connection>,
    shared: &'a Shared,
    reason: Option<Error>,
}

impl<'a> Open<'a> {
    fn new(connection: &'a Arc<Connection>, shared: &'a Shared) -> Option<Self> {
        let mut connections = shared.lock();
        if connections.len() >= shared.options.max_connections || shared.is_closed.load(Ordering::Relaxed) {
            return None;
        }
        connections.insert(connection.id(), connection.clone());
        Some(Self { connection, shared, reason: None })
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.connection.id());
        self.connection.close();
        self.shared.handler.closed(self.connection, self.reason.as_ref());
    }
}
