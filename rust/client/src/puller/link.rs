//! The connection of a puller: written to at once, read from when something is there.
use crate::error::Result;
use rmqfast_remoting::{Client, ClientTls, Command, Error, Limits, Transport, frame, is_pause};
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

/// Bytes that one read may bring.
const READ: usize = 256 << 10;
/// Reads before others get their turn.
const READS: usize = 16;

/// An open connection.
#[derive(Debug)]
pub struct Link {
    transport: Transport,
    address: String,
    limits: Limits,
    inbox: Vec<u8>,
    start: usize,
    filled: usize,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(address: &str, tls: Option<&ClientTls>, timeout: Duration) -> Result<Self> {
        let transport = Client::connect(address, tls, timeout)?.into_transport();
        let (limits, inbox) = (Limits::default(), vec![0; READ]);
        Ok(Self { transport, address: address.to_owned(), limits, inbox, start: 0, filled: 0 })
    }

    /// The socket, to wait for it.
    pub fn socket(&self) -> &std::net::TcpStream {
        self.transport.socket()
    }

    /// Writes all of it, and waits so long if the peer does not read.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Timeout`].
    pub fn send(&mut self, bytes: &[u8], timeout: Duration) -> Result<()> {
        let until = Instant::now() + timeout;
        let mut written = 0;
        while written < bytes.len() {
            match self.transport.write(&bytes[written..]) {
                Ok(0) => return Err(Error::Closed { address: self.address.clone() }.into()),
                Ok(count) => written += count,
                Err(error) => self.pause(&error, until, timeout)?,
            }
        }
        while let Err(error) = self.transport.flush() {
            self.pause(&error, until, timeout)?;
        }
        Ok(())
    }

    /// Calls `each` with what came. Returns whether there may be more.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Malformed`], [`Error::TooLarge`], [`Error::Tls`].
    pub fn receive(&mut self, mut each: impl FnMut(&Command<'_>)) -> Result<bool> {
        for _ in 0..READS {
            self.make_room();
            match self.transport.read_ready(&mut self.inbox[self.filled..]) {
                Ok(0) => return Err(Error::Closed { address: self.address.clone() }.into()),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.failed(&error, Duration::ZERO)),
            }
            while let Some((frame, length)) = frame::first(&self.inbox[self.start..self.filled], &self.limits)? {
                each(&Command::decode(&frame, &self.limits)?);
                self.start += length;
            }
        }
        Ok(true)
    }

    /// Room for a read behind what is there; a frame that fills all of it makes it larger, up to the largest frame.
    fn make_room(&mut self) {
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
        if self.inbox.len() - self.filled >= READ / 4 {
            return;
        }
        self.inbox.copy_within(self.start..self.filled, 0);
        (self.start, self.filled) = (0, self.filled - self.start);
        if self.inbox.len() - self.filled < READ / 4 {
            self.inbox.resize(2 * self.inbox.len(), 0);
        }
    }

    /// A write that did not end may be repeated until then.
    fn pause(&self, error: &std::io::Error, until: Instant, timeout: Duration) -> Result<()> {
        if is_pause(error) && Instant::now() < until { Ok(()) } else { Err(self.failed(error, timeout)) }
    }

    fn failed(&self, error: &std::io::Error, timeout: Duration) -> crate::Error {
        let address = self.address.clone();
        let failed = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                Error::Timeout { address, timeout_ms: timeout.as_millis() as u64 }
            }
            ErrorKind::InvalidData => Error::Tls { address, reason: error.to_string() },
            _ => Error::Closed { address },
        };
        failed.into()
    }
}
