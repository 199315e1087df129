//! Writes checked batches to commit log, consume queues and index.
//!
//! Source: `CommitLog.asyncPutMessage`, `DefaultMessageStore.doDispatch`, `DefaultMessageStore.shutdown` for the order of flushes.
use super::flusher::{OpenFile, SyncList, UnsyncedFiles};
use super::index_writer::IndexWriter;
use super::log_writer::{BUFFER_LEN, LogWriter};
use super::options::AppendOptions;
use super::plan::{Batch, Parts, Plan, PlannedRow};
use super::queue_table::QueueTable;
use super::rows::{Row, Rows};
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::NewMessage;
use crate::store::serve::Live;
use crate::store::serve::arrival::ArrivalBatch;
use crate::store::serve::key_query::LiveIndex;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Id of the queue. For a delayed message this is a queue of the delay topic.
    pub queue_id: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
}

#[derive(Debug)]
pub struct Writers {
    pub log: LogWriter,
    pub queues: QueueTable,
    pub index: IndexWriter,
    /// Store time of the last message, in milliseconds.
    pub last_store_ms: i64,
}

impl Writers {
    /// Checks a batch and creates the files for its records. After an error the writers are unchanged.
    pub fn prepare<R: Rows>(&mut self, plan: &mut Plan, rows: &R, batch: &Batch<'_>) -> Result<()> {
        let options = AppendOptions { file_size: self.log.file_size(), ..*batch.options };
        let result = plan.fill(rows, &options, &mut self.queues, batch.store_ms, batch.first_row).and_then(|()| {
            batch.check(rows, plan, &self.queues, options.file_size)?;
            // All files are allocated before the first byte is written, so that a full disk refuses the whole batch.
            self.log.reserve(plan.rows.iter().map(|row| row.size), batch.is_whole)?;
            self.queues.reserve()?;
            self.index.reserve(plan.keys(), batch.local_ms())
        });
        if result.is_err() {
            // Nothing was written, so the planned offsets are free again.
            self.queues.forget();
            self.log.release();
            self.index.release();
        }
        result
    }

    /// Writes a prepared batch and calls `on_place` for each message. After an error any part of the batch may be written.
    pub fn write<R: Rows>(
        &mut self,
        plan: &Plan,
        rows: &R,
        batch: &Batch<'_>,
        mut on_place: impl FnMut(Place),
    ) -> Result<()> {
        // As in Java, a batch that does not fit moves to the next file as a whole.
        if batch.is_whole {
            self.log.begin(plan.size())?;
        }
        for (index, planned) in plan.rows.iter().enumerate() {
            // A large batch is written in parts, so that the buffer stays small.
            if self.log.buffer_len() + planned.size as usize > BUFFER_LEN {
                self.drain(batch)?;
            }
            on_place(self.put(&rows.row(index), planned, plan.parts(index), batch)?);
        }
        self.drain(batch)?;
        self.last_store_ms = self.last_store_ms.max(batch.store_ms);
        Ok(())
    }

    #[inline]
    fn put(&mut self, row: &Row<'_>, planned: &PlannedRow, parts: Parts<'_>, batch: &Batch<'_>) -> Result<Place> {
        let queue_id = self.queues.queue(planned.queue).queue_id;
        let (physical_offset, buffer) = self.log.place(planned.size)?;
        let physical_offset = physical_offset as i64;
        let message = NewMessage {
            queue_id,
            flag: row.flag as i32,
            queue_offset: planned.queue_offset,
            physical_offset,
            sys_flag: row.sys_flag as i32,
            born_timestamp: row.born_timestamp.unwrap_or(batch.store_ms),
            born_host: row.born_host.unwrap_or(batch.options.store_host),
            store_timestamp: batch.store_ms,
            store_host: batch.options.store_host,
            reconsume_times: row.reconsume_times as i32,
            prepared_transaction_offset: row.prepared_transaction_offset,
            body: row.body.unwrap_or_default(),
            topic: &self.queues.topic(planned.queue).name,
            properties: parts.properties,
        };
        // The plan has checked the lengths, so encoding cannot fail.
        let encoded = message.encode(buffer);
        debug_assert_eq!((encoded, message.encoded_len()), (Ok(()), planned.size as usize));
        let unit = Unit { physical_offset, size: planned.size as i32, tags_code: planned.tags_code };
        self.list(planned, parts, unit);
        Ok(Place { queue_id, queue_offset: planned.queue_offset, physical_offset })
    }

    /// Buffers the index entries of a record, and its consume-queue entry in each of its queues.
    #[inline]
    fn list(&mut self, planned: &PlannedRow, parts: Parts<'_>, unit: Unit) {
        parts.keys.iter().for_each(|hash| self.index.push(*hash, unit.physical_offset));
        if parts.keys.is_empty() {
            self.index.push_none();
        }
        if planned.is_dispatched {
            self.queues.push(planned.queue, unit);
        }
        // Additional queues point to the same record, so the body is in the log once.
        parts.extra_queues.iter().for_each(|number| self.queues.push(*number, unit));
    }

    /// Returns the new messages in each queue of a written batch.
    pub fn collect_arrivals(&self, plan: &Plan, batch: &Batch<'_>) -> ArrivalBatch {
        let mut arrivals = ArrivalBatch::new(batch.store_ms);
        for (index, row) in plan.rows.iter().enumerate().filter(|(_, row)| row.is_dispatched) {
            let parts = plan.parts(index);
            let own = (self.queues.live_queue(row.queue), row.queue_offset + 1);
            let extra = parts.extra_queues.iter();
            let extra = extra.map(|n| (self.queues.live_queue(*n), self.queues.queue(*n).next_offset()));
            arrivals.push(std::iter::once(own).chain(extra), row.tags_code, parts.properties);
        }
        arrivals
    }

    pub fn live(&self, root: &Path) -> Live {
        let geometry = self.index.geometry();
        let index = LiveIndex::new(root.join("index"), geometry.slots, geometry.entries);
        Live::new(self.log.live().clone(), self.queues.live().clone(), index)
    }

    fn drain(&mut self, batch: &Batch<'_>) -> Result<()> {
        // The order is that of Java's dispatch. A unit before its record would be read as damage.
        self.log.write()?;
        self.queues.write()?;
        self.index.write(batch.store_ms, batch.local_ms())
    }

    pub fn open_files(&mut self) -> Vec<OpenFile> {
        self.log.open_files().chain(self.queues.open_files()).chain(self.index.open_files()).collect()
    }

    /// Returns the files written since the last call.
    pub fn take_unsynced(&mut self) -> UnsyncedFiles {
        let (mut log, mut lists) = (SyncList::default(), SyncList::default());
        let position = self.log.take_unsynced(&mut log);
        self.queues.take_unsynced(&mut lists);
        let indexed_until = self.index.take_unsynced(&mut lists);
        // A log without a file cannot lose its end, so its end is not recorded.
        let end = Some(self.log.flushed_end(position)).filter(|_| self.log.has_files());
        UnsyncedFiles { log, lists, position, end, stored_until: self.last_store_ms, indexed_until }
    }
}
