//! Items that a puller hands out: answers in the order of their offsets, and events of connections.
use super::answer::PullStatus;
use super::answer::{Answer, queue_offset};
use super::body::Body;
use super::options::Queue;
use crate::pull_body::{Tags, has_tag};
use rmqfast_store::scan::row::Row;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// One answer: a stretch of a queue.
#[derive(Clone, Debug)]
pub struct PulledAnswer {
    pub queue: Arc<Queue>,
    /// Number of the assignment or seek that it belongs to.
    pub epoch: u64,
    pub status: PullStatus,
    /// The offset that was asked for.
    pub begin_offset: i64,
    /// The offset to go on at.
    pub next_begin_offset: i64,
    /// First offset of the queue.
    pub min_offset: i64,
    /// The offset behind the queue's last.
    pub max_offset: i64,
    /// Whether all up to the assignment's end was handed out.
    pub is_end: bool,
    /// Id of the broker that the next pull should go to.
    pub suggested_broker_id: i64,
    /// The broker's response code; -1 where none came.
    pub code: i32,
    pub remark: String,
    /// Records, one behind the other. What was one answer may share them.
    pub body: Arc<Body>,
    /// Places of the records, with their properties if these are requested.
    pub rows: Vec<Row>,
    /// Whole tags that the client wants of them.
    pub tags: Option<Arc<Tags>>,
    /// From the request to its answer.
    pub elapsed: Duration,
    /// First offset, where the records do not hold their offsets: a multi-dispatch queue lists records of others.
    pub counted_from: Option<i64>,
    /// Bytes of its records.
    pub size: usize,
}

/// Why a queue is asked for no more: one of its numbers, or those of all queues, reached a threshold.
#[derive(Clone, Debug)]
pub struct FlowControl {
    pub queue: Arc<Queue>,
    /// Its messages that are in flight, ready or in hand.
    pub messages: i64,
    pub bytes: i64,
    /// Offsets from its first message that is not done to the last one that came.
    pub span: i64,
    /// Count of such removals, over all queues.
    pub times: u64,
}

/// One thing to be taken.
#[derive(Clone, Debug)]
pub enum Item {
    Answer(Box<PulledAnswer>),
    /// The connection to an address is there, for the first time or again.
    Connected(Arc<str>),
    /// The connection to an address ended or could not be opened, and why; it is tried again.
    Disconnected(Arc<str>, String),
    /// A queue is asked for no more before there is room.
    FlowControl(Box<FlowControl>),
}

impl PulledAnswer {
    /// Messages of a queue that no pull brought: those between two offsets, whose records stand in `body` at `rows`.
    pub fn read(queue: Arc<Queue>, offsets: Range<i64>, body: Arc<Body>, rows: Vec<Row>) -> Self {
        Self {
            queue,
            epoch: 0,
            status: PullStatus::Found,
            begin_offset: offsets.start,
            next_begin_offset: offsets.end,
            min_offset: 0,
            max_offset: offsets.end,
            is_end: false,
            suggested_broker_id: 0,
            code: 0,
            remark: String::new(),
            body,
            size: rows.iter().map(|row| row.layout.total as usize).sum(),
            rows,
            tags: None,
            elapsed: Duration::ZERO,
            counted_from: None,
        }
    }

    /// Makes the item of an answer to a pull from `begin_offset` on.
    pub fn new(queue: Arc<Queue>, begin_offset: i64, answer: Answer, tags: Option<Arc<Tags>>) -> Self {
        Self {
            queue,
            epoch: 0,
            status: answer.status,
            begin_offset,
            next_begin_offset: answer.next,
            min_offset: answer.bounds.0,
            max_offset: answer.bounds.1,
            is_end: false,
            suggested_broker_id: answer.suggested_broker_id,
            code: answer.code,
            remark: answer.remark,
            size: answer.body.len(),
            body: Arc::new(answer.body),
            rows: answer.rows,
            tags,
            elapsed: Duration::ZERO,
            counted_from: answer.counted_from,
        }
    }

    /// Queue offsets of its first and its last message; none where it has none.
    pub fn offsets(&self) -> Option<(i64, i64)> {
        let last = self.rows.len().checked_sub(1)?;
        Some((self.offset(0), self.offset(last)))
    }

    /// Queue offset of one of its messages.
    #[inline]
    pub fn offset(&self, index: usize) -> i64 {
        queue_offset(&self.body, &self.rows, self.counted_from, index).unwrap_or(self.begin_offset)
    }

    /// Store time of its last message, in milliseconds; none where it has none.
    pub fn last_store_timestamp(&self) -> Option<i64> {
        Some(self.rows.last()?.message(&self.body)?.store_timestamp())
    }

    /// Whether it says what there is of the queue, not why there is nothing.
    pub fn is_sound(&self) -> bool {
        !matches!(self.status, PullStatus::Failed | PullStatus::OffsetIllegal)
    }

    /// Parts with what stands at `offset` or behind it, where there is such.
    pub fn split_off(&mut self, offset: i64) -> Option<Self> {
        if !self.is_sound() || self.next_begin_offset <= offset {
            return None;
        }
        let count = (0..self.rows.len()).find(|index| self.offset(*index) >= offset).unwrap_or(self.rows.len());
        let counted_from = self.counted_from.map(|first| first + count as i64);
        let mut rest = Self { begin_offset: offset, rows: self.rows.split_off(count), counted_from, ..self.clone() };
        let starts = |part: &Self| part.rows.first().map(|row| row.at as usize);
        let size = match (starts(self), starts(&rest)) {
            (Some(first), Some(behind)) => behind - first,
            (Some(_), None) => self.size,
            (None, _) => 0,
        };
        (rest.size, self.size) = (self.size - size, size);
        self.next_begin_offset = offset;
        for part in [self, &mut rest] {
            if part.rows.is_empty() && part.status == PullStatus::Found {
                part.status = PullStatus::NoMatchedMsg;
            }
        }
        Some(rest)
    }

    /// The rows that the client wants.
    pub fn matching_rows(&self) -> Cow<'_, [Row]> {
        let tags = self.tags.as_deref();
        match tags {
            None => Cow::Borrowed(&self.rows),
            Some(_) => self.rows.iter().filter(|row| has_tag(&self.body, row, tags)).copied().collect(),
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// Whether it tells no more than how far the queue was looked through.
    pub fn is_empty(&self) -> bool {
        matches!(self.status, PullStatus::NoNewMsg | PullStatus::NoMatchedMsg)
    }

    /// Takes in what follows, where neither has messages or both failed; or gives it back.
    pub fn join(&mut self, next: Self) -> Option<Self> {
        let follows = self.epoch == next.epoch && self.next_begin_offset == next.begin_offset;
        // a broker that is away would fill the list with its failures otherwise
        let is_the_same = self.status == PullStatus::Failed && next.status == PullStatus::Failed;
        if !follows || !(is_the_same || self.is_empty() && next.is_empty()) {
            return Some(next);
        }
        *self = Self { begin_offset: self.begin_offset, ..next };
        None
    }
}
