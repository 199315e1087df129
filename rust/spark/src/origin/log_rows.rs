//! Finds the messages of queue ranges in a part of their broker's log.
//!
//! A log has the records of all topics. The records of a range must have consecutive offsets, each once. If they do
//! not, the log differs from the consume queue, and the reader has to pull the rest.
use crate::origin::piece::LogPart;
use rmqfast_client::puller::{Body, Pool, PulledAnswer, Queue};
use rmqfast_client::ranges::{QueueRange, RangeRequest, Step};
use rmqfast_replication::{LogReader, LogStep};
use rmqfast_store::format::message::{INNER_BATCH, Layout, Message};
use rmqfast_store::scan::row::Row;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub struct LogRows {
    reader: LogReader,
    pool: Arc<Pool>,
    /// Store time and body CRC that the first record should have; `None` after the comparison.
    first: Option<(i64, i32)>,
    ranges: Vec<RangeRows>,
    topics: Vec<Topic>,
    /// Index of the topic of the last matching record. This topic is tried first, since most records have the same
    /// topic as the record before.
    last: usize,
    needs_properties: bool,
    trouble: Option<String>,
}

/// A range, and how far its messages were found.
struct RangeRows {
    queue: Arc<Queue>,
    /// The offset that the range's next record must have. It begins at the first offset of the plan.
    next: i64,
    /// Records below this offset are counted but not returned.
    start: i64,
    end: i64,
    /// Physical offset of the first record that counts for the range. Earlier records may be of a deleted topic of the
    /// same name.
    since: u64,
    /// The rows that were found in the current block.
    rows: Vec<Row>,
}

/// A topic, with the index of its range for each queue id.
struct Topic {
    name: String,
    ranges: BTreeMap<i32, usize>,
}

impl LogRows {
    /// Prepares the search, but opens no connection.
    pub fn new(request: &RangeRequest, ranges: &[QueueRange], part: &LogPart) -> Self {
        let pool = Arc::new(Pool::default());
        let memory = pool.clone();
        let rows = |(range, (first, since)): (&QueueRange, &(i64, u64))| RangeRows {
            queue: range.queue.clone().into(),
            next: *first,
            start: range.start,
            end: range.end,
            since: *since,
            rows: Vec::new(),
        };
        Self {
            reader: LogReader::new(part.stretch.clone(), Box::new(move |len| memory.buffer(len))),
            pool,
            first: Some(part.first),
            ranges: ranges.iter().zip(&part.begins).map(rows).collect(),
            topics: topics_of(ranges),
            last: 0,
            needs_properties: request.needs_properties(),
            trouble: None,
        }
    }

    /// Reads the next block and returns its rows in the form of pull answers. Waits at most for `wait`, or longer if it
    /// has to connect.
    ///
    /// # Errors
    /// The reason why the log cannot give the rest, as text.
    pub fn advance(&mut self, wait: Duration, request: &RangeRequest) -> Result<Step, String> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if self.ranges.iter().all(RangeRows::is_done) {
            self.reader.close();
            return Ok(Step::Done);
        }
        match self.reader.advance(wait).map_err(|end| end.to_string())? {
            LogStep::Waiting => Ok(Step::Waiting),
            LogStep::Block { buffer, len } => {
                let body = Arc::new(Body::within(buffer, 0..len, &self.pool));
                self.check_first(&body)?;
                // rows that stand before the bad record are returned first; the next call returns the error
                self.trouble = self.find(&body).err();
                Ok(Step::Answers(self.hand_out(&body, request)))
            }
            // the log ended before some range did
            LogStep::Done => Err(self.missing()),
        }
    }

    pub fn close(&mut self) {
        self.reader.close();
    }

    /// Returns the unread rest of the ranges.
    pub fn rest(&self) -> Vec<QueueRange> {
        let unfinished = self.next_offsets().zip(self.ranges.iter().filter(|range| !range.is_done()));
        unfinished.map(|((queue, start), range)| QueueRange { queue: queue.clone(), start, end: range.end }).collect()
    }

    /// Returns the next offset of each unfinished queue.
    pub fn next_offsets(&self) -> impl Iterator<Item = (&Queue, i64)> {
        let unfinished = self.ranges.iter().filter(|range| !range.is_done());
        unfinished.map(|range| (&*range.queue, range.next.max(range.start)))
    }

    /// Checks that the first record is the one in the plan. Otherwise the address now belongs to another broker, whose
    /// log has other records at this position.
    fn check_first(&mut self, body: &[u8]) -> Result<(), String> {
        let Some(expected) = self.first.take() else { return Ok(()) };
        let record = self.reader.records().first();
        let message = record.and_then(|record| Row::new(record.at, record.layout).message(body));
        match message.map(|message| (message.store_timestamp(), message.body_crc())) {
            Some(found) if found == expected => Ok(()),
            found => Err(format!("the log is another one: its first record has {found:?}, not {expected:?}")),
        }
    }

    /// Collects the rows of a block. Returns an error at a record that is not the next of its queue.
    fn find(&mut self, body: &[u8]) -> Result<(), String> {
        for record in self.reader.records() {
            let mut row = Row::new(record.at, record.layout);
            let Some(message) = row.message(body) else { continue };
            let Some(topic) = topic_of(&self.topics, self.last, message.topic()) else { continue };
            self.last = topic;
            let index = self.topics[topic].ranges.get(&message.queue_id());
            let Some(range) = index.and_then(|index| self.ranges.get_mut(*index)) else { continue };
            if !range.takes(&message, record.layout)? {
                continue;
            }
            if self.needs_properties {
                row.find_properties(body);
            }
            range.rows.push(row);
        }
        Ok(())
    }

    /// Returns the collected rows, with one answer for each range.
    fn hand_out(&mut self, body: &Arc<Body>, request: &RangeRequest) -> Vec<PulledAnswer> {
        let filled = self.ranges.iter_mut().filter(|range| !range.rows.is_empty());
        filled.map(|range| range.hand_out(body, request)).collect()
    }

    fn missing(&self) -> String {
        let parts: Vec<String> =
            self.rest().iter().map(|range| format!("{range}: the log has no more of it")).collect();
        parts.join("; ")
    }
}

fn topics_of(ranges: &[QueueRange]) -> Vec<Topic> {
    let mut topics: BTreeMap<&str, BTreeMap<i32, usize>> = BTreeMap::new();
    for (index, QueueRange { queue, .. }) in ranges.iter().enumerate() {
        topics.entry(&queue.topic).or_default().insert(queue.queue_id, index);
    }
    topics.into_iter().map(|(name, ranges)| Topic { name: name.to_owned(), ranges }).collect()
}

/// Returns the index of the topic called `name` in sorted topics, or `None` if there is no such topic. Tries index
/// `last` first.
fn topic_of(topics: &[Topic], last: usize, name: &[u8]) -> Option<usize> {
    if topics.get(last)?.name.as_bytes() == name {
        return Some(last);
    }
    topics.binary_search_by(|topic| topic.name.as_bytes().cmp(name)).ok()
}

impl RangeRows {
    fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// Returns whether a record is a row of the range, or an error if a record before it is missing.
    fn takes(&mut self, message: &Message<'_>, layout: Layout) -> Result<bool, String> {
        // half messages are not dispatched to queues, and records before `since` may be of a deleted topic
        if self.is_done() || !layout.is_dispatched() || message.physical_offset().cast_unsigned() < self.since {
            return Ok(false);
        }
        let (offset, is_batch) = (message.queue_offset(), layout.sys_flag & INNER_BATCH != 0);
        if offset != self.next || is_batch {
            let Queue { topic, broker_name, queue_id } = &*self.queue;
            let place = message.physical_offset();
            let got = if is_batch { "a batch".to_owned() } else { offset.to_string() };
            let expected = format!("expected offset {} at {place} of the log, got {got}", self.next);
            return Err(format!("{topic}, broker {broker_name}, queue {queue_id}: {expected}"));
        }
        self.next += 1;
        // a record before `start` only proves that the order is intact
        Ok(offset >= self.start)
    }

    fn hand_out(&mut self, body: &Arc<Body>, request: &RangeRequest) -> PulledAnswer {
        // the next block will have a similar number of rows
        let room = self.rows.len();
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(room));
        let offsets = self.next - rows.len() as i64..self.next;
        PulledAnswer {
            max_offset: self.end,
            is_end: self.is_done(),
            tags: request.subscription.tags.clone(),
            ..PulledAnswer::read(self.queue.clone(), offsets, body.clone(), rows)
        }
    }
}

impl std::fmt::Debug for LogRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogRows").field("reader", &self.reader).finish_non_exhaustive()
    }
}
