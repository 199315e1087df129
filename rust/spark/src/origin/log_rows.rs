//! Messages of ranges, found in a stretch of their broker's log.
//!
//! A log has the records of all topics. Those of a range stand there one behind the other, each offset once: where that is not so,
//! the log does not tell what the queue lists, and whoever reads has to pull.
use crate::origin::piece::LogPart;
use rmqfast_client::puller::{Body, Pool, PulledAnswer, Queue};
use rmqfast_client::ranges::{QueueRange, RangeRequest, Step};
use rmqfast_replication::{LogReader, LogStep};
use rmqfast_store::format::message::{INNER_BATCH, Layout, Message};
use rmqfast_store::scan::row::Row;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Reads the messages of ranges out of a log.
pub struct LogRows {
    reader: LogReader,
    pool: Arc<Pool>,
    /// Identity of the first record, until it is verified.
    first: Option<(i64, i32)>,
    ranges: Vec<RangeRows>,
    topics: Vec<Topic>,
    /// The topic of the last record that was of one: most records are of the topic of the one before.
    last: usize,
    needs_properties: bool,
    trouble: Option<String>,
}

/// A range, and how much of it was found.
struct RangeRows {
    queue: Arc<Queue>,
    /// The offset of the next record, from the one that was planned as the first.
    next: i64,
    /// Earlier records are left out.
    start: i64,
    end: i64,
    /// From this place on the log lists the range.
    since: u64,
    /// Those of the block at hand.
    rows: Vec<Row>,
}

/// A topic, and the range of each number of a queue.
struct Topic {
    name: String,
    ranges: BTreeMap<i32, usize>,
}

impl LogRows {
    /// Opens without a request.
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

    /// Reads on; waits for `wait` at most, and longer only to connect. What it gives are answers as pulls have them.
    ///
    /// # Errors
    /// Why the log does not tell the rest, in words.
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
                // what was found before goes first
                self.trouble = self.find(&body).err();
                Ok(Step::Answers(self.hand_out(&body, request)))
            }
            // some range is not at its end
            LogStep::Done => Err(self.missing()),
        }
    }

    pub fn close(&mut self) {
        self.reader.close();
    }

    /// The unread rest of the ranges.
    pub fn rest(&self) -> Vec<QueueRange> {
        let unfinished = self.next_offsets().zip(self.ranges.iter().filter(|range| !range.is_done()));
        unfinished.map(|((queue, start), range)| QueueRange { queue: queue.clone(), start, end: range.end }).collect()
    }

    /// The next offset of each unfinished queue.
    pub fn next_offsets(&self) -> impl Iterator<Item = (&Queue, i64)> {
        let unfinished = self.ranges.iter().filter(|range| !range.is_done());
        unfinished.map(|range| (&*range.queue, range.next.max(range.start)))
    }

    /// An address may lead to another broker by now, whose log has other records at the same places.
    fn check_first(&mut self, body: &[u8]) -> Result<(), String> {
        let Some(expected) = self.first.take() else { return Ok(()) };
        let record = self.reader.records().first();
        let message = record.and_then(|record| Row::new(record.at, record.layout).message(body));
        match message.map(|message| (message.store_timestamp(), message.body_crc())) {
            Some(found) if found == expected => Ok(()),
            found => Err(format!("the log is another one: its first record has {found:?}, not {expected:?}")),
        }
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

    /// The rows that were found, range by range.
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

impl RangeRows {
    fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// Whether a record is a row of the range; the next one of its queue it has to be.
    fn takes(&mut self, message: &Message<'_>, layout: Layout) -> Result<bool, String> {
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
        Ok(offset >= self.start)
    }

    fn hand_out(&mut self, body: &Arc<Body>, request: &RangeRequest) -> PulledAnswer {
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
