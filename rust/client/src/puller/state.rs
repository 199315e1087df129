//! All queues of a puller: what to ask for next, what came, what may be taken. Knows neither sockets nor the time.
use super::answer::Answer;
use super::fetched::{Fetched, Item, Queue};
use super::options::{Allowance, Assignment, PullerOptions};
use super::pull_queue::{Held, PullQueue, Times, Wanted};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The queues, the requests that are under way, and what is ready.
#[derive(Debug)]
pub struct State {
    options: Arc<PullerOptions>,
    /// By epoch, of which each assignment and each seek has its own.
    queues: BTreeMap<u64, PullQueue>,
    epochs: HashMap<Queue, u64>,
    /// By number, and so by age.
    under_way: BTreeMap<i32, UnderWay>,
    /// Of those, the ones that `depth` counts.
    bulk: usize,
    ready: VecDeque<Item>,
    held: Held,
    last_epoch: u64,
    last_opaque: i32,
    last_served: u64,
    /// Whether a queue waits until something is taken.
    pub is_full: bool,
    /// Whether nothing is under way, as nothing could be asked for.
    pub is_idle: bool,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    epoch: u64,
    wanted: Wanted,
    sent: Instant,
}

/// A pull to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its number.
    pub opaque: i32,
    /// The queue.
    pub queue: Arc<Queue>,
    /// Which offsets.
    pub wanted: Wanted,
    /// What the broker shall filter by: expression, type, version.
    pub subscription: (String, String, i64),
}

impl State {
    /// No queue yet.
    pub fn new(options: Arc<PullerOptions>) -> Self {
        Self {
            options,
            queues: BTreeMap::new(),
            epochs: HashMap::new(),
            under_way: BTreeMap::new(),
            bulk: 0,
            ready: VecDeque::new(),
            held: Held::default(),
            last_epoch: 0,
            last_opaque: 0,
            last_served: 0,
            is_full: false,
            is_idle: false,
        }
    }

    /// Pulls a queue, from its assignment's start on; what was there of it before is thrown away. Returns its epoch.
    pub fn assign(&mut self, queue: Queue, assignment: Assignment) -> u64 {
        self.remove(&queue);
        self.last_epoch += 1;
        let epoch = self.last_epoch;
        self.epochs.insert(queue.clone(), epoch);
        let mut pulled = PullQueue::new(queue.into(), assignment, epoch, self.options.batch);
        if let Some(end) = pulled.empty_end() {
            self.push(end);
        }
        self.queues.insert(epoch, pulled);
        epoch
    }

    /// Pulls a queue no more; what is there of it is thrown away.
    pub fn remove(&mut self, queue: &Queue) -> Option<PullQueue> {
        let epoch = self.epochs.remove(queue)?;
        let (gone, left): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.under_way).into_iter().partition(|(_, asked)| asked.epoch == epoch);
        self.under_way = left;
        self.bulk -= gone.values().filter(|asked| !asked.wanted.at_end).count();
        self.ready.retain(|item| !matches!(item, Item::Fetched(fetched) if fetched.epoch == epoch));
        let removed = self.queues.remove(&epoch)?;
        self.held.subtract(removed.held());
        Some(removed)
    }

    /// Goes on at another offset, with the same subscription. Returns the new epoch; `None` for a queue that is not pulled.
    pub fn seek(&mut self, queue: &Queue, offset: i64) -> Option<u64> {
        let before = self.queues.get(self.epochs.get(queue)?)?;
        let assignment = Assignment { start: offset, is_paused: before.is_paused, ..before.assignment.clone() };
        Some(self.assign(queue.clone(), assignment))
    }

    /// Asks no more for a queue, or again; what is there can still be taken. Returns false if it is not pulled.
    pub fn pause(&mut self, queue: &Queue, is_paused: bool) -> bool {
        let found = self.epochs.get(queue).and_then(|epoch| self.queues.get_mut(epoch));
        found.map(|queue| queue.is_paused = is_paused).is_some()
    }

    /// What is to be sent now.
    pub fn requests(&mut self, now: Instant) -> Vec<Request> {
        self.is_full = false;
        let is_time = self.bulk <= self.options.depth.saturating_sub(self.options.burst);
        let requests = if is_time { self.planned(now) } else { Vec::new() };
        self.is_idle = self.under_way.is_empty();
        requests
    }

    fn planned(&mut self, now: Instant) -> Vec<Request> {
        let mut expected = Held::default();
        self.queues.values().for_each(|queue| expected.add(queue.expected()));
        let after = self.queues.range(self.last_served + 1..).map(|(epoch, _)| *epoch);
        let order: Vec<u64> = after.chain(self.queues.range(..=self.last_served).map(|(epoch, _)| *epoch)).collect();
        let mut requests = Vec::new();
        loop {
            let before = requests.len();
            requests.extend(order.iter().filter_map(|epoch| self.request(*epoch, &mut expected, now)));
            if requests.len() == before {
                return requests;
            }
        }
    }

    fn request(&mut self, epoch: u64, expected: &mut Held, now: Instant) -> Option<Request> {
        let has_room = self.bulk < self.options.depth;
        let queue = self.queues.get_mut(&epoch)?;
        let (of_queue, in_all) = (self.options.of_queue, self.options.in_all);
        let before = queue.expected();
        let wanted = match queue.rest(now, has_room) {
            Some(wanted) => wanted,
            None if !queue.may_plan(now) || !(has_room || queue.plans_end()) => return None,
            None if passes(before, of_queue) || passes(*expected, in_all) => {
                self.is_full = true;
                return None;
            }
            None => queue.plan(now)?,
        };
        expected.add(queue.expected());
        expected.subtract(before);
        self.last_opaque = self.last_opaque.checked_add(1).unwrap_or(1);
        self.last_served = epoch;
        self.bulk += usize::from(!wanted.at_end);
        self.under_way.insert(self.last_opaque, UnderWay { epoch, wanted, sent: now });
        let of = &queue.assignment;
        let subscription = (of.expression.clone(), of.expression_type.clone(), of.sub_version);
        Some(Request { opaque: self.last_opaque, queue: queue.queue.clone(), wanted, subscription })
    }

    /// What the request was for; `None` where nobody waits for its answer any more.
    pub fn asked(&self, opaque: i32) -> Option<(Arc<Queue>, i64)> {
        let asked = self.under_way.get(&opaque)?;
        Some((self.queues.get(&asked.epoch)?.queue.clone(), asked.wanted.offset))
    }

    /// Takes the answer to a request.
    pub fn answer(&mut self, opaque: i32, answer: Answer, now: Instant) {
        let Some(asked) = self.under_way.remove(&opaque) else { return };
        self.bulk -= usize::from(!asked.wanted.at_end);
        let Some(queue) = self.queues.get_mut(&asked.epoch) else { return };
        let before = queue.held();
        let out = queue.take(asked.wanted, answer, &Times { sent: asked.sent, now, retry: self.options.retry });
        self.held.add(queue.held());
        self.held.subtract(before);
        out.into_iter().for_each(|fetched| self.push(fetched));
    }

    /// Gives up requests whose time is over. Returns when the last of them was sent.
    pub fn expire(&mut self, now: Instant) -> Option<Instant> {
        let mut last = None;
        while let Some((opaque, asked)) = self.under_way.first_key_value().map(|(opaque, asked)| (*opaque, *asked))
            && asked.sent + self.options.timeout <= now
        {
            last = Some(asked.sent);
            let waited = self.options.timeout.as_millis();
            self.answer(opaque, Answer::failed(-1, format!("no answer to a pull in {waited} ms")), now);
        }
        last
    }

    /// The connection is gone, and with it all requests: they are sent again over the next one.
    pub fn lost(&mut self, reason: String) {
        self.under_way.clear();
        self.bulk = 0;
        self.queues.values_mut().for_each(PullQueue::forget_asked);
        if matches!(self.ready.back(), Some(Item::Disconnected(_))) {
            self.ready.pop_back();
        }
        self.ready.push_back(Item::Disconnected(reason));
    }

    /// The connection is there.
    pub fn connected(&mut self) {
        self.ready.push_back(Item::Connected);
    }

    /// When something is to be done though nothing happens.
    pub fn deadline(&self, now: Instant) -> Option<Duration> {
        let oldest = self.under_way.first_key_value().map(|(_, asked)| asked.sent + self.options.timeout);
        let retries = self.queues.values().filter_map(|queue| queue.not_before.filter(|at| *at > now));
        retries.chain(oldest).min().map(|at| at.saturating_duration_since(now))
    }

    /// Whoever takes has found room for what it took before: that counts no more. Returns whether a queue waits for this.
    pub fn release(&mut self) -> bool {
        self.queues.values_mut().for_each(|queue| queue.in_hand = Held::default());
        self.is_full
    }

    /// Hands out what is ready, in its order; it counts until it is released.
    pub fn take(&mut self, max: usize) -> Vec<Item> {
        let taken: Vec<_> = self.ready.drain(..self.gathered(max)).collect();
        for item in &taken {
            if let Item::Fetched(fetched) = item
                && let Some(queue) = self.queues.get_mut(&fetched.epoch)
            {
                queue.ready.subtract(Held::of(fetched));
                queue.in_hand.add(Held::of(fetched));
                self.held.subtract(Held::of(fetched));
            }
        }
        taken
    }

    /// How many items are taken at once: those that together have as much as is gathered.
    fn gathered(&self, max: usize) -> usize {
        let mut left = match self.options.gather.bytes {
            0 => i64::MAX,
            bytes => bytes,
        };
        let is_taken = |item: &&Item| {
            let is_left = left > 0;
            left -= if let Item::Fetched(fetched) = item { fetched.bytes() as i64 } else { 0 };
            is_left
        };
        self.ready.iter().take(max).take_while(is_taken).count()
    }

    /// Whether something can be taken.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether as much as is gathered can be taken, in `max` items or fewer, or all that there will be for now.
    pub fn is_gathered(&self, max: usize) -> bool {
        let wanted = self.options.gather.bytes;
        let ready = || self.queues.values().map(|queue| queue.ready.bytes).sum::<i64>();
        wanted == 0 || self.is_idle || self.ready.len() >= max || ready() >= wanted
    }

    /// What is held of all queues.
    pub fn held(&self) -> Held {
        self.held
    }

    fn push(&mut self, fetched: Fetched) {
        let fetched = match self.ready.back_mut() {
            Some(Item::Fetched(last)) => last.join(fetched),
            _ => Some(fetched),
        };
        self.ready.extend(fetched.map(|fetched| Item::Fetched(fetched.into())));
    }
}

/// Something is allowed where there is nothing yet.
fn passes(held: Held, allowance: Allowance) -> bool {
    let is_full = held.messages >= allowance.messages || held.bytes >= allowance.bytes;
    is_full && held.messages > 0
}

#[cfg(test)]
mod tests;
