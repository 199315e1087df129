//! Copies a master's log: compares the end of the copy with the log, checks and appends new records, and lists them on a
//! separate thread.
use crate::wire::End;
use rmqfast_store::Error;
use rmqfast_store::file::Io;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::CommitLog;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::replicate::{Dispatch, Rest, whole_records};
use rmqfast_store::store::log_walk::{Block, RecordAt};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes per read. They are few enough to be still in the CPU cache when they are written.
pub const BUFFER_LEN: usize = 1 << 20;

/// A copy, and the received bytes that are not appended yet.
#[derive(Debug)]
pub struct LogCopy {
    copy: Arc<Appender>,
    copied_log: CommitLog,
    file_size: u64,
    max_record: usize,
    position: u64,
    compared_to: u64,
    is_compared: bool,
    last_store_ms: i64,
    start: u64,
    block: RecordBlock,
    len: usize,
}

impl LogCopy {
    /// Continues the copy in `root`, which receives the log from position `from` on.
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

pub trait LogSink: Send {
    fn room(&mut self) -> &mut [u8];

    /// Takes the next `count` bytes of the log, which the caller has written to `room`. Passes appended records to
    /// `listing`.
    fn take(&mut self, count: usize, listing: Option<&Listing>) -> Result<(), End>;

    fn progress(&self) -> CopyProgress;

    /// Called when a connection has ended, after its last bytes were taken.
    fn finish(&mut self) -> Result<(), End> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// End of the last record taken, as a position in the master's log.
    pub position: u64,
    pub compared_to: u64,
    /// Whether the copy was compared up to its end.
    pub is_compared: bool,
    /// Store time of the last record taken, in milliseconds; 0 if no record was taken.
    pub last_store_ms: i64,
}

/// Enlarges a full buffer if the record at position `at` needs `needed` bytes and does not fit. `len` bytes of the
/// buffer are filled.
pub fn make_room(buffer: &mut Vec<u8>, len: usize, needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    check_size(needed, max_record, at)?;
    // at most doubled: a master that only announces a large record cannot make a copy allocate memory for it
    if len == buffer.len() {
        buffer.resize(needed.min(2 * len), 0);
    }
    Ok(())
}

/// Refuses a record at position `at` of more than `max_record` bytes.
pub fn check_size(needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    if needed <= max_record {
        return Ok(());
    }
    let reason = format!("total size at +0: expected at most {max_record} bytes, got {needed}");
    Err(End::Broken { at, reason })
}

// Maximum waiting blocks.
const MOST: usize = 2;

/// A block of log bytes, with the positions of its appended records.
#[derive(Debug, Default)]
pub struct RecordBlock {
    /// Bytes of the block. More bytes may follow the last record.
    pub bytes: Vec<u8>,
    pub records: Vec<RecordAt>,
    pub end: u64,
}

/// Queue of blocks whose records must be added to consume queues and index.
#[derive(Debug, Default)]
pub struct Listing {
    state: Mutex<State>,
    changed: Condvar,
    listed_to: AtomicU64,
}

/// Marks the listing thread as ended when dropped, even after a panic, so that no other thread waits for it.
struct Failing<'a>(&'a Listing);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        self.0.state().has_failed = true;
        self.0.changed.notify_all();
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<RecordBlock>,
    /// Blocks that are done. Their memory is reused.
    spare: Vec<RecordBlock>,
    is_over: bool,
    has_failed: bool,
}

impl Listing {
    /// Creates the queue for a log whose records are listed up to `listed_to`.
    pub fn new(listed_to: u64) -> Self {
        Self { listed_to: AtomicU64::new(listed_to), ..Self::default() }
    }

    /// Returns the position up to which records are in consume queues and index.
    pub fn end_of_lists(&self) -> u64 {
        self.listed_to.load(Ordering::Acquire)
    }

    /// Returns a block that is done, to reuse its memory, or an empty block.
    pub fn spare(&self) -> RecordBlock {
        let mut spare = self.state().spare.pop().unwrap_or_default();
        spare.records.clear();
        spare
    }

    /// Queues a block. Waits while the queue is full. Fails with [`End::Stopped`] if the listing thread has ended. That thread
    /// reports the reason.
    pub fn put(&self, block: RecordBlock) -> Result<(), End> {
        // a failed thread empties the queue no more, so the wait must end
        let is_full = |state: &mut State| state.waiting.len() >= MOST && !state.has_failed;
        let mut state = self.changed.wait_while(self.state(), is_full).unwrap_or_else(PoisonError::into_inner);
        if state.has_failed {
            return Err(End::Stopped);
        }
        state.waiting.push_back(block);
        self.changed.notify_all();
        Ok(())
    }

    /// Marks the end of the queue. Called after the last block.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Adds records to consume queues and index, until the last block is done. Called by the listing thread.
    pub fn run(&self, copy: &Appender) -> Result<(), End> {
        // dropped at every end of this function, so `put` never waits for a thread that has ended
        let _failing = Failing(self);
        let (mut dispatch, levels) = (Dispatch::default(), copy.delay_levels());
        let mut listed = None;
        while let Some(block) = self.take(listed) {
            dispatch.read(Block { bytes: &block.bytes, records: &block.records }, &levels);
            copy.list(&mut dispatch).map_err(End::Store)?;
            // stored after the records are listed, so that a reader of this position finds them
            self.listed_to.store(block.end, Ordering::Release);
            listed = Some(block);
        }
        Ok(())
    }

    fn take(&self, listed: Option<RecordBlock>) -> Option<RecordBlock> {
        let mut state = self.state();
        state.spare.extend(listed);
        let waits = |state: &mut State| state.waiting.is_empty() && !state.is_over;
        let mut state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        let block = state.waiting.pop_front();
        self.changed.notify_all();
        block
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
