//! A connection of a client that the calling thread itself writes to and reads from.
//!
//! Source: `NettyRemotingClient.invokeSync`, `invokeOneway`.
use crate::command::ONEWAY;
use crate::dial::dial;
use crate::error::{Error, Result};
use crate::frame::Limits;
use crate::header::{Header, Value};
use crate::inbox::{Inbox, ReceivedFrame};
use crate::interrupt::Ask;
use crate::interrupt::{self, Interrupt};
use crate::owned_command::OwnedCommand;
use crate::tls::ClientTls;
use crate::transport::{Transport, is_pause};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Memory for a request that a connection keeps.
const KEPT: usize = 256 << 10;

/// An open connection of one caller at a time.
#[derive(Debug)]
pub struct Client {
    stream: Transport,
    address: String,
    next_opaque: i32,
    limits: Limits,
    inbox: Inbox,
    out: Vec<u8>,
    /// Bytes of the last frame that were written.
    written: usize,
}

/// Until when to wait, and what may end the wait before.
struct Patience<'a> {
    until: Instant,
    timeout: Duration,
    interrupt: Interrupt<'a>,
}

impl<'a> Patience<'a> {
    fn of(ask: &Ask<'a>) -> Self {
        Self { until: Instant::now() + ask.timeout, timeout: ask.timeout, interrupt: ask.interrupt }
    }
}

impl Client {
    /// Connects to `host:port`, and keeps what is said secret where `tls` says how.
    ///
    /// # Errors
    /// [`Error::Connect`]; with TLS [`Error::TlsFile`], [`Error::Tls`], [`Error::Timeout`] as well.
    pub fn connect(address: &str, tls: Option<&ClientTls>, timeout: Duration) -> Result<Self> {
        Self::open(address, tls, timeout, &interrupt::never)
    }

    /// [`connect`](Self::connect) with an interrupt.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), [`Error::Interrupted`].
    pub fn open(address: &str, tls: Option<&ClientTls>, timeout: Duration, interrupt: Interrupt<'_>) -> Result<Self> {
        let dialled = dial(address, tls, timeout, interrupt)?;
        let address = address.to_owned();
        let stream = Transport::new(dialled).map_err(|source| Error::Connect { address: address.clone(), source })?;
        let (limits, inbox) = (Limits::default(), Inbox::default());
        Ok(Self { stream, address, next_opaque: 0, limits, inbox, out: Vec::new(), written: 0 })
    }

    /// Sends a request and waits for its answer. After an error the connection is of no further use.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Timeout`], [`Error::Malformed`], [`Error::TooLarge`].
    pub fn request(
        &mut self,
        code: i32,
        fields: &[(&str, Value<'_>)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<OwnedCommand> {
        let received = self.ask(Ask::new(code, fields, body, timeout))?;
        let body = self.body(&received).to_vec();
        Ok(OwnedCommand { body, ..received.head })
    }

    /// Sends a request and waits for its answer; the body stays in the connection's memory until the next call.
    ///
    /// # Errors
    /// As [`request`](Self::request), [`Error::Interrupted`].
    pub fn ask(&mut self, ask: Ask<'_>) -> Result<ReceivedFrame> {
        let opaque = self.opaque();
        let patience = Patience::of(&ask);
        self.write(&Header::request(ask.code, opaque, ask.fields), ask.body, &patience)?;
        loop {
            // requests of the peer are passed over, and answers that nobody waits for
            while let Some(received) = self.inbox.take(&self.limits)? {
                if received.head.opaque == opaque && received.head.is_response() {
                    return Ok(received);
                }
            }
            // also after a read that brought something: a peer that never stops sending does not hold the caller
            self.remaining(&patience)?;
            self.read(&patience)?;
        }
    }

    /// Returns the body of the last answer.
    pub fn body(&self, received: &ReceivedFrame) -> &[u8] {
        self.inbox.body(received)
    }

    /// Sends a request that is not answered.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Timeout`].
    pub fn send_oneway(
        &mut self,
        code: i32,
        fields: &[(&str, Value<'_>)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<()> {
        self.tell(Ask::new(code, fields, body, timeout))
    }

    /// [`send_oneway`](Self::send_oneway) with an interrupt.
    ///
    /// # Errors
    /// As [`send_oneway`](Self::send_oneway), [`Error::Interrupted`].
    pub fn tell(&mut self, ask: Ask<'_>) -> Result<()> {
        let header = Header { flag: ONEWAY, ..Header::request(ask.code, self.opaque(), ask.fields) };
        self.write(&header, ask.body, &Patience::of(&ask))
    }

    /// Returns the peer as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns whether the peer is still there, as far as this side was told; asks the operating system, waits for
    /// nothing.
    pub fn is_alive(&mut self) -> bool {
        loop {
            match self.inbox.fill(|room| self.stream.read_ready(room)) {
                Ok(0) => return false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() != ErrorKind::Interrupted => return false,
                // what nobody waits for: it is passed over, but not gathered
                _ if !self.pass_over() => return false,
                _ => {}
            }
        }
    }

    /// Returns whether nothing of the last frame went out: then the peer cannot have read it.
    pub fn is_unsent(&self) -> bool {
        self.written == 0
    }

    pub(crate) fn socket(&self) -> &Arc<TcpStream> {
        self.stream.socket()
    }

    /// Gives memory back that only large frames needed.
    pub(crate) fn shrink(&mut self) {
        self.inbox.shrink();
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
    }

    fn pass_over(&mut self) -> bool {
        loop {
            match self.inbox.take(&self.limits) {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Returns the socket, for a caller that reads and writes by itself. Nothing may have been asked over it yet.
    pub fn into_transport(self) -> Transport {
        self.stream
    }

    fn opaque(&mut self) -> i32 {
        self.next_opaque = self.next_opaque.wrapping_add(1);
        self.next_opaque
    }

    fn write(&mut self, header: &Header<'_>, body: &[u8], patience: &Patience<'_>) -> Result<()> {
        self.out.clear();
        self.written = 0;
        self.stream.wait_at_most(patience.timeout).map_err(|error| self.io_error(&error))?;
        header.write(body, &mut self.out);
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(Error::Closed { address: self.address.clone() }),
                Ok(count) => self.written += count,
                Err(error) => self.pause(&error, patience)?,
            }
        }
        while let Err(error) = self.stream.flush() {
            self.pause(&error, patience)?;
        }
        Ok(())
    }

    fn read(&mut self, patience: &Patience<'_>) -> Result<()> {
        match self.inbox.fill(|room| self.stream.read(room)) {
            Ok(0) => Err(Error::Closed { address: self.address.clone() }),
            Ok(_) => Ok(()),
            Err(error) => self.pause(&error, patience),
        }
    }

    /// Looks whether to wait on after a call that did nothing.
    fn pause(&mut self, error: &io::Error, patience: &Patience<'_>) -> Result<()> {
        if !is_pause(error) {
            return Err(self.io_error(error));
        }
        (patience.interrupt)()?;
        let remaining = self.remaining(patience)?;
        self.stream.wait_at_most(remaining).map_err(|error| self.io_error(&error))
    }

    fn remaining(&self, patience: &Patience<'_>) -> Result<Duration> {
        let remaining = patience.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            let timeout_ms = patience.timeout.as_millis() as u64;
            return Err(Error::Timeout { address: self.address.clone(), timeout_ms });
        }
        Ok(remaining)
    }

    fn io_error(&self, error: &io::Error) -> Error {
        let address = self.address.clone();
        match error.kind() {
            // as where the server refuses the client's certificate, which it says after the handshake
            ErrorKind::InvalidData => Error::Tls { address, reason: error.to_string() },
            _ => Error::Closed { address },
        }
    }
}
