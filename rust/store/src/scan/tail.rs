//! Follows a store while another process writes to it, and returns new messages in batches.
use super::batch::BatchBuilder;
use super::plan::{generations, time_range};
use super::request::ScanRequest;
use super::row::Row;
use super::selector::Selector;
use crate::Result;
use crate::file::Io;
use crate::store::commit_log::DamageLog;
use crate::store::follow::{LogFollow, RemovedRange, Waits};
use crate::store::{MessageStore, QueueKind};
use arrow_array::RecordBatch;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    End,
    Begin,
    /// The position of an earlier tail, or the physical offset of a record.
    Position(u64),
    /// Store time in milliseconds. Older messages are left out.
    Time(i64),
}

/// Follows a store. [`poll`](Self::poll) returns each message once, in the order of the log.
pub struct Tail {
    follow: LogFollow,
    selector: Selector,
    rows: Vec<Row>,
    next_row: usize,
    builder: BatchBuilder,
    damage: DamageLog,
    fails_on_damage: bool,
    position: u64,
}

impl Tail {
    /// Follows `store` from `start` on, including files created after the store was opened.
    pub fn new(store: &MessageStore, request: &ScanRequest, start: Start) -> Result<Self> {
        // Not mapped, since another process writes to the files and may truncate them.
        let store = store.reopen(Io::Pread)?;
        check_topic(&store, request)?;
        let mut request = request.clone();
        let follow = LogFollow::new(&store)?;
        let follow = match start {
            Start::End => follow.from_end()?,
            Start::Begin => follow,
            Start::Position(position) => follow.from(position),
            Start::Time(when) => {
                request.start_time = request.start_time.max(Some(when));
                // Starts at a whole file; the filter drops the older messages in it.
                let (from, _) = time_range(&store, &request)?;
                if from > follow.position() { follow.from(from) } else { follow }
            }
        };
        let generations = Arc::new(generations(&store, &request)?);
        let (builder, selector) = (BatchBuilder::new(&request), Selector::new(Arc::new(request), generations));
        let (position, damage) = (follow.position(), DamageLog::default());
        let (rows, next_row, fails_on_damage) = (Vec::new(), 0, false);
        Ok(Self { follow, selector, rows, next_row, builder, damage, fails_on_damage, position })
    }

    /// Sets the physical offset at which the tail ends. Messages at this offset or behind it are left out.
    #[must_use]
    pub fn until(mut self, end: u64) -> Self {
        self.follow = self.follow.until(end);
        self
    }

    /// Sets whether the tail fails at damage. Otherwise the tail skips the damage and reports it.
    #[must_use]
    pub fn failing(mut self, on_damage: bool) -> Self {
        self.fails_on_damage = on_damage;
        self
    }

    /// Sets how long the tail waits for incomplete records before they count as damage.
    #[must_use]
    pub fn with_waits(mut self, waits: Waits) -> Self {
        self.follow = self.follow.with_waits(waits);
        self
    }

    /// Returns the next batch, or `None` if there are no new messages yet. `interrupt` is called between blocks; its error is returned, and
    /// `poll` can be called again. If the tail stops at damage, every further call fails with [`Error::Corrupt`](crate::Error::Corrupt),
    /// and no batch has messages behind the damage.
    pub fn poll(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        self.check_damage()?;
        while !self.builder.is_full() {
            if self.next_row == self.rows.len() {
                self.next_row = 0;
                self.rows.clear();
                interrupt()?;
                let has_more = self.follow.advance(&mut self.damage)?;
                self.check_damage()?;
                if !has_more {
                    break;
                }
                // Filters are applied once per block; a full batch leaves the other rows for the next call.
                self.selector.select(self.follow.block(), false, &mut self.rows);
                // No record matched, so a tail that resumes need not read them again.
                if self.rows.is_empty() && self.builder.is_empty() {
                    self.position = self.follow.position();
                }
                continue;
            }
            self.next_row += self.builder.append(self.follow.block().bytes, &self.rows[self.next_row..]);
            self.note_bodies();
            self.check_damage()?;
        }
        let batch = self.builder.finish()?;
        // The rows that did not fit are the first rows of the next batch.
        let next = self.rows.get(self.next_row).map(|row| self.follow.block_start() + u64::from(row.at));
        self.position = next.unwrap_or(self.follow.position());
        Ok(batch)
    }

    /// Returns the position at which another tail can continue. This is behind the last returned message, or later if
    /// the messages behind it do not match.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether all messages before the end have been returned.
    pub fn is_over(&self) -> bool {
        self.position >= self.follow.end()
    }

    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// Returns the ranges of the log that retention removed before the tail could read them.
    pub fn removed_ranges(&self) -> &[RemovedRange] {
        self.follow.removed_ranges()
    }

    fn check_damage(&self) -> Result<()> {
        self.damage.error().filter(|_| self.fails_on_damage).map_or(Ok(()), Err)
    }

    fn note_bodies(&mut self) {
        for mut damage in self.builder.take_damage() {
            damage.file = self.follow.log().damage(damage.offset, 0, "").file;
            self.damage.push(damage);
        }
    }
}

/// Fails if no queue and no configuration entry has the topic. Always succeeds in a store without consume queues.
fn check_topic(store: &MessageStore, request: &ScanRequest) -> Result<()> {
    let topic = request.topic.as_ref().filter(|_| store.queue_kind() == QueueKind::Files);
    topic.map_or(Ok(()), |topic| store.check_topic(topic))
}
