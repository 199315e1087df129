//! The appender's interface for a server: concurrent readers, a listener for new messages, and one flush for many waiting
//! senders.
//!
//! Source: `DefaultMessageStore.asyncPutMessage`, `CommitLog.submitFlushRequest`, `DefaultMessageStore.messageArrivingListener`.
use super::appender::{Appender, Place};
use super::options::Flush;
use super::row::Rows;
use crate::Result;
use crate::store::serve::{ArrivalListener, Live};
use std::sync::Arc;
use std::time::Duration;

impl Appender {
    /// Returns the store for concurrent readers.
    pub fn live(&self) -> Live {
        self.store.live.clone()
    }

    pub fn set_arrival_listener(&self, listener: Option<Arc<dyn ArrivalListener>>) {
        self.store.live.arrivals().listen(listener);
    }

    /// Appends as [`append`](Self::append) does, but without waiting for the disk. Calls `on_place` for each message. Returns
    /// the offset to [wait for](Self::wait_flushed).
    pub fn append_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, false, on_place)
    }

    /// Appends as [`append_batch`](Self::append_batch) does, but without waiting for the disk. See
    /// [`append_unsynced`](Self::append_unsynced).
    pub fn append_batch_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, true, on_place)
    }

    /// Waits until the log is flushed up to `position`. The first caller flushes for all. Fails with
    /// [`crate::Error::FlushTimeout`] after waiting longer than `timeout` for the flush of another caller.
    pub fn wait_flushed(&self, position: u64, timeout: Option<Duration>) -> Result<()> {
        self.store.flusher.commit(position, timeout, &|| self.store.unsynced_log())?;
        self.store.live.growth().notify();
        // Flushing a truncated file succeeds, so the file is checked, too.
        self.store.check_log()
    }

    /// Returns the offset up to which slaves may get the log. With sync flush this is the flushed end. Threads that
    /// wait for more can use [`Live::growth`].
    pub fn sendable_to(&self) -> u64 {
        let end = self.store.live.log_bounds().1;
        match self.store.options.flush {
            Flush::Async => end,
            Flush::Sync => end.min(self.flushed_offset()),
        }
    }

    pub fn flushed_offset(&self) -> u64 {
        self.store.flusher.flushed_offset()
    }
}
