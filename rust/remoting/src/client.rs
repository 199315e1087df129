//! A connection of a client. The thread that sends a request also reads the answer.
//!
//! Source: `NettyRemotingClient.invokeSync`, `invokeOneway`.
use crate::command::{Command, Header, ONEWAY, OwnedCommand, Value};
use crate::dial::{Transport, dial, is_pause};
use crate::error::{Error, Result};
use crate::frame::{self, Limits};
use crate::interrupt::{self, Ask, Interrupt};
use crate::tls::ClientTls;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
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
    written: usize,
}

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
    pub fn connect(address: &str, tls: Option<&ClientTls>, timeout: Duration) -> Result<Self> {
        Self::open(address, tls, timeout, &interrupt::never)
    }

    /// Connects as [`connect`](Self::connect) does. The interrupt can end the wait early.
    pub fn open(address: &str, tls: Option<&ClientTls>, timeout: Duration, interrupt: Interrupt<'_>) -> Result<Self> {
        let dialled = dial(address, tls, timeout, interrupt)?;
        let address = address.to_owned();
        let stream = Transport::new(dialled).map_err(|source| Error::Connect { address: address.clone(), source })?;
        let (limits, inbox) = (Limits::default(), Inbox::default());
        Ok(Self { stream, address, next_opaque: 0, limits, inbox, out: Vec::new(), written: 0 })
    }

    /// Sends a request and waits for its answer. After an error the connection must not be used again.
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

    pub fn send_oneway(
        &mut self,
        code: i32,
        fields: &[(&str, Value<'_>)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<()> {
        self.tell(Ask::new(code, fields, body, timeout))
    }

    /// Sends a oneway request, as [`send_oneway`](Self::send_oneway) does. The interrupt can end the wait early.
    pub fn tell(&mut self, ask: Ask<'_>) -> Result<()> {
        let header = Header { flag: ONEWAY, ..Header::request(ask.code, self.opaque(), ask.fields) };
        self.write(&header, ask.body, &Patience::of(&ask))
    }

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

// Maximum bytes of one read, and size of an idle connection's buffer.
const USUAL: usize = 64 << 10;
// Maximum bytes of buffer kept between two requests.
const KEPT_INBOX: usize = 1 << 20;

/// Received bytes in `bytes[start..end]`. They belong to frames that nobody has taken yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// A frame with its parsed header. Its body stays in the inbox until the next read.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// The header, as a command with an empty body.
    pub head: OwnedCommand,
    pub body: Range<usize>,
}

impl Inbox {
    pub fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        self.make_room();
        let count = read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    pub fn take(&mut self, limits: &Limits) -> Result<Option<ReceivedFrame>> {
        let Some((frame, length)) = frame::first(&self.bytes[self.start..self.end], limits)? else { return Ok(None) };
        let body = frame.body.len();
        let head = OwnedCommand::from(&Command { body: &[], ..Command::decode(&frame, limits)? });
        self.start += length;
        Ok(Some(ReceivedFrame { head, body: self.start - body..self.start }))
    }

    pub fn body(&self, received: &ReceivedFrame) -> &[u8] {
        &self.bytes[received.body.clone()]
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Frees the part of the buffer that only a large answer needed.
    pub fn shrink(&mut self) {
        if self.is_empty() && self.bytes.len() > KEPT_INBOX {
            *self = Self::default();
        }
    }

    /// Makes room for one read. The buffer grows to at most twice the received bytes, so a peer cannot make it large by
    /// only announcing a long frame.
    fn make_room(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
        if self.end < self.bytes.len() {
            return;
        }
        // moves the incomplete frame to the front before the buffer may grow
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end + USUAL > self.bytes.len() {
            self.bytes.resize((2 * self.end).max(USUAL), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Value};

    #[test]
    fn frames_come_out_whole_however_their_bytes_came_in() {
        let mut sent = Vec::new();
        for n in 0..50_i32 {
            let body = vec![n as u8; (n as usize).pow(3)];
            Header::request(n, n, &[("n", Value::Number(n.into()))]).write(&body, &mut sent);
        }
        for step in [1, 7, 1000, 70_000, usize::MAX] {
            let (mut inbox, mut rest, mut next) = (Inbox::default(), &sent[..], 0_i32);
            while !rest.is_empty() {
                let filled = inbox.fill(|room| {
                    let count = step.min(room.len()).min(rest.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    Ok(count)
                });
                rest = &rest[filled.expect("read")..];
                while let Some(received) = inbox.take(&Limits::default()).expect("sound") {
                    assert_eq!(received.head.opaque, next);
                    assert_eq!(inbox.body(&received), vec![next as u8; (next as usize).pow(3)]);
                    next += 1;
                }
            }
            assert!(inbox.is_empty());
            assert_eq!(next, 50);
        }
    }

    #[test]
    fn a_length_that_is_only_claimed_takes_no_memory_and_a_large_answer_none_for_long() {
        let mut inbox = Inbox::default();
        let fill = |inbox: &mut Inbox, bytes: &[u8]| {
            inbox.fill(|room| {
                let count = bytes.len().min(room.len());
                room[..count].copy_from_slice(&bytes[..count]);
                Ok(count)
            })
        };
        fill(&mut inbox, &[0, 0xF0, 0, 0]).expect("read");
        assert!(inbox.take(&Limits::default()).expect("allowed").is_none());
        assert!(inbox.bytes.len() <= USUAL);
        let (mut large, mut sent) = (Inbox::default(), Vec::new());
        Header::request(1, 1, &[]).write(&vec![1; 3 << 20], &mut sent);
        let mut rest = &sent[..];
        while !rest.is_empty() {
            rest = &rest[fill(&mut large, rest).expect("read")..];
        }
        assert!(large.take(&Limits::default()).expect("sound").is_some());
        large.shrink();
        assert_eq!(large.bytes.len(), 0);
    }
}
