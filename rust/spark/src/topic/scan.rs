//! Reads planned pieces of topics as one stream of batches.
use crate::error::{Error, Result};
use crate::origin::piece::TopicPiece;
use crate::origin::reader::PieceReader;
use arrow_array::RecordBatch;
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::ranges::{RangeRequest, Step, Warning};
use rmqfast_store::scan::workers::{Outlet, Workers};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval of looks whether the scan was dropped.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of warnings that are kept; further ones are counted.
const MOST_WARNINGS: usize = 1000;

/// Messages of topics, read by one thread or more. Each thread pulls the queues of one piece at once.
pub struct TopicScan {
    reading: Reading,
    warnings: Arc<Mutex<Warnings>>,
}

enum Reading {
    /// Threads start at the first batch, so that a scan that nobody reads asks no broker.
    Planned(RangeRequest, Vec<TopicPiece>, ClusterOptions, usize),
    Threads(Workers<RecordBatch, Error>),
}

/// The warnings of a scan so far.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    pub entries: Vec<Warning>,
    /// Number of further losses, which are not kept.
    pub more_losses: u64,
}

impl Warnings {
    fn add(&mut self, warning: Warning) {
        if self.entries.len() < MOST_WARNINGS {
            self.entries.push(warning);
        } else if matches!(warning, Warning::Loss(_)) {
            self.more_losses += 1;
        }
    }
}

impl TopicScan {
    pub fn new(request: RangeRequest, pieces: Vec<TopicPiece>, cluster: ClusterOptions, threads: usize) -> Self {
        let pieces = TopicPiece::join(pieces, threads);
        Self { reading: Reading::Planned(request, pieces, cluster, threads), warnings: Arc::default() }
    }

    /// Returns the next batch, or `None` at the end. `interrupt` is called now and then; its error ends the wait.
    ///
    /// # Errors
    /// See [`PieceReader::advance`].
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        if let Reading::Planned(request, pieces, cluster, threads) = &mut self.reading {
            let (request, cluster, warnings) = (request.clone(), cluster.clone(), self.warnings.clone());
            let read = move |piece, outlet: &Outlet<_, _>| read_piece(&request, piece, &cluster, &warnings, outlet);
            // a request may be signed by Python, whose lock the thread that drops the scan may hold
            let workers = Workers::start(std::mem::take(pieces), *threads, read).without_joining();
            self.reading = Reading::Threads(workers);
        }
        match &mut self.reading {
            Reading::Threads(workers) => workers.next(interrupt),
            Reading::Planned(..) => Ok(None),
        }
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> Warnings {
        lock(&self.warnings).clone()
    }
}

fn lock(warnings: &Mutex<Warnings>) -> MutexGuard<'_, Warnings> {
    warnings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_piece(
    request: &RangeRequest,
    piece: TopicPiece,
    cluster: &ClusterOptions,
    warnings: &Mutex<Warnings>,
    outlet: &Outlet<RecordBatch, Error>,
) -> Result<()> {
    let is_stopped = outlet.stop_flag();
    // a look-up of a broker ends with the scan; Ctrl-C is noticed by the thread that takes the batches
    let interrupt =
        Arc::new(
            move || {
                if is_stopped.load(Ordering::Relaxed) { Err(rmqfast_remoting::Error::Interrupted) } else { Ok(()) }
            },
        );
    let mut reader = PieceReader::open(request.clone(), piece, ClusterOptions { interrupt, ..cluster.clone() })?;
    let read = read_to_end(&mut reader, warnings, outlet);
    // before an error, which they may explain
    reader.take_warnings().into_iter().for_each(|warning| lock(warnings).add(warning));
    reader.close();
    read
}

fn read_to_end(
    reader: &mut PieceReader,
    warnings: &Mutex<Warnings>,
    outlet: &Outlet<RecordBatch, Error>,
) -> Result<()> {
    while !outlet.is_stopped() {
        match reader.advance(LOOK)? {
            Step::Answers(answers) => {
                for batch in reader.batches(&answers)? {
                    // nobody takes the rows any more
                    if !outlet.send(batch) {
                        return Ok(());
                    }
                }
            }
            Step::Waiting => {}
            Step::Done => return Ok(()),
        }
        reader.take_warnings().into_iter().for_each(|warning| lock(warnings).add(warning));
    }
    Ok(())
}
