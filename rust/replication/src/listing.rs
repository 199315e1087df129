//! Adds the appended records of a copy to consume queues and index, on a separate thread. The number of queued blocks
//! is limited.
use crate::end::End;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::dispatch::Dispatch;
use rmqfast_store::store::log_walk::{Block, RecordAt};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
    /// Whether the listing thread has ended.
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

    /// Queues a block. Waits while the queue is full.
    ///
    /// # Errors
    /// [`End::Stopped`] if the listing thread has ended. That thread reports the reason.
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
    ///
    /// # Errors
    /// [`End::Store`].
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
