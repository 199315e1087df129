//! Commit log, consume queues and index together: a checked batch goes through them piece by piece.
//!
//! Source: `CommitLog.asyncPutMessage`, `DefaultMessageStore.doDispatch`, `DefaultMessageStore.shutdown` for the order of flushes.
use super::batch::Batch;
use super::index_writer::IndexWriter;
use super::log_writer::{BUFFER_LEN, LogWriter};
use super::options::AppendOptions;
use super::plan::{Parts, Plan, Planned};
use super::queue_table::QueueTable;
use super::row::{Row, Rows};
use super::unsynced::{HeldFile, Unsynced};
use crate::Result;
use crate::format::checkpoint::FlushedEnd;
use crate::format::consume_queue::Unit;
use crate::format::message::NewMessage;
use crate::store::serve::Live;
use crate::store::serve::arrival::Arrived;
use crate::store::serve::key_query::LiveIndex;
use std::path::Path;

/// Where a message was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Queue of the topic; of the delay topic for a delayed message.
    pub queue_id: i32,
    /// Its number in the queue.
    pub queue_offset: i64,
    /// Byte offset of its record in the commit log.
    pub physical_offset: i64,
}

/// All that is written to.
#[derive(Debug)]
pub struct Writers {
    pub log: LogWriter,
    pub queues: QueueTable,
    pub index: IndexWriter,
    /// Store time of the last message.
    pub last_store_ms: i64,
}

impl Writers {
    /// Checks a batch and creates the files that it will need. After an error everything is as it was before.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a row, [`crate::Error::Io`] where files cannot be created, as for a full disk.
    pub fn prepare<R: Rows>(&mut self, plan: &mut Plan, rows: &R, batch: &Batch<'_>) -> Result<()> {
        let options = AppendOptions { file_size: self.log.file_size(), ..*batch.options };
        let prepared = plan.fill(rows, &options, &mut self.queues, batch.store_ms, batch.first_row).and_then(|()| {
            batch.check(rows, plan, &self.queues, options.file_size)?;
            // all files before the first byte: a full disk refuses the batch as a whole
            self.log.reserve(plan.rows.iter().map(|row| row.size), batch.is_whole)?;
            self.queues.reserve()?;
            self.index.reserve(plan.keys(), batch.local_ms())
        });
        if prepared.is_err() {
            // nothing was written, so offsets that were given out are free again
            self.queues.forget();
            self.log.release();
            self.index.release();
        }
        prepared
    }

    /// Writes a batch that was prepared; `placed` is called with the place of each message.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; then any part of the batch may have been written.
    pub fn write<R: Rows>(
        &mut self,
        plan: &Plan,
        rows: &R,
        batch: &Batch<'_>,
        mut placed: impl FnMut(Place),
    ) -> Result<()> {
        // Java adds up the sizes of a batch, and moves all of it to the next file
        if batch.is_whole {
            self.log.begin(plan.size())?;
        }
        for (index, planned) in plan.rows.iter().enumerate() {
            // a large batch is written in parts, so that the buffer stays small
            if self.log.buffered() + planned.size as usize > BUFFER_LEN {
                self.drain(batch)?;
            }
            placed(self.put(&rows.row(index), planned, plan.parts(index), batch)?);
        }
        self.drain(batch)?;
        self.last_store_ms = self.last_store_ms.max(batch.store_ms);
        Ok(())
    }

    #[inline]
    fn put(&mut self, row: &Row<'_>, planned: &Planned, parts: Parts<'_>, batch: &Batch<'_>) -> Result<Place> {
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
        // lengths were checked with the plan
        let encoded = message.encode(buffer);
        debug_assert_eq!((encoded, message.encoded_len()), (Ok(()), planned.size as usize));
        let unit = Unit { physical_offset, size: planned.size as i32, tags_code: planned.tags_code };
        self.list(planned, parts, unit);
        Ok(Place { queue_id, queue_offset: planned.queue_offset, physical_offset })
    }

    /// Adds what leads to a record: keys, and its units in one queue or several.
    #[inline]
    fn list(&mut self, planned: &Planned, parts: Parts<'_>, unit: Unit) {
        parts.keys.iter().for_each(|hash| self.index.push(*hash, unit.physical_offset));
        if parts.keys.is_empty() {
            self.index.push_none();
        }
        if planned.is_dispatched {
            self.queues.push(planned.queue, unit);
        }
        // further queues list the same record: the body stands in the log once
        parts.further.iter().for_each(|number| self.queues.push(*number, unit));
    }

    /// What a batch that was written brought to each queue.
    pub fn arrived(&self, plan: &Plan, batch: &Batch<'_>) -> Arrived {
        let mut arrived = Arrived::at(batch.store_ms);
        for (index, row) in plan.rows.iter().enumerate().filter(|(_, row)| row.is_dispatched) {
            let parts = plan.parts(index);
            let own = (self.queues.shown(row.queue), row.queue_offset + 1);
            let further = parts.further.iter().map(|n| (self.queues.shown(*n), self.queues.queue(*n).next_offset()));
            arrived.push(std::iter::once(own).chain(further), row.tags_code, parts.properties);
        }
        arrived
    }

    /// Those who read while this writes.
    pub fn live(&self, root: &Path) -> Live {
        let geometry = self.index.geometry();
        let index = LiveIndex::new(root.join("index"), geometry.slots, geometry.entries);
        Live::new(self.log.live().clone(), self.queues.live().clone(), index)
    }

    /// Hands all that is gathered to the operating system: first the log, then what points into it.
    fn drain(&mut self, batch: &Batch<'_>) -> Result<()> {
        // the order of Java's dispatch: a unit that leads nowhere yet would be read as damage
        self.log.write()?;
        self.queues.write()?;
        self.index.write(batch.store_ms, batch.local_ms())
    }

    /// All files that are held open.
    pub fn held(&mut self) -> Vec<HeldFile> {
        self.log.held().chain(self.queues.held()).chain(self.index.held()).collect()
    }

    /// Hands over what was written since the last call: the log, then what points into it.
    pub fn unsynced(&mut self) -> Written {
        let (mut log, mut lists) = (Unsynced::default(), Unsynced::default());
        let position = self.log.unsynced(&mut log);
        self.queues.unsynced(&mut lists);
        let indexed_until = self.index.unsynced(&mut lists);
        // of a log that has no file yet nothing can be missing
        let end = Some(self.log.flushed_end(position)).filter(|_| self.log.has_files());
        Written { log, lists, position, end, stored_until: self.last_store_ms, indexed_until }
    }
}

/// What was written, and what may be said of it once it is on the disk.
#[derive(Debug)]
pub struct Written {
    /// Files of the log.
    pub log: Unsynced,
    /// Files of queues and index.
    pub lists: Unsynced,
    /// Offset up to which the log was written.
    pub position: u64,
    /// The same for the checkpoint.
    pub end: Option<FlushedEnd>,
    /// Store time of the last message.
    pub stored_until: i64,
    /// Store time up to which full index files hold the keys.
    pub indexed_until: i64,
}
