//! Transport of an HA connection: a socket, with TLS where both brokers are ours and ask for it.
use crate::end::End;
use rmqfast_remoting::{ClientTls, ServerTls, TlsSocket};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

// Time to connect, and time for the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection. One thread reads, another one writes.
#[derive(Debug)]
pub enum Wire {
    /// RocketMQ's HA has no TLS.
    Plain(TcpStream),
    Tls(Box<TlsSocket>),
}

impl Wire {
    /// Connects to `address`, `host:port`.
    ///
    /// # Errors
    /// [`End::Connect`], [`End::Tls`].
    pub fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Self, End> {
        let socket = connect(address).map_err(|source| End::Connect { address: address.to_owned(), source })?;
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let socket = TlsSocket::connect(socket, address, tls, CONNECT_TIMEOUT).map_err(End::Tls)?;
        Ok(Self::Tls(socket.into()))
    }

    /// Takes a connection; its handshake has to be through within `max_time`.
    ///
    /// # Errors
    /// Those of the handshake.
    pub fn accept(socket: TcpStream, tls: Option<&ServerTls>, max_time: Duration) -> rmqfast_remoting::Result<Self> {
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        Ok(Self::Tls(TlsSocket::accept(socket, tls, max_time)?.into()))
    }

    /// Sends small pieces at once. From now on a read waits for `read` at most, and a write for `write` for each piece.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set(&self, read: Duration, write: Duration) -> io::Result<()> {
        let socket = self.socket();
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(read))?;
        socket.set_write_timeout(Some(write))
    }

    /// Returns whether it has TLS.
    pub fn is_sealed(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Ends it; whoever reads or writes hears of that.
    pub fn end(&self) {
        // already closed is as good
        let _ = self.socket().shutdown(Shutdown::Both);
    }

    /// Reads what has come; 0 at the end.
    ///
    /// # Errors
    /// Those of the operating system; [`ErrorKind::InvalidData`] for what is not the peer's.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    /// Reads what has come into one slice, then into the next; 0 at the end.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vectored(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&mut &*socket).read_vectored(into),
            Self::Tls(socket) => socket.read_vectored(into),
        }
    }

    /// Writes both, one behind the other.
    ///
    /// # Errors
    /// Those of the operating system.
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
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn write_all(mut socket: &TcpStream, header: &[u8], bytes: &[u8]) -> io::Result<()> {
    let mut slices = &mut [IoSlice::new(header), IoSlice::new(bytes)][..];
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
