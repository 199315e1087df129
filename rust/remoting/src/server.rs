//! A server: accepts connections, with or without TLS, closes those that are idle or too slow, and loads new certificates.
//!
//! Source: `NettyRemotingServer`, `NettyRemotingServer.HandshakeHandler`, `NettyServerConfig.serverChannelMaxIdleTimeSeconds`,
//! `FileWatchService`, `BrokerController`, `NamesrvController`.
use crate::connection::{Connection, now_ms};
use crate::error::{Error, Result};
use crate::frame::Limits;
use crate::key_material::KeyMaterial;
use crate::runtime;
use crate::session::{self, Handler};
use crate::tls::{ServerTls, TlsMode};
use rustls::ServerConfig;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

// Maximum wait of [`Server::close`] for the listener and all connections to end.
const LAST_ACCEPT: Duration = Duration::from_secs(10);

/// A listening server. It is closed on drop.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    pid: u32,
}

struct Shared {
    options: ServerOptions,
    handler: Arc<dyn Handler>,
    acceptor: Option<Arc<Acceptor>>,
    open: Arc<OpenConnections>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens at `address` (`host:port`). Port 0 takes any free port.
    pub fn bind(address: &str, options: ServerOptions, handler: Arc<dyn Handler>) -> Result<Self> {
        let runtime = runtime::shared()?;
        let (acceptor, material) = acceptor_of(&options)?.unzip();
        let bound = runtime.block_on(TcpListener::bind(address));
        let failed = |e| Error::io(format!("listening at {address}"), e);
        let listener = bound.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared { options, handler, acceptor, open: Arc::default() });
        // weak, so that the sweeper ends with the table of connections
        let sweeper = sweep(Arc::downgrade(&shared.open), Patience::of(&shared.options));
        let mut tasks = vec![runtime.spawn(accept(listener, shared.clone())), runtime.spawn(sweeper)];
        if let (Some(acceptor), Some(material)) = (&shared.acceptor, material.filter(KeyMaterial::is_of_files)) {
            let (acceptor, handler) = (Arc::downgrade(acceptor), Arc::downgrade(&shared.handler));
            tasks.push(runtime.spawn(watch_certificates(acceptor, handler, material, shared.options.reload_interval)));
        }
        Ok(Self { address, shared, tasks, pid: std::process::id() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connections(&self) -> usize {
        self.shared.open.len()
    }

    /// Stops listening and closes all connections. Waits up to 10 seconds until both are done. Does nothing in a fork
    /// of the process.
    pub fn close(&self) {
        if self.pid != std::process::id() {
            return;
        }
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.open.close();
        // aborted tasks end a little later, on a busy machine much later
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

fn acceptor_of(options: &ServerOptions) -> Result<Option<(Arc<Acceptor>, KeyMaterial)>> {
    let tls = options.tls.as_ref().filter(|tls| tls.mode != TlsMode::Disabled);
    let opened = tls.map(Acceptor::open).transpose()?;
    Ok(opened.map(|(acceptor, material)| (acceptor.into(), material)))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            // a separate task, so that a slow handshake blocks no other connection
            Ok((stream, peer)) => drop(tokio::spawn(serve(stream, peer, shared.clone()))),
            // for example too many open files: some may be closed soon
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let Ok(local) = stream.local_addr() else { return };
    let connection = Arc::new(Connection::new(peer.to_string(), peer, local, shared.options.max_outgoing));
    // above the limit of connections the socket is dropped, which closes it
    let Some(mut open) = Open::new(&connection, &shared) else { return };
    // Nagle's algorithm would delay answers
    let _ = stream.set_nodelay(true);
    open.reason = converse(stream, &connection, &shared).await.err();
}

async fn converse(stream: TcpStream, connection: &Arc<Connection>, shared: &Shared) -> Result<()> {
    let accepted = tokio::select! {
        biased;
        () = connection.closing.notified() => return Ok(()),
        accepted = begin_session(stream, connection, shared.acceptor.as_deref(), shared.options.max_handshake_time) => accepted?,
    };
    let (limits, handler) = (&shared.options.limits, &*shared.handler);
    match accepted {
        Begun::Plain(stream) => session::run(stream, connection, limits, handler).await,
        Begun::Tls(stream) => session::run(stream, connection, limits, handler).await,
        Begun::Ended => Ok(()),
    }
}

/// A connection in the server's table. Dropping it removes the connection from the table.
struct Open<'a> {
    connection: &'a Arc<Connection>,
    shared: &'a Shared,
    reason: Option<Error>,
}

impl<'a> Open<'a> {
    fn new(connection: &'a Arc<Connection>, shared: &'a Shared) -> Option<Self> {
        shared.open.insert(connection, shared.options.max_connections).then_some(Self {
            connection,
            shared,
            reason: None,
        })
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.open.remove(self.connection);
        self.connection.close();
        self.shared.handler.on_closed(self.connection, self.reason.as_ref());
    }
}

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub limits: Limits,
    /// Maximum connections. Further connections are closed at once.
    pub max_connections: usize,
    pub max_outgoing: usize,
    /// Maximum time without traffic. After this time a connection is closed.
    pub max_idle: Duration,
    pub max_frame_time: Duration,
    pub max_write_time: Duration,
    pub max_handshake_time: Duration,
    /// Interval at which the TLS files are checked for changes, as in `FileWatchService.WATCH_INTERVAL`.
    pub reload_interval: Duration,
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

/// First byte of a TLS handshake. A RocketMQ frame cannot begin with it, because the frame would be longer than 350
/// MiB, which is over the limit.
pub const HANDSHAKE: u8 = 0x16;

pub enum Begun {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The peer closed the connection without sending a byte.
    Ended,
}

/// Accepts TLS connections. New certificates apply to connections that are accepted later.
pub struct Acceptor {
    pub tls: ServerTls,
    config: RwLock<Arc<ServerConfig>>,
}

impl Acceptor {
    /// Creates the acceptor from the current certificate files. Also returns the contents of these files.
    pub fn open(tls: &ServerTls) -> Result<(Self, KeyMaterial)> {
        let material = tls.material();
        let config = RwLock::new(tls.config(&material)?);
        Ok((Self { tls: tls.clone(), config }, material))
    }

    /// Uses the certificates in `material` for connections that are accepted later. Fails with [`Error::TlsFile`]; the old
    /// certificates stay in use.
    pub fn replace(&self, material: &KeyMaterial) -> Result<()> {
        let config = self.tls.config(material)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    async fn shake_hands(&self, stream: TcpStream, peer: &str, max_time: Duration) -> Result<Begun> {
        // cloned, so that the lock is not held during the handshake
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let shaken = TlsAcceptor::from(config).accept(stream);
        match tokio::time::timeout(max_time, shaken).await {
            Ok(Ok(stream)) => Ok(Begun::Tls(stream.into())),
            Ok(Err(error)) => Err(tls_error(peer, error)),
            Err(_) => Err(tls_error(peer, format!("no handshake within {} ms", max_time.as_millis()))),
        }
    }
}

/// Waits for the first byte, and for the TLS handshake if that byte starts one. Returns the plain or the TLS
/// connection. Without an acceptor, TLS is disabled. Fails with [`Error::Tls`] if the handshake fails or the mode does
/// not allow the connection; [`Error::Io`].
async fn begin_session(
    stream: TcpStream,
    connection: &Connection,
    acceptor: Option<&Acceptor>,
    max_handshake_time: Duration,
) -> Result<Begun> {
    let peer = connection.peer().to_string();
    let mut first = [0];
    // peeked, as TLS or the session must read this byte again
    let peeked = stream.peek(&mut first).await.map_err(|e| Error::io(format!("read <{peer}>"), e))?;
    // the idle time of the sweeper restarts at the first byte
    connection.watch.active.store(now_ms(), Ordering::Relaxed);
    if peeked == 0 {
        return Ok(Begun::Ended);
    }
    let mode = acceptor.map_or(TlsMode::Disabled, |acceptor| acceptor.tls.mode);
    match (first[0] == HANDSHAKE, mode, acceptor) {
        (true, TlsMode::Permissive | TlsMode::Enforcing, Some(acceptor)) => {
            acceptor.shake_hands(stream, &peer, max_handshake_time).await
        }
        (true, ..) => Err(tls_error(&peer, "a handshake came, expected plain frames: TLS is disabled here")),
        (false, TlsMode::Enforcing, _) => Err(plain(&peer)),
        (false, ..) => Ok(Begun::Plain(stream)),
    }
}

/// Returns the error for a peer that does not start a TLS handshake although TLS is required.
pub fn plain(peer: &str) -> Error {
    tls_error(peer, "plain bytes came, expected a handshake: TLS is enforced")
}

pub fn tls_error(peer: &str, reason: impl ToString) -> Error {
    Error::Tls { address: peer.to_owned(), reason: reason.to_string() }
}

#[derive(Debug, Default)]
pub struct OpenConnections {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    connections: HashMap<u64, Arc<Connection>>,
    /// Whether further connections are refused, because the server was closed.
    is_closed: bool,
}

impl OpenConnections {
    /// Adds a connection. Returns false if `max` are open, or the server is closed.
    pub fn insert(&self, connection: &Arc<Connection>, max: usize) -> bool {
        let mut table = self.lock();
        let is_taken = table.connections.len() < max && !table.is_closed;
        if is_taken {
            table.connections.insert(connection.id(), connection.clone());
        }
        is_taken
    }

    pub fn remove(&self, connection: &Connection) {
        self.lock().connections.remove(&connection.id());
    }

    pub fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// Returns a copy of the list of connections, to use without the lock.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().connections.values().cloned().collect()
    }

    /// Closes all connections and refuses further ones.
    pub fn close(&self) {
        let mut table = self.lock();
        // set under the lock: a connection accepted meanwhile is either in the table or refused
        table.is_closed = true;
        let open: Vec<_> = table.connections.values().cloned().collect();
        drop(table);
        open.iter().for_each(|connection| connection.close());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks all connections once a second, until the server is dropped.
async fn sweep(connections: Weak<OpenConnections>, patience: Patience) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    // on a busy machine rounds are skipped, not made up for
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(connections) = connections.upgrade() else { return };
        let now = now_ms();
        for connection in connections.all() {
            if patience.has_ended(&connection, now) {
                connection.close();
            }
        }
    }
}

/// Maximum times of a connection. If a peer exceeds one of them, the connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub idle: Duration,
    pub frame: Duration,
    pub write: Duration,
}

impl Patience {
    pub fn of(options: &ServerOptions) -> Self {
        Self { idle: options.max_idle, frame: options.max_frame_time, write: options.max_write_time }
    }

    /// Returns whether the connection has exceeded a timeout. `now` is in milliseconds of [`now_ms`].
    pub fn has_ended(&self, connection: &Connection, now: u64) -> bool {
        let watch = &connection.watch;
        let is_older =
            // 0 means that nothing has begun
            |since: u64, limit: Duration| since != 0 && u128::from(now.saturating_sub(since)) > limit.as_millis();
        let at = |time: &AtomicU64| time.load(Ordering::Relaxed);
        is_older(at(&watch.active), self.idle)
            || is_older(at(&watch.frame_began), self.frame)
            || is_older(at(&watch.write_began), self.write)
    }
}

struct Watch {
    loaded: KeyMaterial,
    /// Contents at the last check, if they were different from `loaded`.
    seen: Option<KeyMaterial>,
}

/// Loads changed certificate files, which are checked every `interval` until the server is dropped. If new files are
/// unusable, the old certificates stay in use and the handler gets a warning.
async fn watch_certificates(
    acceptor: Weak<Acceptor>,
    handler: Weak<dyn Handler>,
    loaded: KeyMaterial,
    interval: Duration,
) {
    let mut watch = Watch { loaded, seen: None };
    loop {
        tokio::time::sleep(interval).await;
        let Some(tls) = acceptor.upgrade().map(|acceptor| acceptor.tls.clone()) else { return };
        // files may be on a slow disk, and this thread also serves connections
        let Ok(material) = tokio::task::spawn_blocking(move || tls.material()).await else { return };
        let (Some(acceptor), Some(handler)) = (acceptor.upgrade(), handler.upgrade()) else { return };
        if let Some(settled) = watch.look(material)
            && let Err(error) = acceptor.replace(&settled)
        {
            handler.on_warning(&error);
        }
    }
}

impl Watch {
    /// Returns the contents to load, or `None` if there is nothing to load. A change is loaded after two checks in a
    /// row have seen it, because certificate and key are replaced one after the other.
    fn look(&mut self, material: KeyMaterial) -> Option<KeyMaterial> {
        if material == self.loaded {
            self.seen = None;
            return None;
        }
        if self.seen.as_ref() != Some(&material) {
            self.seen = Some(material);
            return None;
        }
        self.loaded = material.clone();
        self.seen = None;
        Some(material)
    }
}
