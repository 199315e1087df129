//! The reading side of an HA connection. It turns frames into a stream of log bytes without gaps.
//!
//! Source: `HAClient.connectMaster`, `HAClient.processReadEvent`, `HAClient.dispatchReadRequest`.
use crate::end::End;
use crate::frame::{HEADER_LEN, Header, report};
use crate::wire::Wire;
use rmqfast_remoting::ClientTls;
use std::io::{ErrorKind, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time without any bytes, after which the connection counts as lost. A master sends a keep-alive every 5
/// seconds.
pub const SILENCE: Duration = Duration::from_secs(20);
// Timeout for sending a report.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Connection {
    wire: Arc<Wire>,
    wait: Duration,
    /// Position in the log of the next byte to read.
    position: u64,
    /// Bytes of the current frame that are not read yet.
    left: usize,
    header: [u8; HEADER_LEN],
    header_len: usize,
    has_heard: bool,
    is_drained: bool,
}

impl Connection {
    /// Connects to `address` (`host:port`) and requests the log from `position` on. Each read waits for at most `wait`.
    ///
    /// # Errors
    /// [`End::Connect`], [`End::Tls`].
    pub fn open(address: &str, tls: Option<&ClientTls>, position: u64, wait: Duration) -> Result<Self, End> {
        let failed = |source| End::Connect { address: address.to_owned(), source };
        let wire = Arc::new(Wire::connect(address, tls)?);
        wire.set(wait, WRITE_TIMEOUT).map_err(failed)?;
        // never 0, which means "from the start of the master's last file"
        let start = i64::try_from(position.max(1)).map_err(|_| failed(ErrorKind::InvalidInput.into()))?;
        wire.write_all(&report(start), &[]).map_err(failed)?;
        Ok(Self {
            wire,
            wait,
            position,
            left: 0,
            header: [0; HEADER_LEN],
            header_len: 0,
            has_heard: false,
            is_drained: false,
        })
    }

    /// Reports a position to the master.
    ///
    /// # Errors
    /// [`End::Closed`].
    pub fn report(&mut self, position: i64) -> Result<(), End> {
        self.wire.write_all(&report(position), &[]).map_err(End::Closed)
    }

    /// Returns the wire. Another thread uses it to write or to end the connection.
    pub fn wire(&self) -> Arc<Wire> {
        self.wire.clone()
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether any byte from the master has arrived. Until then the master would take a report for the
    /// request.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Returns whether the last read has returned all received bytes and ended at the end of a frame.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Reads bytes of the log, until `room` is full or all received bytes are read. Returns the number of bytes,
    /// which is 0 after a keep-alive.
    ///
    /// # Errors
    /// [`End::Frame`], [`End::Closed`]; [`End::Silent`] after `wait` without bytes. After `Silent` the call may be
    /// repeated.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, End> {
        if self.position == 0
            && let [first, ..] = room
        {
            // position 1 was requested instead of 0, and the first byte is known: a record's size below 16 MiB starts
            // with 0
            (*first, self.position) = (0, 1);
            return Ok(1);
        }
        let mut filled = 0;
        self.is_drained = false;
        loop {
            if self.left == 0 {
                match self.read_header() {
                    // returns the bytes; the next call reports the end
                    Err(End::Silent(_) | End::Closed(_)) if filled > 0 => return Ok(filled),
                    header => header?,
                }
                if self.left == 0 {
                    return Ok(filled);
                }
            }
            let part = self.left.min(room.len() - filled);
            // reads the next header in the same call if this completes the frame: half as many system calls
            let also = if part == self.left { HEADER_LEN } else { 0 };
            let (mut next, into) = ([0; HEADER_LEN], &mut room[filled..filled + part]);
            let count = match self.read_some(&mut [IoSliceMut::new(into), IoSliceMut::new(&mut next[..also])]) {
                Err(End::Silent(_) | End::Closed(_)) if filled > 0 => return Ok(filled),
                count => count?,
            };
            let body = count.min(part);
            (filled, self.left, self.position) = (filled + body, self.left - body, self.position + body as u64);
            (self.header, self.header_len) = (next, count - body);
            // no more bytes were received, so return these without a further wait
            if filled == room.len() || self.header_len == 0 {
                self.is_drained = self.left == 0 && self.header_len == 0;
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
            match self.wire.read_vectored(into) {
                Ok(0) => return Err(End::Closed(ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.has_heard = true;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(End::Silent(self.wait.as_secs()));
                }
                Err(error) => return Err(End::Closed(error)),
            }
        }
    }
}
