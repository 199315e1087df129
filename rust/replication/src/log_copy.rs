//! Compares the end of a copy with the log, then checks and appends new records.
use crate::end::End;
use crate::listing::{Listing, RecordBlock};
use crate::log_sink::make_room;
use crate::log_sink::{CopyProgress, LogSink};
use rmqfast_store::Error;
use rmqfast_store::file::Io;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::CommitLog;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::replicate::{Rest, whole_records};
use std::path::Path;
use std::sync::Arc;

/// Bytes per read. They are few enough to be still in the CPU cache when they are written.
pub const BUFFER_LEN: usize = 1 << 20;

/// A copy, and the received bytes that are not appended yet.
#[derive(Debug)]
pub struct LogCopy {
    copy: Arc<Appender>,
    copied_log: CommitLog,
    file_size: u64,
    max_record: usize,
    /// End of the copy's last record.
    position: u64,
    compared_to: u64,
    /// Whether the copy was compared up to its end.
    is_compared: bool,
    last_store_ms: i64,
    /// Position in the log of the first byte of the block.
    start: u64,
    block: RecordBlock,
    len: usize,
}

impl LogCopy {
    /// Continues the copy in `root`, which receives the log from position `from` on.
    ///
    /// # Errors
    /// [`End::Store`].
    pub fn new(copy: Arc<Appender>, root: &Path, from: u64, max_record: usize) -> Result<Self, End> {
        let position = copy.log_end().map_err(End::Store)?;
        if from > position {
            let expected = format!("at most {position}, where the copy ends");
            return Err(End::Store(Error::invalid("start", expected, from)));
        }
        let copied_log = CommitLog::list(root, &[root.join("commitlog")], Io::Pread).map_err(End::Store)?;
        Ok(Self {
            file_size: copy.live().log_file_size(),
            copy,
            copied_log,
            max_record,
            position,
            compared_to: from,
            is_compared: from == position,
            last_store_ms: 0,
            start: from,
            block: RecordBlock { bytes: vec![0; BUFFER_LEN], ..RecordBlock::default() },
            len: 0,
        })
    }

    /// Appends the complete records from index `at` of the block on, but not beyond the end of a file of the log.
    /// Returns the number of bytes appended, and the reason for stopping.
    fn append(&mut self, at: usize) -> Result<(usize, Rest), End> {
        let (bytes, records) = (&self.block.bytes[at..self.len], &mut self.block.records);
        let before = records.len();
        let (whole, rest) = whole_records(bytes, self.position, self.file_size, records);
        let last = records[before..].last().map(|last| self.position + u64::from(last.at));
        if let Some(message) =
            records[before..].last().and_then(|l| Message::new(bytes.get(l.at as usize..)?, l.layout))
        {
            self.last_store_ms = message.store_timestamp();
        }
        // positions in the block, not relative to `at`
        records[before..].iter_mut().for_each(|record| record.at += at as u32);
        if whole > 0 {
            self.copy.copy_log(self.position, &bytes[..whole], last).map_err(End::Store)?;
            self.position += whole as u64;
        }
        Ok((whole, rest))
    }

    /// Passes the block to the listing thread. Bytes behind the first `appended` bytes move to a new block.
    fn go_on_behind(&mut self, appended: usize, listing: Option<&Listing>) -> Result<(), End> {
        let rest = self.len - appended;
        if let Some(listing) = listing.filter(|_| appended > 0) {
            let mut next = listing.spare();
            next.bytes.resize(BUFFER_LEN.max(rest), 0);
            next.bytes[..rest].copy_from_slice(&self.block.bytes[appended..self.len]);
            self.block.end = self.position;
            listing.put(std::mem::replace(&mut self.block, next))?;
        } else {
            self.block.bytes.copy_within(appended..self.len, 0);
        }
        (self.start, self.len) = (self.position, rest);
        Ok(())
    }

    /// Compares received bytes with the bytes of the copy at the same position. Drops the received bytes if they are
    /// equal.
    fn compare(&mut self) -> Result<(), End> {
        let overlap = self.position.saturating_sub(self.start).min(self.len as u64) as usize;
        let mut at = 0;
        while at < overlap {
            let bytes = &self.block.bytes[at..overlap];
            let copied = self.copied_log.record_head(self.start + at as u64, bytes.len()).map_err(End::Store)?;
            let same = copied.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            at += same;
            self.compared_to = self.start + at as u64;
            // at least one byte: a copy that cannot be read here counts as different
            if same < copied.len().max(1) {
                return Err(End::Diverged { at: self.compared_to });
            }
        }
        self.block.bytes.copy_within(overlap..self.len, 0);
        (self.start, self.len) = (self.start + overlap as u64, self.len - overlap);
        Ok(())
    }
}

impl LogSink for LogCopy {
    fn room(&mut self) -> &mut [u8] {
        &mut self.block.bytes[self.len..]
    }

    fn take(&mut self, count: usize, listing: Option<&Listing>) -> Result<(), End> {
        self.len += count;
        self.compare()?;
        if self.start < self.position {
            // all received bytes were already in the copy
            return Ok(());
        }
        self.is_compared = true;
        self.block.records.clear();
        let mut appended = 0;
        let needed = loop {
            match self.append(appended) {
                Ok((whole, rest)) => {
                    appended += whole;
                    match rest {
                        Rest::Broken(reason) => break Err(End::Broken { at: self.position, reason }),
                        Rest::Needs(needed) => break Ok(needed),
                        // a file ended, and the next file continues
                        Rest::Nothing if appended < self.len => {}
                        Rest::Nothing => break Ok(0),
                    }
                }
                Err(end) => break Err(end),
            }
        };
        // appended records are indexed even if an invalid record follows
        self.go_on_behind(appended, listing)?;
        make_room(&mut self.block.bytes, self.len, needed?, self.max_record, self.position)
    }

    fn progress(&self) -> CopyProgress {
        CopyProgress {
            position: self.position,
            compared_to: self.compared_to,
            is_compared: self.is_compared,
            last_store_ms: self.last_store_ms,
        }
    }
}
