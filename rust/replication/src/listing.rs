//! Lists what was appended to a copy, on a thread of its own: so many blocks wait for it and no more.
use crate::end::End;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::dispatch::Dispatch;
use rmqfast_store::store::log_walk::{Block, RecordAt};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

// Blocks that wait at most.
const MOST: usize = 2;

/// Bytes of the log, with the records in them that were appended.
#[derive(Debug, Default)]
pub struct RecordBlock {
    /// The bytes; more may stand behind the last record.
    pub bytes: Vec<u8>,
    pub records: Vec<RecordAt>,
    pub end: u64,
}

/// The blocks that wait.
#[derive(Debug, Default)]
pub struct Listing {
    state: Mutex<State>,
    changed: Condvar,
    listed_to: AtomicU64,
}

/// Whoever lists; gone for an error or a panic, nobody waits for it.
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
    /// Blocks that were listed: their memory is used again.
    spare: Vec<RecordBlock>,
    is_over: bool,
    /// The listing thread has failed.
    has_failed: bool,
}

impl Listing {
    /// For a log that is listed up to `listed_to`.
    pub fn new(listed_to: u64) -> Self {
        Self { listed_to: AtomicU64::new(listed_to), ..Self::default() }
    }

    /// Up to where the log is listed.
    pub fn end_of_lists(&self) -> u64 {
        self.listed_to.load(Ordering::Acquire)
    }

    /// Returns a block that was listed, or an empty one: its memory may be used again.
    pub fn spare(&self) -> RecordBlock {
        let mut spare = self.state().spare.pop().unwrap_or_default();
        spare.records.clear();
        spare
    }

    /// Gives a block to whoever lists.
    ///
    /// # Errors
    /// [`End::Stopped`] where listing has failed: its own error tells why.
    pub fn put(&self, block: RecordBlock) -> Result<(), End> {
        let is_full = |state: &mut State| state.waiting.len() >= MOST && !state.has_failed;
        let mut state = self.changed.wait_while(self.state(), is_full).unwrap_or_else(PoisonError::into_inner);
        if state.has_failed {
            return Err(End::Stopped);
        }
        state.waiting.push_back(block);
        self.changed.notify_all();
        Ok(())
    }

    /// No more blocks come.
    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Lists blocks until there are no more.
    ///
    /// # Errors
    /// [`End::Store`].
    pub fn run(&self, copy: &Appender) -> Result<(), End> {
        let _failing = Failing(self);
        let (mut dispatch, levels) = (Dispatch::default(), copy.delay_levels());
        let mut listed = None;
        while let Some(block) = self.take(listed) {
            dispatch.read(Block { bytes: &block.bytes, records: &block.records }, &levels);
            copy.list(&mut dispatch).map_err(End::Store)?;
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
