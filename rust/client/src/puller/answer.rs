//! Parses and checks the answer to a pull.
//!
//! Source: `MQClientAPIImpl.processPullResponse`, `PullMessageResponseHeader`.
use super::body::Body;
use super::options::Queue;
use crate::pull_body;
use rmqfast_remoting::Command;
use rmqfast_remoting::code::response;
use rmqfast_store::format::cursor::i64_at;
use rmqfast_store::format::message::Message;
use rmqfast_store::format::properties::KnownProperties;
use rmqfast_store::scan::row::Row;

/// The status of a pull's answer.
///
/// Source: `PullStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullStatus {
    Found,
    /// The queue had no new message while the broker held the pull.
    NoNewMsg,
    /// No message matches the filter.
    NoMatchedMsg,
    /// The queue does not have the offset. The puller sends no further pulls of the queue before a seek.
    OffsetIllegal,
    /// The broker refused, did not answer in time, or sent an invalid answer. The pull is retried.
    Failed,
}

impl PullStatus {
    /// Returns the status for a response code of `PULL_MESSAGE`.
    pub fn of_code(code: i32) -> Self {
        match code {
            // `ResponseCode`: SUCCESS, PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED
            response::SUCCESS => Self::Found,
            response::PULL_NOT_FOUND => Self::NoNewMsg,
            response::PULL_RETRY_IMMEDIATELY => Self::NoMatchedMsg,
            response::PULL_OFFSET_MOVED => Self::OffsetIllegal,
            _ => Self::Failed,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoNewMsg => "NO_NEW_MSG",
            Self::NoMatchedMsg => "NO_MATCHED_MSG",
            Self::OffsetIllegal => "OFFSET_ILLEGAL",
            Self::Failed => "FAILED",
        }
    }
}

// Position of the queue offset within a record, in bytes.
const QUEUE_OFFSET_AT: usize = 20;

// Header field of answers for static topics, whose queue offsets differ from those in the records.
//
// Source: `PullMessageProcessor.rewriteResponseForStaticTopic`.
const OFFSET_DELTA: &str = "offsetDelta";

/// Returns the queue offset of the row `index`: `counted_from + index` if `counted_from` is given, otherwise the offset
/// in the record. `None` if there is no such row.
pub fn queue_offset(body: &[u8], rows: &[Row], counted_from: Option<i64>, index: usize) -> Option<i64> {
    match counted_from {
        Some(first) => Some(first + index as i64),
        None => rows.get(index).and_then(|row| i64_at(body, row.at as usize + QUEUE_OFFSET_AT)),
    }
}

/// Returns whether the light queue `name` also lists the message.
///
/// Source: `MultiDispatch`.
fn is_dispatched_to(message: &Message<'_>, name: &str) -> bool {
    let names = KnownProperties::of(message.properties()).multi_dispatch.unwrap_or_default();
    names.split(|byte| *byte == b',').any(|other| other == name.as_bytes())
}

/// The answer to a pull after all checks, or a failed pull.
#[derive(Debug)]
pub struct Answer {
    pub status: PullStatus,
    /// The response code, or -1 if no valid answer came.
    pub code: i32,
    pub remark: String,
    /// Offset of the next pull.
    pub next: i64,
    /// The first offset of the queue, and the offset after its last message.
    pub bounds: (i64, i64),
    /// Broker id that the broker suggests for the next pull: 0 is the master, others are slaves.
    pub suggested_broker_id: i64,
    pub body: Body,
    /// Positions of the records in `body`, and of their properties if the application needs them.
    pub rows: Vec<Row>,
    /// Queue offset of the first row in a light queue, whose records contain offsets of another queue. `None` for other
    /// queues.
    pub counted_from: Option<i64>,
}

impl Answer {
    /// Returns the answer that stands for a failed pull: no answer came, or the answer was invalid.
    pub fn failure(code: i32, remark: impl Into<String>) -> Self {
        let (status, remark) = (PullStatus::Failed, remark.into());
        let (body, rows) = (Body::default(), Vec::new());
        Self { status, code, remark, next: 0, bounds: (0, 0), suggested_broker_id: 0, body, rows, counted_from: None }
    }

    /// Parses the answer to a pull of `queue` from the offset `asked`. `body` is the command's body.
    pub fn of(command: &Command<'_>, body: Body, queue: &Queue, asked: i64, with_properties: bool) -> Self {
        let remark = command.remark.as_deref().unwrap_or_default();
        Self::read(command.code, remark, |name| command.field(name), body, queue, asked, with_properties)
    }

    /// Parses an answer from the fields of its header.
    pub fn read<'a>(
        code: i32,
        remark: &str,
        field: impl Fn(&str) -> Option<&'a str>,
        body: Body,
        queue: &Queue,
        asked: i64,
        with_properties: bool,
    ) -> Self {
        let status = PullStatus::of_code(code);
        if status == PullStatus::Failed {
            return Self::failure(code, remark);
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
                // every answer has these four fields, even if nothing was found; Java's client fails without them
                next: number("nextBeginOffset")?,
                bounds: (number("minOffset")?, number("maxOffset")?),
                suggested_broker_id: number("suggestWhichBrokerId")?,
                rows: rows.map_err(|error| error.to_string())?,
                body,
                counted_from: None,
            };
            answer.check(queue, asked, field(OFFSET_DELTA).is_some())
        };
        read().unwrap_or_else(|reason: String| Self::failure(-1, reason))
    }

    /// Checks that the messages belong to the queue, and that their offsets ascend from `asked` to below the next
    /// pull's offset. In a static topic, messages may carry another queue id.
    fn check(mut self, queue: &Queue, asked: i64, is_static: bool) -> Result<Self, String> {
        if self.status != PullStatus::Found {
            return Ok(self);
        }
        for message in self.rows.iter().filter_map(|row| row.message(&self.body)) {
            let is_own = message.topic() == queue.topic.as_bytes();
            if is_own && (is_static || message.queue_id() == queue.queue_id) {
                continue;
            }
            if !is_dispatched_to(&message, &queue.topic) {
                let (topic, number) = (String::from_utf8_lossy(message.topic()), message.queue_id());
                let expected = format!("expected messages of topic {}, queue {}", queue.topic, queue.queue_id);
                return Err(format!("answer to a pull: {expected}, got one of topic {topic}, queue {number}"));
            }
            // a record that several queues index carries the topic and the offset of the queue that it was sent to
            self.counted_from = Some(asked);
        }
        let mut least = asked;
        for index in 0..self.rows.len() {
            let offset = self.offset(index);
            // out of this order, a message would be delivered twice or never
            if offset < least || offset >= self.next {
                let expected = format!("expected an offset from {least} on and before {}", self.next);
                return Err(format!("answer to a pull: {expected}, got {offset}"));
            }
            least = offset + 1;
        }
        // without progress the same messages would be pulled for ever
        if self.next <= asked {
            return Err(format!("answer to a pull: expected to go on behind {asked}, got {}", self.next));
        }
        if self.rows.is_empty() {
            self.status = PullStatus::NoMatchedMsg;
        }
        Ok(self)
    }

    /// Returns the queue offset of the row `index`.
    #[inline]
    pub fn offset(&self, index: usize) -> i64 {
        queue_offset(&self.body, &self.rows, self.counted_from, index).unwrap_or_default()
    }

    /// Removes the messages at offset `end` and later.
    pub fn cut(&mut self, end: i64) {
        if self.next <= end {
            return;
        }
        let count = (0..self.rows.len()).find(|index| self.offset(*index) >= end).unwrap_or(self.rows.len());
        if let Some(first) = self.rows.get(count) {
            // flow control counts the bytes of the body, so these must shrink too
            self.body.truncate(first.at as usize);
        }
        self.rows.truncate(count);
        self.next = end;
        if count == 0 && self.status == PullStatus::Found {
            self.status = PullStatus::NoMatchedMsg;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puller::test_record::record;

    /// Parses the answer to a pull from offset 5.
    fn read(topic: &str, queue_id: i32, records: &[Vec<u8>], more: Option<(&str, &str)>) -> Answer {
        let queue = Queue { topic: topic.into(), broker_name: "b".into(), queue_id };
        let next = (5 + records.len()).to_string();
        let fields =
            [("nextBeginOffset", &*next), ("minOffset", "0"), ("maxOffset", "90"), ("suggestWhichBrokerId", "0")];
        let field = |name: &str| fields.iter().chain(&more).find(|(other, _)| *other == name).map(|(_, value)| *value);
        Answer::read(0, "", field, Body::copy(&records.concat(), None), &queue, 5, false)
    }

    #[test]
    fn a_message_of_another_queue_is_no_answer_wherever_it_stands() {
        let own = record("t", 3, 5, b"");
        assert_eq!(read("t", 3, &[own.clone(), record("t", 3, 6, b"")], None).status, PullStatus::Found);
        for (other, got) in [(record("t", 4, 6, b""), "topic t, queue 4"), (record("u", 3, 6, b""), "topic u, queue 3")]
        {
            for records in [vec![own.clone(), other.clone()], vec![other]] {
                let answer = read("t", 3, &records, None);
                let expected = format!("answer to a pull: expected messages of topic t, queue 3, got one of {got}");
                assert_eq!((answer.status, answer.remark), (PullStatus::Failed, expected));
            }
        }
    }

    #[test]
    fn a_message_that_is_dispatched_to_the_queue_is_one_of_it() {
        let listed = |name: &str| record("orders", 2, 70, format!("INNER_MULTI_DISPATCH\x01{name}").as_bytes());
        let answer = read("%LMQ%a", 0, &[listed("%LMQ%b,%LMQ%a"), listed("%LMQ%a")], None);
        assert_eq!((answer.status, answer.offset(0), answer.offset(1)), (PullStatus::Found, 5, 6));
        for name in ["%LMQ%ab", "%LMQ%b", ""] {
            assert_eq!(read("%LMQ%a", 0, &[listed("%LMQ%a"), listed(name)], None).status, PullStatus::Failed, "{name}");
        }
    }

    #[test]
    fn a_queue_of_a_static_topic_has_messages_of_another_queue() {
        let records = [record("t", 4, 5, b"")];
        assert_eq!(read("t", 3, &records, Some(("offsetDelta", "0"))).status, PullStatus::Found);
        assert_eq!(read("t", 3, &[record("u", 3, 5, b"")], Some(("offsetDelta", "0"))).status, PullStatus::Failed);
    }
}
