//! The reading side of an HA connection.
//!
//! Source: `HAClient.connectMaster`, `HAClient.processReadEvent`, `HAClient.dispatchReadRequest`.
use crate::end::End;
use crate::frame::{HEADER_LEN, Header, report};
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the answer to a connection is waited for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long nothing may come: a master sends a keep-alive each 5 seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// Offset of the next byte.
    position: u64,
    /// Bytes of the frame at hand that have not come.
    left: usize,
    header: [u8; HEADER_LEN],
    header_len: usize,
}

impl Connection {
    /// Connects to `address`, `host:port`, and asks for the log from `position` on.
    ///
    /// # Errors
    /// [`End::Connect`].
    pub fn open(address: &str, position: u64) -> Result<Self, End> {
        let failed = |source| End::Connect { address: address.to_owned(), source };
        let mut socket = connect(address).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_read_timeout(Some(SILENCE)).map_err(failed)?;
        socket.set_write_timeout(Some(SILENCE)).map_err(failed)?;
        let asked = i64::try_from(position).map_err(|_| failed(ErrorKind::InvalidInput.into()))?;
        socket.write_all(&report(asked)).map_err(failed)?;
        Ok(Self { socket, position, left: 0, header: [0; HEADER_LEN], header_len: 0 })
    }

    /// Another handle of its socket.
    ///
    /// # Errors
    /// [`End::Closed`].
    pub fn handle(&self) -> Result<TcpStream, End> {
        self.socket.try_clone().map_err(End::Closed)
    }

    /// Offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads bytes of the log until `room` is full, or until no more have come. Returns how many; none for a keep-alive.
    ///
    /// # Errors
    /// [`End::Frame`], [`End::Closed`], [`End::Silent`].
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, End> {
        let mut filled = 0;
        loop {
            if self.left == 0 {
                self.read_header()?;
                if self.left == 0 {
                    return Ok(filled);
                }
            }
            let part = self.left.min(room.len() - filled);
            // the next header with it, where this ends the frame: half as many calls
            let also = if part == self.left { HEADER_LEN } else { 0 };
            let (mut next, into) = ([0; HEADER_LEN], &mut room[filled..filled + part]);
            let count = self.read_some(&mut [IoSliceMut::new(into), IoSliceMut::new(&mut next[..also])])?;
            let body = count.min(part);
            (filled, self.left, self.position) = (filled + body, self.left - body, self.position + body as u64);
            (self.header, self.header_len) = (next, count - body);
            // nothing else has come: whoever waits for these bytes gets them now
            if filled == room.len() || self.header_len == 0 {
                return Ok(filled);
            }
        }
    }

    fn read_header(&mut self) -> Result<(), End> {
        while self.header_len < HEADER_LEN {
            let (from, mut header) = (self.header_len, self.header);
            self.header_len += self.read_some(&mut [IoSliceMut::new(&mut header[from..])])?;
            self.header = header;
        }
        self.header_len = 0;
        self.left = Header::decode(self.header, self.position)?.size;
        Ok(())
    }

    fn read_some(&mut self, into: &mut [IoSliceMut<'_>]) -> Result<usize, End> {
        loop {
            match self.socket.read_vectored(into) {
                Ok(0) => return Err(End::Closed(ErrorKind::UnexpectedEof.into())),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(End::Silent(SILENCE.as_secs()));
                }
                Err(error) => return Err(End::Closed(error)),
            }
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
