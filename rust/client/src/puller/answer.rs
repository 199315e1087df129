//! The answer to a pull, read and checked.
//!
//! Source: `MQClientAPIImpl.processPullResponse`, `PullMessageResponseHeader`.
use super::body::Body;
use super::pull_status::PullStatus;
use crate::pull_body;
use rmqfast_remoting::Command;
use rmqfast_store::format::cursor::i64_at;
use rmqfast_store::scan::row::Row;

/// Position of a record's queue offset.
const QUEUE_OFFSET_AT: usize = 20;

/// Queue offset of the row `index` of a body: what its record says, or counted from that of the first row.
pub fn queue_offset(body: &[u8], rows: &[Row], counted_from: Option<i64>, index: usize) -> Option<i64> {
    match counted_from {
        Some(first) => Some(first + index as i64),
        None => rows.get(index).and_then(|row| i64_at(body, row.at as usize + QUEUE_OFFSET_AT)),
    }
}

/// What the broker says.
#[derive(Debug)]
pub struct Answer {
    /// How it is meant.
    pub status: PullStatus,
    /// The response code; -1 where there was none.
    pub code: i32,
    /// What a person reads.
    pub remark: String,
    /// The offset to go on at.
    pub next: i64,
    /// First offset of the queue, and the one behind its last.
    pub bounds: (i64, i64),
    /// Id of the broker to ask next.
    pub suggested_broker_id: i64,
    /// Records.
    pub body: Body,
    /// Where they are, and their properties where somebody asks for these.
    pub rows: Vec<Row>,
    /// Where the offsets cannot be the records': the first of them. A queue of a multi-dispatch lists records of others.
    pub counted_from: Option<i64>,
}

impl Answer {
    /// What stands for an answer that did not come or cannot be used.
    pub fn failed(code: i32, remark: impl Into<String>) -> Self {
        let (status, remark) = (PullStatus::Failed, remark.into());
        let (body, rows) = (Body::default(), Vec::new());
        Self { status, code, remark, next: 0, bounds: (0, 0), suggested_broker_id: 0, body, rows, counted_from: None }
    }

    /// Reads the answer to a pull of `topic` from `asked` on; `body` is the command's.
    pub fn of(command: &Command<'_>, body: Body, topic: &str, asked: i64, with_properties: bool) -> Self {
        let remark = command.remark.as_deref().unwrap_or_default();
        Self::read(command.code, remark, |name| command.field(name), body, topic, asked, with_properties)
    }

    /// Reads an answer by the parts of its header.
    pub fn read<'a>(
        code: i32,
        remark: &str,
        field: impl Fn(&str) -> Option<&'a str>,
        body: Body,
        topic: &str,
        asked: i64,
        with_properties: bool,
    ) -> Self {
        let status = PullStatus::of_code(code);
        if status == PullStatus::Failed {
            return Self::failed(code, remark);
        }
        let number = |name: &str| {
            let value = field(name).and_then(|value| value.parse::<i64>().ok());
            value.ok_or_else(|| format!("answer to a pull: expected a number as {name}, got {:?}", field(name)))
        };
        let read = || {
            // brokers send records with FOUND only
            let body = if status == PullStatus::Found { body } else { Body::default() };
            let rows = if with_properties { pull_body::messages(&body, None) } else { pull_body::rows(&body) };
            let answer = Self {
                status,
                code,
                remark: remark.to_owned(),
                // these four come with every answer, also where nothing was found: Java's client fails without them
                next: number("nextBeginOffset")?,
                bounds: (number("minOffset")?, number("maxOffset")?),
                suggested_broker_id: number("suggestWhichBrokerId")?,
                rows: rows.map_err(|error| error.to_string())?,
                body,
                counted_from: None,
            };
            answer.checked(topic, asked)
        };
        read().unwrap_or_else(|reason: String| Self::failed(-1, reason))
    }

    /// The answer, if its messages are what was asked for: in their order, between the offsets.
    fn checked(mut self, topic: &str, asked: i64) -> Result<Self, String> {
        if self.status != PullStatus::Found {
            return Ok(self);
        }
        let is_of_another = |row: &Row| row.message(&self.body).is_some_and(|m| m.topic() != topic.as_bytes());
        // a record that several queues list says the topic and the offset of the one that it was sent to
        self.counted_from = self.rows.first().is_some_and(is_of_another).then_some(asked);
        let mut least = asked;
        for index in 0..self.rows.len() {
            let offset = self.offset(index);
            // a message out of this order would be handed out twice, or never
            if offset < least || offset >= self.next {
                let expected = format!("expected an offset from {least} on and before {}", self.next);
                return Err(format!("answer to a pull: {expected}, got {offset}"));
            }
            least = offset + 1;
        }
        // otherwise the same messages would be asked for again and again
        if self.next <= asked {
            return Err(format!("answer to a pull: expected to go on behind {asked}, got {}", self.next));
        }
        if self.rows.is_empty() {
            self.status = PullStatus::NoMatchedMsg;
        }
        Ok(self)
    }

    /// Queue offset of a message.
    #[inline]
    pub fn offset(&self, index: usize) -> i64 {
        queue_offset(&self.body, &self.rows, self.counted_from, index).unwrap_or_default()
    }

    /// Leaves out what stands at `end` or behind it.
    pub fn cut(&mut self, end: i64) {
        if self.next <= end {
            return;
        }
        let kept = (0..self.rows.len()).find(|index| self.offset(*index) >= end).unwrap_or(self.rows.len());
        if let Some(first) = self.rows.get(kept) {
            // flow control counts the bytes of the body
            self.body.truncate(first.at as usize);
        }
        self.rows.truncate(kept);
        self.next = end;
        if kept == 0 && self.status == PullStatus::Found {
            self.status = PullStatus::NoMatchedMsg;
        }
    }
}
