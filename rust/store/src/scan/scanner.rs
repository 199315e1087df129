//! A scan in one thread, in the order of the log, or in several threads.
use super::batch::BatchBuilder;
use super::piece::Piece;
use super::request::ScanRequest;
use super::row_source::{RowSource, Sources};
use super::workers::{Outlet, Workers};
use crate::store::commit_log::DamageLog;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Scanner {
    source: RowSource,
    next_row: usize,
    builder: BatchBuilder,
}

impl Scanner {
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let builder = BatchBuilder::new(&request);
        Self { source: RowSource::new(sources, request, pieces), next_row: 0, builder }
    }

    /// Returns the next batch, or `None` at the end. `interrupt` is called between blocks; its error stops the scan.
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        loop {
            if self.next_row == self.source.rows().len() {
                self.next_row = 0;
                if !self.source.advance(interrupt)? {
                    return self.builder.finish();
                }
            }
            self.next_row += self.builder.append(self.source.bytes(), &self.source.rows()[self.next_row..]);
            // Damaged bodies are found only when columns are built.
            self.source.note(self.builder.take_damage());
            if self.builder.is_full() {
                return self.builder.finish();
            }
        }
    }

    pub fn damage(&self) -> &DamageLog {
        self.source.damage()
    }

    pub fn take_damage(&mut self) -> DamageLog {
        self.source.take_damage()
    }
}

/// A running scan.
pub struct Scan {
    reading: Reading,
    /// Damage that threads have found in the pieces that they have read.
    shared_damage: Arc<Mutex<DamageLog>>,
}

enum Reading {
    Single(Box<Scanner>),
    /// Threads start at the first batch, so that a scan that nobody reads costs none.
    Planned(Sources, Arc<ScanRequest>, Vec<Piece>, usize),
    Threads(Workers<RecordBatch, Error>),
}

impl Scan {
    /// Scans in `threads` threads, or in the caller's thread if `threads` is 1 or there is one piece.
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: Vec<Piece>, threads: usize) -> Self {
        // A single piece needs no extra thread.
        let reading = if threads <= 1 || pieces.len() <= 1 {
            Reading::Single(Box::new(Scanner::new(sources, request, pieces)))
        } else {
            Reading::Planned(sources, request, pieces, threads)
        };
        Self { reading, shared_damage: Arc::default() }
    }

    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        if let Reading::Planned(sources, request, pieces, threads) = &mut self.reading {
            let (sources, request, damage) = (sources.clone(), request.clone(), self.shared_damage.clone());
            let read = move |piece, outlet: &Outlet<_, _>| read_piece(&sources, &request, piece, &damage, outlet);
            self.reading = Reading::Threads(Workers::start(std::mem::take(pieces), *threads, read));
        }
        match &mut self.reading {
            Reading::Single(scanner) => scanner.next_batch(interrupt),
            Reading::Threads(workers) => workers.next(interrupt),
            Reading::Planned(..) => Ok(None),
        }
    }

    pub fn damage_error(&self) -> Option<Error> {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().error(),
            Reading::Planned(..) | Reading::Threads(_) => lock(&self.shared_damage).error(),
        }
    }

    pub fn damage(&self) -> DamageLog {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().clone(),
            Reading::Planned(..) | Reading::Threads(_) => lock(&self.shared_damage).clone(),
        }
    }
}

fn lock(damage: &Mutex<DamageLog>) -> MutexGuard<'_, DamageLog> {
    damage.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_piece(
    sources: &Sources,
    request: &Arc<ScanRequest>,
    piece: Piece,
    damage: &Mutex<DamageLog>,
    outlet: &Outlet<RecordBatch, Error>,
) -> Result<()> {
    let mut scanner = Scanner::new(sources.clone(), request.clone(), [piece]);
    let mut check = || if outlet.is_stopped() { Err(Error::Interrupted) } else { Ok(()) };
    while let Some(batch) = scanner.next_batch(&mut check)? {
        // The caller has dropped the scan, so there is nobody to send to.
        if !outlet.send(batch) {
            return Ok(());
        }
    }
    // Once per piece, so that the lock is not taken for each batch.
    lock(damage).append(scanner.take_damage());
    Ok(())
}

/// A limit of rows, counted over the batches of a scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowLimit {
    /// Rows that are left; `None` without a limit.
    rows_left: Option<usize>,
}

impl RowLimit {
    pub fn new(limit: Option<usize>) -> Self {
        Self { rows_left: limit }
    }

    pub fn is_reached(&self) -> bool {
        self.rows_left == Some(0)
    }

    /// Counts the rows of the next batch. Returns those within the limit.
    pub fn take(&mut self, batch: RecordBatch) -> RecordBatch {
        let Some(rows_left) = &mut self.rows_left else { return batch };
        let rows = batch.num_rows().min(*rows_left);
        *rows_left -= rows;
        batch.slice(0, rows)
    }
}
