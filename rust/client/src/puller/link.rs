//! The connection of a puller to one broker. A write blocks while the broker does not read; a read returns at once.
use super::body::{Body, Pool};
use crate::error::Result;
use rmqfast_remoting::{Client, ClientTls, Command, Error, Frame, Limits, Transport, frame, is_pause};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Maximum bytes of one read, unless a frame is larger.
const READ: usize = 256 << 10;
// A frame of at least this many bytes is read alone into a buffer, so that its body is passed on without a copy.
const LARGE: usize = 512 << 10;
// Maximum reads per call of `receive`, so that requests are sent in between.
const READS: usize = 16;

#[derive(Debug)]
pub struct Link {
    transport: Transport,
    address: String,
    limits: Limits,
    pool: Arc<Pool>,
    inbox: Vec<u8>,
    start: usize,
    filled: usize,
    /// Header of the current frame.
    header: Vec<u8>,
}

impl Link {
    /// Connects to a broker. Bodies use buffers of the pool.
    ///
    /// # Errors
    /// Fails like [`Client::connect`].
    pub fn connect(address: &str, tls: Option<&ClientTls>, pool: Arc<Pool>, timeout: Duration) -> Result<Self> {
        let transport = Client::connect(address, tls, timeout)?.into_transport();
        let (limits, inbox) = (Limits::default(), vec![0; READ]);
        let address = address.to_owned();
        Ok(Self { transport, address, limits, pool, inbox, start: 0, filled: 0, header: Vec::new() })
    }

    /// Returns the socket, on which the thread waits for data.
    pub fn socket(&self) -> &std::net::TcpStream {
        self.transport.socket()
    }

    /// Writes all bytes. Waits up to `timeout` if the peer does not read.
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
        // TLS buffers output: a write that succeeded may not be sent yet
        while let Err(error) = self.transport.flush() {
            self.pause(&error, until, timeout)?;
        }
        Ok(())
    }

    /// Calls `each` with every command that arrived and its body. Returns whether more commands may be waiting.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Malformed`], [`Error::TooLarge`], [`Error::Tls`].
    pub fn receive(&mut self, mut each: impl FnMut(&Command<'_>, Body)) -> Result<bool> {
        for _ in 0..READS {
            let end = self.make_room();
            match self.transport.read_ready(&mut self.inbox[self.filled..end]) {
                Ok(0) => return Err(Error::Closed { address: self.address.clone() }.into()),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.io_error(&error, Duration::ZERO)),
            }
            while let Some((frame, length)) = frame::first(&self.inbox[self.start..self.filled], &self.limits)? {
                let (serialize_type, end) = (frame.serialize_type, self.start + length);
                let body = end - frame.body.len()..end;
                self.header.clear();
                // copied, because `take` may replace the inbox
                self.header.extend_from_slice(frame.header);
                let body = self.take(body);
                let frame = Frame { serialize_type, header: &self.header, body: b"" };
                each(&Command::decode(&frame, &self.limits)?, body);
            }
        }
        Ok(true)
    }

    /// Returns the body at a range of the inbox, and marks it as read. A large body takes over the inbox's buffer,
    /// which saves a copy.
    fn take(&mut self, body: Range<usize>) -> Body {
        // a small body must not keep a large buffer alive as long as its messages are in use
        if body.len() < LARGE || body.len() < self.inbox.len() / 2 {
            self.start = body.end;
            return Body::copy(&self.inbox[body], Some(&self.pool));
        }
        self.start = body.end;
        // the next frame will have a similar size
        let read = self.renew(body.end);
        Body::within(read, body, &self.pool)
    }

    /// Replaces the inbox by a larger buffer with the unread bytes and room for a frame of `length` bytes. Returns the
    /// old buffer.
    fn renew(&mut self, length: usize) -> Vec<u8> {
        let mut inbox = self.pool.buffer(READ.max(length + length / 8));
        let came = &self.inbox[self.start..self.filled];
        inbox[..came.len()].copy_from_slice(came);
        (self.start, self.filled) = (0, came.len());
        std::mem::replace(&mut self.inbox, inbox)
    }

    /// Makes room in the inbox after the unread bytes: for the next read, or for the rest of a large frame. Returns the
    /// end of this room.
    fn make_room(&mut self) -> usize {
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
        // `frame::first` already refused lengths above the limits
        let length = self.inbox[self.start..self.filled].first_chunk();
        let length = length.map_or(0, |length| size_of_val(length) + u32::from_be_bytes(*length) as usize);
        if length >= LARGE {
            if self.start + length > self.inbox.len() {
                let read = self.renew(length);
                self.pool.give_back(read);
            }
            return self.start + length;
        }
        if self.inbox.len() - self.filled < READ / 4 {
            self.inbox.copy_within(self.start..self.filled, 0);
            (self.start, self.filled) = (0, self.filled - self.start);
        }
        if self.inbox.len() - self.filled < READ / 4 {
            self.inbox.resize(2 * self.inbox.len(), 0);
        }
        self.inbox.len()
    }

    /// Returns `Ok` if the write must be tried again: the error means that the socket cannot take more bytes yet, and
    /// `until` has not passed.
    fn pause(&self, error: &std::io::Error, until: Instant, timeout: Duration) -> Result<()> {
        if is_pause(error) && Instant::now() < until { Ok(()) } else { Err(self.io_error(error, timeout)) }
    }

    fn io_error(&self, error: &std::io::Error, timeout: Duration) -> crate::Error {
        let address = self.address.clone();
        let error = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                Error::Timeout { address, timeout_ms: timeout.as_millis() as u64 }
            }
            ErrorKind::InvalidData => Error::Tls { address, reason: error.to_string() },
            _ => Error::Closed { address },
        };
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_remoting::Header;
    use std::net::TcpListener;

    /// Returns received bodies of these sizes. The peer writes `step` bytes at a time.
    fn received(sizes: &[usize], step: usize) -> Vec<(i32, Body)> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listening");
        let address = listener.local_addr().expect("an address").to_string();
        let mut link = Link::connect(&address, None, Arc::default(), Duration::from_secs(5)).expect("connected");
        let (mut peer, _) = listener.accept().expect("accepted");
        let mut sent = Vec::new();
        for (opaque, size) in (0..).zip(sizes) {
            Header::request(1, opaque, &[]).write(&vec![opaque as u8; *size], &mut sent);
        }
        let writer = std::thread::spawn(move || sent.chunks(step).for_each(|part| peer.write_all(part).expect("sent")));
        let mut received = Vec::new();
        loop {
            match link.receive(|command, body| received.push((command.opaque, body))) {
                Ok(_) => {}
                Err(crate::Error::Remoting(Error::Closed { .. })) => break,
                Err(error) => panic!("{error}"),
            }
        }
        writer.join().expect("written");
        received
    }

    #[test]
    fn bodies_of_all_sizes_come_whole_and_in_their_order() {
        let mib = 1 << 20;
        let sizes = [10, 0, mib, mib + 5, mib - 7, mib + mib / 4, 100, LARGE, 3 * mib, LARGE - 1, READ, READ, 50_000];
        for step in [1_999, 70_000, usize::MAX] {
            let received = received(&sizes.repeat(3), step);
            assert_eq!(received.len(), 3 * sizes.len());
            for ((opaque, body), (n, size)) in received.iter().zip((0..).zip(sizes.repeat(3))) {
                assert!(*opaque == n && body[..] == vec![n as u8; size], "{n} of {size} by {step}");
            }
        }
    }
}
