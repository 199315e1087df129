//! Checks a producer's batch. It consists of messages of one queue, which are stored without a gap in one file of the
//! log, or not at all.
//!
//! Source: `DefaultMessageStore.checkMessages`, `CommitLog.asyncPutMessages`, `MessageDecoder.encodeMessage`.
use super::delay::DELAY_TOPIC;
use super::options::AppendOptions;
use super::plan::Plan;
use super::queue_table::QueueTable;
use super::row::Rows;
use crate::format::message::{MIN_BLANK_LEN, TRANSACTION_MASK};
use crate::{Error, Result};

/// Bytes of a message in a batch on the wire, without body and properties.
const WIRE_LEN: usize = 4 + 4 + 4 + 4 + 4 + 2;

/// The parameters of an append.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub options: &'a AppendOptions,
    /// Store time of the messages, in milliseconds.
    pub store_ms: i64,
    /// Number of the first row, for errors.
    pub first_row: usize,
    /// Whether the rows are a producer's batch.
    pub is_whole: bool,
}

impl Batch<'_> {
    /// Whether the rows are a producer's batch, which must be stored completely in one file.
    pub fn local_ms(&self) -> i64 {
        self.store_ms + self.options.zone_offset_ms
    }

    /// Refuses rows that a producer could not send as a batch.
    pub fn check<R: Rows>(&self, rows: &R, plan: &Plan, queues: &QueueTable, file_size: u64) -> Result<()> {
        let Some(first) = plan.rows.first().filter(|_| self.is_whole) else { return Ok(()) };
        if let Some(row) = plan.rows.iter().position(|row| row.queue != first.queue) {
            let topic = &queues.topic(plan.rows[row].queue).name;
            let got = format!("queue {} of topic {topic} in row {row}", queues.queue(plan.rows[row].queue).queue_id);
            return Err(Error::invalid("batch", "messages of one queue", got));
        }
        // A batch with delays or transactions is refused, as in `asyncPutMessages`.
        if *queues.topic(first.queue).name == *DELAY_TOPIC {
            return Err(Error::invalid("batch", "messages without a delay", "a property DELAY"));
        }
        if let Some(row) = (0..rows.len()).find(|row| rows.row(*row).sys_flag & i64::from(TRANSACTION_MASK) != 0) {
            let got = format!("a transaction type in row {row}");
            return Err(Error::invalid("batch", "messages without a transaction", got));
        }
        self.check_size(rows, plan, file_size)
    }

    fn check_size<R: Rows>(&self, rows: &R, plan: &Plan, file_size: u64) -> Result<()> {
        // The limit counts the batch as a producer sends it, before the store adds its own fields.
        let body = |row| rows.row(row).body.map_or(0, <[u8]>::len);
        let wire_size: usize = (0..rows.len()).map(|row| WIRE_LEN + body(row) + plan.parts(row).properties.len()).sum();
        if wire_size > self.options.max_message_size {
            let expected = format!("at most {} bytes as sent (max_message_size)", self.options.max_message_size);
            return Err(Error::invalid("batch", expected, wire_size));
        }
        let stored = plan.size();
        // Each file keeps room for the blank record at its end.
        let room = file_size - MIN_BLANK_LEN as u64;
        if stored > room {
            return Err(Error::invalid("batch", format!("records of at most {room} bytes (file_size)"), stored));
        }
        Ok(())
    }
}
