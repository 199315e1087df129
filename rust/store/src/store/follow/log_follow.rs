//! Follows a log that another process writes. Reads the log block by block to its end, then the new records as they
//! appear.
use super::log_place::{LogPlace, RemovedRange, Waits};
use crate::Result;
use crate::format::message::Message;
use crate::store::commit_log::{CommitLog, DamageLog};
use crate::store::log_walk::{BLOCK_LEN, Block, RecordAt, Stop, parse};
use crate::store::message_store::MessageStore;
use std::time::{Duration, Instant};

/// The state of a follower. Call [`advance`](Self::advance), then [`block`](Self::block).
#[derive(Debug)]
pub struct LogFollow {
    place: LogPlace,
    end: u64,
    block_start: u64,
    window: (u64, usize),
    records: Vec<RecordAt>,
    /// The bytes of a first read. The second read must give equal bytes.
    first_read: Vec<u8>,
    settling: SettlingBytes,
    /// Whether the last step stopped at records that another process may still be writing.
    is_settling: bool,
    last_timestamp: i64,
}

enum ItemHere {
    Records,
    /// Records that look complete, but that another process may still be writing.
    Settling,
    Blank(usize),
    Nothing(String),
}

impl LogFollow {
    /// Follows the log of `store` from its first record.
    pub fn new(store: &MessageStore) -> Result<Self> {
        Ok(Self {
            place: LogPlace::at_start_of(store)?,
            end: u64::MAX,
            block_start: 0,
            window: (0, 0),
            records: Vec::new(),
            first_read: Vec::new(),
            settling: SettlingBytes::default(),
            is_settling: false,
            last_timestamp: i64::MIN,
        })
    }

    /// Starts at `position`, where a record begins or will begin.
    #[must_use]
    pub fn from(mut self, position: u64) -> Self {
        self.place.position = position;
        self.place.has_read = true;
        self
    }

    /// Starts behind the last complete record. Waits at most `Waits::patience` for a record that no queue lists, such as the
    /// last one of a broker that crashed.
    pub fn from_end(mut self) -> Result<Self> {
        const LOOKS: usize = 3;
        // Everything before the bound is complete, so the walk need not begin earlier.
        self.place.position = self.place.position.max(self.place.bound.to());
        let mut before = DamageLog::default();
        let (began, mut looks) = (Instant::now(), 0);
        loop {
            let position = self.place.position;
            while self.advance(&mut before)? {}
            looks += 1;
            // A log that still grows has no last record to wait for.
            let has_moved = looks > LOOKS && self.place.position > position;
            if !self.is_settling || has_moved || began.elapsed() > self.place.waits.patience + self.place.waits.settle {
                break;
            }
            // The last record counts only if a second read after a while is equal.
            std::thread::sleep(self.place.waits.settle);
        }
        // Ranges that were removed before the start do not count.
        self.place.removed.clear();
        Ok(self)
    }

    /// Sets the offset at which the follower ends. Records that start at or behind this offset are left out.
    #[must_use]
    pub fn until(mut self, end: u64) -> Self {
        self.end = end;
        self
    }

    #[must_use]
    pub fn with_waits(mut self, waits: Waits) -> Self {
        self.place.waits = waits;
        self
    }

    pub fn position(&self) -> u64 {
        self.place.position
    }

    pub fn is_over(&self) -> bool {
        self.place.position >= self.end
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn log(&self) -> &CommitLog {
        &self.place.log
    }

    /// Returns the ranges of the log that retention removed before they were read.
    pub fn removed_ranges(&self) -> &[RemovedRange] {
        &self.place.removed
    }

    /// Reads the next block. Returns `false` if there are no new records.
    pub fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.records.clear();
        self.is_settling = false;
        while !self.is_over() && self.records.is_empty() {
            if !self.step(damage)? {
                return Ok(false);
            }
        }
        Ok(!self.records.is_empty())
    }

    pub fn block(&self) -> Block<'_> {
        let bytes = self.place.open.as_ref().map_or(&[][..], |(_, s)| s.last_window(self.window.0, self.window.1));
        Block { bytes, records: &self.records }
    }

    pub fn block_start(&self) -> u64 {
        self.block_start
    }

    /// Reads once. Returns whether another step may find more without waiting.
    fn step(&mut self, damage: &mut DamageLog) -> Result<bool> {
        if self.place.pass_missing_file(damage) {
            return Ok(true);
        }
        let Some(at) = self.place.open_file()? else { return self.place.pass_removed() };
        match self.read(at)? {
            ItemHere::Records => Ok(true),
            ItemHere::Settling => self.place.ask_queues(),
            ItemHere::Blank(size) => self.place.roll(at, size, damage),
            ItemHere::Nothing(reason) => self.place.wait_or_skip(reason, damage),
        }
    }

    fn read(&mut self, at: u64) -> Result<ItemHere> {
        let Some((_, segment)) = &mut self.place.open else { return Ok(ItemHere::Settling) };
        let word = segment.window(at, 8)?;
        // While the log is idle, only these eight bytes are read.
        if word.len() < 8 || word == [0; 8] {
            let what = if word.len() < 8 { "the end of the file" } else { "bytes that were never written" };
            return Ok(ItemHere::Nothing(format!("expected a record, got {what}")));
        }
        let mut want = BLOCK_LEN;
        loop {
            let bytes = segment.window(at, want)?;
            let is_own = bytes.get(28..36) == Some(&self.place.position.to_be_bytes()[..]);
            let got = bytes.len();
            let (len, stop) = parse(bytes, (self.place.position, self.end), 0, false, &mut self.records);
            if len > 0 {
                self.window = (at, got);
                return self.settle(len);
            }
            return Ok(match stop {
                // Checks the offset first, so that garbage does not allocate memory.
                Stop::Needs(_, size) if is_own && size > want && at + size as u64 <= segment.file_len()? => {
                    want = size;
                    continue;
                }
                Stop::Needs(_, size) => ItemHere::Nothing(format!("expected {size} bytes of a record, got {got}")),
                Stop::Blank(size) => ItemHere::Blank(size),
                Stop::Broken(reason) => ItemHere::Nothing(reason),
                Stop::Unwritten | Stop::Consumed => ItemHere::Settling,
            });
        }
    }

    /// Keeps only the leading records that are surely complete, and moves the position behind them. `len` is the length
    /// of all records that were read.
    fn settle(&mut self, mut len: usize) -> Result<ItemHere> {
        // Records before the bound are complete, so they need no second read.
        if self.place.position + len as u64 > self.place.bound.to() {
            self.read_again(len)?;
            let ripe = self.count_ripe();
            let last = ripe.checked_sub(1).map(|last| self.records[last]);
            len = last.map_or(0, |last| (last.at + last.layout.total) as usize);
            self.keep_settling(ripe);
            self.records.truncate(ripe);
        }
        if len == 0 {
            self.is_settling = true;
            return Ok(ItemHere::Settling);
        }
        let block = self.block();
        let last = block.records.last().and_then(|r| Message::new(block.bytes.get(r.at as usize..)?, r.layout));
        self.last_timestamp = last.map_or(self.last_timestamp, |m| m.store_timestamp());
        self.block_start = self.place.position;
        self.place.pass(len);
        Ok(ItemHere::Records)
    }

    /// Reads the records a second time, after the queues were read. Records that the queues list are complete in the
    /// second read.
    fn read_again(&mut self, len: usize) -> Result<()> {
        let Some((_, segment)) = &mut self.place.open else { return Ok(()) };
        let bytes = segment.last_window(self.window.0, self.window.1);
        self.place.bound.raise(bytes, &self.records, self.place.position)?;
        self.first_read.clear();
        // The word behind the records is kept, too. It shows whether the writer has continued.
        self.first_read.extend_from_slice(&bytes[..bytes.len().min(len + 8)]);
        self.records.clear();
        let bytes = segment.window(self.window.0, self.window.1)?;
        self.window.1 = bytes.len();
        parse(bytes, (self.place.position, self.end), 0, false, &mut self.records);
        Ok(())
    }

    fn count_ripe(&self) -> usize {
        let block = self.block();
        let mut timestamp = self.last_timestamp;
        let is_ripe = |record: &&RecordAt| {
            let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
            let Some(message) = Message::new(bytes, record.layout) else { return false };
            // A broker never appends a record with an earlier store time than the record before, unless its clock
            // steps back.
            let is_late = message.store_timestamp() < timestamp;
            timestamp = message.store_timestamp();
            let offset = self.place.position + u64::from(record.at);
            offset + u64::from(record.layout.total) <= self.place.bound.to()
                || self.is_settled(&message, **record, is_late)
        };
        block.records.iter().take_while(is_ripe).count()
    }

    /// Returns whether a record that no queue lists is complete. Its bytes must be equal in two reads, and must stay
    /// the same for some time. In a store without queues, data behind the record makes this time unnecessary. A record
    /// with an earlier store time than the record before it may be an old record behind a truncated log.
    fn is_settled(&self, message: &Message<'_>, record: RecordAt, is_late: bool) -> bool {
        let (at, bytes) = (record.at as usize, message.record());
        if self.first_read.get(at..at + bytes.len()) != Some(bytes) || (is_late && self.place.bound.by_queues()) {
            return false;
        }
        let behind = &self.first_read[at + bytes.len()..];
        let is_followed = !self.place.bound.by_queues() && behind.iter().any(|byte| *byte != 0);
        let needed = match is_followed {
            _ if is_late || may_be_unwritten(message) => self.place.waits.patience,
            true => return true,
            false => self.place.waits.settle,
        };
        self.settling.age(self.place.position + record.at as u64, bytes).is_some_and(|age| age >= needed)
    }

    /// Keeps the bytes from the first record that may be incomplete, to compare them with the next read. The number of
    /// this record is `ripe`.
    fn keep_settling(&mut self, ripe: usize) {
        let Some((_, segment)) = &self.place.open else { return };
        let bytes = segment.last_window(self.window.0, self.window.1);
        let Some(next) = self.records.get(ripe) else { return };
        let (at, len) = (next.at as usize, next.layout.total as usize);
        let offset = self.place.position + at as u64;
        if self.settling.age(offset, &bytes[at..at + len]).is_none() {
            self.settling.note(offset, &bytes[at..]);
        }
    }
}

/// The bytes of an earlier read, and the time of that read.
#[derive(Debug, Default)]
pub struct SettlingBytes {
    from: u64,
    bytes: Vec<u8>,
    since: Option<Instant>,
}

impl SettlingBytes {
    /// Returns how long the bytes at `offset` have been `record`; `None` if the earlier read found other bytes there,
    /// or did not include them.
    pub fn age(&self, offset: u64, record: &[u8]) -> Option<Duration> {
        let at = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        let seen = self.bytes.get(at..at.checked_add(record.len())?)?;
        (seen == record).then(|| self.since.map(|since| since.elapsed())).flatten()
    }

    pub fn note(&mut self, from: u64, bytes: &[u8]) {
        self.from = from;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.since = Some(Instant::now());
    }
}

/// Tells whether topic or properties may be incomplete. Unwritten bytes are zero, and no checksum covers these fields.
pub fn may_be_unwritten(message: &Message<'_>) -> bool {
    message.topic().contains(&0) || message.properties().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_an_age_only_as_long_as_they_are_the_same() {
        let mut settled = SettlingBytes::default();
        assert_eq!(settled.age(0, b""), None);
        settled.note(100, b"0123456789");
        assert!(settled.age(100, b"0123456789").is_some() && settled.age(103, b"34").is_some());
        for (offset, bytes) in [(99, &b"0"[..]), (100, b"1"), (109, b"9x"), (200, b"")] {
            assert_eq!(settled.age(offset, bytes), None, "{offset}");
        }
        settled.note(105, b"5");
        assert_eq!(settled.age(103, b"34"), None);
    }
}
