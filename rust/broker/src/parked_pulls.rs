//! Pulls that cannot be answered yet. A pull at the end of its queue waits for a message. A pull that arrived before
//! the heartbeat that registers its subscription waits for the heartbeat.
//!
//! There is no polling. The thread that stores a message or handles a heartbeat also answers the pulls that waited
//! for it.
//!
//! Source: `PullRequestHoldService`, `ManyPullRequest`, `RebalancePushImpl.messageQueueChanged`.
use crate::tables::Subscription;
use rmqfast_remoting::{Answer, Command, Connection, OwnedCommand};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stage of a pull. Each stage is later than the one before, so that a pull waits at most once for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The pull was just received. It may wait for a heartbeat, then for a message.
    First,
    /// The pull has waited for a heartbeat. It may still wait for a message.
    AfterHeartbeat,
    /// The pull has waited for a message. It is answered at once.
    Last,
}

#[derive(Debug)]
pub struct ParkedPull {
    pub answer: Answer,
    /// The request, without body and remark. They may be large and are not needed for the answer.
    pub request: OwnedCommand,
    /// Time at which the pull is answered in any case.
    pub until: Instant,
}

impl ParkedPull {
    /// Creates a pull that waits for at most `wait` from now on.
    pub fn new(connection: &Arc<Connection>, request: &Command<'_>, wait: Duration) -> Self {
        let command = Command { body: b"", remark: None, ..request.clone() };
        let until = Instant::now() + wait;
        Self { answer: Answer::to(connection, request), request: OwnedCommand::from(&command), until }
    }

    fn is_over(&self, now: Instant) -> bool {
        // a closed connection counts as over, as nobody would read the answer
        self.until <= now || !self.answer.connection.is_open()
    }
}

/// A pull that waits for a message of its queue at `offset` or later.
#[derive(Debug)]
struct AtQueueEnd {
    pull: ParkedPull,
    offset: i64,
    subscription: Arc<Subscription>,
}

/// A pull that waits until its group has registered this version of its subscription, or a later version.
#[derive(Debug)]
struct Early {
    pull: ParkedPull,
    topic: Box<str>,
    version: i64,
}

type Queues = HashMap<i32, Vec<AtQueueEnd>>;

/// Parked pulls: by topic and queue if they wait for a message, by group if they wait for a heartbeat.
#[derive(Debug, Default)]
pub struct ParkedPulls {
    at_queue_end: Mutex<HashMap<Box<str>, Queues>>,
    early: Mutex<HashMap<Box<str>, Vec<Early>>>,
    /// Number of pulls that wait for a message. Atomic, because each append reads the number.
    count: AtomicUsize,
}

/// The parts of a new message that filters need.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Tag hash in the message's consume-queue entry.
    pub tags_code: i64,
    pub properties: &'a [u8],
}

impl ParkedPulls {
    /// Returns the number of pulls that wait for a message.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Parks a pull until a message arrives. Afterwards the caller must check the queue again, because a message may
    /// have arrived before the pull was parked.
    pub fn park_at_queue_end(
        &self,
        (topic, queue_id): (&str, i32),
        (offset, subscription): (i64, Arc<Subscription>),
        pull: ParkedPull,
    ) {
        // counted first: an append publishes its message and then reads the count, so at least one side sees the other
        self.count.fetch_add(1, Ordering::SeqCst);
        let parked = AtQueueEnd { pull, offset, subscription };
        let mut topics = lock(&self.at_queue_end);
        // avoids a copy of the name if the topic already has pulls
        if let Some(queues) = topics.get_mut(topic) {
            queues.entry(queue_id).or_default().push(parked);
        } else {
            topics.insert(topic.into(), HashMap::from([(queue_id, vec![parked])]));
        }
    }

    /// Removes and returns the pulls of a queue that wait for an offset below `max` and match `message`. Without a
    /// message, removes all pulls of the queue that wait for an offset below `max`.
    pub fn take_arrived(
        &self,
        (topic, queue_id): (&str, i32),
        max: i64,
        message: Option<Message<'_>>,
    ) -> Vec<ParkedPull> {
        let is_wanted = |parked: &mut AtQueueEnd| {
            let matches =
                |message: Message<'_>| parked.subscription.matches_arrival(message.tags_code, message.properties);
            max > parked.offset && message.is_none_or(matches)
        };
        let mut topics = lock(&self.at_queue_end);
        let Some(parked) = topics.get_mut(topic).and_then(|queues| queues.get_mut(&queue_id)) else {
            return Vec::new();
        };
        // an empty list stays, as the next pull of the queue comes soon; `take_overdue` removes it otherwise
        let pulls = parked.extract_if(.., is_wanted).map(|parked| parked.pull).collect();
        drop(topics);
        self.subtract(pulls)
    }

    /// Removes and returns pulls that waited long enough, whose client has disconnected, or whose queue got messages
    /// without a notification.
    pub fn take_overdue(&self, max_offset: impl Fn(&str, i32) -> i64) -> Vec<ParkedPull> {
        let now = Instant::now();
        let mut pulls = Vec::new();
        let mut topics = lock(&self.at_queue_end);
        for (topic, queues) in topics.iter_mut() {
            for (queue_id, parked) in queues.iter_mut() {
                let max = max_offset(topic, *queue_id);
                // the filter is not evaluated here, since the answer looks at the messages itself
                let overdue = parked.extract_if(.., |parked| max > parked.offset || parked.pull.is_over(now));
                pulls.extend(overdue.map(|parked| parked.pull));
            }
            queues.retain(|_, parked| !parked.is_empty());
        }
        topics.retain(|_, queues| !queues.is_empty());
        drop(topics);
        self.subtract(pulls)
    }

    /// Parks a pull until its group registers `version` of its subscription to the topic. Afterwards the caller must
    /// check the tables again, because the heartbeat may have arrived before the pull was parked.
    pub fn park_early(&self, group: &str, (topic, version): (&str, i64), pull: ParkedPull) {
        lock(&self.early).entry(group.into()).or_default().push(Early { pull, topic: topic.into(), version });
    }

    /// Removes and returns the pulls of a group that waited for a heartbeat, if `is_early` now returns false for them
    /// or they waited long enough.
    pub fn take_early(&self, group: &str, is_early: impl Fn(&str, i64) -> bool) -> Vec<ParkedPull> {
        let now = Instant::now();
        let mut groups = lock(&self.early);
        let Some(parked) = groups.get_mut(group) else { return Vec::new() };
        let ready = |early: &mut Early| early.pull.is_over(now) || !is_early(&early.topic, early.version);
        let pulls = parked.extract_if(.., ready).map(|early| early.pull).collect();
        if parked.is_empty() {
            groups.remove(group);
        }
        pulls
    }

    fn subtract(&self, pulls: Vec<ParkedPull>) -> Vec<ParkedPull> {
        self.count.fetch_sub(pulls.len(), Ordering::SeqCst);
        pulls
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

const MAX_BYTES: usize = 64 << 20;
/// Bytes that are added to the fields of a request to estimate its memory.
const OF_REQUEST: usize = 1 << 10;

/// Pulls with expensive filters. A separate thread answers them one by one, so that they do not block sockets.
#[derive(Debug, Default)]
pub struct HeavyPulls {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    pulls: VecDeque<(ParkedPull, Look)>,
    bytes: usize,
    is_closed: bool,
}

impl HeavyPulls {
    /// Queues a pull. Returns false if too many pulls are queued, or after [`close`](Self::close).
    pub fn push(&self, pull: ParkedPull, look: Look) -> bool {
        let mut waiting = self.lock();
        let bytes = bytes_of(&pull);
        if waiting.is_closed || waiting.bytes + bytes > MAX_BYTES {
            return false;
        }
        waiting.bytes += bytes;
        waiting.pulls.push_back((pull, look));
        self.changed.notify_one();
        true
    }

    /// Answers queued pulls until [`close`](Self::close). Called by the separate thread.
    pub fn run(&self, answer: impl Fn(&ParkedPull, Look)) {
        while let Some((pull, look)) = self.next() {
            answer(&pull, look);
        }
    }

    /// Makes [`run`](Self::run) return after the current pull. Queued pulls are dropped.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.pulls.clear();
        self.changed.notify_all();
    }

    fn next(&self) -> Option<(ParkedPull, Look)> {
        let mut waiting = self.lock();
        while waiting.pulls.is_empty() && !waiting.is_closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (pull, look) = waiting.pulls.pop_front()?;
        waiting.bytes -= bytes_of(&pull);
        Some((pull, look))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(pull: &ParkedPull) -> usize {
    let fields = &pull.request.borrow().fields;
    OF_REQUEST + fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}
