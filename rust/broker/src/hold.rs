//! Pulls that found nothing wait here for a message.
//!
//! Source: `PullRequestHoldService`, `NotifyMessageArrivingListener`, `ManyPullRequest`.
use crate::ground::Ground;
use crate::pull::Pulling;
use crate::subscription::Subscription;
use rmqfast_remoting::{Answer, Command, OwnedCommand, SerializeType};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// More pulls than this are answered elsewhere, so that who sent the message need not wait for it.
const FEW: usize = 16;

/// A pull that waits.
#[derive(Debug)]
pub struct Held {
    /// Where its answer goes.
    pub answer: Answer,
    /// What it asks for.
    pub request: OwnedCommand,
    /// From where on.
    pub offset: i64,
    /// Until when.
    pub until: Instant,
    /// What it wants.
    pub subscription: Arc<Subscription>,
}

impl Held {
    /// What is needed of a request to answer it later, as JSON: neither its body nor its remark, which may be large.
    ///
    /// Source: `PullMessageProcessor.executeRequestWhenWakeup`.
    pub fn kept(request: &Command<'_>) -> OwnedCommand {
        let remark = None;
        OwnedCommand::from(&Command { body: b"", remark, serialize_type: SerializeType::Json, ..request.clone() })
    }
}

type Queues = HashMap<i32, Vec<Held>>;

/// All pulls that wait, by topic and queue.
#[derive(Debug, Default)]
pub struct Holds {
    held: Mutex<HashMap<Box<str>, Queues>>,
    count: AtomicUsize,
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// That of its unit.
    pub tags_code: i64,
    /// Its property string.
    pub properties: &'a [u8],
}

impl Holds {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Lets a pull wait, unless what it asks for came meanwhile.
    pub fn hold(&self, ground: &Arc<Ground>, (topic, queue_id): (&str, i32), held: Held) {
        let offset = held.offset;
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut table = self.lock();
        if let Some(queues) = table.get_mut(topic) {
            queues.entry(queue_id).or_default().push(held);
        } else {
            table.insert(topic.into(), HashMap::from([(queue_id, vec![held])]));
        }
        drop(table);
        // who appends looks for waiters after the queue has grown: one of both sees the other
        let max = ground.max_offset(topic, queue_id);
        if max > offset {
            self.wake(ground, (topic, queue_id), max, None);
        }
    }

    /// Answers the pulls of a queue that want a message before `max`; without one, all that are behind.
    pub fn wake(&self, ground: &Arc<Ground>, (topic, queue_id): (&str, i32), max: i64, message: Option<Message<'_>>) {
        let wants = |held: &Held| {
            let matches =
                |message: Message<'_>| held.subscription.matches_arrival(message.tags_code, message.properties);
            max > held.offset && message.is_none_or(matches)
        };
        let mut table = self.lock();
        let Some(waiting) = table.get_mut(topic).and_then(|queues| queues.get_mut(&queue_id)) else { return };
        let woken: Vec<Held> = waiting.extract_if(.., |held| wants(held)).collect();
        drop(table);
        self.answer(ground, woken);
    }

    /// Looks at all queues: whoever is behind or has waited long enough is answered.
    pub fn check(&self, ground: &Arc<Ground>) {
        let now = Instant::now();
        let mut woken = Vec::new();
        let mut table = self.lock();
        for (topic, queues) in table.iter_mut() {
            for (queue_id, waiting) in queues.iter_mut() {
                let max = ground.max_offset(topic, *queue_id);
                let is_over =
                    |held: &mut Held| max > held.offset || held.until <= now || !held.answer.connection.is_open();
                woken.extend(waiting.extract_if(.., is_over));
            }
            queues.retain(|_, waiting| !waiting.is_empty());
        }
        table.retain(|_, queues| !queues.is_empty());
        drop(table);
        self.answer(ground, woken);
    }

    fn answer(&self, ground: &Arc<Ground>, woken: Vec<Held>) {
        self.count.fetch_sub(woken.len(), Ordering::SeqCst);
        if woken.len() <= FEW {
            return woken.iter().for_each(|held| answer(ground, held));
        }
        let ground = ground.clone();
        // without a runtime there is no connection that could wait
        rmqfast_remoting::spawn_blocking(move || woken.iter().for_each(|held| answer(&ground, held)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Queues>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks again; now an answer is sent in any case.
fn answer(ground: &Arc<Ground>, held: &Held) {
    let connection = &held.answer.connection;
    if !connection.is_open() {
        return;
    }
    let request = held.request.borrow();
    Pulling { ground, connection, request: &request, is_first: false, looks: 0 }.answer_later();
}
