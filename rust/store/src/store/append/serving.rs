//! The appender's interface for a server: concurrent readers, a listener for new messages, and one flush for many waiting senders.
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
    /// The store for concurrent readers.
    pub fn live(&self) -> Live {
        self.store.live.clone()
    }

    /// Sets or removes the listener for new messages.
    pub fn set_arrival_listener(&self, listener: Option<Arc<dyn ArrivalListener>>) {
        self.store.live.arrivals().listen(listener);
    }

    /// [`append`](Self::append) without waiting for the disk. Returns the offset to [wait for](Self::wait_flushed); calls `on_place` for
    /// each message.
    pub fn append_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, false, on_place)
    }

    /// [`append_batch`](Self::append_batch) without waiting for the disk: see [`append_unsynced`](Self::append_unsynced).
    pub fn append_batch_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        on_place: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, true, on_place)
    }

    /// Waits until the log is flushed up to `position`. The first caller flushes for all. [`crate::Error::FlushTimeout`] after waiting longer
    /// than `timeout` for another's flush.
    pub fn wait_flushed(&self, position: u64, timeout: Option<Duration>) -> Result<()> {
        self.store.flusher.commit(position, timeout, &|| self.store.unsynced_log())?;
        self.store.live.growth().notify();
        // A file that another process has truncated meanwhile is flushed as it is.
        self.store.check_log()
    }

    /// The offset up to which slaves may get the log: with sync flush the flushed end. [`Live::growth`] wakes waiters for more.
    pub fn sendable_to(&self) -> u64 {
        let end = self.store.live.log_bounds().1;
        match self.store.options.flush {
            Flush::Async => end,
            Flush::Sync => end.min(self.flushed_offset()),
        }
    }

    /// The flushed end of the log.
    pub fn flushed_offset(&self) -> u64 {
        self.store.flusher.flushed_offset()
    }
}
