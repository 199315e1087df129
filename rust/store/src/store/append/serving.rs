//! The appender as a server uses it: others read what is appended and are notified of it, and one flush serves many that wait.
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
    /// What can be read while this appends.
    pub fn live(&self) -> Live {
        self.store.live.clone()
    }

    /// Has `listener` told of each message once it can be read, or nobody.
    pub fn set_arrival_listener(&self, listener: Option<Arc<dyn ArrivalListener>>) {
        self.store.live.arrivals().listen(listener);
    }

    /// As [`append`](Self::append), but never waits for the disk. Returns the offset of the log to
    /// [wait for](Self::wait_flushed); `placed` is called with the place of each message.
    ///
    /// # Errors
    /// As [`append`](Self::append), [`crate::Error::FlushTimeout`] excepted.
    pub fn append_unsynced<R: Rows>(&self, rows: &R, store_ms: Option<i64>, placed: impl FnMut(Place)) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, false, placed)
    }

    /// As [`append_batch`](Self::append_batch), but never waits for the disk: see [`append_unsynced`](Self::append_unsynced).
    pub fn append_batch_unsynced<R: Rows>(
        &self,
        rows: &R,
        store_ms: Option<i64>,
        placed: impl FnMut(Place),
    ) -> Result<u64> {
        self.put_unsynced(rows, store_ms, 0, true, placed)
    }

    /// Waits until the log is on the disk up to `position`. Who comes first flushes for all, however long that takes.
    ///
    /// # Errors
    /// [`crate::Error::FlushTimeout`] for who waited longer than `timeout` for another's flush; [`crate::Error::NotWritable`] where
    /// the store is closed, another process has changed its files, or a flush failed; [`crate::Error::Io`].
    pub fn wait_flushed(&self, position: u64, timeout: Option<Duration>) -> Result<()> {
        self.store.flusher.commit(position, timeout, &|| self.store.unsynced_log())?;
        self.store.live.growth().tell();
        // a file that was cut off meanwhile is on the disk as it is then
        self.store.check_log()
    }

    /// Offset up to which slaves may have the log: where each append waits for the disk, no further than the disk has it.
    /// [`Live::growth`] tells of more.
    pub fn sendable_to(&self) -> u64 {
        let end = self.store.live.log_bounds().1;
        match self.store.options.flush {
            Flush::Async => end,
            Flush::Sync => end.min(self.flushed_to()),
        }
    }

    /// Offset up to which the log is known to be on the disk.
    pub fn flushed_to(&self) -> u64 {
        self.store.flusher.flushed_to()
    }
}
