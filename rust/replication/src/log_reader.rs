//! Reads a stretch of a log over a connection of its own, record by record, without a copy.
//!
//! The reader is no replica, and has no thread: it reports while it reads. When it stops reading it reports nothing, and its master
//! closes the connection after 20 seconds. Reading on connects again.
use crate::connection::{Connection, SILENCE};
use crate::end::End;
use crate::frame::NO_REPLICA;
use crate::keeper::REPORT_EVERY;
use crate::log_sink::check_size;
use rmqfast_store::store::append::replicate::{Rest, whole_records};
use rmqfast_store::store::log_walk::RecordAt;
use std::time::{Duration, Instant};

// Bytes of a block: what is still in the processor's cache when it is parsed.
const BLOCK_LEN: usize = 1 << 20;
// A read waits this long for bytes, between two checks of its deadline.
const LOOK: Duration = Duration::from_millis(50);
// Keep-alives alone end a read after this time. A master sends one each 5 seconds, and one before the first bytes: the second one
// ends it.
const KEEP_ALIVES: Duration = Duration::from_secs(6);

/// A stretch of a log, and where it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStretch {
    /// `host:port`s that lead to the log; the first that answers is whole_len.
    pub addresses: Vec<String>,
    /// Bytes of a file of the log.
    pub file_size: u64,
    /// Bytes of a record at most.
    pub max_record: u64,
    /// Offset of the first record.
    pub from: u64,
    /// Offset behind the last record.
    pub end: u64,
}

/// A step of [`LogReader::advance`].
#[derive(Debug)]
pub enum LogStep {
    /// Memory whose first `len` bytes are whole records: [`LogReader::records`] says where they are.
    Block {
        /// The buffer that [`Memory`] gave.
        buffer: Vec<u8>,
        /// Bytes of records in it.
        len: usize,
    },
    /// Not enough came yet.
    Waiting,
    Done,
}

/// Gives memory for so many bytes, or for more.
pub type Memory = dyn Fn(usize) -> Vec<u8> + Send + Sync;

/// Reads the records of a stretch, each of which proves itself: it tells its own place, its lengths agree, its body has its CRC.
pub struct LogReader {
    stretch: LogStretch,
    memory: Box<Memory>,
    connection: Option<Open>,
    /// Which of the addresses answered last.
    address: usize,
    /// The first `len` bytes are those of the log from `position` on, and not handed out.
    buffer: Vec<u8>,
    len: usize,
    position: u64,
    records: Vec<RecordAt>,
}

struct Open {
    connection: Connection,
    from: u64,
    reported: Option<Instant>,
    /// When bytes came last.
    moved: Instant,
    /// Time of the last frame, keep-alives included.
    heard: Instant,
}

impl LogReader {
    /// Creates a reader without a connection; `memory` gives buffers for blocks.
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

    /// Reads the next block; waits for `wait` at most, and longer only to connect.
    ///
    /// # Errors
    /// Why the stretch cannot be read on.
    pub fn advance(&mut self, wait: Duration) -> Result<LogStep, End> {
        let deadline = Instant::now() + wait;
        while self.position < self.stretch.end {
            if self.is_full() {
                let (buffer, len) = self.block()?;
                // blanks alone are none, and neither is the beginning of a long record
                if !self.records.is_empty() {
                    return Ok(LogStep::Block { buffer, len });
                }
            } else {
                self.read_on()?;
                // also where some bytes came: they may come one by one
                if !self.is_full() && Instant::now() >= deadline {
                    return Ok(LogStep::Waiting);
                }
            }
        }
        Ok(LogStep::Done)
    }

    /// Ends the connection. Reading on would open it again.
    pub fn close(&mut self) {
        self.connection = None;
    }

    /// Returns the records of the last block, in their order.
    pub fn records(&self) -> &[RecordAt] {
        &self.records
    }

    /// Returns whether there is room for no more bytes, or all of the stretch's are there.
    fn is_full(&self) -> bool {
        self.len > 0 && (self.len >= self.buffer.len() || self.position + self.len as u64 >= self.stretch.end)
    }

    /// Reads what has come.
    fn read_on(&mut self) -> Result<(), End> {
        if self.buffer.is_empty() {
            self.buffer = (self.memory)(BLOCK_LEN);
        }
        let rest = self.stretch.end - self.position - self.len as u64;
        let most = (self.buffer.len() - self.len).min(usize::try_from(rest).unwrap_or(usize::MAX));
        let mut open = self.connection.take().map_or_else(|| self.open(), Ok)?;
        let room = &mut self.buffer[self.len..self.len + most];
        let count = match open.read(room) {
            // a master that was restarted, or one that heard nothing for too long: what came before was sound
            Err(End::Closed(_)) if open.connection.position() > open.from => return Ok(()),
            count => count?,
        };
        self.len += count;
        // a master would send on behind the end
        self.connection = Some(open).filter(|open| open.connection.position() < self.stretch.end);
        Ok(())
    }

    fn open(&mut self) -> Result<Open, End> {
        let from = self.position + self.len as u64;
        let count = self.stretch.addresses.len();
        let mut last = None;
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

    /// Returns the whole records of the buffer, and how many bytes they are.
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
                // the next block begins with it
                Rest::Broken(_) => break 0,
                Rest::Needs(needed) => break needed,
                // a file ended: the next one goes on
                Rest::Nothing if whole_len < self.len => {}
                Rest::Nothing => break 0,
            }
        };
        self.hand_out(whole_len, needed)
    }

    /// Parts with the first `whole_len` bytes. The rest begins the next block, which has room for `needed` bytes.
    fn hand_out(&mut self, whole_len: usize, needed: usize) -> Result<(Vec<u8>, usize), End> {
        let at = self.position + whole_len as u64;
        check_size(needed, self.stretch.max_record.try_into().unwrap_or(usize::MAX), at)?;
        if at + needed as u64 > self.stretch.end {
            let reason = format!("expected a record that ends at {} at most, got {needed} bytes", self.stretch.end);
            return Err(End::Broken { at, reason });
        }
        let rest = self.len - whole_len;
        // by what came, not by what a size claims
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
            // what came is not lost with the connection: the next read tells that it ended
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
