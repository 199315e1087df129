//! Accepts a connection of a server. The first byte from the client shows whether it starts a TLS handshake.
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

/// First byte of a TLS handshake. A RocketMQ frame with this first byte would have a length of 352 MiB, so the two
/// cannot be confused.
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
    /// Reads the certificate files as they are now.
    ///
    /// # Errors
    /// [`Error::TlsFile`].
    pub fn open(tls: &ServerTls) -> Result<(Self, KeyMaterial)> {
        let material = tls.material();
        let config = RwLock::new(tls.config(&material)?);
        Ok((Self { tls: tls.clone(), config }, material))
    }

    /// Uses the certificates in `material` for connections that are accepted later.
    ///
    /// # Errors
    /// [`Error::TlsFile`]; the old certificates stay in use.
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

/// Waits for the first byte, and for the TLS handshake if that byte starts one. Without an acceptor, TLS is disabled.
///
/// # Errors
/// [`Error::Tls`] if the handshake fails or the mode does not allow it; [`Error::Io`].
pub async fn begin(
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
