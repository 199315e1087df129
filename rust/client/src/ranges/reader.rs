//! Pulls ranges of one broker's queues with many pulls in flight.
//!
//! Source: `DefaultLitePullConsumerImpl.PullTaskImpl`, `PullAPIWrapper.pullKernelImpl`.
use super::pool::{PoolKey, PullerPool};
use super::progress::{Progress, Trouble, Verdict};
use super::range::{QueueRange, RangeRequest};
use super::rows;
use super::warning::Warning;
use crate::cluster::{ClusterOptions, TopicCluster};
use crate::error::{Error, Result};
use crate::puller::{Assignment, Broker, Gather, Item, PulledAnswer, Puller, PullerOptions, Queue, Threshold};
use arrow_array::RecordBatch;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Volume of answers per batch. Brokers return 32 messages per pull by default; handing on so few costs more than
// pulling them.
const GATHER: Gather = Gather { bytes: 1 << 20, pause: Duration::from_millis(20) };
// Maximum answers per batch.
const MOST: usize = 1024;
// Maximum messages in flight or ready, in addition to the limit in bytes.
const MOST_MESSAGES: i64 = 1 << 18;
const AHEAD: Threshold = Threshold { messages: MOST_MESSAGES, bytes: 32 << 20 };
// Pause between two look-ups of the route while the broker does not answer, and between two pulls of a queue that ends
// early.
const PAUSE: Duration = Duration::from_secs(1);
const NEXT_STEP: &str = "on_damage=\"warn\" (failOnDataLoss=false) reads what is left";

/// Result of one call of [`RangeReader::advance`].
#[derive(Debug)]
pub enum Step {
    /// Answers with at least one message each. Their rows are the messages to return.
    Answers(Vec<PulledAnswer>),
    Waiting,
    /// All ranges are read.
    Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages returned to the caller.
    pub rows: u64,
    /// Bytes of records pulled.
    pub bytes: u64,
    pub pulls: u64,
    /// Time spent waiting for answers.
    pub waited: Duration,
}

/// Reads ranges of queues of one broker, at most one range per queue. Messages of a queue are in order; queues are
/// interleaved.
pub struct RangeReader {
    request: RangeRequest,
    puller: Puller,
    cluster: ClusterOptions,
    broker_name: Arc<str>,
    /// Address of the broker; `None` until it is looked up.
    address: Option<String>,
    is_open: bool,
    ranges: HashMap<Queue, RangeState>,
    is_endless: bool,
    pool: Option<(&'static PullerPool, PoolKey)>,
    reads_ahead: bool,
    /// Total time that `advance` waited for the broker. The time between two calls does not count against patience.
    waited: Duration,
    is_lost: bool,
    next_look: Duration,
    warnings: Vec<Warning>,
    counts: Counts,
}

struct RangeState {
    progress: Progress,
    /// Epoch of the current assignment. Answers of other epochs are ignored.
    epoch: u64,
    /// The value of `waited` at which to pull again after a pause.
    asked_again_at: Option<Duration>,
}

impl RangeReader {
    /// Creates a reader without a connection.
    ///
    /// # Arguments
    /// * `address` - address of the broker; `None` looks it up at a name server.
    ///
    /// # Errors
    /// [`Error::Argument`] for ranges of several brokers, or two ranges of a queue.
    pub fn new(
        request: RangeRequest,
        ranges: Vec<QueueRange>,
        address: Option<String>,
        cluster: ClusterOptions,
    ) -> Result<Self> {
        let broker_name = ranges.first().map_or_else(|| "".into(), |range| range.queue.broker_name.clone());
        if ranges.iter().any(|range| range.queue.broker_name != broker_name) {
            return Err(Error::Argument("ranges: expected queues of one broker".into()));
        }
        let count = ranges.len();
        let is_filtered = request.subscription.is_filtered();
        let pulled = |range: QueueRange| {
            let progress = Progress::new(range, is_filtered);
            (progress.range().queue.clone(), RangeState { progress, epoch: 0, asked_again_at: None })
        };
        let mut ranges: HashMap<Queue, RangeState> = ranges.into_iter().map(pulled).collect();
        if ranges.len() < count {
            return Err(Error::Argument("ranges: expected one of each queue at most".into()));
        }
        ranges.retain(|_, pulled| !pulled.progress.is_done());
        let is_endless = ranges.values().any(|pulled| pulled.progress.range().is_endless());
        let options = if is_endless { waiting(&request.puller) } else { gathering(&request.puller) };
        Ok(Self {
            puller: Puller::new(options, None),
            request,
            cluster,
            broker_name,
            address,
            is_open: false,
            is_endless,
            ranges,
            pool: None,
            reads_ahead: false,
            waited: Duration::ZERO,
            is_lost: false,
            next_look: Duration::ZERO,
            warnings: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Reads the next answers. Waits at most for `wait`, or longer if the broker's address must be looked up.
    ///
    /// # Errors
    /// [`Error::DataLoss`] and [`Error::Corrupt`] if the request is strict. [`Error::Client`] if the broker refuses, or
    /// makes no progress for longer than the request's patience.
    pub fn advance(&mut self, wait: Duration) -> Result<Step> {
        if self.ranges.is_empty() {
            // processing of the last batch needs no connection
            self.finish();
            return Ok(Step::Done);
        }
        if !self.is_open {
            let address = self.address.clone().map_or_else(|| self.locate(), Ok)?;
            self.open(address)?;
        }
        let began = Instant::now();
        let items = self.puller.take(began + wait, MOST)?;
        self.waited += began.elapsed();
        let mut fetched = Vec::new();
        for item in items {
            match item {
                Item::Answer(answer) if self.has_rows(&answer)? => fetched.push(*answer),
                // events of the previous address may still arrive after a move
                Item::Connected(address) if self.is_read_at(&address) => self.is_lost = false,
                Item::Disconnected(address, reason) if self.is_read_at(&address) => self.on_disconnect(&reason),
                Item::Answer(_) | Item::Connected(_) | Item::Disconnected(..) | Item::FlowControl(_) => {}
            }
        }
        self.counts.pulls += fetched.len() as u64;
        self.counts.bytes += fetched.iter().map(|answer| answer.bytes() as u64).sum::<u64>();
        rows::choose(&self.request, &mut fetched, &mut self.warnings)?;
        self.counts.rows += fetched.iter().map(|answer| answer.rows.len() as u64).sum::<u64>();
        self.ask_again()?;
        self.look_after()?;
        Ok(if fetched.is_empty() { Step::Waiting } else { Step::Answers(fetched) })
    }

    /// Converts answers of [`advance`](Self::advance) to Arrow batches.
    ///
    /// # Errors
    /// Fails like [`unreadable`](Self::unreadable).
    pub fn batches(&mut self, answers: &[PulledAnswer]) -> Result<Vec<RecordBatch>> {
        rows::batches(&self.request, answers, &mut self.warnings)
    }

    /// Reports messages whose bodies do not decompress, by their physical offsets.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is any, and the request is strict.
    pub fn unreadable(&mut self, answers: &[PulledAnswer], offsets: &[i64]) -> Result<()> {
        rows::unreadable(&self.request, answers, offsets, &mut self.warnings)
    }

    /// Returns the warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns the next offset of each queue whose range is not read to its end.
    pub fn next_offsets(&self) -> impl Iterator<Item = (&Queue, i64)> {
        self.ranges.iter().map(|(queue, pulled)| (queue, pulled.progress.next()))
    }

    pub fn counts(&self) -> Counts {
        Counts { waited: self.waited, ..self.counts }
    }

    pub fn close(&self) {
        self.puller.close();
    }

    /// Makes the puller continue after the ends of the ranges. The next reader that gets the puller from the pool takes
    /// these messages.
    pub fn reading_ahead(mut self) -> Self {
        self.reads_ahead = true;
        // these thresholds limit the memory of a pooled puller
        self.puller = Puller::new(PullerOptions { in_all: AHEAD, ..self.puller.options().clone() }, None);
        self
    }

    /// Takes a puller with this key from `pool`, if there is one. The puller returns to the pool when all ranges are
    /// read, or in [`keep`](Self::keep).
    pub fn with_pool(mut self, pool: &'static PullerPool, key: PoolKey) -> Self {
        // pullers that read ahead have other thresholds, so they need another key
        let key = key.with(if self.reads_ahead { "ahead" } else { "" });
        let positions: Vec<_> = self.next_offsets().map(|(queue, next)| (queue.clone(), next)).collect();
        // messages read before a loss of the connection may differ from what the broker has now
        if let Some(puller) = pool.take(&key, &positions).filter(|puller| !puller.was_lost()) {
            puller.retain(|queue| self.ranges.contains_key(queue));
            self.puller = puller;
        }
        self.pool = Some((pool, key));
        self
    }

    /// Ends the read early and returns the puller to the pool.
    pub fn keep(&mut self) {
        self.ranges.clear();
        self.finish();
    }

    fn finish(&mut self) {
        let Some((pool, key)) = self.pool.take().filter(|_| self.is_open && !self.is_lost) else {
            return self.puller.close();
        };
        if !self.reads_ahead {
            self.puller.retain(|_| false);
        }
        // a puller whose thread ended is not reused. `take` also drops late answers; messages read ahead of ranges are
        // not ready yet
        if self.is_endless || self.puller.take(Instant::now(), usize::MAX).is_ok() {
            let none = Puller::new(PullerOptions::default(), None);
            pool.give_back(key, std::mem::replace(&mut self.puller, none));
        }
    }

    fn is_read_at(&self, address: &str) -> bool {
        self.address.as_deref() == Some(address)
    }

    fn has_rows(&mut self, answer: &PulledAnswer) -> Result<bool> {
        let Some(pulled) = self.ranges.get_mut(&*answer.queue).filter(|pulled| pulled.epoch == answer.epoch) else {
            return Ok(false);
        };
        let verdict = pulled.progress.take(answer, self.waited);
        let has_rows = verdict.has_rows;
        self.act(&answer.queue, verdict)?;
        Ok(has_rows)
    }

    fn act(&mut self, queue: &Queue, verdict: Verdict) -> Result<()> {
        let Some(pulled) = self.ranges.get_mut(queue) else { return Ok(()) };
        let range = pulled.progress.range();
        if let Some(refusal) = verdict.refusal {
            let text = format!("{range}: broker {} refuses: ", self.address.as_deref().unwrap_or_default());
            let next_step = "what the account, the group and the topic may is configured at the broker";
            return Err(Error::client(text, refusal, next_step));
        }
        if let Some(loss) = verdict.loss {
            let text = format!("{range}: messages are lost: {loss}");
            if self.request.is_strict {
                return Err(Error::DataLoss { text, next_step: NEXT_STEP });
            }
            self.warnings.push(Warning::Loss(text));
        }
        if pulled.progress.is_done() {
            let end = pulled.progress.next();
            self.ranges.remove(queue);
            // a range that was given up would be pulled for ever, and no later reader continues there
            if self.puller.position(queue) != Some(end) {
                self.puller.remove(queue);
            }
        } else if verdict.is_late {
            // several pulls in flight get this answer; only the first sets the time, so that the pause does not grow
            pulled.asked_again_at.get_or_insert(self.waited + PAUSE);
        } else if verdict.seek.is_some() {
            self.assign(queue)?;
        }
        Ok(())
    }

    fn ask_again(&mut self) -> Result<()> {
        let now = self.waited;
        let is_due = |pulled: &RangeState| pulled.asked_again_at.is_some_and(|at| at <= now);
        let due: Vec<Queue> = self.ranges.iter().filter(|(_, p)| is_due(p)).map(|(queue, _)| queue.clone()).collect();
        due.iter().try_for_each(|queue| self.assign(queue))
    }

    /// Looks up the broker's address again after a lost connection, and ends ranges that made no progress for too long.
    fn look_after(&mut self) -> Result<()> {
        if self.is_lost && self.waited >= self.next_look {
            self.next_look = self.waited + PAUSE;
            self.move_on()?;
        }
        let (now, patience) = (self.waited, self.request.patience);
        let stalled = |pulled: &RangeState| pulled.progress.stall_time(now) > patience;
        let queues: Vec<Queue> =
            self.ranges.iter().filter(|(_, p)| stalled(p)).map(|(queue, _)| queue.clone()).collect();
        for queue in queues {
            let Some(RangeState { progress, .. }) = self.ranges.get_mut(&queue) else { continue };
            // a broker that is down may come back with all messages, so this is an error to retry, not a loss
            if !progress.ends_early() {
                let trouble = progress.trouble().map_or_else(|| "no answer".to_owned(), Trouble::to_string);
                let (range, next, patience) = (progress.range(), progress.next(), patience.as_secs_f64());
                let address = self.address.as_deref().unwrap_or_default();
                let text = format!("{range}: nothing came for {patience} s from broker {address} at offset {next}: ");
                let next_step = "see that the broker runs, and that this machine reaches that address";
                return Err(Error::client(text, trouble, next_step));
            }
            let verdict = progress.give_up();
            self.act(&queue, verdict)?;
        }
        Ok(())
    }

    fn warn(&mut self, trouble: String) {
        self.warnings.push(Warning::Trouble(trouble));
    }

    fn on_disconnect(&mut self, reason: &str) {
        self.is_lost = true;
        let address = self.address.as_deref().unwrap_or_default();
        self.warn(format!("broker {} at {address} is lost, and tried again: {reason}", self.broker_name));
        self.ranges.values_mut().for_each(|pulled| pulled.progress.on_disconnect(reason));
    }

    /// Continues at another address if the route now has one: the address of a slave, or of a master that moved.
    ///
    /// Source: `MQClientInstance.findBrokerAddressInSubscribe`.
    fn move_on(&mut self) -> Result<()> {
        match self.locate() {
            Ok(address) if self.is_read_at(&address) => {}
            Ok(address) => {
                self.warn(format!("broker {} is read at {address} from now on", self.broker_name));
                self.open(address)?;
            }
            Err(Error::Remoting(interrupted @ rmqfast_remoting::Error::Interrupted)) => return Err(interrupted.into()),
            Err(error) => {
                self.warn(format!("where broker {} is now cannot be told: {error}", self.broker_name));
            }
        }
        Ok(())
    }

    fn locate(&mut self) -> Result<String> {
        // a temporary connection, as name servers are only asked at the start and after failures
        let cluster = TopicCluster::new(self.cluster.clone())?;
        // any topic will do: a broker has one address for all topics
        let topic = self.ranges.keys().next().map_or("", |queue| &queue.topic);
        let address = cluster.locate(topic, &self.broker_name);
        self.warnings.extend(cluster.take_warnings().into_iter().map(Warning::Trouble));
        address
    }

    fn open(&mut self, address: String) -> Result<()> {
        (self.address, self.is_open, self.is_lost) = (Some(address), true, false);
        let queues: Vec<Queue> = self.ranges.keys().cloned().collect();
        queues.iter().try_for_each(|queue| self.assign(queue))
    }

    fn assign(&mut self, queue: &Queue) -> Result<()> {
        let (Some(pulled), Some(address)) = (self.ranges.get_mut(queue), &self.address) else { return Ok(()) };
        let assignment = Assignment {
            start: pulled.progress.next(),
            end: Some(pulled.progress.range()).filter(|range| !range.is_endless()).map(|range| range.end),
            subscription: self.request.subscription.clone(),
            reads_ahead: self.reads_ahead,
            without_properties: !self.request.needs_properties(),
            ..Assignment::default()
        };
        let broker = Broker { address: address.clone(), is_slave: false };
        // later assignments must not resume: they follow a loss or a seek
        let is_first = pulled.epoch == 0;
        let resumed = if is_first { self.puller.resume(broker.clone(), queue, &assignment)? } else { None };
        pulled.epoch = match resumed {
            Some(epoch) => epoch,
            None => self.puller.assign(broker, queue.clone(), assignment)?,
        };
        pulled.asked_again_at = None;
        Ok(())
    }
}

/// Returns puller options for ranges whose messages exist already: large answers, and no long polling.
fn gathering(options: &PullerOptions) -> PullerOptions {
    PullerOptions {
        // a broker checks only every five seconds whether a held pull is due
        suspend: Duration::ZERO,
        gather: GATHER,
        // several requests per write, so that the broker reads several at once
        burst: (options.depth / 2).max(1),
        // in effect only bytes limit
        of_queue: Threshold { messages: MOST_MESSAGES, ..options.of_queue },
        in_all: Threshold { messages: MOST_MESSAGES, ..options.in_all },
        ..options.clone()
    }
}

/// Returns puller options for ranges without an end: long polling, and each message is returned when it arrives.
fn waiting(options: &PullerOptions) -> PullerOptions {
    let usual = PullerOptions::default();
    // the broker's hold comes on top of the usual time for an answer
    PullerOptions { suspend: usual.suspend, timeout: usual.suspend + options.timeout, ..options.clone() }
}

impl fmt::Debug for RangeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeReader").field("broker_name", &self.broker_name).finish_non_exhaustive()
    }
}
