//! One thread's scan: pieces of the log one after the other, batch by batch.
use super::batch::BatchBuilder;
use super::plan::{Piece, Way};
use super::queue_walk::QueueWalk;
use super::request::ScanRequest;
use super::row::Row;
use super::selector::Selector;
use crate::Result;
use crate::store::damage::DamageLog;
use crate::store::log_walk::Block;
use crate::store::{CommitLog, ConsumeQueue, LogWalk};
use arrow_array::RecordBatch;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a scan reads: a log, and the queues of the topic where the plan has use for them.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The log.
    pub log: Arc<CommitLog>,
    /// The queues that the request asks for.
    pub queues: Arc<Vec<ConsumeQueue>>,
}

enum Source {
    Log(LogWalk),
    Queue(Box<QueueWalk>),
}

impl Source {
    fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        match self {
            Self::Log(walk) => walk.advance(damage),
            Self::Queue(walk) => walk.advance(damage),
        }
    }

    fn block(&self) -> Block<'_> {
        match self {
            Self::Log(walk) => walk.block(),
            Self::Queue(walk) => walk.block(),
        }
    }
}

/// A scan in progress.
pub struct Scanner {
    sources: Sources,
    request: Arc<ScanRequest>,
    pieces: VecDeque<Piece>,
    source: Option<Source>,
    selector: Selector,
    rows: Vec<Row>,
    next_row: usize,
    builder: BatchBuilder,
    damage: DamageLog,
}

impl Scanner {
    /// Scans `pieces` in order.
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self {
            sources,
            pieces: pieces.into_iter().collect(),
            source: None,
            selector: Selector::new(request.clone()),
            rows: Vec::new(),
            next_row: 0,
            builder: BatchBuilder::new(&request),
            damage: DamageLog::default(),
            request,
        }
    }

    /// The next batch, or `None` at the end. `interrupt` is asked between blocks and stops the scan with its error.
    ///
    /// # Errors
    /// [`crate::Error::Io`], or what `interrupt` returns.
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        loop {
            if self.next_row == self.rows.len() && !self.load(interrupt)? {
                return self.builder.finish();
            }
            if let Some(source) = &self.source {
                self.next_row += self.builder.append(source.block().bytes, &self.rows[self.next_row..]);
                for mut damage in self.builder.take_damage() {
                    damage.file = self.sources.log.damage(damage.offset, 0, "").file;
                    self.damage.push(damage);
                }
            }
            if self.builder.is_full() {
                return self.builder.finish();
            }
        }
    }

    /// Damage met so far.
    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// Hands the damage over.
    pub fn take_damage(&mut self) -> DamageLog {
        std::mem::take(&mut self.damage)
    }

    /// Brings the next block that has rows for us.
    fn load(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        loop {
            interrupt()?;
            if self.source.is_none() {
                let Some(piece) = self.pieces.pop_front() else { return Ok(false) };
                self.source = Some(self.open(piece)?);
            }
            let Some(source) = &mut self.source else { return Ok(false) };
            self.rows.clear();
            self.next_row = 0;
            if !source.advance(&mut self.damage)? {
                self.source = None;
                continue;
            }
            self.selector.select(source.block(), &mut self.rows);
            if !self.rows.is_empty() {
                return Ok(true);
            }
        }
    }

    fn open(&self, piece: Piece) -> Result<Source> {
        let Sources { log, queues } = self.sources.clone();
        let verify_crc = piece.verify_crc || self.request.verify_crc;
        match piece.way {
            Way::Log => {
                let verify_from = if verify_crc { 0 } else { u64::MAX };
                Ok(Source::Log(LogWalk::new(log, piece.from, piece.end, verify_from)))
            }
            Way::Queue => {
                let range = (piece.from, piece.end);
                let walk = QueueWalk::new(log, queues, self.request.clone(), range, verify_crc)?;
                Ok(Source::Queue(Box::new(walk)))
            }
        }
    }
}
