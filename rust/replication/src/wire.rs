//! An HA connection: its socket, with TLS only between rmqfast's own brokers, the frames of the protocol, and reasons for the end.
//!
//! Reports of a slave and frames of a master have no magic, version or checksum.
//!
//! Source: `HAConnection.ReadSocketService`, `HAConnection.WriteSocketService`, `HAClient.dispatchReadRequest`.
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
    pub fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Self, End> {
        let socket = connect(address).map_err(|source| End::Connect { address: address.to_owned(), source })?;
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let socket = TlsSocket::connect(socket, address, tls, CONNECT_TIMEOUT).map_err(End::Tls)?;
        Ok(Self::Tls(socket.into()))
    }

    /// Accepts a connection. Its TLS handshake must be complete within `max_time`.
    pub fn accept(socket: TcpStream, tls: Option<&ServerTls>, max_time: Duration) -> rmqfast_remoting::Result<Self> {
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        Ok(Self::Tls(TlsSocket::accept(socket, tls, max_time)?.into()))
    }

    /// Disables Nagle's algorithm. Sets the timeouts of each read and each write.
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

    /// Reads available bytes. Returns 0 at the end of the connection. Fails with errors of the operating system;
    /// [`ErrorKind::InvalidData`] for bytes that do not decrypt.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    /// Reads available bytes into the slices, in order. Returns 0 at the end of the connection.
    pub fn read_vectored(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&mut &*socket).read_vectored(into),
            Self::Tls(socket) => socket.read_vectored(into),
        }
    }

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

pub const REPORT_LEN: usize = 8;
pub const HEADER_LEN: usize = 12;
/// Maximum bytes of the log in a frame. RocketMQ's slaves use a buffer of this size, and hang if a frame is larger.
pub const MAX_FRAME: usize = 4 << 20;
/// Position that a follower reports if it is not a replica. The position is too low for any send to wait for it, and
/// further behind than `haSlaveFallbehindMax` allows.
pub const NO_REPLICA: i64 = -(1 << 62);

/// Encodes a report. The first report of a connection requests a start position. Later reports acknowledge positions.
pub fn report(offset: i64) -> [u8; REPORT_LEN] {
    offset.to_be_bytes()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Position of the frame's bytes in the log.
    pub offset: u64,
    /// Number of bytes; 0 for a keep-alive.
    pub size: usize,
}

impl Header {
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&(self.size as u32).to_be_bytes());
        bytes
    }

    /// Parses a frame's header. Checks that the bytes of the frame begin at position `expected`.
    pub fn decode(bytes: [u8; HEADER_LEN], expected: u64) -> Result<Self, End> {
        let [a, b, c, d, e, f, g, h, size @ ..] = bytes;
        let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let size = i32::from_be_bytes(size);
        // frames are contiguous, so another position means lost bytes or another log
        if u64::try_from(offset) != Ok(expected) {
            return Err(End::Frame { at: expected, reason: format!("offset: expected {expected}, got {offset}") });
        }
        match usize::try_from(size) {
            Ok(size) if size <= MAX_FRAME => Ok(Self { offset: expected, size }),
            _ => Err(End::Frame { at: expected, reason: format!("size: expected 0 to {MAX_FRAME}, got {size}") }),
        }
    }
}

/// The reason why following a log ends. If several reasons occur, the first counts, except that a failure to write
/// the copy replaces an earlier reason.
#[derive(Debug, thiserror::Error)]
pub enum End {
    #[error("stopped")]
    Stopped,
    #[error("{address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error(transparent)]
    Tls(rmqfast_remoting::Error),
    /// The connection ended. The protocol does not tell the reason, which may be a restart of the master.
    #[error("the connection ended: {0}")]
    Closed(io::Error),
    /// The master sent no bytes for this many seconds, not even a keep-alive.
    #[error("nothing came for {0} seconds, not even a keep-alive")]
    Silent(u64),
    /// This side wrote the copy too slowly, so the connection is closed. A connection that is not read keeps the
    /// master from removing old files.
    #[error(
        "the copy was not written for {0} seconds; the connection is closed, so that it holds nothing back at the master"
    )]
    Stalled(u64),
    #[error("a frame at {at}: {reason}")]
    Frame { at: u64, reason: String },
    /// The master sends only keep-alives, which means that it no longer has the requested bytes.
    #[error("keep-alives came for {seconds} seconds and no bytes: the log does not have those at {at}")]
    Missing { at: u64, seconds: u64 },
    #[error("the log differs from the copy at {at}")]
    Diverged { at: u64 },
    #[error("no sound record at {at} of the log: {reason}")]
    Broken { at: u64, reason: String },
    #[error(transparent)]
    Store(rmqfast_store::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(offset: i64, size: i32) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes[8..].copy_from_slice(&size.to_be_bytes());
        bytes
    }

    #[test]
    fn a_frame_goes_on_where_the_last_one_ended() {
        let header = Header::decode(bytes(77, 32 << 10), 77).expect("a frame");
        assert_eq!(header, Header { offset: 77, size: 32 << 10 });
        assert_eq!(Header::decode(bytes(77, 0), 77).expect("a keep-alive").size, 0);
    }

    #[test]
    fn another_place_and_impossible_sizes_end_it() {
        for (offset, size) in
            [(78, 1), (-1, 1), (i64::MIN, 1), (i64::MAX, 1), (77, -1), (77, i32::MIN), (77, (4 << 20) + 1)]
        {
            let end = Header::decode(bytes(offset, size), 77).expect_err("refused");
            assert!(matches!(end, End::Frame { at: 77, .. }), "{end}");
        }
    }
}
