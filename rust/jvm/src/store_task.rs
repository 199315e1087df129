//! A task of a store. It scans a piece, fills batches and reports damage.
use crate::bad_bodies::BadBodyLog;
use crate::task::{Counts, Failure, Result, Task};
use crate::vectors::{Batch, Memory, Rows};
use rmqfast_spark::store::read::{StoreRead, damage_text, present_part, refusal_text};
use rmqfast_store::Error;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::{Piece, Plan, RowSource};
use rmqfast_store::store::Damage;
use std::sync::Arc;
use std::time::Duration;

/// Approximate bytes of a block, which fills one or more batches.
const BLOCK: usize = 1 << 20;
/// Number of blocks without a matching row after which the caller gets an empty batch, so that it can check whether
/// the task was killed.
const PATIENCE: u32 = 16;

pub struct StoreTask {
    read: StoreRead,
    piece: Piece,
    source: RowSource,
    batch: Batch,
    /// Index of the first row of the block that no batch has returned yet.
    next_row: usize,
    rows_left: u64,
    rows: u64,
    lost: Vec<Damage>,
    warning: Option<String>,
    bad_bodies: BadBodyLog,
}

impl StoreTask {
    /// Opens the store to read `piece`, which the driver has planned. The task returns at most `limit` rows.
    ///
    /// # Errors
    /// The executor has no store at the path.
    pub fn open(read: StoreRead, piece: Piece, limit: u64) -> Result<Self> {
        let store = read.open().map_err(Failure::from).map_err(|failure| match failure.kind {
            "StoreNotFoundError" => Failure {
                text: format!("{}; the store must be at the same path on every executor", failure.text),
                ..failure
            },
            _ => failure,
        })?;
        let request = Arc::new(read.request.clone());
        // lost parts are reported after the last batch, with all other damage
        let (held, lost) = present_part(&store, piece);
        let source = RowSource::new(Plan::sources(&store, &request)?, request.clone(), [held]);
        Ok(Self {
            batch: Batch::new(&request),
            source: source.with_block_len(BLOCK),
            read,
            piece,
            next_row: 0,
            rows_left: limit,
            rows: 0,
            lost,
            warning: None,
            bad_bodies: BadBodyLog::new(&request),
        })
    }

    fn begin_block(&mut self) {
        self.next_row = 0;
        // a scan of one topic would skip records that no consume queue lists
        if let Some(topic) = &self.read.only_topic {
            let is_of_topic =
                |row: &Row, bytes: &[u8]| row.message(bytes).is_some_and(|m| m.topic() == topic.as_bytes());
            self.source.retain(is_of_topic);
        }
    }

    fn end(&mut self) -> Result<Option<usize>> {
        self.rows_left = 0;
        let damage = self.source.take_damage();
        match damage_text(&self.read.place(), self.piece, &self.lost, &damage) {
            Some(words) if self.read.fail_on_damage => Err(Failure::corrupt(refusal_text(&words))),
            words => {
                self.warning = words;
                Ok(None)
            }
        }
    }
}

impl Task for StoreTask {
    fn advance(&mut self, _: Duration) -> Result<Option<usize>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        // decompressed bodies may need several batches for one block
        if self.next_row == self.source.rows().len() {
            let mut patience = PATIENCE;
            // a filter may match nothing for a long time, and only Java knows whether the task was killed
            let interrupt = &mut || {
                patience -= 1;
                if patience == 0 { Err(Error::Interrupted) } else { Ok(()) }
            };
            match self.source.advance(interrupt) {
                Ok(true) => self.begin_block(),
                Ok(false) => return self.end(),
                // an empty batch lets Java check its task and call again
                Err(Error::Interrupted) => {
                    // the rows of the previous block are gone
                    self.next_row = 0;
                    return Ok(Some(0));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let most = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        let rows = &self.source.rows()[self.next_row..];
        let chunk = Chunk { bytes: self.source.bytes(), rows: &rows[..rows.len().min(most)] };
        let mut damage = Vec::new();
        let filled = self.batch.fill(chunk, &mut damage);
        // noted with the damage of the scan, which `end` reports
        self.source.note(damage);
        self.next_row += filled;
        self.rows_left -= filled as u64;
        self.rows += filled as u64;
        self.bad_bodies.add(self.batch.take_bad_bodies())?;
        Ok(Some(filled))
    }

    fn addresses(&self) -> &[i64] {
        self.batch.addresses()
    }

    fn rows(&mut self, from: usize) -> Rows {
        self.batch.rows(from, &Memory::new([self.source.bytes()]))
    }

    fn take_warning(&mut self, is_over: bool) -> Option<String> {
        let bad_bodies = if is_over { self.bad_bodies.take_warning() } else { None };
        let warnings: Vec<_> = self.warning.take().into_iter().chain(bad_bodies).collect();
        if warnings.is_empty() { None } else { Some(warnings.join("\n")) }
    }

    fn bad_bodies(&self) -> u64 {
        self.bad_bodies.count()
    }

    fn position(&self, _: usize) -> Result<String> {
        Err(Failure::argument("Real-Time Mode: expected a topic of a live cluster, got a store directory"))
    }

    fn counts(&self) -> Counts {
        // the bytes of the whole piece, also if a limit ends it early
        Counts { rows: self.rows, bytes: self.piece.end - self.piece.from, ..Counts::default() }
    }
}
