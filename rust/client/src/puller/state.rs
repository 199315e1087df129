//! The state of all queues of a puller: requests to send, answers received, and items to take. Does no I/O, and gets
//! the time from its callers.
//!
//! Flow control of every consumer is here: the only count of what is in flight, ready or in hand, per queue and in
//! total.
use super::answer::Answer;
use super::options::Queue;
use super::options::{Assignment, Broker, PullerOptions, Subscription, Threshold};
use super::pull_queue::{Pull, PullQueue, Times, Volume};
use super::pulled_answer::{Item, PulledAnswer};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

// Only the first of this many flow-control events is returned to the caller.
//
// Source: `DefaultMQPushConsumerImpl.pullMessage`, its `queueFlowControlTimes++ % 1000`.
const FLOW_CONTROL_TOLD: u64 = 1000;

/// Queues, requests in flight, and items that are ready.
#[derive(Debug)]
pub struct State {
    options: Arc<PullerOptions>,
    of_queue: Threshold,
    brokers: Vec<BrokerState>,
    /// Queues by epoch. Each assignment and each seek gets a new epoch.
    queues: BTreeMap<u64, PullQueue>,
    epochs: HashMap<Queue, u64>,
    /// Requests by their `opaque` number, which grows, so the oldest come first.
    in_flight: BTreeMap<i32, InFlight>,
    ready: VecDeque<Item>,
    /// Messages that are ready, or arrived too early and wait for the messages before them.
    held: Volume,
    in_hand: Volume,
    last_epoch: u64,
    last_opaque: i32,
    /// Whether flow control stops all queues, because their total reached `in_all`.
    is_full: bool,
    full_times: u64,
    /// Number of threads that wait in `take`.
    pub takers: usize,
}

#[derive(Debug)]
struct BrokerState {
    broker: Broker,
    address: Arc<str>,
    /// Number of requests in flight that count against `depth`.
    bulk: usize,
    last_served: u64,
    /// Whether nothing is in flight because no queue may be pulled now.
    is_idle: bool,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    epoch: u64,
    broker: usize,
    pull: Pull,
    sent: Instant,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub opaque: i32,
    pub queue: Arc<Queue>,
    pub pull: Pull,
    pub subscription: Arc<Subscription>,
    /// Offset of the group that the broker shall store; 0 for none.
    pub commit_offset: i64,
}

impl State {
    pub fn new(options: Arc<PullerOptions>) -> Self {
        Self {
            of_queue: options.of_queue,
            options,
            brokers: Vec::new(),
            queues: BTreeMap::new(),
            epochs: HashMap::new(),
            in_flight: BTreeMap::new(),
            ready: VecDeque::new(),
            held: Volume::default(),
            in_hand: Volume::default(),
            last_epoch: 0,
            last_opaque: 0,
            is_full: false,
            full_times: 0,
            takers: 0,
        }
    }

    /// Returns the number of the broker with this address. Adds the broker if it is new.
    pub fn broker(&mut self, broker: Broker) -> usize {
        if let Some(index) = self.brokers.iter().position(|state| state.broker.address == broker.address) {
            self.brokers[index].broker = broker;
            return index;
        }
        let address = broker.address.as_str().into();
        self.brokers.push(BrokerState { broker, address, bulk: 0, last_served: 0, is_idle: false });
        self.brokers.len() - 1
    }

    pub fn address(&self, broker: usize) -> Arc<str> {
        self.brokers[broker].address.clone()
    }

    /// Starts to pull a queue at its assignment's start, and returns the new epoch. Buffered messages of the queue are
    /// dropped.
    pub fn assign(&mut self, broker: usize, queue: Queue, assignment: Assignment) -> u64 {
        self.remove(&queue);
        self.last_epoch += 1;
        let epoch = self.last_epoch;
        self.epochs.insert(queue.clone(), epoch);
        let mut pulled = PullQueue::new(queue.into(), assignment, epoch, broker, self.options.clone());
        if let Some(end) = pulled.empty_end() {
            self.push(end);
        }
        self.queues.insert(epoch, pulled);
        epoch
    }

    /// Extends the range of a queue that was read up to the start of `assignment`, so that messages read ahead can be
    /// taken. Returns the unchanged epoch, or `None` if the queue is at another broker or another position.
    pub fn resume(&mut self, broker: usize, queue: &Queue, assignment: &Assignment) -> Option<u64> {
        let pulled = self.queue_mut(queue).filter(|pulled| pulled.broker == broker && pulled.leads_to(assignment))?;
        let epoch = pulled.epoch;
        pulled.resume(assignment).into_iter().for_each(|fetched| self.push(fetched));
        Some(epoch)
    }

    /// Returns the offset after the last message taken, or `None` if the queue is not pulled.
    pub fn position(&self, queue: &Queue) -> Option<i64> {
        self.epochs.get(queue).and_then(|epoch| self.queues.get(epoch)).map(PullQueue::position)
    }

    /// Stops pulling the queues for which `is_kept` returns false.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Queue) -> bool) {
        let others: Vec<Queue> = self.epochs.keys().filter(|queue| !is_kept(queue)).cloned().collect();
        others.iter().for_each(|queue| {
            self.remove(queue);
        });
    }

    pub fn has_queues(&self) -> bool {
        !self.epochs.is_empty()
    }

    /// Returns whether an item reports a lost connection and was not taken yet. Messages read before it may no longer
    /// be on the broker.
    pub fn was_lost(&self) -> bool {
        self.ready.iter().any(|item| matches!(item, Item::Disconnected(..)))
    }

    /// Stops pulling a queue. Its buffered messages are dropped, and messages in hand no longer count. Returns the
    /// state of the queue, or `None` if it was not pulled.
    pub fn remove(&mut self, queue: &Queue) -> Option<PullQueue> {
        let epoch = self.epochs.remove(queue)?;
        // answers to requests still in flight must be ignored
        self.forget(epoch);
        self.ready.retain(|item| !matches!(item, Item::Answer(fetched) if fetched.epoch == epoch));
        let removed = self.queues.remove(&epoch)?;
        self.held.subtract(removed.ready_or_waiting());
        self.in_hand.subtract(removed.in_hand);
        Some(removed)
    }

    /// Continues at another offset with the same filter. Returns the new epoch, or `None` if the queue is not pulled.
    pub fn seek(&mut self, queue: &Queue, offset: i64) -> Option<u64> {
        let before = self.queue_mut(queue)?;
        let (broker, is_paused) = (before.broker, before.is_paused);
        // 0 means no offset to store: nothing after the seek is acknowledged yet
        let assignment = Assignment { start: offset, is_paused, commit_offset: 0, ..before.assignment.clone() };
        Some(self.assign(broker, queue.clone(), assignment))
    }

    /// Pulls a queue from another broker and keeps its buffered messages. Returns false if the queue is not pulled.
    pub fn move_to(&mut self, broker: usize, queue: &Queue) -> bool {
        let Some(epoch) = self.queue_mut(queue).map(|queue| queue.epoch) else { return false };
        // late answers of the old broker must not fill stretches requested from the new one
        self.forget(epoch);
        self.queues.entry(epoch).and_modify(|queue| queue.broker = broker);
        true
    }

    /// Pauses or resumes a queue. Its buffered messages can still be taken. Returns false if the queue is not pulled.
    pub fn pause(&mut self, queue: &Queue, is_paused: bool) -> bool {
        self.queue_mut(queue).map(|queue| queue.is_paused = is_paused).is_some()
    }

    /// Changes the filter of a topic's queues. Buffered messages stay.
    pub fn subscribe(&mut self, topic: &str, subscription: &Arc<Subscription>) {
        let mut others = Vec::new();
        for queue in self.queues.values_mut().filter(|queue| queue.queue.topic == topic) {
            let before = std::mem::replace(&mut queue.assignment.subscription, subscription.clone());
            // same filter in a new version: the requests in flight remain valid
            if !before.is_same(subscription) {
                others.push(queue.epoch);
            }
        }
        others.into_iter().for_each(|epoch| self.forget(epoch));
    }

    /// Replaces the threshold of each queue.
    pub fn set_threshold(&mut self, of_queue: Threshold) {
        self.of_queue = of_queue;
        self.queues.values_mut().for_each(|queue| queue.is_full = false);
    }

    /// Acknowledges messages that were taken. Returns the brokers that may be asked again because there is room now.
    ///
    /// # Arguments
    /// * `epoch` - epoch of the answer that had the messages. Messages of older epochs no longer count.
    /// * `position` - the first offset not acknowledged.
    pub fn acknowledge(&mut self, epoch: u64, volume: Volume, position: i64) -> Vec<usize> {
        let Some(queue) = self.queues.get_mut(&epoch) else { return Vec::new() };
        queue.acknowledge(volume, position);
        self.in_hand.subtract(volume);
        self.with_room([epoch])
    }

    /// Returns the requests to send to a broker now, and counts them as in flight.
    pub fn requests(&mut self, broker: usize, now: Instant) -> Vec<Request> {
        let is_time = self.brokers[broker].bulk <= self.options.depth.saturating_sub(self.options.burst);
        let requests = if is_time { self.plan_requests(broker, now) } else { Vec::new() };
        self.brokers[broker].is_idle = !self.in_flight.values().any(|request| request.broker == broker);
        requests
    }

    fn plan_requests(&mut self, broker: usize, now: Instant) -> Vec<Request> {
        let mut expected = Volume::default();
        self.queues.values().for_each(|queue| expected.add(queue.expected_volume()));
        let last_served = self.brokers[broker].last_served;
        // round robin: a queue with a large backlog must not starve the others
        let after = self.queues.range(last_served + 1..).chain(self.queues.range(..=last_served));
        let order: Vec<u64> = after.filter(|(_, queue)| queue.broker == broker).map(|(epoch, _)| *epoch).collect();
        let mut requests = Vec::new();
        loop {
            let before = requests.len();
            requests.extend(order.iter().filter_map(|epoch| self.request(*epoch, &mut expected, now)));
            if requests.len() == before {
                return requests;
            }
        }
    }

    fn request(&mut self, epoch: u64, expected: &mut Volume, now: Instant) -> Option<Request> {
        let queue = self.queues.get_mut(&epoch)?;
        let broker = &mut self.brokers[queue.broker];
        let has_room = broker.bulk < self.options.depth;
        let before = queue.expected_volume();
        let pull = match queue.rest(now, has_room) {
            // no flow control here: the answers behind the gap already count, and wait for this pull
            Some(pull) => pull,
            None if !queue.may_plan(now) || !(has_room || queue.plans_end()) => return None,
            None => {
                let is_wide = queue.span() > self.options.max_span;
                let (was_full, were_full) = (queue.is_full, self.is_full);
                queue.is_full = is_wide || is_full(before, self.of_queue, was_full);
                self.is_full = is_full(*expected, self.options.in_all, were_full);
                if queue.is_full || self.is_full {
                    if !was_full && !were_full {
                        self.full_times += 1;
                        // reported the first time, and then once per FLOW_CONTROL_TOLD
                        if self.full_times % FLOW_CONTROL_TOLD == 1 {
                            self.ready.push_back(Item::FlowControl(queue.flow_control(self.full_times).into()));
                        }
                    }
                    return None;
                }
                queue.plan(now)?
            }
        };
        expected.add(queue.expected_volume());
        expected.subtract(before);
        self.last_opaque = self.last_opaque.checked_add(1).unwrap_or(1);
        broker.last_served = epoch;
        // a pull at the end may be held for 20 s, so it must not occupy a place of `depth`
        broker.bulk += usize::from(!pull.at_end);
        self.in_flight.insert(self.last_opaque, InFlight { epoch, broker: queue.broker, pull, sent: now });
        let commits = self.options.commits_offsets && !broker.broker.is_slave;
        let commit_offset = if commits { queue.assignment.commit_offset } else { 0 };
        let (queue, subscription) = (queue.queue.clone(), queue.assignment.subscription.clone());
        Some(Request { opaque: self.last_opaque, queue, pull, subscription, commit_offset })
    }

    /// Returns the queue of a request, its offset, and whether properties are needed; `None` if its answer is no longer
    /// expected.
    pub fn pull_of(&self, opaque: i32) -> Option<(Arc<Queue>, i64, bool)> {
        let request = self.in_flight.get(&opaque)?;
        let queue = self.queues.get(&request.epoch)?;
        Some((queue.queue.clone(), request.pull.offset, !queue.assignment.without_properties))
    }

    /// Processes the answer to a request. An answer that is no longer expected is ignored.
    pub fn answer(&mut self, opaque: i32, answer: Answer, now: Instant) {
        let Some(request) = self.in_flight.remove(&opaque) else { return };
        self.brokers[request.broker].bulk -= usize::from(!request.pull.at_end);
        let Some(queue) = self.queues.get_mut(&request.epoch) else { return };
        let before = queue.ready_or_waiting();
        let out = queue.take(request.pull, answer, &Times { sent: request.sent, now });
        self.held.add(queue.ready_or_waiting());
        self.held.subtract(before);
        out.into_iter().for_each(|fetched| self.push(fetched));
    }

    /// Fails the requests that a broker did not answer in time. Returns the time at which the latest of these requests
    /// was sent; `None` if there are none.
    pub fn expire(&mut self, broker: usize, now: Instant) -> Option<Instant> {
        let timeout = self.options.timeout;
        let is_over = |request: &InFlight| request.broker == broker && request.sent + timeout <= now;
        let expired: Vec<_> =
            self.in_flight.iter().filter(|(_, request)| is_over(request)).map(|(n, a)| (*n, a.sent)).collect();
        for (opaque, _) in &expired {
            let waited = timeout.as_millis();
            self.answer(*opaque, Answer::failure(-1, format!("no answer to a pull in {waited} ms")), now);
        }
        expired.last().map(|(_, sent)| *sent)
    }

    /// Called when the connection to a broker was lost. The requests that were in flight are sent again.
    pub fn on_disconnect(&mut self, broker: usize, reason: String) {
        self.in_flight.retain(|_, request| request.broker != broker);
        self.queues.values_mut().filter(|queue| queue.broker == broker).for_each(PullQueue::forget_in_flight);
        let BrokerState { bulk, address, .. } = &mut self.brokers[broker];
        *bulk = 0;
        // only the newest of several consecutive losses is kept
        if matches!(self.ready.back(), Some(Item::Disconnected(last, _)) if last == address) {
            self.ready.pop_back();
        }
        self.ready.push_back(Item::Disconnected(address.clone(), reason));
    }

    /// Called when the connection to a broker was opened.
    pub fn on_connect(&mut self, broker: usize) {
        self.ready.push_back(Item::Connected(self.brokers[broker].address.clone()));
    }

    /// Returns the time until the next retry or timeout of a broker; `None` if the thread only has to wait for events.
    pub fn deadline(&self, broker: usize, now: Instant) -> Option<Duration> {
        let oldest =
            self.in_flight.values().filter(|request| request.broker == broker).map(|request| request.sent).min();
        let queues = self.queues.values().filter(|queue| queue.broker == broker);
        let retries = queues.filter_map(|queue| queue.not_before.filter(|at| *at > now));
        let expires = oldest.map(|sent| sent + self.options.timeout);
        retries.chain(expires).min().map(|at| at.saturating_duration_since(now))
    }

    /// Removes up to `max` ready items in order. Also returns the brokers that may be asked again because there is room
    /// now.
    pub fn take(&mut self, max: usize) -> (Vec<Item>, Vec<usize>) {
        let items: Vec<_> = self.ready.drain(..self.count_to_take(max)).collect();
        let mut epochs = Vec::new();
        for item in &items {
            if let Item::Answer(fetched) = item
                && let Some(queue) = self.queues.get_mut(&fetched.epoch)
            {
                let in_hand = queue.in_hand;
                queue.on_taken(fetched);
                self.in_hand.add(queue.in_hand);
                self.in_hand.subtract(in_hand);
                self.held.subtract(Volume::of(fetched));
                epochs.push(fetched.epoch);
            }
        }
        let woken = self.with_room(epochs);
        (items, woken)
    }

    /// Puts an answer back, to be taken before all others. Ignored if the queue was removed or got a seek since.
    pub fn give_back(&mut self, fetched: PulledAnswer) {
        if let Some(queue) = self.queues.get_mut(&fetched.epoch) {
            let in_hand = queue.in_hand;
            queue.on_given_back(&fetched);
            self.in_hand.add(queue.in_hand);
            self.in_hand.subtract(in_hand);
            self.held.add(Volume::of(&fetched));
            self.ready.push_front(Item::Answer(fetched.into()));
        }
    }

    /// Returns how many ready answers to take now: at most `max`, and no more than reach the bytes set in `gather`.
    fn count_to_take(&self, max: usize) -> usize {
        let mut rest = match self.options.gather.bytes {
            0 => i64::MAX,
            bytes => bytes,
        };
        let is_taken = |item: &&Item| {
            // the item that exceeds the volume is taken too, as one answer may be larger than `gather`
            let is_left = rest > 0;
            rest -= if let Item::Answer(fetched) = item { fetched.bytes() as i64 } else { 0 };
            is_left
        };
        self.ready.iter().take(max).take_while(is_taken).count()
    }

    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether nothing is in flight at the broker because no queue may be pulled now.
    pub fn is_idle(&self, broker: usize) -> bool {
        self.brokers[broker].is_idle
    }

    /// Returns whether `take` can return: the volume in `gather` or `max` items are ready, or no more will come for
    /// now.
    pub fn is_gathered(&self, max: usize) -> bool {
        let enough = self.options.gather.bytes;
        let ready = || self.queues.values().map(|queue| queue.ready.bytes).sum::<i64>();
        let is_idle = || self.brokers.iter().all(|broker| broker.is_idle);
        // messages read ahead cannot be taken, so do not wait for them
        let is_at_end = || self.queues.values().all(PullQueue::is_at_end);
        enough == 0 || is_idle() || is_at_end() || self.ready.len() >= max || ready() >= enough
    }

    /// Returns whether all received messages are handled: nothing is in flight or ready, and a thread waits in `take`.
    pub fn is_handled(&self) -> bool {
        self.in_flight.is_empty() && self.ready.is_empty() && self.takers > 0
    }

    pub fn ready_or_waiting(&self) -> Volume {
        self.held
    }

    pub fn in_hand(&self) -> Volume {
        self.in_hand
    }

    /// Returns how often flow control stopped a queue.
    pub fn full_times(&self) -> u64 {
        self.full_times
    }

    /// Returns the brokers of queues that flow control had stopped and that have room again.
    fn with_room(&mut self, epochs: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let mut total = self.held;
        total.add(self.in_hand);
        // the total concerns every broker
        if self.is_full && !is_full(total, self.options.in_all, true) {
            return (0..self.brokers.len()).collect();
        }
        let mut woken = Vec::new();
        let waited = |queue: &&PullQueue| queue.is_full || queue.may_read_ahead();
        for queue in epochs.into_iter().filter_map(|epoch| self.queues.get(&epoch)).filter(waited) {
            let is_wide = queue.span() > self.options.max_span;
            if !is_wide && !is_full(queue.expected_volume(), self.of_queue, true) && !woken.contains(&queue.broker) {
                woken.push(queue.broker);
            }
        }
        woken
    }

    fn queue_mut(&mut self, queue: &Queue) -> Option<&mut PullQueue> {
        self.queues.get_mut(self.epochs.get(queue)?)
    }

    /// Drops the requests of a queue that are in flight, so that they are sent again.
    fn forget(&mut self, epoch: u64) {
        let brokers = &mut self.brokers;
        self.in_flight.retain(|_, request| {
            let is_kept = request.epoch != epoch;
            if !is_kept && !request.pull.at_end {
                // frees the place in `depth`, though the broker may still answer
                brokers[request.broker].bulk -= 1;
            }
            is_kept
        });
        if let Some(queue) = self.queues.get_mut(&epoch) {
            queue.forget_in_flight();
        }
    }

    fn push(&mut self, fetched: PulledAnswer) {
        let fetched = match self.ready.back_mut() {
            Some(Item::Answer(last)) => last.join(fetched),
            _ => Some(fetched),
        };
        self.ready.extend(fetched.map(|fetched| Item::Answer(fetched.into())));
    }
}

/// Returns whether the volume reaches the threshold. A full queue stays full until half of its messages are gone, since
/// otherwise messages would be requested one by one. An empty queue is never full.
fn is_full(expected: Volume, threshold: Threshold, was_full: bool) -> bool {
    let messages = if was_full { threshold.messages / 2 + 1 } else { threshold.messages };
    // otherwise a message larger than the threshold would stop its queue for ever
    (expected.messages >= messages || expected.bytes >= threshold.bytes) && expected.messages > 0
}

#[cfg(test)]
mod tests;
