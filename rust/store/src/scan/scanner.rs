//! A scan in one thread, in the order of the log, or in several threads.
use super::batch::BatchBuilder;
use super::piece::Piece;
use super::request::ScanRequest;
use super::row_source::{RowSource, Sources};
use crate::store::commit_log::DamageLog;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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

/// Maximum number of finished batches, per thread, that the caller has not taken.
const WAITING: usize = 2;
/// Interval between calls of `interrupt` while no batch arrives.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// A running scan of at most as many rows as its limit.
pub struct Scan {
    reading: Reading,
    /// Rows that the limit leaves; `None` without a limit.
    rows_left: Option<usize>,
}

enum Reading {
    Single(Box<Scanner>),
    /// Threads start at the first batch, so that a scan that nobody reads costs none.
    Planned(Sources, Arc<ScanRequest>, Vec<Piece>, usize),
    Threads(Workers),
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
        Self { reading, rows_left: None }
    }

    /// Ends the scan behind `limit` rows. The last batch may be shorter than it was read.
    #[must_use]
    pub fn limited(mut self, limit: Option<usize>) -> Self {
        self.rows_left = limit;
        self
    }

    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        if self.rows_left == Some(0) {
            return Ok(None);
        }
        if let Reading::Planned(sources, request, pieces, threads) = &mut self.reading {
            self.reading = Reading::Threads(Workers::start(sources, request, std::mem::take(pieces), *threads));
        }
        let batch = match &mut self.reading {
            Reading::Single(scanner) => scanner.next_batch(interrupt),
            Reading::Threads(workers) => workers.next_batch(interrupt),
            Reading::Planned(..) => Ok(None),
        }?;
        let Some((rows_left, batch)) = self.rows_left.as_mut().zip(batch.as_ref()) else { return Ok(batch) };
        let rows = batch.num_rows().min(*rows_left);
        *rows_left -= rows;
        Ok(Some(batch.slice(0, rows)))
    }

    pub fn damage_error(&self) -> Option<Error> {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().error(),
            Reading::Threads(workers) => workers.shared.damage().error(),
            Reading::Planned(..) => None,
        }
    }

    pub fn damage(&self) -> DamageLog {
        match &self.reading {
            Reading::Single(scanner) => scanner.damage().clone(),
            Reading::Threads(workers) => workers.shared.damage().clone(),
            Reading::Planned(..) => DamageLog::default(),
        }
    }
}

/// A scan by several threads. Each thread takes the next piece of the log and sends its batches through a bounded channel, so
/// batches come in any order.
struct Workers {
    shared: Arc<Shared>,
    batches: Option<Receiver<Result<RecordBatch>>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    pieces: Mutex<std::vec::IntoIter<Piece>>,
    damage: Mutex<DamageLog>,
    stop: AtomicBool,
}

impl Shared {
    fn next_piece(&self) -> Option<Piece> {
        // A panic in another thread leaves the pieces intact, and `join` reports the panic.
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    fn damage(&self) -> std::sync::MutexGuard<'_, DamageLog> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl Workers {
    fn start(sources: &Sources, request: &Arc<ScanRequest>, pieces: Vec<Piece>, threads: usize) -> Self {
        let threads = threads.min(pieces.len());
        // The channel is bounded, so that threads wait for the caller and memory does not grow.
        let (sender, receiver) = sync_channel(threads * WAITING);
        let shared = Arc::new(Shared {
            pieces: Mutex::new(pieces.into_iter()),
            damage: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let spawn = |_| {
            let (sources, request, shared, sender) = (sources.clone(), request.clone(), shared.clone(), sender.clone());
            std::thread::spawn(move || work(&sources, &request, &shared, &sender))
        };
        let threads = (0..threads).map(spawn).collect();
        Self { shared, batches: Some(receiver), threads }
    }

    fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        let Some(batches) = &self.batches else { return Ok(None) };
        loop {
            interrupt()?; // Each time, so that Ctrl-C works even if a batch is always ready.
            match batches.recv_timeout(ASK_INTERVAL) {
                Ok(batch) => return batch.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.join()
    }

    /// Waits for the threads. If a thread has panicked, panics with the same message. Otherwise returns `None`, the end
    /// of the scan.
    fn join(&mut self) -> Result<Option<RecordBatch>> {
        self.batches = None;
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(None)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Running threads stop at their next block.
        self.shared.stop.store(true, Ordering::Relaxed);
        // Without a receiver a blocked send fails at once, so the threads end.
        self.batches = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(sources: &Sources, request: &Arc<ScanRequest>, shared: &Shared, sender: &SyncSender<Result<RecordBatch>>) {
    while let Some(piece) = shared.next_piece() {
        let mut scanner = Scanner::new(sources.clone(), request.clone(), [piece]);
        loop {
            match scanner.next_batch(&mut || shared.check()) {
                Ok(None) => break,
                Ok(Some(batch)) => {
                    // The caller has dropped the scan, so there is nobody to send to.
                    if sender.send(Ok(batch)).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
        // Once per piece, so that the lock is not taken for each batch.
        shared.damage().append(scanner.take_damage());
    }
}
