//! One queue that is pulled. Its offsets are divided into ranges ("stretches"), each with at most one request in
//! flight.
//!
//! ```text
//!  handed out │ stretch: in flight │ stretch: answered, waits │ stretch: in flight │ not planned yet
//!             └── from the first gap on, every answer waits                        └ frontier
//! ```
//!
//! Far from the queue's end, several stretches are in flight at once. Their lengths are guesses: if an answer is
//! shorter, the rest of the stretch is requested again; if it is longer, it is cut. At the queue's end there is one
//! open stretch without a known length, and the broker holds its pull.
//!
//! With `reads_ahead`, stretches behind the assignment's end are planned too, as soon as everything before the end was
//! taken and as far as messages are known to exist. Their answers wait until the queue is resumed with a later end.
use super::answer::Answer;
use super::answer::PullStatus;
use super::options::Queue;
use super::options::{Assignment, PullerOptions};
use super::pulled_answer::{FlowControl, PulledAnswer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Number of complete answers in a row after which a longer stretch is tried.
const PATIENCE: u32 = 16;
// Minimum time between two pulls at the queue's end.
const PAUSE: Duration = Duration::from_millis(50);
// Maximum offsets of a stretch: a broker scans no further for matches in one pull.
const MAX_STRIDE: i64 = 16_000;
// Response code of an overloaded 5.x broker, and the pause before the next pull.
//
// Source: `ResponseCode.FLOW_CONTROL`, `DefaultMQPushConsumerImpl.PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL`.
const FLOW_CONTROL: i32 = 215;
const FLOW_CONTROL_RETRY: Duration = Duration::from_millis(20);

/// A pulled queue: its assignment, its requests, and the number and size of its messages for flow control.
#[derive(Debug)]
pub struct PullQueue {
    pub queue: Arc<Queue>,
    pub assignment: Assignment,
    /// Number of the assignment or seek. Answers to older epochs are dropped.
    pub epoch: u64,
    /// Number of the broker from which the queue is pulled.
    pub broker: usize,
    /// Whether the application paused the queue.
    pub is_paused: bool,
    /// Whether flow control stops the queue: its volume reached a threshold.
    pub is_full: bool,
    /// Earliest time of the next pull.
    pub not_before: Option<Instant>,
    /// Messages that can be taken.
    pub ready: Volume,
    /// Messages that were taken but not acknowledged.
    pub in_hand: Volume,
    /// The first offset that is not acknowledged, and the last offset that was received. `None` if all messages are
    /// acknowledged.
    span: Option<(i64, i64)>,
    /// Offset after the last message taken.
    position: i64,
    stretches: VecDeque<Stretch>,
    /// Messages that arrived too early, and wait for the messages before them.
    waiting: Volume,
    next_stretch: u64,
    frontier: i64,
    max_offset: Option<i64>,
    stride: i64,
    whole: u32,
    /// Mean size of a message, in bytes.
    mean: i64,
    /// Whether the broker answered OFFSET_ILLEGAL. The queue is then not pulled until a seek.
    is_illegal: bool,
    was_told_end: bool,
    options: Arc<PullerOptions>,
}

/// Times of a request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub sent: Instant,
    pub now: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub messages: i64,
    pub bytes: i64,
}

impl Volume {
    pub fn of(fetched: &PulledAnswer) -> Self {
        Self { messages: fetched.rows.len() as i64, bytes: fetched.bytes() as i64 }
    }

    pub fn add(&mut self, other: Self) {
        *self = Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes };
    }

    pub fn subtract(&mut self, other: Self) {
        *self = Self { messages: self.messages - other.messages, bytes: self.bytes - other.bytes };
    }
}

/// A range of offsets with at most one request in flight.
#[derive(Debug)]
struct Stretch {
    id: u64,
    next: i64,
    end: i64,
    /// Whether the range has no end yet. It then ends where its answer ends.
    is_open: bool,
    is_asked: bool,
    is_done: bool,
    there: VecDeque<PulledAnswer>,
}

/// A pull to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    pub stretch: u64,
    pub offset: i64,
    pub max_messages: i64,
    /// Whether the pull starts at the queue's end, so that the broker may hold it until a message arrives.
    pub at_end: bool,
}

impl PullQueue {
    /// Creates a queue from which nothing was requested yet.
    pub fn new(
        queue: Arc<Queue>,
        assignment: Assignment,
        epoch: u64,
        broker: usize,
        options: Arc<PullerOptions>,
    ) -> Self {
        let (frontier, is_paused, stride) = (assignment.start, assignment.is_paused, options.batch);
        Self {
            queue,
            assignment,
            epoch,
            broker,
            is_paused,
            is_full: false,
            not_before: None,
            ready: Volume::default(),
            in_hand: Volume::default(),
            span: None,
            position: frontier,
            stretches: VecDeque::new(),
            waiting: Volume::default(),
            next_stretch: 0,
            frontier,
            max_offset: None,
            stride,
            whole: 0,
            // a guess until the first answer
            mean: 1024,
            is_illegal: false,
            was_told_end: false,
            options,
        }
    }

    /// Returns the number and size of the messages that are ready, waiting or in hand, plus an estimate for the
    /// requests in flight. A pull at the queue's end counts as zero.
    pub fn expected_volume(&self) -> Volume {
        // a held pull usually returns nothing; but before the queue's end is known it may return a full batch
        let counts = |stretch: &&Stretch| !stretch.is_done && (!stretch.is_open || self.max_offset.is_none());
        let lengths =
            self.stretches.iter().filter(counts).map(|s| s.end.saturating_sub(s.next).min(self.options.batch));
        let in_flight: i64 = lengths.sum();
        let mut expected = self.ready_or_waiting();
        expected.add(self.in_hand);
        expected.add(Volume { messages: in_flight, bytes: in_flight * self.mean });
        expected
    }

    pub fn ready_or_waiting(&self) -> Volume {
        let mut volume = self.ready;
        volume.add(self.waiting);
        volume
    }

    /// Returns the last offset received minus the first offset not acknowledged, or 0 without messages.
    pub fn span(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last - first)
    }

    /// Returns the event that reports a reached threshold. `times` is the number of these events so far, over all
    /// queues.
    pub fn flow_control(&self, times: u64) -> FlowControl {
        let Volume { messages, bytes } = self.expected_volume();
        FlowControl { queue: self.queue.clone(), messages, bytes, span: self.span(), times }
    }

    /// Called when an answer was taken. Its messages count as in hand until they are acknowledged.
    pub fn on_taken(&mut self, fetched: &PulledAnswer) {
        if fetched.is_sound() {
            self.position = self.position.max(fetched.next_begin_offset);
        }
        self.ready.subtract(Volume::of(fetched));
        self.in_hand.add(Volume::of(fetched));
        if !self.options.counts_until_done {
            self.acknowledge(Volume::of(fetched), fetched.next_begin_offset);
        }
    }

    /// Called when an answer was given back, so that it can be taken again.
    pub fn on_given_back(&mut self, fetched: &PulledAnswer) {
        self.position = self.position.min(fetched.begin_offset);
        self.ready.add(Volume::of(fetched));
        if self.options.counts_until_done {
            self.in_hand.subtract(Volume::of(fetched));
        }
        self.reach(fetched);
    }

    /// Returns the offset after the last message taken.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns whether all messages up to the assignment's end were returned to the caller.
    pub fn is_at_end(&self) -> bool {
        let next = match self.stretches.front() {
            Some(first) => first.there.front().map_or(first.next, |fetched| fetched.begin_offset),
            None => self.frontier,
        };
        self.assignment.end.is_some_and(|end| next >= end)
    }

    /// Returns whether `assignment` continues this queue: it starts at the queue's position and has the same filter.
    pub fn leads_to(&self, assignment: &Assignment) -> bool {
        let is_same = self.assignment.subscription.is_same(&assignment.subscription)
            && self.assignment.without_properties == assignment.without_properties;
        self.position == assignment.start && is_same && !self.is_illegal
    }

    /// Returns whether the queue may read ahead: it is configured to, and all messages before the assignment's end were
    /// taken.
    pub fn may_read_ahead(&self) -> bool {
        self.assignment.reads_ahead && self.assignment.end.is_some_and(|end| self.position >= end)
    }

    /// Extends the queue to the end of `assignment`. Returns the answers that were read ahead and can now be taken.
    pub fn resume(&mut self, assignment: &Assignment) -> Vec<PulledAnswer> {
        let Assignment { end, reads_ahead, is_paused, .. } = *assignment;
        (self.assignment.end, self.assignment.reads_ahead, self.is_paused) = (end, reads_ahead, is_paused);
        self.hand_out()
    }

    /// Acknowledges messages that were taken.
    ///
    /// # Arguments
    /// * `position` - the first offset not acknowledged.
    pub fn acknowledge(&mut self, volume: Volume, position: i64) {
        self.in_hand.subtract(volume);
        // acknowledgements may come out of order, and a broker also stores an offset that is lower than the last
        self.assignment.commit_offset = self.assignment.commit_offset.max(position);
        self.span = match self.span {
            Some((_, last)) if position <= last => Some((position, last)),
            _ => None,
        };
    }

    /// Extends the span of unacknowledged offsets by the offsets of an answer.
    fn reach(&mut self, fetched: &PulledAnswer) {
        if let Some((first, last)) = fetched.offsets() {
            let (least, most) = self.span.unwrap_or((first, last));
            self.span = Some((least.min(first), most.max(last)));
        }
    }

    /// Returns a pull for the rest of a planned range without a request in flight; `None` if there is no such range, or
    /// the queue must not be pulled now. Without `has_room`, returns a pull only if it starts at the queue's end: the
    /// broker may hold such a pull, so it does not count against `depth`.
    pub fn rest(&mut self, now: Instant, has_room: bool) -> Option<Pull> {
        if !self.may_ask(now) {
            return None;
        }
        let max_offset = self.max_offset;
        let (batch, is_filtered) = (self.options.batch, self.assignment.subscription.is_filtered());
        let stretch = self.stretches.iter_mut().find(|stretch| !stretch.is_asked && !stretch.is_done)?;
        let pull = stretch.request_for(max_offset, batch, is_filtered);
        // a held pull does not count against `depth`
        stretch.is_asked = pull.at_end || has_room;
        stretch.is_asked.then_some(pull)
    }

    /// Returns whether the next range would begin at the queue's known end.
    pub fn plans_end(&self) -> bool {
        self.max_offset.is_some_and(|max| self.frontier >= max)
    }

    /// Plans the next range of offsets and returns its pull, or `None` if the queue must not be pulled now.
    pub fn plan(&mut self, now: Instant) -> Option<Pull> {
        if !self.may_plan(now) {
            return None;
        }
        let last = self.limit(self.frontier);
        let queue_end = self.max_offset.filter(|max| *max > self.frontier);
        let end = queue_end.map_or(last, |max| (self.frontier + self.stride).min(max).min(last));
        let (id, is_open) = (self.next_stretch, queue_end.is_none());
        self.next_stretch += 1;
        let (next, there) = (self.frontier, VecDeque::new());
        let stretch = Stretch { id, next, end, is_open, is_asked: true, is_done: false, there };
        let pull = stretch.request_for(self.max_offset, self.options.batch, self.assignment.subscription.is_filtered());
        self.stretches.push_back(stretch);
        self.frontier = end;
        Some(pull)
    }

    /// Returns the highest end that a range may have if it begins at `offset`.
    fn limit(&self, offset: i64) -> i64 {
        let end = self.assignment.end.unwrap_or(i64::MAX);
        // read ahead only after everything was taken: pulls for later must not compete for the core and the connection
        let is_ahead = offset >= end && self.may_read_ahead();
        // read ahead only to the known end: nobody waits for newer messages yet
        self.max_offset.filter(|_| is_ahead).map_or(end, |max| max.max(end))
    }

    fn may_ask(&self, now: Instant) -> bool {
        !self.is_paused && self.not_before.is_none_or(|at| at <= now)
    }

    /// Returns whether [`plan`](Self::plan) would return a pull.
    pub fn may_plan(&self, now: Instant) -> bool {
        let is_left = self.frontier < self.limit(self.frontier);
        let is_known = self.max_offset.is_some_and(|max| max > self.frontier);
        // with a pause after each answer, a second request in flight gains nothing
        let may_pipeline = is_known && self.options.interval.is_zero();
        // the start of the next stretch is unknown until the open stretch is answered
        let is_behind_open = self.stretches.back().is_some_and(|stretch| stretch.is_open && !stretch.is_done);
        self.may_ask(now)
            && !self.is_illegal
            && is_left
            && !is_behind_open
            && (may_pipeline || self.stretches.is_empty())
    }

    /// Returns the answer that reports the end of an assignment without messages; `None` after the first call.
    pub fn empty_end(&mut self) -> Option<PulledAnswer> {
        let end = self.assignment.end.filter(|end| self.assignment.start >= *end && !self.was_told_end)?;
        self.was_told_end = true;
        let start = self.assignment.start;
        let answer = Answer { status: PullStatus::NoNewMsg, code: 19, next: start, ..Answer::failure(19, "") };
        Some(PulledAnswer { is_end: start >= end, ..self.pulled_answer(answer, start) })
    }

    /// Processes the answer to `pull`. Returns the answers that can now be taken, in offset order.
    pub fn take(&mut self, pull: Pull, answer: Answer, at: &Times) -> Vec<PulledAnswer> {
        // an illegal offset removed the stretch meanwhile
        let Some(index) = self.stretches.iter().position(|stretch| stretch.id == pull.stretch) else {
            return Vec::new();
        };
        self.stretches[index].is_asked = false;
        match answer.status {
            PullStatus::Failed => return self.on_refused(answer, pull, at),
            PullStatus::OffsetIllegal => self.on_offset_illegal(index, answer),
            _ => self.on_progress(index, pull, answer, at),
        }
        self.hand_out()
    }

    /// Marks the requests in flight as not sent, so that they are sent again. Called when a connection was lost.
    pub fn forget_in_flight(&mut self) {
        self.stretches.iter_mut().for_each(|stretch| stretch.is_asked = false);
    }

    /// Pauses the queue after the broker refused a pull. Returns the refusal at once, before answers to earlier
    /// offsets. Returns no further refusals during the pause.
    fn on_refused(&mut self, answer: Answer, pull: Pull, at: &Times) -> Vec<PulledAnswer> {
        if self.not_before.is_some_and(|until| until > at.now) {
            return Vec::new();
        }
        let is_busy = answer.code == FLOW_CONTROL;
        // FLOW_CONTROL asks clients to retry soon; other refusals last longer
        self.not_before = Some(at.now + if is_busy { FLOW_CONTROL_RETRY } else { self.options.retry });
        let answer = Answer { next: pull.offset, ..answer };
        vec![self.pulled_answer(answer, pull.offset)]
    }

    fn on_offset_illegal(&mut self, index: usize, answer: Answer) {
        // the consumer decides where to continue (see `illegal_offset`), so later answers must not be handed out
        while self.stretches.len() > index + 1 {
            let gone = self.stretches.pop_back().map(|stretch| stretch.there).unwrap_or_default();
            gone.iter().for_each(|fetched| self.waiting.subtract(Volume::of(fetched)));
        }
        self.is_illegal = true;
        let begin = self.stretches[index].next;
        let fetched = self.pulled_answer(answer, begin);
        let stretch = &mut self.stretches[index];
        stretch.is_done = true;
        stretch.there.push_back(fetched);
    }

    fn on_progress(&mut self, index: usize, pull: Pull, mut answer: Answer, at: &Times) {
        let (begin, planned_end, is_open) = {
            let stretch = &self.stretches[index];
            (stretch.next, stretch.end, stretch.is_open)
        };
        // answers arrive in any order, and an older answer has an older end
        self.max_offset = self.max_offset.max(Some(answer.bounds.1));
        if answer.next <= begin {
            return self.stand_still(index, answer, at);
        }
        if let Some(mean) = (answer.body.len() as i64).checked_div(answer.rows.len() as i64) {
            self.mean = mean.max(1);
        }
        // only a guessed length can be corrected; an open stretch has no length
        if !is_open {
            self.learn(pull, &answer, planned_end);
        }
        let is_last = index + 1 == self.stretches.len();
        // messages of the next stretch are cut, as that stretch has its own request
        let end = if is_last { planned_end.max(answer.next.min(self.limit(begin))) } else { planned_end };
        answer.cut(end);
        let next = answer.next;
        if !answer.rows.is_empty() && !self.options.interval.is_zero() {
            self.not_before = Some(at.now + self.options.interval);
        }
        let fetched = PulledAnswer { elapsed: at.now - at.sent, ..self.pulled_answer(answer, begin) };
        self.waiting.add(Volume::of(&fetched));
        let stretch = &mut self.stretches[index];
        stretch.next = next;
        stretch.there.push_back(fetched);
        stretch.end = if is_open { next } else { end };
        stretch.is_done = stretch.next >= stretch.end;
        if is_last {
            self.frontier = stretch.end;
        }
    }

    /// Handles an answer that does not advance the offset. Either there are no new messages, or the broker does not
    /// return the messages that it announces.
    fn stand_still(&mut self, index: usize, answer: Answer, at: &Times) {
        let begin = self.stretches[index].next;
        if answer.status == PullStatus::NoNewMsg {
            // not the maximum of both: a broker that lost its last messages has a lower end
            self.max_offset = Some(begin);
            // a broker that does not hold pulls would be asked in a busy loop
            self.not_before = Some(at.sent + PAUSE).filter(|until| *until > at.now);
        } else {
            self.not_before = Some(at.now + self.options.retry);
        }
        // the broker's next offset may be lower, which would repeat messages
        let fetched = self.pulled_answer(Answer { next: begin, ..answer }, begin);
        // an empty answer behind the end has no reader
        if self.assignment.end.is_none_or(|end| begin < end) {
            self.stretches[index].there.push_back(fetched);
        }
    }

    /// Adapts the number of offsets per request to the lengths of the answers.
    fn learn(&mut self, pull: Pull, answer: &Answer, end: i64) {
        let reached = answer.next - pull.offset;
        if self.assignment.subscription.is_filtered() {
            // the reach of a filtered pull varies, so this is a moving average of old and new
            self.stride = (self.stride + reached + 1).clamp(2, 2 * MAX_STRIDE) / 2;
        } else if answer.next < end {
            // one short answer shows the broker's limit; only many complete answers show that it was raised
            (self.whole, self.stride) = (0, reached.clamp(1, MAX_STRIDE));
        } else if self.stride < self.options.batch {
            self.whole += 1;
            if self.whole >= PATIENCE {
                (self.whole, self.stride) = (0, (self.stride * 2).min(self.options.batch));
            }
        }
    }

    /// Removes and returns the answers that can be taken: all before the first gap and before the assignment's end.
    fn hand_out(&mut self) -> Vec<PulledAnswer> {
        let end = self.assignment.end.unwrap_or(i64::MAX);
        let mut out = Vec::new();
        while let Some(first) = self.stretches.front_mut() {
            while first.there.front().is_some_and(|fetched| fetched.begin_offset < end)
                && let Some(mut fetched) = first.there.pop_front()
            {
                if let Some(rest) = fetched.split_off(end) {
                    first.there.push_front(rest);
                }
                fetched.is_end = fetched.is_sound() && fetched.next_begin_offset >= end;
                out.push(fetched);
            }
            if !first.is_done || !first.there.is_empty() {
                break;
            }
            self.stretches.pop_front();
        }
        for fetched in &out {
            self.waiting.subtract(Volume::of(fetched));
            self.ready.add(Volume::of(fetched));
            self.reach(fetched);
        }
        out
    }

    fn pulled_answer(&self, answer: Answer, begin_offset: i64) -> PulledAnswer {
        let tags = self.assignment.subscription.tags.clone();
        PulledAnswer { epoch: self.epoch, ..PulledAnswer::new(self.queue.clone(), begin_offset, answer, tags) }
    }
}

impl Stretch {
    /// Returns a pull for the rest of the range. With a filter, the pull asks for a full batch, since the broker then
    /// searches until it has found that many matching messages.
    fn request_for(&self, max_offset: Option<i64>, batch: i64, is_filtered: bool) -> Pull {
        let rest = self.end.saturating_sub(self.next);
        Pull {
            stretch: self.id,
            offset: self.next,
            max_messages: if is_filtered { batch } else { batch.min(rest) },
            at_end: max_offset.is_some_and(|max| self.next >= max),
        }
    }
}
