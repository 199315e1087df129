//! Pulls that cannot be answered yet. A pull at the end of its queue waits for a message. A pull that arrived before
//! the heartbeat that registers its subscription waits for the heartbeat.
//!
//! There is no polling: the thread that changes what a pull waits for removes the pull and answers it.
//!
//! Source: `PullRequestHoldService`, `ManyPullRequest`; `RebalancePushImpl.messageQueueChanged` for early pulls.
use crate::subscription::Subscription;
use rmqfast_remoting::{Answer, Command, Connection, OwnedCommand};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stage of a pull. Stages only advance, so that a pull waits at most once for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Just received: may wait for its heartbeat, then for a message.
    First,
    /// Waited for its heartbeat: may wait for a message.
    AfterHeartbeat,
    /// Waited for a message: is answered in any case.
    Last,
}

#[derive(Debug)]
pub struct ParkedPull {
    pub answer: Answer,
    /// The request without body and remark, which may be large and are not needed.
    pub request: OwnedCommand,
    /// Time at which it is answered in any case.
    pub until: Instant,
}

impl ParkedPull {
    /// Creates a pull that waits from now on for at most `wait`.
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

/// Waits for a message of its queue at `offset` or later.
#[derive(Debug)]
struct AtQueueEnd {
    pull: ParkedPull,
    offset: i64,
    subscription: Arc<Subscription>,
}

/// Waits until the group has registered this or a later version of its subscription.
#[derive(Debug)]
struct Early {
    pull: ParkedPull,
    topic: Box<str>,
    version: i64,
}

type Queues = HashMap<i32, Vec<AtQueueEnd>>;

/// Waiting pulls by topic and queue, and early pulls by group.
#[derive(Debug, Default)]
pub struct ParkedPulls {
    at_queue_end: Mutex<HashMap<Box<str>, Queues>>,
    early: Mutex<HashMap<Box<str>, Vec<Early>>>,
    /// Number of pulls at a queue's end. Atomic, as every append reads it.
    count: AtomicUsize,
}

/// Parts of an arrived message that filters read.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Tags code of its consume-queue unit.
    pub tags_code: i64,
    pub properties: &'a [u8],
}

impl ParkedPulls {
    /// Returns the number of pulls that wait for a message.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Parks a pull until a message arrives. The caller must then check the queue again, as a message may have arrived
    /// before the pull was visible.
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

    /// Removes and returns the pulls of a queue that match `message`, which is before `max`. Without a message, all
    /// pulls before `max`.
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

    /// Removes and returns the pulls that waited long enough, whose peer is gone, or whose queue grew without a
    /// notification.
    pub fn take_overdue(&self, max_offset: impl Fn(&str, i32) -> i64) -> Vec<ParkedPull> {
        let now = Instant::now();
        let mut pulls = Vec::new();
        let mut topics = lock(&self.at_queue_end);
        for (topic, queues) in topics.iter_mut() {
            for (queue_id, parked) in queues.iter_mut() {
                let max = max_offset(topic, *queue_id);
                let overdue = parked.extract_if(.., |parked| max > parked.offset || parked.pull.is_over(now));
                pulls.extend(overdue.map(|parked| parked.pull));
            }
            queues.retain(|_, parked| !parked.is_empty());
        }
        topics.retain(|_, queues| !queues.is_empty());
        drop(topics);
        self.subtract(pulls)
    }

    /// Parks a pull until its group registers `version` of its subscription to the topic. The caller must then check
    /// the tables again, as the heartbeat may have arrived meanwhile.
    pub fn park_early(&self, group: &str, (topic, version): (&str, i64), pull: ParkedPull) {
        lock(&self.early).entry(group.into()).or_default().push(Early { pull, topic: topic.into(), version });
    }

    /// Removes and returns the early pulls of a group for which `is_early` returns false, or that waited long enough.
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

    /// Subtracts pulls from the count after their removal.
    fn subtract(&self, pulls: Vec<ParkedPull>) -> Vec<ParkedPull> {
        self.count.fetch_sub(pulls.len(), Ordering::SeqCst);
        pulls
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
