//! A listening socket and its connections.
//!
//! Source: `NettyRemotingServer`.
use crate::accept::{self, Acceptor, Begun};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::handler::Handler;
use crate::key_material::KeyMaterial;
use crate::open_connections::OpenConnections;
use crate::server_options::ServerOptions;
use crate::sweeper::Patience;
use crate::tls::TlsMode;
use crate::{reload, runtime, session, sweeper};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

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
    ///
    /// # Errors
    /// [`Error::Io`] if the address cannot be used, [`Error::TlsFile`].
    pub fn bind(address: &str, options: ServerOptions, handler: Arc<dyn Handler>) -> Result<Self> {
        let runtime = runtime::shared()?;
        let (acceptor, material) = acceptor_of(&options)?.unzip();
        let bound = runtime.block_on(TcpListener::bind(address));
        let failed = |e| Error::io(format!("listening at {address}"), e);
        let listener = bound.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared { options, handler, acceptor, open: Arc::default() });
        // weak, so that the sweeper ends with the table of connections
        let sweeper = sweeper::run(Arc::downgrade(&shared.open), Patience::of(&shared.options));
        let mut tasks = vec![runtime.spawn(accept(listener, shared.clone())), runtime.spawn(sweeper)];
        if let (Some(acceptor), Some(material)) = (&shared.acceptor, material.filter(KeyMaterial::is_of_files)) {
            let (acceptor, handler) = (Arc::downgrade(acceptor), Arc::downgrade(&shared.handler));
            tasks.push(runtime.spawn(reload::run(acceptor, handler, material, shared.options.reload_interval)));
        }
        Ok(Self { address, shared, tasks, pid: std::process::id() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connections(&self) -> usize {
        self.shared.open.len()
    }

    /// Stops listening and closes all connections, and waits for both. Does nothing in a fork of the process.
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
        accepted = accept::begin(stream, connection, shared.acceptor.as_deref(), shared.options.max_handshake_time) => accepted?,
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
