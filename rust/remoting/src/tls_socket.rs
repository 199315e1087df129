//! A TLS socket for two threads. One may read while the other writes.
use crate::dial::{reason_of, server_name};
use crate::error::Result;
use crate::server::{HANDSHAKE, plain, tls_error};
use crate::tls::{ClientTls, ServerTls};
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// Bytes per read of the socket: several TLS records, which have at most 16 KiB each.
const SEALED_LEN: usize = 64 << 10;

/// A socket after its TLS handshake. Timeouts are set on the [`socket`](Self::socket) below, after the handshake.
#[derive(Debug)]
pub struct TlsSocket {
    socket: TcpStream,
    /// State of the TLS library. It is never locked during a system call, because a blocked write would then also
    /// block the reading thread.
    tls: Mutex<Connection>,
    reading: Mutex<SealedBytes>,
    /// Encrypted bytes to send. Locked while they are sent, because TLS records must stay in order.
    writing: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct SealedBytes {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl TlsSocket {
    /// Performs the handshake with the server at `address` (`host:port`), within `max_time`.
    pub fn connect(socket: TcpStream, address: &str, tls: &ClientTls, max_time: Duration) -> Result<Self> {
        let connection = ClientConnection::new(tls.config()?, server_name(address)?);
        let connection = connection.map_err(|error| tls_error(address, error))?;
        let shaken = Self::shake_hands(socket, connection.into(), max_time);
        shaken.map_err(|error| tls_error(address, reason_of(&error)))
    }

    /// Performs the handshake with a client, within `max_time`. The certificate files are read for each handshake.
    pub fn accept(socket: TcpStream, tls: &ServerTls, max_time: Duration) -> Result<Self> {
        let peer = socket.peer_addr().map_or_else(|error| error.to_string(), |peer| peer.to_string());
        let connection =
            ServerConnection::new(tls.config(&tls.material())?).map_err(|error| tls_error(&peer, error))?;
        let first = first_byte(&socket, max_time).map_err(|error| tls_error(&peer, reason_of(&error)))?;
        // a client without TLS gets a clear error in place of a failed handshake
        if first.is_some_and(|byte| byte != HANDSHAKE) {
            return Err(plain(&peer));
        }
        Self::shake_hands(socket, connection.into(), max_time).map_err(|error| tls_error(&peer, reason_of(&error)))
    }

    fn shake_hands(socket: TcpStream, mut tls: Connection, max_time: Duration) -> io::Result<Self> {
        let mut patient = Patient { socket: &socket, until: Instant::now() + max_time };
        while tls.is_handshaking() {
            tls.complete_io(&mut patient)?;
        }
        // sends the output of the last step
        while tls.wants_write() {
            tls.write_tls(&mut patient)?;
        }
        let reading = Mutex::new(SealedBytes { bytes: vec![0; SEALED_LEN], from: 0, to: 0 });
        Ok(Self { socket, tls: tls.into(), reading, writing: Mutex::default() })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads available bytes into the slices, in order. Waits for the first byte. Returns 0 at the end of the connection.
    /// Fails with errors of the operating system; [`ErrorKind::InvalidData`] for bytes that do not decrypt.
    pub fn read_vectored(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut sealed = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut count = 0;
            for slice in &mut *into {
                let opened = self.open(&mut sealed, slice)?;
                count += opened;
                if opened < slice.len() {
                    break;
                }
            }
            if count > 0 || into.iter().all(|slice| slice.is_empty()) {
                return Ok(count);
            }
            sealed.to = (&self.socket).read(&mut sealed.bytes)?;
            sealed.from = 0;
            if sealed.to == 0 {
                return Ok(0);
            }
        }
    }

    /// Decrypts received bytes into `into`, until `into` is full or all are decrypted. Returns the number of decrypted
    /// bytes.
    fn open(&self, sealed: &mut SealedBytes, into: &mut [u8]) -> io::Result<usize> {
        let (mut tls, mut opened) = (self.tls(), 0);
        while opened < into.len() {
            match tls.reader().read(&mut into[opened..]) {
                // the peer sent close_notify: later bytes are not authentic
                Ok(0) if opened > 0 => break,
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => opened += count,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) if sealed.from == sealed.to => break,
                Err(_) => {
                    sealed.from += tls.read_tls(&mut &sealed.bytes[sealed.from..sealed.to])?;
                    tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                }
            }
        }
        Ok(opened)
    }

    /// Writes the parts in order. After an error the connection must not be used again, as the peer may have received
    /// some of the bytes.
    pub fn write_all(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut sealed = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        for mut left in parts.iter().copied() {
            while !left.is_empty() {
                left = &left[self.seal(left, &mut sealed)?..];
                // sends early, so that a large body needs no buffer of its size
                if sealed.len() >= SEALED_LEN {
                    self.send(&mut sealed)?;
                }
            }
        }
        self.send(&mut sealed)
    }

    fn seal(&self, bytes: &[u8], sealed: &mut Vec<u8>) -> io::Result<usize> {
        let mut tls = self.tls();
        let count = tls.writer().write(bytes)?;
        while tls.wants_write() {
            tls.write_tls(sealed)?;
        }
        Ok(count)
    }

    fn send(&self, sealed: &mut Vec<u8>) -> io::Result<()> {
        (&self.socket).write_all(sealed)?;
        sealed.clear();
        Ok(())
    }

    fn tls(&self) -> MutexGuard<'_, Connection> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the first byte and returns it, without removing it from the socket. Returns `None` if the connection
/// ended.
fn first_byte(socket: &TcpStream, max_time: Duration) -> io::Result<Option<u8>> {
    let mut byte = [0];
    socket.set_read_timeout(Some(max_time))?;
    Ok((socket.peek(&mut byte)? > 0).then_some(byte[0]))
}

/// A socket during a TLS handshake. The deadline holds for the whole handshake, even if the peer sends single bytes
/// slowly.
struct Patient<'a> {
    socket: &'a TcpStream,
    until: Instant,
}

impl Patient<'_> {
    fn remaining(&self) -> io::Result<Option<Duration>> {
        let remaining = self.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(remaining)) }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // the timeout shrinks from call to call, so single bytes cannot prolong the handshake
        self.socket.set_read_timeout(self.remaining()?)?;
        self.socket.read(into)
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.remaining()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
