//! Selected rows of a scan, block by block: the half that comes before columns are built.
use super::piece::{Piece, Way};
use super::queue_walk::QueueWalk;
use super::request::ScanRequest;
use super::row::Row;
use super::selector::Selector;
use crate::Result;
use crate::store::blank_file::damage_of_blank;
use crate::store::damage::{Damage, DamageLog};
use crate::store::log_walk::{BLOCK_LEN, Block};
use crate::store::{CommitLog, ConsumeQueue, Generations, LogWalk};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a scan reads: a log, and the queues of the topic where the plan has use for them.
#[derive(Clone, Debug)]
pub struct Sources {
    pub log: Arc<CommitLog>,
    /// The queues that the request asks for.
    pub queues: Arc<Vec<ConsumeQueue>>,
    /// Where the queues of the topics that it asks for begin.
    pub generations: Arc<Generations>,
}

enum Walk {
    Log(LogWalk),
    Queue(Box<QueueWalk>),
}

impl Walk {
    fn advance(&mut self, log: &CommitLog, damage: &mut DamageLog) -> Result<bool> {
        match self {
            Self::Log(walk) => {
                let has_more = walk.advance(damage)?;
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
}

/// Pieces of the log, one after the other, as blocks with rows in them; [`advance`](Self::advance), then
/// [`bytes`](Self::bytes) and [`rows`](Self::rows), which stay as they are until the next `advance`.
pub struct RowSource {
    sources: Sources,
    request: Arc<ScanRequest>,
    pieces: VecDeque<Piece>,
    walk: Option<Walk>,
    block_len: usize,
    selector: Selector,
    rows: Vec<Row>,
    damage: DamageLog,
}

impl RowSource {
    /// Reads `pieces` in order.
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let selector = Selector::new(request.clone(), sources.generations.clone());
        Self {
            sources,
            pieces: pieces.into_iter().collect(),
            walk: None,
            block_len: BLOCK_LEN,
            selector,
            rows: Vec::new(),
            damage: DamageLog::default(),
            request,
        }
    }

    /// Reads blocks of about so many bytes: larger ones for who hands a block on as it is.
    #[must_use]
    pub fn with_block_len(mut self, bytes: usize) -> Self {
        self.block_len = bytes.max(1);
        self
    }

    /// Brings the next block that has rows; `false` at the end. `interrupt` is asked between blocks and stops this with its
    /// error; then it can be called again.
    pub fn advance(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        self.rows.clear();
        loop {
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
            self.selector.select(walk.block(), &mut self.rows);
            if !self.rows.is_empty() {
                return Ok(true);
            }
        }
    }

    /// The bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        self.walk.as_ref().map_or(&[], |walk| walk.block().bytes)
    }

    /// Its rows; none before the first [`advance`](Self::advance) and behind the last.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Leaves only those rows of the block that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&Row, &[u8]) -> bool) {
        let bytes = self.walk.as_ref().map_or(&[][..], |walk| walk.block().bytes);
        self.rows.retain(|row| keep(row, bytes));
    }

    /// Damage met so far.
    pub fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// Hands the damage over.
    pub fn take_damage(&mut self) -> DamageLog {
        std::mem::take(&mut self.damage)
    }

    /// Notes damage of rows, as of bodies that do not decompress; the file that holds them is looked up.
    pub fn note(&mut self, damage: impl IntoIterator<Item = Damage>) {
        for mut damage in damage {
            // columns know offsets only
            damage.file = self.sources.log.damage(damage.offset, 0, "").file;
            self.damage.push(damage);
        }
    }

    fn open(&self, piece: Piece) -> Result<Walk> {
        let Sources { log, queues, .. } = self.sources.clone();
        let verify_crc = piece.verify_crc || self.request.verify_crc;
        match piece.way {
            Way::Log => {
                let verify_from = if verify_crc { 0 } else { u64::MAX };
                let walk = LogWalk::new(log, piece.from, piece.end, verify_from);
                Ok(Walk::Log(walk.with_block_len(self.block_len)))
            }
            Way::Queue => {
                let range = (piece.from, piece.end);
                let walk = QueueWalk::new(log, queues, self.request.clone(), range, verify_crc)?;
                Ok(Walk::Queue(Box::new(walk.with_block_len(self.block_len))))
            }
        }
    }
}
