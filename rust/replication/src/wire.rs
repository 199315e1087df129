//! The socket of an HA connection. Only rmqfast's brokers and mirrors can use TLS on it.
use crate::end::End;
use rmqfast_remoting::{ClientTls, ServerTls, TlsSocket};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

// Timeout for the connection, and for the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection. One thread may read while another writes.
#[derive(Debug)]
pub enum Wire {
    /// A connection without TLS, as in RocketMQ's HA protocol.
    Plain(TcpStream),
    Tls(Box<TlsSocket>),
}

impl Wire {
    /// Connects to `address` (`host:port`).
    ///
    /// # Errors
    /// [`End::Connect`], [`End::Tls`].
    pub fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Self, End> {
        let socket = connect(address).map_err(|source| End::Connect { address: address.to_owned(), source })?;
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let socket = TlsSocket::connect(socket, address, tls, CONNECT_TIMEOUT).map_err(End::Tls)?;
        Ok(Self::Tls(socket.into()))
    }

    /// Accepts a connection. Its TLS handshake must be complete within `max_time`.
    ///
    /// # Errors
    /// The error of the handshake.
    pub fn accept(socket: TcpStream, tls: Option<&ServerTls>, max_time: Duration) -> rmqfast_remoting::Result<Self> {
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        Ok(Self::Tls(TlsSocket::accept(socket, tls, max_time)?.into()))
    }

    /// Disables Nagle's algorithm. Sets the timeouts of each read and each write.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn set(&self, read: Duration, write: Duration) -> io::Result<()> {
        let socket = self.socket();
        // a report of 8 bytes must not wait for more bytes to send
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(read))?;
        socket.set_write_timeout(Some(write))
    }

    pub fn is_sealed(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Ends the connection and wakes its reading and writing threads.
    pub fn end(&self) {
        // an already closed socket is fine
        let _ = self.socket().shutdown(Shutdown::Both);
    }

    /// Reads available bytes. Returns 0 at the end of the connection.
    ///
    /// # Errors
    /// Errors of the operating system; [`ErrorKind::InvalidData`] for bytes that do not decrypt.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    /// Reads available bytes into the slices, in order. Returns 0 at the end of the connection.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read).
    pub fn read_vectored(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&mut &*socket).read_vectored(into),
            Self::Tls(socket) => socket.read_vectored(into),
        }
    }

    /// Writes the header, then the bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn write_all(&self, header: &[u8], bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => write_all(socket, header, bytes),
            Self::Tls(socket) => socket.write_all(&[header, bytes]),
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(socket) => socket.socket(),
        }
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        // a host name may have several addresses, of which some may be unreachable
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn write_all(mut socket: &TcpStream, header: &[u8], bytes: &[u8]) -> io::Result<()> {
    let mut slices = &mut [IoSlice::new(header), IoSlice::new(bytes)][..];
    // skips empty slices
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match socket.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
