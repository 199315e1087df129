//! One queue that is pulled: which stretches of it are asked for, and what of them is there.
//!
//! ```text
//!  handed out │ stretch: asked │ stretch: there, waits for the one before │ stretch: asked │ not planned yet
//!             └── from the first of these on everything waits                              └ frontier
//! ```
//!
//! Where much is left to the queue's end, several stretches are asked for at once, their lengths guessed; an answer that
//! is shorter leaves a rest that is asked for again, one that is longer is cut. At the end there is one stretch without
//! a known length, whose pull the broker holds.
//!
//! A queue that reads ahead plans on behind its assignment's end once all before that was taken, as far as there are messages
//! for sure. What comes of that waits, as it would behind a gap, until the queue is resumed to a later end.
use super::answer::Answer;
use super::answer::PullStatus;
use super::options::Queue;
use super::options::{Assignment, PullerOptions};
use super::pulled_answer::{FlowControl, PulledAnswer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Whole answers in a row after which a longer stretch is tried.
const PATIENCE: u32 = 16;
// Between two pulls at the queue's end, at least.
const PAUSE: Duration = Duration::from_millis(50);
// Offsets of a stretch at most: as far as a broker looks for what matches.
const MAX_STRIDE: i64 = 16_000;
// Code of a 5.x broker that is overloaded, and the time until the next try.
//
// Source: `ResponseCode.FLOW_CONTROL`, `DefaultMQPushConsumerImpl.PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL`.
const FLOW_CONTROL: i32 = 215;
const FLOW_CONTROL_RETRY: Duration = Duration::from_millis(20);

/// A queue, and what of it is in flight.
#[derive(Debug)]
pub struct PullQueue {
    pub queue: Arc<Queue>,
    pub assignment: Assignment,
    /// Number of the last assignment or seek.
    pub epoch: u64,
    /// Which of the puller's brokers is asked.
    pub broker: usize,
    /// Whether it is not to be asked now.
    pub is_paused: bool,
    /// Whether flow control stops it: too much of it is there, and nothing is asked before there is room.
    pub is_full: bool,
    /// When it may be asked again.
    pub not_before: Option<Instant>,
    /// Ready to hand out.
    pub ready: Volume,
    /// Handed out, not acknowledged.
    pub in_hand: Volume,
    /// The first offset that is not done, and the last one that came, where anything is there.
    span: Option<(i64, i64)>,
    /// The offset behind what was taken.
    position: i64,
    stretches: VecDeque<Stretch>,
    /// Arrived behind a gap.
    waiting: Volume,
    next_stretch: u64,
    frontier: i64,
    max_offset: Option<i64>,
    stride: i64,
    whole: u32,
    /// Mean size of a message, in bytes.
    mean: i64,
    /// The broker does not have the offset: nothing more is planned.
    is_illegal: bool,
    was_told_end: bool,
    options: Arc<PullerOptions>,
}

/// When something was asked and answered.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When the request was sent.
    pub sent: Instant,
    /// When its answer came.
    pub now: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub messages: i64,
    pub bytes: i64,
}

impl Volume {
    /// The volume of an answer.
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

/// Offsets of a queue that are asked for by one request at a time.
#[derive(Debug)]
struct Stretch {
    id: u64,
    next: i64,
    end: i64,
    /// Whether it ends where the answer does, as no length could be guessed.
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
    /// Whether the queue's end is reached, so that the broker may hold it.
    pub at_end: bool,
}

impl PullQueue {
    /// A queue of which nothing is asked yet.
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
            // a guess, until the first answer came
            mean: 1024,
            is_illegal: false,
            was_told_end: false,
            options,
        }
    }

    /// The volume that is ready, in hand or expected from answers in flight; one at the queue's end counts as nothing.
    pub fn expected_volume(&self) -> Volume {
        // a pull at the end may be held without bringing anything; before the end is known, it may bring a whole batch
        let counts = |stretch: &&Stretch| !stretch.is_done && (!stretch.is_open || self.max_offset.is_none());
        let lengths =
            self.stretches.iter().filter(counts).map(|s| s.end.saturating_sub(s.next).min(self.options.batch));
        let in_flight: i64 = lengths.sum();
        let mut expected = self.ready_or_waiting();
        expected.add(self.in_hand);
        expected.add(Volume { messages: in_flight, bytes: in_flight * self.mean });
        expected
    }

    /// The volume that is ready or waiting.
    pub fn ready_or_waiting(&self) -> Volume {
        let mut volume = self.ready;
        volume.add(self.waiting);
        volume
    }

    /// Offsets from the first message that is not done to the last one that came; 0 where there is none.
    pub fn span(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last - first)
    }

    /// Why it is asked for no more.
    pub fn flow_control(&self, times: u64) -> FlowControl {
        let Volume { messages, bytes } = self.expected_volume();
        FlowControl { queue: self.queue.clone(), messages, bytes, span: self.span(), times }
    }

    /// An answer was taken: it is in hand until it is done, or done at once.
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

    /// An answer that was taken can be taken again.
    pub fn on_given_back(&mut self, fetched: &PulledAnswer) {
        self.position = self.position.min(fetched.begin_offset);
        self.ready.add(Volume::of(fetched));
        if self.options.counts_until_done {
            self.in_hand.subtract(Volume::of(fetched));
        }
        self.reach(fetched);
    }

    /// The offset behind what was taken.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Whether all up to the assignment's end was handed out.
    pub fn is_at_end(&self) -> bool {
        let next = match self.stretches.front() {
            Some(first) => first.there.front().map_or(first.next, |fetched| fetched.begin_offset),
            None => self.frontier,
        };
        self.assignment.end.is_some_and(|end| next >= end)
    }

    /// Whether it goes on with what `assignment` wants, from where it was taken up to.
    pub fn leads_to(&self, assignment: &Assignment) -> bool {
        let is_same = self.assignment.subscription.is_same(&assignment.subscription)
            && self.assignment.without_properties == assignment.without_properties;
        self.position == assignment.start && is_same && !self.is_illegal
    }

    /// Whether it reads ahead, and all up to the assignment's end was taken.
    pub fn may_read_ahead(&self) -> bool {
        self.assignment.reads_ahead && self.assignment.end.is_some_and(|end| self.position >= end)
    }

    /// Goes on to the end of `assignment`; gives what of that is there.
    pub fn resume(&mut self, assignment: &Assignment) -> Vec<PulledAnswer> {
        let Assignment { end, reads_ahead, is_paused, .. } = *assignment;
        (self.assignment.end, self.assignment.reads_ahead, self.is_paused) = (end, reads_ahead, is_paused);
        self.hand_out()
    }

    /// Messages that were taken are done.
    ///
    /// # Arguments
    /// * `position` - the first offset that is not done, or the one behind the last.
    pub fn acknowledge(&mut self, volume: Volume, position: i64) {
        self.in_hand.subtract(volume);
        // what was taken later may be done first, and a broker stores any offset that it is told
        self.assignment.commit_offset = self.assignment.commit_offset.max(position);
        self.span = match self.span {
            Some((_, last)) if position <= last => Some((position, last)),
            _ => None,
        };
    }

    /// Messages of an answer are there.
    fn reach(&mut self, fetched: &PulledAnswer) {
        if let Some((first, last)) = fetched.offsets() {
            let (least, most) = self.span.unwrap_or((first, last));
            self.span = Some((least.min(first), most.max(last)));
        }
    }

    /// The rest of a stretch that was planned before, if one is to be asked for.
    ///
    /// Only at the end of the queue unless `has_room`.
    pub fn rest(&mut self, now: Instant, has_room: bool) -> Option<Pull> {
        if !self.may_ask(now) {
            return None;
        }
        let max_offset = self.max_offset;
        let (batch, is_filtered) = (self.options.batch, self.assignment.subscription.is_filtered());
        let stretch = self.stretches.iter_mut().find(|stretch| !stretch.is_asked && !stretch.is_done)?;
        let pull = stretch.request_for(max_offset, batch, is_filtered);
        // a pull that the broker holds takes no place of `depth`
        stretch.is_asked = pull.at_end || has_room;
        stretch.is_asked.then_some(pull)
    }

    /// Whether what [`plan`](Self::plan) would plan begins where the queue ends, as far as is known.
    pub fn plans_end(&self) -> bool {
        self.max_offset.is_some_and(|max| self.frontier >= max)
    }

    /// A stretch that nobody asked for yet, if there is one to plan.
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

    /// The end of a stretch that begins at `offset`, at most.
    fn limit(&self, offset: i64) -> i64 {
        let end = self.assignment.end.unwrap_or(i64::MAX);
        // who takes what is there must not share a core or a connection with what is for later
        let is_ahead = offset >= end && self.may_read_ahead();
        // not to find out where the queue ends: nobody waits for that
        self.max_offset.filter(|_| is_ahead).map_or(end, |max| max.max(end))
    }

    fn may_ask(&self, now: Instant) -> bool {
        !self.is_paused && self.not_before.is_none_or(|at| at <= now)
    }

    /// Whether [`plan`](Self::plan) would plan something.
    pub fn may_plan(&self, now: Instant) -> bool {
        let is_left = self.frontier < self.limit(self.frontier);
        let is_known = self.max_offset.is_some_and(|max| max > self.frontier);
        // with a pause behind each answer there is nothing to be gained by asking for the next one before
        let may_pipeline = is_known && self.options.interval.is_zero();
        // where an open one ends, its answer tells
        let is_behind_open = self.stretches.back().is_some_and(|stretch| stretch.is_open && !stretch.is_done);
        self.may_ask(now)
            && !self.is_illegal
            && is_left
            && !is_behind_open
            && (may_pipeline || self.stretches.is_empty())
    }

    /// The end that was assigned, where there is nothing before it; told once.
    pub fn empty_end(&mut self) -> Option<PulledAnswer> {
        let end = self.assignment.end.filter(|end| self.assignment.start >= *end && !self.was_told_end)?;
        self.was_told_end = true;
        let start = self.assignment.start;
        let answer = Answer { status: PullStatus::NoNewMsg, code: 19, next: start, ..Answer::failure(19, "") };
        Some(PulledAnswer { is_end: start >= end, ..self.pulled_answer(answer, start) })
    }

    /// Takes the answer to what was asked; gives what can be handed out because of it, in its order.
    pub fn take(&mut self, pull: Pull, answer: Answer, at: &Times) -> Vec<PulledAnswer> {
        // an illegal offset took it away meanwhile
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

    /// Forgets requests in flight: a lost connection answers none of them, so they are planned again.
    pub fn forget_in_flight(&mut self) {
        self.stretches.iter_mut().for_each(|stretch| stretch.is_asked = false);
    }

    /// Told once for all stretches that are refused at about the same time; it has no place in their order.
    fn on_refused(&mut self, answer: Answer, pull: Pull, at: &Times) -> Vec<PulledAnswer> {
        if self.not_before.is_some_and(|until| until > at.now) {
            return Vec::new();
        }
        let is_busy = answer.code == FLOW_CONTROL;
        // 5.x says so to have clients come back soon, other refusals last longer
        self.not_before = Some(at.now + if is_busy { FLOW_CONTROL_RETRY } else { self.options.retry });
        let answer = Answer { next: pull.offset, ..answer };
        vec![self.pulled_answer(answer, pull.offset)]
    }

    fn on_offset_illegal(&mut self, index: usize, answer: Answer) {
        // the consumer decides where to go on (see `illegal_offset`): nothing behind this may be handed out before
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
        // answers in flight come in any order, and an older one knows an older end
        self.max_offset = self.max_offset.max(Some(answer.bounds.1));
        if answer.next <= begin {
            return self.stand_still(index, answer, at);
        }
        if let Some(mean) = (answer.body.len() as i64).checked_div(answer.rows.len() as i64) {
            self.mean = mean.max(1);
        }
        // an open stretch has no length that an answer could show to be wrong
        if !is_open {
            self.learn(pull, &answer, planned_end);
        }
        let is_last = index + 1 == self.stretches.len();
        // what the answer has of the next stretch is cut, as that is asked for already
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

    /// Handles an answer without progress: nothing new at the end of the queue, or a broker that announces messages and does not
    /// return them.
    fn stand_still(&mut self, index: usize, answer: Answer, at: &Times) {
        let begin = self.stretches[index].next;
        if answer.status == PullStatus::NoNewMsg {
            // not the larger of both: a broker that lost its end has a new one
            self.max_offset = Some(begin);
            // a broker that does not hold pulls is not asked all the time
            self.not_before = Some(at.sent + PAUSE).filter(|until| *until > at.now);
        } else {
            self.not_before = Some(at.now + self.options.retry);
        }
        // the broker may lead back, and the same messages would come twice
        let fetched = self.pulled_answer(Answer { next: begin, ..answer }, begin);
        // of what is read ahead nobody asks whether it is there
        if self.assignment.end.is_none_or(|end| begin < end) {
            self.stretches[index].there.push_back(fetched);
        }
    }

    /// Adapts the length of the next stretches to that of answers.
    fn learn(&mut self, pull: Pull, answer: &Answer, end: i64) {
        let reached = answer.next - pull.offset;
        if self.assignment.subscription.is_filtered() {
            // how far a filter reaches changes with the messages, so old and new count for half each
            self.stride = (self.stride + reached + 1).clamp(2, 2 * MAX_STRIDE) / 2;
        } else if answer.next < end {
            // one short answer shows the broker's limit; that it gives more, only many whole ones do
            (self.whole, self.stride) = (0, reached.clamp(1, MAX_STRIDE));
        } else if self.stride < self.options.batch {
            self.whole += 1;
            if self.whole >= PATIENCE {
                (self.whole, self.stride) = (0, (self.stride * 2).min(self.options.batch));
            }
        }
    }

    /// Takes the answers before the first gap, and before the end.
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
    /// Without a filter no more is asked than is wanted; with one the broker looks on until it found so many.
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
