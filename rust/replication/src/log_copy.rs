//! Compares what a copy has of the log, then checks and appends what it has not.
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

/// Bytes that are read at a time: what is still in the processor's cache when it is written.
pub const BUFFER_LEN: usize = 1 << 20;

/// A copy, and the bytes of the log that came and are not appended.
#[derive(Debug)]
pub struct LogCopy {
    copy: Arc<Appender>,
    copied_log: CommitLog,
    file_size: u64,
    max_record: usize,
    /// Offset behind the last record of the copy.
    position: u64,
    compared_to: u64,
    /// Whether all that the copy had was compared.
    is_compared: bool,
    last_store_ms: i64,
    /// Position of the block's first `len` bytes.
    start: u64,
    block: RecordBlock,
    len: usize,
}

impl LogCopy {
    /// A copy below `root`, which takes the log from `from` on.
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

    /// Appends the whole records from `at` on, to the end of the file at most. Returns how many bytes they are, and what comes then.
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
        records[before..].iter_mut().for_each(|record| record.at += at as u32);
        if whole > 0 {
            self.copy.copy_log(self.position, &bytes[..whole], last).map_err(End::Store)?;
            self.position += whole as u64;
        }
        Ok((whole, rest))
    }

    /// Hands the block to whoever lists, and goes on with what stands behind `appended` in another one.
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

    /// Compares the bytes with what the copy has of them, and drops those.
    fn compare(&mut self) -> Result<(), End> {
        let overlap = self.position.saturating_sub(self.start).min(self.len as u64) as usize;
        let mut at = 0;
        while at < overlap {
            let bytes = &self.block.bytes[at..overlap];
            let copied = self.copied_log.record_head(self.start + at as u64, bytes.len()).map_err(End::Store)?;
            let same = copied.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            at += same;
            self.compared_to = self.start + at as u64;
            // at least one byte: a copy that cannot be read there differs, too
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
            // all of it was known
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
                        // a file ended: the next one goes on
                        Rest::Nothing if appended < self.len => {}
                        Rest::Nothing => break Ok(0),
                    }
                }
                Err(end) => break Err(end),
            }
        };
        // what was appended is listed, whatever came behind it
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
