//! A connection of a client. The thread that sends a request also reads the answer.
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

// Bytes of request buffer that an idle connection keeps.
const KEPT: usize = 256 << 10;

/// An open connection that one caller at a time uses.
#[derive(Debug)]
pub struct Client {
    stream: Transport,
    address: String,
    next_opaque: i32,
    limits: Limits,
    inbox: Inbox,
    out: Vec<u8>,
    /// Number of bytes of the last frame that were written.
    written: usize,
}

/// Deadline and interrupt of a call that waits.
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
    /// Connects to `host:port`, with TLS if `tls` is given.
    ///
    /// # Errors
    /// [`Error::Connect`]; with TLS also [`Error::TlsFile`], [`Error::Tls`], [`Error::Timeout`].
    pub fn connect(address: &str, tls: Option<&ClientTls>, timeout: Duration) -> Result<Self> {
        Self::open(address, tls, timeout, &interrupt::never)
    }

    /// Connects as [`connect`](Self::connect) does. The interrupt can end the wait early.
    ///
    /// # Errors
    /// Fails like [`connect`](Self::connect), [`Error::Interrupted`].
    pub fn open(address: &str, tls: Option<&ClientTls>, timeout: Duration, interrupt: Interrupt<'_>) -> Result<Self> {
        let dialled = dial(address, tls, timeout, interrupt)?;
        let address = address.to_owned();
        let stream = Transport::new(dialled).map_err(|source| Error::Connect { address: address.clone(), source })?;
        let (limits, inbox) = (Limits::default(), Inbox::default());
        Ok(Self { stream, address, next_opaque: 0, limits, inbox, out: Vec::new(), written: 0 })
    }

    /// Sends a request and waits for its answer. After an error the connection must not be used again.
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

    /// Sends a request and waits for its answer. The body stays in the connection's buffer until the next call.
    ///
    /// # Errors
    /// Fails like [`request`](Self::request), [`Error::Interrupted`].
    pub fn ask(&mut self, ask: Ask<'_>) -> Result<ReceivedFrame> {
        let opaque = self.opaque();
        let patience = Patience::of(&ask);
        self.write(&Header::request(ask.code, opaque, ask.fields), ask.body, &patience)?;
        loop {
            // requests of the peer, and late answers to earlier requests, are skipped
            while let Some(received) = self.inbox.take(&self.limits)? {
                if received.head.opaque == opaque && received.head.is_response() {
                    return Ok(received);
                }
            }
            // checked after each read, so that a peer that never stops sending cannot exceed the timeout
            self.remaining(&patience)?;
            self.read(&patience)?;
        }
    }

    pub fn body(&self, received: &ReceivedFrame) -> &[u8] {
        self.inbox.body(received)
    }

    /// Sends a oneway request.
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

    /// Sends as [`send_oneway`](Self::send_oneway) does. The interrupt can end the wait early.
    ///
    /// # Errors
    /// Fails like [`send_oneway`](Self::send_oneway), [`Error::Interrupted`].
    pub fn tell(&mut self, ask: Ask<'_>) -> Result<()> {
        let header = Header { flag: ONEWAY, ..Header::request(ask.code, self.opaque(), ask.fields) };
        self.write(&header, ask.body, &Patience::of(&ask))
    }

    /// Returns the address that the caller passed to [`connect`](Self::connect).
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns whether the connection is still open, as far as the operating system knows. Does not wait.
    pub fn is_alive(&mut self) -> bool {
        loop {
            match self.inbox.fill(|room| self.stream.read_ready(room)) {
                Ok(0) => return false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() != ErrorKind::Interrupted => return false,
                // frames that arrived unasked are skipped
                _ if !self.pass_over() => return false,
                _ => {}
            }
        }
    }

    /// Returns whether no byte of the last request was written. If so, the peer cannot have read the request.
    pub fn is_unsent(&self) -> bool {
        self.written == 0
    }

    pub(crate) fn socket(&self) -> &Arc<TcpStream> {
        self.stream.socket()
    }

    /// Frees the part of the buffers that only large frames needed.
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

    /// Returns the socket to a caller that wants to read and write without this client. Must be called before the
    /// first request.
    pub fn into_transport(self) -> Transport {
        self.stream
    }

    fn opaque(&mut self) -> i32 {
        // may wrap, as only one request is in flight
        self.next_opaque = self.next_opaque.wrapping_add(1);
        self.next_opaque
    }

    fn write(&mut self, header: &Header<'_>, body: &[u8], patience: &Patience<'_>) -> Result<()> {
        // `written` belongs to this frame only, so a failed request can be told from an unsent one
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

    /// Returns `Ok` if a call that did not finish may be repeated. Fails for a final error, an interrupt, or the
    /// timeout.
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
            // for example, the server refused the client's certificate, which it reports after the handshake
            ErrorKind::InvalidData => Error::Tls { address, reason: error.to_string() },
            _ => Error::Closed { address },
        }
    }
}
