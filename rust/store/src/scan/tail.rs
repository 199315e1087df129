//! Messages of a store that somebody else is writing, batch by batch, as they come.
use super::batch::BatchBuilder;
use super::plan::{generations, time_range};
use super::request::ScanRequest;
use super::row::Row;
use super::selector::Selector;
use crate::Result;
use crate::file::Io;
use crate::store::damage::DamageLog;
use crate::store::follow::{LogFollow, Retained, Waits};
use crate::store::{MessageStore, QueueKind};
use arrow_array::RecordBatch;
use std::sync::Arc;

/// Where a tail starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind the last message.
    End,
    /// At the first message that is still there.
    Begin,
    /// At a position that a tail told, or any record.
    Position(u64),
    /// At the first message of this store time, ms; none that is older comes.
    Time(i64),
}

/// Follows a store. Each message comes once, in the order of the log; [`poll`](Self::poll) gives what there is.
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
    /// Follows `store` from `start` on, also where files were added since it was opened.
    pub fn new(store: &MessageStore, request: &ScanRequest, start: Start) -> Result<Self> {
        let store = store.reopened(Io::Pread)?;
        check_topic(&store, request)?;
        let mut request = request.clone();
        let follow = LogFollow::new(&store)?;
        let follow = match start {
            Start::End => follow.from_end()?,
            Start::Begin => follow,
            Start::Position(position) => follow.from(position),
            Start::Time(when) => {
                request.start_time = request.start_time.max(Some(when));
                // whole files: what is older within the first of them is filtered
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

    /// Ends at a position: messages there or behind do not come.
    #[must_use]
    pub fn until(mut self, end: u64) -> Self {
        self.follow = self.follow.until(end);
        self
    }

    /// Whether damage ends it with an error.
    #[must_use]
    pub fn failing(mut self, on_damage: bool) -> Self {
        self.fails_on_damage = on_damage;
        self
    }

    /// Waits as long for what may still come.
    #[must_use]
    pub fn with_waits(mut self, waits: Waits) -> Self {
        self.follow = self.follow.with_waits(waits);
        self
    }

    /// The next batch; `None` where there is nothing new by now. `interrupt` is asked between blocks and stops this with its
    /// error; then it can be called again.
    ///
    /// # Errors
    /// [`Error::Io`], or what `interrupt` returns; [`Error::Corrupt`] for damage, if that is to end it, from then on. No batch has
    /// what stands behind the damage.
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
                self.selector.select(self.follow.block(), &mut self.rows);
                // none was asked for: who goes on from here need not read them again
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
        // rows that did not fit come first in the next batch
        let next = self.rows.get(self.next_row).map(|row| self.follow.block_start() + u64::from(row.at));
        self.position = next.unwrap_or(self.follow.position());
        Ok(batch)
    }

    /// Where to go on: behind the last message of the last batch, or further where none that is asked for followed.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether all messages before the end were given.
    pub fn is_over(&self) -> bool {
        self.position >= self.follow.end()
    }

    /// Damage met so far.
    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// What retention removed before it was read.
    pub fn retained(&self) -> &[Retained] {
        self.follow.retained()
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

/// A topic that no queue and no configuration names is taken for a mistake, where there are queues.
fn check_topic(store: &MessageStore, request: &ScanRequest) -> Result<()> {
    let topic = request.topic.as_ref().filter(|_| store.queue_kind() == QueueKind::Files);
    topic.map_or(Ok(()), |topic| store.check_topic(topic))
}
