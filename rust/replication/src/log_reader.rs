//! Reads the records of a range of a log, over its own connection. Keeps no copy of the log.
//!
//! The reader is not a replica and has no thread of its own. It sends reports only during calls that read. After a
//! pause of 20 seconds the master closes the connection, and the next read connects again.
use crate::connection::{Connection, REPORT_EVERY, SILENCE};
use crate::log_copy::check_size;
use crate::wire::{End, NO_REPLICA};
use rmqfast_store::store::append::replicate::{Rest, whole_records};
use rmqfast_store::store::log_walk::RecordAt;
use std::time::{Duration, Instant};

// Bytes of a block: little enough to be still in the CPU cache when it is parsed.
const BLOCK_LEN: usize = 1 << 20;
// Maximum wait of a read, between two checks of the deadline.
const LOOK: Duration = Duration::from_millis(50);
// Time with only keep-alives after which a read fails. A master sends one every 5 seconds, and one before the first
// bytes, so the second ends the read.
const KEEP_ALIVES: Duration = Duration::from_secs(6);

/// A range of a log, and the addresses at which the log can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStretch {
    /// Addresses (`host:port`) of the HA port. The first address that accepts a connection is used.
    pub addresses: Vec<String>,
    pub file_size: u64,
    pub max_record: u64,
    pub from: u64,
    pub end: u64,
}

#[derive(Debug)]
pub enum LogStep {
    /// A block was read. The first `len` bytes of its buffer are complete records, whose positions
    /// [`LogReader::records`] returns.
    Block {
        /// A buffer allocated by [`Memory`].
        buffer: Vec<u8>,
        len: usize,
    },
    /// No complete block has been received yet.
    Waiting,
    Done,
}

/// Function that allocates a buffer. The argument is the minimum number of bytes.
pub type Memory = dyn Fn(usize) -> Vec<u8> + Send + Sync;

/// Reads the records of a range. Checks for each record its own position, its lengths, and the CRC of its body.
pub struct LogReader {
    stretch: LogStretch,
    memory: Box<Memory>,
    connection: Option<Open>,
    /// Index of the address that accepted the last connection.
    address: usize,
    /// Bytes of the log from `position` on that no call has returned yet. The first `len` bytes are filled.
    buffer: Vec<u8>,
    len: usize,
    position: u64,
    records: Vec<RecordAt>,
}

struct Open {
    connection: Connection,
    from: u64,
    reported: Option<Instant>,
    moved: Instant,
    /// Time at which the last frame arrived, keep-alives included.
    heard: Instant,
}

impl LogReader {
    /// Creates a reader without a connection. `memory` allocates the blocks.
    pub fn new(stretch: LogStretch, memory: Box<Memory>) -> Self {
        let position = stretch.from;
        Self {
            stretch,
            memory,
            connection: None,
            address: 0,
            buffer: Vec::new(),
            len: 0,
            position,
            records: Vec::new(),
        }
    }

    /// Reads the next block. Waits at most `wait`, or longer if it must connect first.
    pub fn advance(&mut self, wait: Duration) -> Result<LogStep, End> {
        let deadline = Instant::now() + wait;
        while self.position < self.stretch.end {
            if self.is_full() {
                let (buffer, len) = self.block()?;
                // blanks alone, or the start of a long record, are no block
                if !self.records.is_empty() {
                    return Ok(LogStep::Block { buffer, len });
                }
            } else {
                self.read_on()?;
                // checked even after a read with bytes, as these may trickle in
                if !self.is_full() && Instant::now() >= deadline {
                    return Ok(LogStep::Waiting);
                }
            }
        }
        Ok(LogStep::Done)
    }

    /// Closes the connection. The next read opens another connection.
    pub fn close(&mut self) {
        self.connection = None;
    }

    pub fn records(&self) -> &[RecordAt] {
        &self.records
    }

    fn is_full(&self) -> bool {
        self.len > 0 && (self.len >= self.buffer.len() || self.position + self.len as u64 >= self.stretch.end)
    }

    fn read_on(&mut self) -> Result<(), End> {
        if self.buffer.is_empty() {
            self.buffer = (self.memory)(BLOCK_LEN);
        }
        let rest = self.stretch.end - self.position - self.len as u64;
        let most = (self.buffer.len() - self.len).min(usize::try_from(rest).unwrap_or(usize::MAX));
        let mut open = self.connection.take().map_or_else(|| self.open(), Ok)?;
        let room = &mut self.buffer[self.len..self.len + most];
        let count = match open.read(room) {
            // the master restarted, or got no report for too long: reconnect, as earlier bytes were valid
            Err(End::Closed(_)) if open.connection.position() > open.from => return Ok(()),
            count => count?,
        };
        self.len += count;
        // disconnect at the end, as the master would send further bytes
        self.connection = Some(open).filter(|open| open.connection.position() < self.stretch.end);
        Ok(())
    }

    fn open(&mut self) -> Result<Open, End> {
        let from = self.position + self.len as u64;
        let count = self.stretch.addresses.len();
        let mut last = None;
        // begins with the address that worked last
        for index in (0..count).map(|number| (self.address + number) % count) {
            match Connection::open(&self.stretch.addresses[index], None, from, LOOK) {
                Ok(connection) => {
                    self.address = index;
                    let now = Instant::now();
                    return Ok(Open { connection, from, reported: None, moved: now, heard: now });
                }
                Err(end) => last = Some(end),
            }
        }
        Err(last.unwrap_or(End::Stopped))
    }

    /// Parses the complete records of the buffer. Returns the buffer and the bytes of the records.
    fn block(&mut self) -> Result<(Vec<u8>, usize), End> {
        self.records.clear();
        let mut whole_len = 0;
        let needed = loop {
            let (before, start) = (self.records.len(), self.position + whole_len as u64);
            let bytes = &self.buffer[whole_len..self.len];
            let (whole, rest) = whole_records(bytes, start, self.stretch.file_size, &mut self.records);
            self.records[before..].iter_mut().for_each(|record| record.at += whole_len as u32);
            whole_len += whole;
            match rest {
                Rest::Broken(reason) if whole_len == 0 => return Err(End::Broken { at: self.position, reason }),
                // returns the valid records first; the next block reports the invalid one
                Rest::Broken(_) => break 0,
                Rest::Needs(needed) => break needed,
                // a file ended, and the next file continues
                Rest::Nothing if whole_len < self.len => {}
                Rest::Nothing => break 0,
            }
        };
        self.hand_out(whole_len, needed)
    }

    /// Returns the buffer, in which the first `whole_len` bytes are records. The bytes behind move to a new buffer
    /// with room for `needed` bytes.
    fn hand_out(&mut self, whole_len: usize, needed: usize) -> Result<(Vec<u8>, usize), End> {
        let at = self.position + whole_len as u64;
        check_size(needed, self.stretch.max_record.try_into().unwrap_or(usize::MAX), at)?;
        if at + needed as u64 > self.stretch.end {
            let reason = format!("expected a record that ends at {} at most, got {needed} bytes", self.stretch.end);
            return Err(End::Broken { at, reason });
        }
        let rest = self.len - whole_len;
        // limited by the received bytes, not by the size that a record claims
        let mut next = (self.memory)(BLOCK_LEN.max(rest).max(needed.min(2 * self.buffer.len())));
        next[..rest].copy_from_slice(&self.buffer[whole_len..self.len]);
        (self.len, self.position) = (rest, at);
        Ok((std::mem::replace(&mut self.buffer, next), whole_len))
    }
}

impl Open {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, End> {
        let count = match self.connection.read(room) {
            Err(End::Silent(_)) if self.heard.elapsed() < SILENCE => return Ok(0),
            Err(End::Silent(_)) => return Err(End::Silent(SILENCE.as_secs())),
            count => count?,
        };
        let now = Instant::now();
        self.heard = now;
        if count > 0 {
            self.moved = now;
        } else if now - self.moved >= KEEP_ALIVES {
            return Err(End::Missing { at: self.connection.position(), seconds: KEEP_ALIVES.as_secs() });
        }
        if self.connection.has_heard() && self.reported.is_none_or(|last| now - last >= REPORT_EVERY) {
            let reported = self.connection.report(NO_REPLICA);
            // received bytes are returned even if the report fails; the next read reports the end
            if count == 0 {
                reported?;
            }
            self.reported = Some(now);
        }
        Ok(count)
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("stretch", &self.stretch).finish_non_exhaustive()
    }
}
