//! Opens connections of a client, with or without TLS. Background threads resolve the host, connect and shake hands,
//! while the caller waits interruptibly. Later each read and each write waits for a short time only, so that the caller
//! can check for an interrupt.
//!
//! Source: `NettyRemotingClient.createChannel`.
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, SLICE};
use crate::runtime;
use crate::tls::ClientTls;
use rmqfast_os::socket::read_ready;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
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

/// A connected socket. Each call waits at most [`SLICE`], then fails with [`ErrorKind::WouldBlock`] and may be
/// repeated.
#[derive(Debug)]
pub struct Transport {
    socket: Arc<std::net::TcpStream>,
    tls: Option<Box<ClientConnection>>,
    wait: Duration,
    pid: u32,
}

impl Transport {
    /// Takes over a connection that background threads have opened, for blocking calls.
    pub fn new(dialled: DialledStream) -> io::Result<Self> {
        let (socket, tls) = match dialled {
            DialledStream::Plain(socket) => (socket, None),
            DialledStream::Tls(stream) => {
                let (socket, tls) = stream.into_inner();
                (socket, Some(Box::new(tls)))
            }
        };
        let socket = socket.into_std()?;
        // tokio set it to non-blocking; here the calling thread blocks
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self { socket: socket.into(), tls, wait: SLICE, pid: std::process::id() })
    }

    /// Returns the socket, so that another thread can shut it down.
    pub fn socket(&self) -> &Arc<std::net::TcpStream> {
        &self.socket
    }

    /// Limits the wait of later calls to `left`, if `left` is less than SLICE. Makes no system call if the limit does
    /// not change.
    pub fn wait_at_most(&mut self, left: Duration) -> io::Result<()> {
        // a socket accepts no timeout of zero
        let wait = left.clamp(Duration::from_millis(1), SLICE);
        if wait != self.wait {
            self.socket.set_read_timeout(Some(wait))?;
            self.socket.set_write_timeout(Some(wait))?;
            self.wait = wait;
        }
        Ok(())
    }

    /// Reads available bytes without waiting. Fails with [`ErrorKind::WouldBlock`] if there are none.
    pub fn read_ready(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = Ready(&self.socket);
        match &mut self.tls {
            None => ready.read(buffer),
            Some(tls) => read_tls(tls, &mut ready, &mut &*self.socket, buffer),
        }
    }
}

impl Read for Transport {
    /// Reads bytes. Fails with [`ErrorKind::Interrupted`] if only a part of a TLS record has arrived.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => (&*self.socket).read(buffer),
            Some(tls) => read_tls(tls, &mut &*self.socket, &mut &*self.socket, buffer),
        }
    }
}

impl Write for Transport {
    /// Writes bytes. With TLS some of them may stay in a buffer until [`flush`](Write::flush).
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&*self.socket).write(bytes) };
        flush(tls, &mut &*self.socket)?;
        let count = tls.writer().write(bytes)?;
        // TLS buffered the bytes already, so an error to retry would make the caller write them twice
        match flush(tls, &mut &*self.socket) {
            Err(error) if !is_pause(&error) => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| flush(tls, &mut &*self.socket))
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        // a fork must not send close_notify on its parent's connection
        let Some(tls) = self.tls.as_mut().filter(|_| self.pid == std::process::id()) else { return };
        tls.send_close_notify();
        // close_notify is optional, so sending it must not block
        let _ = self.socket.set_nonblocking(true);
        let _ = flush(tls, &mut &*self.socket);
    }
}

/// Returns whether an error means that the call was not finished and may be repeated.
pub fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

struct Ready<'a>(&'a std::net::TcpStream);

impl Read for Ready<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self.0, buffer)
    }
}

fn read_tls(
    tls: &mut ClientConnection,
    from: &mut dyn Read,
    to: &mut dyn Write,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match tls.reader().read(buffer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        // the peer closed without close_notify, which is safe as frames carry their length
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
        read => return read,
    }
    take(tls, from, to)?;
    flush(tls, to)?;
    // the TLS record may be incomplete, so the caller repeats the read
    Err(ErrorKind::Interrupted.into())
}

fn take(tls: &mut ClientConnection, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    tls.read_tls(from)?;
    if let Err(error) = tls.process_new_packets() {
        // tries to send the TLS alert with the reason
        let _ = flush(tls, to);
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    Ok(())
}

fn flush(tls: &mut ClientConnection, to: &mut dyn Write) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(to)?;
    }
    Ok(())
}
