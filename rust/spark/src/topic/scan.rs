//! Reads planned pieces of topics as one stream of batches.
use crate::error::{Error, Result};
use crate::origin::piece::TopicPiece;
use crate::origin::reader::PieceReader;
use arrow_array::RecordBatch;
use rmqfast_client::cluster::{Bounds, ClusterOptions, TopicCluster};
use rmqfast_client::puller::{Queue, Threshold};
use rmqfast_client::ranges::{QueueRange, RangeRequest, Step, Warning};
use rmqfast_store::scan::CLOCK_SLACK_MS;
use rmqfast_store::scan::decode::BadBodies;
use rmqfast_store::scan::workers::{Outlet, Workers};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval of looks whether the scan was dropped.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of warnings of a kind that are kept; further ones are counted.
const MOST_WARNINGS: usize = 1000;
/// Maximum bytes of messages that a thread has pulled before someone takes them.
const AHEAD: i64 = 32 << 20;

/// Messages of topics, read by one thread or more. Each thread pulls the queues of one piece at once.
pub struct TopicScan {
    reading: Reading,
    warnings: Arc<Mutex<Warnings>>,
    fails_on_bad_bodies: bool,
}

enum Reading {
    /// Threads start at the first batch, so that a scan that nobody reads asks no broker.
    Planned(Box<TopicRequest>, Vec<TopicPiece>, usize),
    Threads(Workers<RecordBatch, Error>),
}

/// Messages to read, and the cluster to ask for them.
#[derive(Clone, Debug)]
pub struct TopicRequest {
    pub request: RangeRequest,
    pub cluster: ClusterOptions,
    /// Whether the request has times that the pieces do not have.
    pub searches_times: bool,
}

/// The warnings of a scan so far.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    pub losses: Texts,
    pub troubles: Texts,
    /// Bodies that could not be decoded.
    pub bad_bodies: BadBodies,
}

impl Warnings {
    fn add(&mut self, warning: Warning) {
        match warning {
            Warning::Loss(text) => self.losses.add(text),
            Warning::Trouble(text) => self.troubles.add(text),
            Warning::BadBodies(bodies) => self.bad_bodies.append(bodies),
        }
    }
}

/// The first warnings of a kind.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    pub first: Vec<String>,
    /// Number of further warnings.
    pub more: u64,
}

impl Texts {
    fn add(&mut self, text: String) {
        if self.first.len() < MOST_WARNINGS {
            self.first.push(text);
        } else {
            self.more += 1;
        }
    }
}

impl TopicScan {
    pub fn new(mut request: TopicRequest, pieces: Vec<TopicPiece>, threads: usize) -> Self {
        let puller = &mut request.request.puller;
        puller.in_all = Threshold { bytes: AHEAD, ..puller.in_all };
        let pieces = TopicPiece::join(pieces, threads);
        let fails_on_bad_bodies = request.request.scan.decode.as_ref().is_some_and(|decode| decode.fails);
        let reading = Reading::Planned(Box::new(request), pieces, threads);
        Self { reading, warnings: Arc::default(), fails_on_bad_bodies }
    }

    /// Returns the next batch, or `None` at the end. `interrupt` is called now and then; its error ends the wait.
    ///
    /// # Errors
    /// See [`PieceReader::advance`].
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        if let Reading::Planned(request, pieces, threads) = &mut self.reading {
            let (request, warnings) = (request.clone(), self.warnings.clone());
            let read = move |piece, outlet: &Outlet<_, _>| request.read(piece, &warnings, outlet);
            // a request may be signed by Python, whose lock the thread that drops the scan may hold
            let workers = Workers::start(std::mem::take(pieces), *threads, read).without_joining();
            self.reading = Reading::Threads(workers);
        }
        match &mut self.reading {
            Reading::Threads(workers) => workers.next(interrupt),
            Reading::Planned(..) => Ok(None),
        }
    }

    pub fn fails_on_bad_bodies(&self) -> bool {
        self.fails_on_bad_bodies
    }

    /// Returns whether messages were lost so far, or there was trouble on the way.
    pub fn has_warnings(&self) -> bool {
        let warnings = lock(&self.warnings);
        !warnings.losses.first.is_empty() || !warnings.troubles.first.is_empty()
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> Warnings {
        lock(&self.warnings).clone()
    }
}

fn lock(warnings: &Mutex<Warnings>) -> MutexGuard<'_, Warnings> {
    warnings.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TopicRequest {
    fn read(&self, piece: TopicPiece, warnings: &Mutex<Warnings>, outlet: &Outlet<RecordBatch, Error>) -> Result<()> {
        let is_stopped = outlet.stop_flag();
        // a look-up of a broker ends with the scan; Ctrl-C is noticed by the thread that takes the batches
        let interrupt = Arc::new(move || {
            if is_stopped.load(Ordering::Relaxed) { Err(rmqfast_remoting::Error::Interrupted) } else { Ok(()) }
        });
        let cluster = ClusterOptions { interrupt, ..self.cluster.clone() };
        let piece = if self.searches_times { self.narrow_to_times(piece, &cluster)? } else { piece };
        let mut reader = PieceReader::open(self.request.clone(), piece, cluster)?;
        let read = read_to_end(&mut reader, warnings, outlet);
        // before an error, which they may explain
        reader.take_warnings().into_iter().for_each(|warning| lock(warnings).add(warning));
        reader.close();
        read
    }

    /// Leaves out offsets before and behind the request's times. A log or a copy is read as it was planned.
    fn narrow_to_times(&self, piece: TopicPiece, cluster: &ClusterOptions) -> Result<TopicPiece> {
        if piece.log.is_some() || piece.copy.is_some() {
            return Ok(piece);
        }
        let cluster = TopicCluster::new(cluster.clone())?;
        let planned: Vec<(Queue, Bounds)> =
            piece.ranges.iter().map(|range| (range.queue.clone(), (range.start, range.end))).collect();
        let search = |when: Option<i64>| {
            when.map(|when| cluster.offsets_at(when, &planned, &self.request.puller.consumer_group)).transpose()
        };
        // as in a scan of a store, where a clock may have been set back
        let starts = search(self.request.scan.start_time.map(|time| time.saturating_sub(CLOCK_SLACK_MS)))?;
        let ends = search(self.request.scan.end_time.map(|time| time.saturating_add(CLOCK_SLACK_MS)))?;
        // asked after the search: a queue that has lost messages by now is read as planned, so that the loss is found
        let queues: Vec<Queue> = planned.iter().map(|(queue, _)| queue.clone()).collect();
        let present = cluster.bounds(&queues, false)?;
        let narrowed =
            planned.iter().zip(&present).enumerate().filter_map(|(number, (of_plan, (_, (first, last))))| {
                let (queue, (start, end)) = of_plan;
                let (mut from, mut to) = (*start, *end);
                if first <= start && end <= last {
                    from = starts.as_ref().map_or(from, |starts| from.max(starts[number]));
                    to = ends.as_ref().map_or(to, |ends| to.min(ends[number]));
                }
                (from < to).then(|| QueueRange { queue: queue.clone(), start: from, end: to })
            });
        Ok(TopicPiece { ranges: narrowed.collect(), ..piece })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_listed_behind_many_troubles_and_all_are_counted() {
        let mut warnings = Warnings::default();
        for number in 0..MOST_WARNINGS + 2 {
            warnings.add(Warning::Trouble(format!("trouble {number}")));
        }
        warnings.add(Warning::Loss("loss".to_owned()));
        assert_eq!((warnings.troubles.first.len(), warnings.troubles.more), (MOST_WARNINGS, 2));
        assert_eq!((warnings.losses.first, warnings.losses.more), (vec!["loss".to_owned()], 0));
    }
}
