//! A scan in one thread, in the order of the log, or in several threads.
use super::batch::BatchBuilder;
use super::decode::bad_bodies::BadBodies;
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
    bad_bodies: BadBodies,
    fails_on_bad_bodies: bool,
}

impl Scanner {
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let builder = BatchBuilder::new(&request);
        let fails_on_bad_bodies = fails_on_bad_bodies(&request);
        let (next_row, bad_bodies) = (0, BadBodies::default());
        let source = RowSource::new(sources, request, pieces).with_leases();
        Self { source, next_row, builder, bad_bodies, fails_on_bad_bodies }
    }

    /// Returns the next batch, or `None` at the end. `interrupt` is called between blocks; its error stops the scan.
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        // A scan that has failed fails again.
        self.check_bodies()?;
        self.source.check_block()?;
        let batch = self.read_batch(interrupt);
        // Nobody waits for a scan whose batches are not taken.
        if self.next_row < self.source.rows().len() {
            self.source.keep();
        } else {
            self.source.release();
        }
        batch
    }

    fn read_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        loop {
            if self.next_row == self.source.rows().len() {
                self.next_row = 0;
                if !self.source.advance(interrupt)? {
                    return self.finish();
                }
            }
            self.next_row += self.builder.append(self.source.bytes(), &self.source.rows()[self.next_row..]);
            self.source.check_block()?;
            // Damaged bodies are found only when columns are built.
            self.source.note(self.builder.take_damage());
            if self.builder.is_full() {
                return self.finish();
            }
        }
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.builder.finish()?;
        self.bad_bodies.append(self.builder.take_bad_bodies());
        self.check_bodies()?;
        Ok(batch)
    }

    fn check_bodies(&self) -> Result<()> {
        self.bad_bodies.error().filter(|_| self.fails_on_bad_bodies).map_or(Ok(()), Err)
    }

    pub fn damage(&self) -> &DamageLog {
        self.source.damage()
    }

    pub fn bad_bodies(&self) -> &BadBodies {
        &self.bad_bodies
    }

    pub fn take_damage(&mut self) -> DamageLog {
        self.source.take_damage()
    }
}

/// A scan that is read batch by batch.
pub struct Scan {
    reading: Reading,
    /// Findings of threads in the pieces that they have read.
    shared: Arc<Mutex<Findings>>,
    fails_on_bad_bodies: bool,
}

enum Reading {
    Single(Box<Scanner>),
    /// Threads start at the first batch, so that a scan that nobody reads costs none.
    Planned(Sources, Arc<ScanRequest>, Vec<Piece>, usize),
    Threads(Workers<RecordBatch, Error>),
}

/// Damage and bad bodies that a scan has met so far.
#[derive(Default)]
struct Findings {
    damage: DamageLog,
    bad_bodies: BadBodies,
}

impl Scan {
    /// Scans in `threads` threads, or in the caller's thread if `threads` is 1 or there is one piece.
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: Vec<Piece>, threads: usize) -> Self {
        let fails_on_bad_bodies = fails_on_bad_bodies(&request);
        // A single piece needs no extra thread.
        let reading = if threads <= 1 || pieces.len() <= 1 {
            Reading::Single(Box::new(Scanner::new(sources, request, pieces)))
        } else {
            Reading::Planned(sources, request, pieces, threads)
        };
        Self { reading, shared: Arc::default(), fails_on_bad_bodies }
    }

    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        if let Reading::Planned(sources, request, pieces, threads) = &mut self.reading {
            let (sources, request, shared) = (sources.clone(), request.clone(), self.shared.clone());
            let read = move |piece, outlet: &Outlet<_, _>| read_piece(&sources, &request, piece, &shared, outlet);
            self.reading = Reading::Threads(Workers::start(std::mem::take(pieces), *threads, read));
        }
        match &mut self.reading {
            Reading::Single(scanner) => scanner.next_batch(interrupt),
            Reading::Threads(workers) => {
                // A scan that has failed fails again.
                let failure = lock(&self.shared).bad_bodies.error().filter(|_| self.fails_on_bad_bodies);
                failure.map_or_else(|| workers.next(interrupt), Err)
            }
            Reading::Planned(..) => Ok(None),
        }
    }

    pub fn damage_error(&self) -> Option<Error> {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().error(),
            Reading::Planned(..) | Reading::Threads(_) => lock(&self.shared).damage.error(),
        }
    }

    pub fn damage(&self) -> DamageLog {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().clone(),
            Reading::Planned(..) | Reading::Threads(_) => lock(&self.shared).damage.clone(),
        }
    }

    pub fn fails_on_bad_bodies(&self) -> bool {
        self.fails_on_bad_bodies
    }

    /// Returns the bodies found so far that could not be decoded.
    pub fn bad_bodies(&self) -> BadBodies {
        match &self.reading {
            Reading::Single(scanner) => scanner.bad_bodies().clone(),
            Reading::Planned(..) | Reading::Threads(_) => lock(&self.shared).bad_bodies.clone(),
        }
    }
}

fn fails_on_bad_bodies(request: &ScanRequest) -> bool {
    request.decode.as_ref().is_some_and(|decode| decode.fails)
}

fn lock(findings: &Mutex<Findings>) -> MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_piece(
    sources: &Sources,
    request: &Arc<ScanRequest>,
    piece: Piece,
    findings: &Mutex<Findings>,
    outlet: &Outlet<RecordBatch, Error>,
) -> Result<()> {
    let mut scanner = Scanner::new(sources.clone(), request.clone(), [piece]);
    let read = read_to_end(&mut scanner, outlet);
    // Once per piece, so that the lock is not taken for each batch. Bad bodies also before an error, which they may be
    // the cause of.
    lock(findings).bad_bodies.append(scanner.bad_bodies().clone());
    if read? {
        lock(findings).damage.append(scanner.take_damage());
    }
    Ok(())
}

/// Hands over the batches of a piece. Returns whether someone has taken all of them.
fn read_to_end(scanner: &mut Scanner, outlet: &Outlet<RecordBatch, Error>) -> Result<bool> {
    let mut check = || if outlet.is_stopped() { Err(Error::Interrupted) } else { Ok(()) };
    while let Some(batch) = scanner.next_batch(&mut check)? {
        // The caller has dropped the scan, so there is nobody to send to.
        if !outlet.send(batch) {
            return Ok(false);
        }
    }
    Ok(true)
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
