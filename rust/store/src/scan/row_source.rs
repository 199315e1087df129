//! Reads and filters the log block by block. The selected rows are the input of the column builders.
use super::piece::{Piece, Way};
use super::queue_walk::QueueWalk;
use super::request::ScanRequest;
use super::row::Row;
use super::selector::Selector;
use crate::Result;
use crate::file::Reads;
use crate::store::commit_log::{Damage, DamageLog};
use crate::store::coverage::damage_of_blank;
use crate::store::log_walk::{BLOCK_LEN, Block};
use crate::store::{CommitLog, ConsumeQueue, Generations, LogWalk};
use std::collections::VecDeque;
use std::sync::Arc;

/// The log that a scan reads, the queues of its topic, and the first message of each topic's present generation. A
/// topic that is deleted and created again has a new generation.
#[derive(Clone, Debug)]
pub struct Sources {
    pub log: Arc<CommitLog>,
    pub queues: Arc<Vec<ConsumeQueue>>,
    pub generations: Arc<Generations>,
    /// The [end of the log](crate::store::last_close::LastClose::end_of_log) of a store that was closed.
    pub closed_end: Option<u64>,
}

enum Walk {
    Log(Box<LogWalk>),
    Queue(Box<QueueWalk>),
}

impl Walk {
    fn advance(&mut self, log: &CommitLog, damage: &mut DamageLog) -> Result<bool> {
        match self {
            Self::Log(walk) => {
                let has_more = walk.advance(damage)?;
                // The walk skips a blank file silently. If a queue lists messages in it, this is damage.
                for index in walk.take_blank_files() {
                    damage.extend(damage_of_blank(log, index)?);
                }
                Ok(has_more)
            }
            Self::Queue(walk) => walk.advance(damage),
        }
    }

    fn block(&self) -> Block<'_> {
        match self {
            Self::Log(walk) => walk.block(),
            Self::Queue(walk) => walk.block(),
        }
    }

    fn check_block(&self) -> Result<()> {
        match self {
            Self::Log(walk) => walk.check_block(),
            Self::Queue(walk) => walk.check_block(),
        }
    }
}

/// Reads pieces of the log one after the other. Call [`advance`](Self::advance), then [`bytes`](Self::bytes) and [`rows`](Self::rows),
/// which stay valid until the next `advance`.
pub struct RowSource {
    sources: Sources,
    request: Arc<ScanRequest>,
    pieces: VecDeque<Piece>,
    walk: Option<Walk>,
    block_len: usize,
    with_leases: bool,
    selector: Selector,
    rows: Vec<Row>,
    damage: DamageLog,
}

impl RowSource {
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let selector = Selector::new(request.clone(), sources.generations.clone());
        Self {
            sources,
            pieces: pieces.into_iter().collect(),
            walk: None,
            block_len: BLOCK_LEN,
            with_leases: false,
            selector,
            rows: Vec::new(),
            damage: DamageLog::default(),
            request,
        }
    }

    /// Sets the approximate length of a block in bytes. Longer blocks are faster for a caller that copies records
    /// unchanged.
    #[must_use]
    pub fn with_block_len(mut self, bytes: usize) -> Self {
        self.block_len = bytes.max(1);
        self
    }

    /// Lets blocks be in maps under leases, as [`LogWalk::with_leases`] says.
    #[must_use]
    pub fn with_leases(mut self) -> Self {
        self.with_leases = true;
        self
    }

    /// Reads the next block with at least one row. Returns `false` at the end. `interrupt` is called between blocks; its error is returned,
    /// and `advance` can be called again.
    pub fn advance(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        self.rows.clear();
        loop {
            // `interrupt` may wait for a lock, and nobody who opens the file may wait for that.
            self.release();
            // Before each block, so that Ctrl-C also stops a scan without matching messages.
            interrupt()?;
            if self.walk.is_none() {
                let Some(piece) = self.pieces.pop_front() else { return Ok(false) };
                self.walk = Some(self.open(piece)?);
            }
            let Some(walk) = &mut self.walk else { return Ok(false) };
            if !walk.advance(&self.sources.log, &mut self.damage)? {
                self.walk = None;
                continue;
            }
            self.selector.select(walk.block(), matches!(walk, Walk::Queue(_)), &mut self.rows);
            if !self.rows.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Fails if the block could not be read completely, so that what was made of it is wrong. Called after each use of a
    /// block that may be in a map.
    pub fn check_block(&self) -> Result<()> {
        self.walk.as_ref().map_or(Ok(()), Walk::check_block)
    }

    /// Ends a lease. The rows and their bytes can still be used.
    pub fn keep(&mut self) {
        if let Some(Walk::Log(walk)) = &mut self.walk {
            walk.keep();
        }
    }

    /// Ends a lease. The rows must not be used any more.
    pub fn release(&mut self) {
        if let Some(Walk::Log(walk)) = &mut self.walk {
            walk.release();
        }
    }

    pub fn bytes(&self) -> &[u8] {
        self.walk.as_ref().map_or(&[], |walk| walk.block().bytes)
    }

    /// Returns the rows of the block. Empty before the first [`advance`](Self::advance) and after the last.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Keeps only the rows of the block for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Row, &[u8]) -> bool) {
        let bytes = self.walk.as_ref().map_or(&[][..], |walk| walk.block().bytes);
        self.rows.retain(|row| keep(row, bytes));
    }

    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    pub fn take_damage(&mut self) -> DamageLog {
        std::mem::take(&mut self.damage)
    }

    /// Adds damage that was found in rows, such as bodies that cannot be decompressed. Looks up the file of each
    /// damage.
    pub fn note(&mut self, damage: impl IntoIterator<Item = Damage>) {
        for mut damage in damage {
            // Columns know only the offset, so the file is looked up here.
            damage.file = self.sources.log.damage(damage.offset, 0, "").file;
            self.damage.push(damage);
        }
    }

    /// Returns the most that will be read of the queues and of the log for the next piece, if both are sound. Leaves out
    /// what this call itself reads of the queues, as it opens the piece.
    pub fn most_reads(&self) -> Result<(Reads, Reads)> {
        self.pieces.front().map_or(Ok(Default::default()), |piece| match self.open(*piece)? {
            Walk::Log(walk) => Ok((Reads::default(), walk.most_reads()?)),
            Walk::Queue(walk) => walk.most_reads(),
        })
    }

    fn open(&self, piece: Piece) -> Result<Walk> {
        let Sources { log, queues, closed_end, .. } = self.sources.clone();
        let verify_crc = piece.verify_crc || self.request.verify_crc;
        match piece.way {
            Way::Log => {
                // The walk checks bodies from this offset on: all or none.
                let verify_from = if verify_crc { 0 } else { u64::MAX };
                let walk = LogWalk::new(log, piece.from, piece.end, verify_from).with_closed_end(closed_end);
                let walk = if self.with_leases { walk.with_leases() } else { walk };
                Ok(Walk::Log(Box::new(walk.with_block_len(self.block_len))))
            }
            Way::Queue => {
                let range = (piece.from, piece.end);
                let walk = QueueWalk::new(log, queues, self.request.clone(), range, verify_crc)?;
                Ok(Walk::Queue(Box::new(walk.with_block_len(self.block_len))))
            }
        }
    }
}
