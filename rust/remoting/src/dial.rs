//! Opens connections of a client. Background threads resolve the host, connect and do the TLS handshake. Meanwhile
//! the caller waits and can be interrupted.
//!
//! Source: `NettyRemotingClient.createChannel`.
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, SLICE};
use crate::runtime;
use crate::tls::ClientTls;
use rustls::pki_types::ServerName;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug)]
pub enum DialledStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl DialledStream {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// Opens a connection to `host:port`.
///
/// # Errors
/// [`Error::Connect`]; with TLS [`Error::TlsFile`], [`Error::Tls`], [`Error::Timeout`] of the handshake; [`Error::Interrupted`].
pub fn dial(
    address: &str,
    tls: Option<&ClientTls>,
    timeout: Duration,
    interrupt: Interrupt<'_>,
) -> Result<DialledStream> {
    let until = Instant::now() + timeout;
    let secured = tls.map(|tls| connector(address, tls)).transpose()?;
    // room for the result, so that the task never blocks
    let (sender, receiver) = sync_channel(1);
    let name = address.to_owned();
    // on another thread, as resolving a host name cannot be interrupted
    let task = runtime::of_clients()?.spawn(async move {
        // an interrupted caller has dropped the receiver
        let _ = sender.try_send(open(&name, secured, until, timeout).await);
    });
    loop {
        match receiver.recv_timeout(SLICE) {
            Ok(opened) => return opened,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(connect_error(address, ErrorKind::ConnectionAborted.into()));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = interrupt() {
                    task.abort();
                    return Err(error);
                }
            }
        }
    }
}

type Secured = (TlsConnector, ServerName<'static>);

fn connector(address: &str, tls: &ClientTls) -> Result<Secured> {
    let name = server_name(address)?;
    Ok((TlsConnector::from(tls.config()?), name))
}

/// Returns the host part of `address` (`host:port`), for the check of the server's certificate.
///
/// # Errors
/// [`Error::Tls`].
pub fn server_name(address: &str) -> Result<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    // an IPv6 address stands in brackets
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let named = ServerName::try_from(host.to_owned());
    named.map_err(|e| Error::Tls { address: address.to_owned(), reason: e.to_string() })
}

async fn open(address: &str, secured: Option<Secured>, until: Instant, timeout: Duration) -> Result<DialledStream> {
    let connected = timeout_at(until.into(), TcpStream::connect(address)).await;
    let socket = connected.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    // Nagle's algorithm would delay requests
    let socket = socket.and_then(|socket| socket.set_nodelay(true).map(|()| socket));
    let socket = socket.map_err(|error| connect_error(address, error))?;
    let Some((connector, name)) = secured else { return Ok(DialledStream::Plain(socket)) };
    match timeout_at(until.into(), connector.connect(name, socket)).await {
        Ok(Ok(stream)) => Ok(DialledStream::Tls(stream.into())),
        Ok(Err(error)) => Err(Error::Tls { address: address.to_owned(), reason: reason_of(&error) }),
        Err(_) => Err(Error::Timeout { address: address.to_owned(), timeout_ms: timeout.as_millis() as u64 }),
    }
}

/// Returns a readable reason for a failed handshake.
pub fn reason_of(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "the peer did not go on with the handshake in time".to_owned(),
        ErrorKind::UnexpectedEof => "the peer closed the connection during the handshake".to_owned(),
        _ => error.to_string(),
    }
}

fn connect_error(address: &str, source: io::Error) -> Error {
    Error::Connect { address: address.to_owned(), source }
}
