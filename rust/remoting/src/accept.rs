//! Accepts a connection for a server: its first byte says whether it is a TLS handshake.
//!
//! Source: `NettyRemotingServer.HandshakeHandler`.
use crate::connection::{Connection, now_ms};
use crate::error::{Error, Result};
use crate::key_material::KeyMaterial;
use crate::tls::{ServerTls, TlsMode};
use rustls::ServerConfig;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake; a frame that begins so would have 352 MiB.
pub const HANDSHAKE: u8 = 0x16;

/// A connection that may be used.
pub enum Begun {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The peer went away.
    Ended,
}

/// Accepts connections; changed certificates apply to the next one.
pub struct Acceptor {
    pub tls: ServerTls,
    config: RwLock<Arc<ServerConfig>>,
}

impl Acceptor {
    /// With what the files hold now.
    ///
    /// # Errors
    /// [`Error::TlsFile`].
    pub fn open(tls: &ServerTls) -> Result<(Self, KeyMaterial)> {
        let material = tls.material();
        let config = RwLock::new(tls.config(&material)?);
        Ok((Self { tls: tls.clone(), config }, material))
    }

    /// Takes other files from now on.
    ///
    /// # Errors
    /// [`Error::TlsFile`]; everything is as before.
    pub fn replace(&self, material: &KeyMaterial) -> Result<()> {
        let config = self.tls.config(material)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    async fn shake_hands(&self, stream: TcpStream, peer: &str, max_time: Duration) -> Result<Begun> {
        // a copy: the lock is not held over a handshake
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let shaken = TlsAcceptor::from(config).accept(stream);
        match tokio::time::timeout(max_time, shaken).await {
            Ok(Ok(stream)) => Ok(Begun::Tls(stream.into())),
            Ok(Err(error)) => Err(tls_error(peer, error)),
            Err(_) => Err(tls_error(peer, format!("no handshake within {} ms", max_time.as_millis()))),
        }
    }
}

/// Waits for the first byte, and for the handshake where it is one. Without an acceptor there is no TLS.
///
/// # Errors
/// [`Error::Tls`] where the two sides do not agree; [`Error::Io`].
pub async fn begin(
    stream: TcpStream,
    connection: &Connection,
    acceptor: Option<&Acceptor>,
    max_handshake_time: Duration,
) -> Result<Begun> {
    let peer = connection.peer().to_string();
    let mut first = [0];
    // only looked at: the byte belongs to whoever reads next, TLS or the session
    let peeked = stream.peek(&mut first).await.map_err(|e| Error::io(format!("read <{peer}>"), e))?;
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

/// Of a peer that does not begin with a handshake.
pub fn plain(peer: &str) -> Error {
    tls_error(peer, "plain bytes came, expected a handshake: TLS is enforced")
}

/// Of a peer with which there is no TLS.
pub fn tls_error(peer: &str, reason: impl ToString) -> Error {
    Error::Tls { address: peer.to_owned(), reason: reason.to_string() }
}
