//! Commit log, consume queues and index together: a checked batch goes through them piece by piece.
//!
//! Source: `CommitLog.asyncPutMessage`, `DefaultMessageStore.doDispatch`, `DefaultMessageStore.shutdown` for the order of flushes.
use super::index_writer::{IndexWriter, key_hash};
use super::log_writer::{BUFFER_LEN, LogWriter};
use super::options::AppendOptions;
use super::plan::{Limits, Plan, Planned, tokens};
use super::properties::{self, Named};
use super::queue_table::QueueTable;
use super::row::{Row, Rows};
use super::unsynced::Unsynced;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::message::NewMessage;

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
    /// The commit log.
    pub log: LogWriter,
    /// The consume queues.
    pub queues: QueueTable,
    /// The index.
    pub index: IndexWriter,
    /// Store time of the last message.
    pub last_store_ms: i64,
}

impl Writers {
    /// Checks a batch and creates the files that it will need. After an error everything is as it was before.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a row, [`crate::Error::Io`] where files cannot be created, as for a full disk.
    pub fn prepare<R: Rows>(
        &mut self,
        rows: &R,
        options: &AppendOptions,
        store_ms: i64,
        first_row: usize,
    ) -> Result<Plan> {
        let limits = Limits {
            max_body: options.max_message_size,
            file_size: self.log.file_size(),
            hosts_len: 2 * options.store_host.encoded_len(),
        };
        let prepared = Plan::new(rows, limits, &mut self.queues, store_ms, first_row).and_then(|plan| {
            self.log.reserve(plan.rows.iter().map(|row| row.size))?;
            self.queues.reserve()?;
            self.index.reserve(plan.keys, store_ms + options.zone_offset_ms)?;
            Ok(plan)
        });
        if prepared.is_err() {
            self.queues.forget();
            self.log.release();
            self.index.release();
        }
        prepared
    }

    /// Writes a batch that was prepared. Returns where its last message is.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; then any part of the batch may have been written.
    pub fn write<R: Rows>(
        &mut self,
        rows: &R,
        plan: &Plan,
        options: &AppendOptions,
        store_ms: i64,
    ) -> Result<Option<Place>> {
        let local_ms = store_ms + options.zone_offset_ms;
        let (mut scratch, mut place) = (Vec::new(), None);
        for (index, planned) in plan.rows.iter().enumerate() {
            if self.log.buffered() + planned.size as usize > BUFFER_LEN {
                self.drain(store_ms, local_ms)?;
            }
            place = Some(self.put(rows, &rows.row(index), planned, options, store_ms, &mut scratch)?);
        }
        self.drain(store_ms, local_ms)?;
        self.last_store_ms = self.last_store_ms.max(store_ms);
        Ok(place)
    }

    #[inline]
    fn put<R: Rows>(
        &mut self,
        rows: &R,
        row: &Row<'_>,
        planned: &Planned,
        options: &AppendOptions,
        store_ms: i64,
        scratch: &mut Vec<u8>,
    ) -> Result<Place> {
        let named = match planned.delay {
            None => properties::encode(rows, row, scratch).0,
            Some(delay) => properties::encode_delayed(rows, row, delay, scratch),
        };
        let (queue, topic) = (self.queues.queue(planned.queue), self.queues.topic(planned.queue));
        let (physical_offset, buffer) = self.log.place(planned.size)?;
        let physical_offset = physical_offset as i64;
        let message = NewMessage {
            queue_id: queue.queue_id,
            flag: row.flag as i32,
            queue_offset: queue.next_offset(),
            physical_offset,
            sys_flag: 0,
            born_timestamp: row.born_timestamp.unwrap_or(store_ms),
            born_host: options.store_host,
            store_timestamp: store_ms,
            store_host: options.store_host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: row.body.unwrap_or_default(),
            topic: &topic.name,
            properties: scratch,
        };
        // lengths were checked with the plan
        let encoded = message.encode(buffer);
        debug_assert_eq!((encoded, message.encoded_len()), (Ok(()), planned.size as usize));
        let place = Place { queue_id: message.queue_id, queue_offset: message.queue_offset, physical_offset };
        push_keys(&mut self.index, topic.key_hash, &named, physical_offset);
        let unit = Unit { physical_offset, size: planned.size as i32, tags_code: planned.tags_code };
        self.queues.push(planned.queue, unit);
        Ok(place)
    }

    /// Hands all that is gathered to the operating system: first the log, then what points into it.
    fn drain(&mut self, store_ms: i64, local_ms: i64) -> Result<()> {
        self.log.write()?;
        self.queues.write()?;
        self.index.write(store_ms, local_ms)
    }

    /// Hands over what was written since the last call: the log, then what points into it.
    pub fn unsynced(&mut self) -> Written {
        let (mut log, mut lists) = (Unsynced::default(), Unsynced::default());
        let position = self.log.unsynced(&mut log);
        self.queues.unsynced(&mut lists);
        let indexed_until = self.index.unsynced(&mut lists);
        Written { log, lists, position, stored_until: self.last_store_ms, indexed_until }
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
    /// Store time of the last message.
    pub stored_until: i64,
    /// Store time up to which full index files hold the keys.
    pub indexed_until: i64,
}

#[inline]
fn push_keys(index: &mut IndexWriter, topic_hash: i32, named: &Named<'_>, physical_offset: i64) {
    let mut is_indexed = false;
    for key in named.uniq_key.into_iter().chain(tokens(named.keys)) {
        index.push(key_hash(topic_hash, key), physical_offset);
        is_indexed = true;
    }
    if !is_indexed {
        index.push_none();
    }
}
