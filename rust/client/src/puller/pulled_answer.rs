//! The items that a puller returns: answers in offset order, and events of its connections.
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

/// One answer for a range of offsets of a queue.
#[derive(Clone, Debug)]
pub struct PulledAnswer {
    pub queue: Arc<Queue>,
    /// Number of the assignment or seek that the answer belongs to.
    pub epoch: u64,
    pub status: PullStatus,
    /// The offset at which the pull began.
    pub begin_offset: i64,
    /// The offset at which the next pull begins.
    pub next_begin_offset: i64,
    /// First offset of the queue.
    pub min_offset: i64,
    /// The offset after the queue's last message.
    pub max_offset: i64,
    /// Whether this answer reaches the end offset of the assignment, so that no answer follows.
    pub is_end: bool,
    /// Broker id that the broker suggests for the next pull.
    pub suggested_broker_id: i64,
    /// The broker's response code, or -1 if no answer came.
    pub code: i32,
    pub remark: String,
    /// Records, one after the other. Parts of a split answer share the same body.
    pub body: Arc<Body>,
    /// Positions of the records in `body`, and of their properties if the application needs them.
    pub rows: Vec<Row>,
    /// Tags that the client compares in full; `None` for all messages.
    pub tags: Option<Arc<Tags>>,
    /// Time from the request to its answer.
    pub elapsed: Duration,
    /// Queue offset of the first row in a light queue, whose records contain offsets of another queue. `None` for other
    /// queues.
    pub counted_from: Option<i64>,
    /// Bytes of the records in `rows`.
    pub size: usize,
}

/// The event that flow control stopped a queue, because its messages or the messages of all queues reached a threshold.
#[derive(Clone, Debug)]
pub struct FlowControl {
    pub queue: Arc<Queue>,
    /// Messages of the queue that are in flight, ready or in hand.
    pub messages: i64,
    pub bytes: i64,
    /// Last offset received minus first offset not acknowledged.
    pub span: i64,
    /// Number of flow-control events so far, over all queues.
    pub times: u64,
}

/// An item that [`take`](super::Puller::take) returns.
#[derive(Clone, Debug)]
pub enum Item {
    Answer(Box<PulledAnswer>),
    /// The connection to this address was opened, for the first time or again.
    Connected(Arc<str>),
    /// The connection to this address was lost or could not be opened. The second value is the reason. The puller tries
    /// again.
    Disconnected(Arc<str>, String),
    /// Flow control stopped a queue until there is room.
    FlowControl(Box<FlowControl>),
}

impl PulledAnswer {
    /// Creates an answer without a pull: the messages between two offsets, whose records are in `body` at `rows`.
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

    /// Creates the item for an answer to a pull from `begin_offset`.
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

    /// Returns the queue offsets of the first and the last message, or `None` without messages.
    pub fn offsets(&self) -> Option<(i64, i64)> {
        let last = self.rows.len().checked_sub(1)?;
        Some((self.offset(0), self.offset(last)))
    }

    /// Returns the queue offset of the message `index`.
    #[inline]
    pub fn offset(&self, index: usize) -> i64 {
        queue_offset(&self.body, &self.rows, self.counted_from, index).unwrap_or(self.begin_offset)
    }

    /// Returns the store time of the last message in milliseconds, or `None` without messages.
    pub fn last_store_timestamp(&self) -> Option<i64> {
        Some(self.rows.last()?.message(&self.body)?.store_timestamp())
    }

    /// Returns whether the answer tells which messages the queue has. False for failures and illegal offsets.
    pub fn is_sound(&self) -> bool {
        !matches!(self.status, PullStatus::Failed | PullStatus::OffsetIllegal)
    }

    /// Splits off the messages at `offset` and later. Returns `None` if there are none.
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

    /// Returns the rows whose tag is in `tags`, compared as strings.
    pub fn matching_rows(&self) -> Cow<'_, [Row]> {
        let tags = self.tags.as_deref();
        match tags {
            None => Cow::Borrowed(&self.rows),
            Some(_) => self.rows.iter().filter(|row| has_tag(&self.body, row, tags)).copied().collect(),
        }
    }

    /// Returns the size of the records in bytes, for flow control.
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// Returns whether the answer has no messages and only moves to a later offset.
    pub fn is_empty(&self) -> bool {
        matches!(self.status, PullStatus::NoNewMsg | PullStatus::NoMatchedMsg)
    }

    /// Merges the answer `next` into this answer, if both have no messages or both failed. Returns `None` if merged,
    /// otherwise `next` unchanged.
    pub fn join(&mut self, next: Self) -> Option<Self> {
        let follows = self.epoch == next.epoch && self.next_begin_offset == next.begin_offset;
        // otherwise the failures of a broker that is down would fill the list
        let is_the_same = self.status == PullStatus::Failed && next.status == PullStatus::Failed;
        if !follows || !(is_the_same || self.is_empty() && next.is_empty()) {
            return Some(next);
        }
        *self = Self { begin_offset: self.begin_offset, ..next };
        None
    }
}
