//! Messages of ranges, found in a stretch of their broker's log.
//!
//! A log has the records of all topics. Those of a range stand there one behind the other, each offset once: where that is not so,
//! the log does not tell what the queue lists, and whoever reads has to pull.
use crate::log_part::LogPart;
use rmqfast_client::puller::{Body, Fetched, Pool, PullStatus, Queue};
use rmqfast_client::ranges::{QueueRange, RangeRequest};
use rmqfast_replication::{LogReader, Step};
use rmqfast_store::format::message::{
    INNER_BATCH, Message, TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK,
};
use rmqfast_store::scan::row::Row;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Reads the messages of ranges out of a log.
pub struct LogRows {
    reader: LogReader,
    pool: Arc<Pool>,
    ranges: Vec<Listed>,
    topics: Vec<Topic>,
    /// The topic of the last record that was of one: most records are of the topic of the one before.
    last: usize,
    needs_properties: bool,
    trouble: Option<String>,
}

/// A range, and how much of it was found.
struct Listed {
    queue: Arc<Queue>,
    next: i64,
    end: i64,
    since: u64,
    /// Those of the block at hand.
    rows: Vec<Row>,
}

/// A topic, and the range of each number of a queue.
struct Topic {
    name: String,
    ranges: BTreeMap<i32, usize>,
}

/// What [`LogRows::advance`] came to.
#[derive(Debug)]
pub enum Found {
    /// Messages, as answers to pulls would have them.
    Answers(Vec<Fetched>),
    /// None yet.
    Waiting,
    /// All ranges are read.
    Done,
}

impl LogRows {
    /// Nobody is asked yet.
    pub fn new(request: &RangeRequest, ranges: &[QueueRange], part: &LogPart) -> Self {
        let pool = Arc::new(Pool::default());
        let memory = pool.clone();
        let listed = |(range, since): (&QueueRange, &u64)| Listed {
            queue: range.queue.clone().into(),
            next: range.start,
            end: range.end,
            since: *since,
            rows: Vec::new(),
        };
        Self {
            reader: LogReader::new(part.stretch.clone(), Box::new(move |len| memory.buffer(len))),
            pool,
            ranges: ranges.iter().zip(&part.since).map(listed).collect(),
            topics: topics_of(ranges),
            last: 0,
            needs_properties: request.needs_properties(),
            trouble: None,
        }
    }

    /// Reads on; waits for `wait` at most, and longer only to connect.
    ///
    /// # Errors
    /// Why the log does not tell the rest, in words.
    pub fn advance(&mut self, wait: Duration, request: &RangeRequest) -> Result<Found, String> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if self.ranges.iter().all(|range| range.next >= range.end) {
            return Ok(Found::Done);
        }
        match self.reader.advance(wait).map_err(|end| end.to_string())? {
            Step::Waiting => Ok(Found::Waiting),
            Step::Block { buffer, len } => {
                let body = Arc::new(Body::within(buffer, 0..len, &self.pool));
                self.trouble = self.find(&body).err();
                Ok(Found::Answers(self.hand_out(&body, request)))
            }
            // some range is not at its end
            Step::Done => Err(self.missing()),
        }
    }

    /// What is left of the ranges.
    pub fn rest(&self) -> Vec<QueueRange> {
        let left = self.ranges.iter().filter(|range| range.next < range.end);
        left.map(|range| QueueRange { queue: (*range.queue).clone(), start: range.next, end: range.end }).collect()
    }

    /// Where each queue goes on behind what was handed out, of ranges that are not at their end.
    pub fn next_offsets(&self) -> impl Iterator<Item = (&Queue, i64)> {
        self.ranges.iter().filter(|range| range.next < range.end).map(|range| (&*range.queue, range.next))
    }

    /// Finds the rows of a block; an error tells of the record that is not the next one of its queue.
    fn find(&mut self, body: &[u8]) -> Result<(), String> {
        for record in self.reader.records() {
            let mut row = Row::new(record.at, record.layout);
            let Some(message) = row.message(body) else { continue };
            let Some(topic) = topic_of(&self.topics, self.last, message.topic()) else { continue };
            self.last = topic;
            let index = self.topics[topic].ranges.get(&message.queue_id());
            let Some(range) = index.and_then(|index| self.ranges.get_mut(*index)) else { continue };
            if !range.lists(&message, record.layout.sys_flag)? {
                continue;
            }
            if self.needs_properties {
                row.find_properties(body);
            }
            range.rows.push(row);
        }
        Ok(())
    }

    /// The rows that were found, range by range.
    fn hand_out(&mut self, body: &Arc<Body>, request: &RangeRequest) -> Vec<Fetched> {
        let found = self.ranges.iter_mut().filter(|range| !range.rows.is_empty());
        found.map(|range| range.hand_out(body, request)).collect()
    }

    fn missing(&self) -> String {
        let parts: Vec<String> =
            self.rest().iter().map(|range| format!("{range}: the log has no more of it")).collect();
        parts.join("; ")
    }
}

/// The topics of ranges, by their names.
fn topics_of(ranges: &[QueueRange]) -> Vec<Topic> {
    let mut topics: BTreeMap<&str, BTreeMap<i32, usize>> = BTreeMap::new();
    for (index, QueueRange { queue, .. }) in ranges.iter().enumerate() {
        topics.entry(&queue.topic).or_default().insert(queue.queue_id, index);
    }
    topics.into_iter().map(|(name, ranges)| Topic { name: name.to_owned(), ranges }).collect()
}

/// Which of sorted topics has a name; `last` is looked at first.
fn topic_of(topics: &[Topic], last: usize, name: &[u8]) -> Option<usize> {
    if topics.get(last)?.name.as_bytes() == name {
        return Some(last);
    }
    topics.binary_search_by(|topic| topic.name.as_bytes().cmp(name)).ok()
}

impl Listed {
    /// Whether the queue lists a record, which then is the next one of the range.
    fn lists(&mut self, message: &Message<'_>, sys_flag: i32) -> Result<bool, String> {
        let transaction = sys_flag & TRANSACTION_MASK;
        let has_no_place = transaction == TRANSACTION_PREPARED || transaction == TRANSACTION_ROLLBACK;
        if has_no_place || self.next >= self.end || message.physical_offset().cast_unsigned() < self.since {
            return Ok(false);
        }
        let (offset, place) = (message.queue_offset(), message.physical_offset());
        if offset != self.next || sys_flag & INNER_BATCH != 0 {
            let Queue { topic, broker_name, queue_id } = &*self.queue;
            let queue = format!("{topic}, broker {broker_name}, queue {queue_id}");
            let got = if sys_flag & INNER_BATCH == 0 { offset.to_string() } else { "a batch".to_owned() };
            return Err(format!("{queue}: expected offset {} at {place} of the log, got {got}", self.next));
        }
        self.next += 1;
        Ok(true)
    }

    fn hand_out(&mut self, body: &Arc<Body>, request: &RangeRequest) -> Fetched {
        let room = self.rows.len();
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(room));
        Fetched {
            queue: self.queue.clone(),
            epoch: 0,
            status: PullStatus::Found,
            begin_offset: self.next - rows.len() as i64,
            next_begin_offset: self.next,
            min_offset: 0,
            max_offset: self.end,
            is_end: self.next >= self.end,
            suggested_broker_id: 0,
            code: 0,
            remark: String::new(),
            body: body.clone(),
            size: rows.iter().map(|row| row.layout.total as usize).sum(),
            rows,
            tags: request.subscription.tags.clone(),
            elapsed: Duration::ZERO,
            counted_from: None,
        }
    }
}

impl std::fmt::Debug for LogRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogRows").field("reader", &self.reader).finish_non_exhaustive()
    }
}
