//! Requests to one broker: for its configuration, and for the offsets, times and messages of its queues.
//!
//! Source: `MQAdminImpl`, `DefaultMQAdminExtImpl.examineTopicStats`.
use super::parallel::all;
use super::requests::Cluster;
use super::search::first_offset_at;
use crate::error::{Error, Result};
use crate::puller::{Answer, Body, PullHeader, PullStatus, PullerOptions, Queue, Subscription};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{Ask, Interrupt, Json, Key, OwnedCommand, Value};
use rmqfast_store::format::message::INNER_BATCH;
use std::collections::HashMap;

/// Topic statistics get this many times the usual timeout, since the broker goes through all queues of the topic.
const SLOW: u32 = 5;

/// Upper limit of queue offsets. A consume queue has 20 bytes per message, and its size must fit a signed 64-bit
/// number.
///
/// Source: `ConsumeQueue.CQ_STORE_UNIT_SIZE`.
const MOST_OFFSETS: i64 = i64::MAX / 20;

/// The first offset of a queue, and the offset after its last message.
pub type Bounds = (i64, i64);

/// The state of a queue, as its broker's topic statistics report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    pub bounds: Bounds,
    /// Store time of the last message in milliseconds; `None` for an empty queue, or if the broker does not report it.
    pub last_stored: Option<i64>,
    /// Whether a master answered. A slave may not have the last messages yet.
    pub is_of_master: bool,
}

/// A message that was looked up by its queue offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// Store time in milliseconds.
    pub store_timestamp: i64,
    /// Position of the record in the broker's commit log.
    pub physical_offset: i64,
    /// Bytes of the record.
    pub len: u32,
    pub body_crc: i32,
    /// Whether the record itself carries the requested queue and offset. False for a message of a light queue, and for
    /// a batch that is stored as one record.
    pub is_own: bool,
}

/// Sends requests to one broker. `interrupt` can end the wait for an answer, for example after Ctrl-C.
#[derive(Clone, Copy)]
pub struct BrokerCall<'a> {
    pub cluster: &'a Cluster,
    pub address: &'a str,
    pub interrupt: Interrupt<'a>,
}

impl BrokerCall<'_> {
    /// Returns the states of the queues of a topic.
    pub fn states(&self, topic: &str, queues: &[&Queue], is_of_master: bool) -> Result<Vec<(Queue, QueueState)>> {
        let fields = [("topic", Value::Text(topic))];
        let usual = self.cluster.usual(request::GET_TOPIC_STATS_INFO, &fields);
        let answer = self.ask(Ask { timeout: SLOW * usual.timeout, ..usual })?;
        let stats = self.json(&answer.body)?;
        let by_queue = listed_queues(&stats).map_err(|problem| self.malformed(problem))?;
        let listed = |queue: &Queue| by_queue.get(&(&*queue.broker_name, i64::from(queue.queue_id))).copied();
        // statistics list only writable queues, but a topic that shrinks has more readable queues
        let unlisted: Vec<&Queue> = queues.iter().copied().filter(|queue| listed(queue).is_none()).collect();
        let bounds =
            all(&unlisted, self.interrupt, |queue, interrupt| BrokerCall { interrupt, ..*self }.bounds(queue))?;
        let unlisted = unlisted.iter().copied().zip(bounds.into_iter().map(|bounds| (bounds, None)));
        let listed = queues.iter().filter_map(|queue| Some((*queue, listed(queue)?)));
        let states = listed.chain(unlisted).map(|(queue, (bounds, last_stored))| {
            check_bounds(queue, bounds).map_err(|problem| self.malformed(problem))?;
            Ok((queue.clone(), QueueState { bounds, last_stored, is_of_master }))
        });
        states.collect()
    }

    fn bounds(&self, queue: &Queue) -> Result<Bounds> {
        let first = self.offset(request::GET_MIN_OFFSET, &queue_fields(queue))?;
        Ok((first, self.offset(request::GET_MAX_OFFSET, &queue_fields(queue))?))
    }

    /// Returns the offset of the first message that was stored at `when` (milliseconds) or later. Returns the queue's
    /// end if all messages are older.
    pub fn offset_at(&self, queue: &Queue, when: i64, bounds: Bounds, group: &str) -> Result<i64> {
        // an empty queue: its next message gets the offset of its end
        if bounds.0 >= bounds.1 {
            return Ok(bounds.1);
        }
        let fields = [&queue_fields(queue)[..], &[("timestamp", Value::Number(when))]].concat();
        let hint = match self.offset(request::SEARCH_OFFSET_BY_TIMESTAMP, &fields) {
            // the hint only shortens the search, so an error is no failure
            Err(Error::Response { .. }) => bounds.0,
            hint => hint?,
        };
        first_offset_at(when, bounds, hint, |offset| {
            Ok(self.message(queue, offset, group)?.map(|message| message.store_timestamp))
        })
    }

    /// Returns the message at an offset of a queue, or `None` if it has expired.
    pub fn message(&self, queue: &Queue, offset: i64, consumer_group: &str) -> Result<Option<FoundMessage>> {
        let header = PullHeader {
            consumer_group,
            queue,
            offset,
            max_messages: 1,
            // the broker has no subscription of this group from a heartbeat, so the pull carries one
            sys_flag: PullerOptions::SUBSCRIPTION,
            commit_offset: 0,
            suspend_millis: 0,
            subscription: &Subscription::default(),
        };
        let fields = header.fields();
        let OwnedCommand { code, remark, fields, body, .. } = self.answer(request::PULL_MESSAGE, &fields)?;
        let body = Body::copy(&body, None);
        let remark = remark.unwrap_or_default();
        let answer = Answer::read(code, &remark, |name| fields.get(name), body, queue, offset, true);
        if answer.status == PullStatus::Failed {
            return Err(self.refused(answer.code, answer.remark));
        }
        // no message in the answer: the offset has expired
        let Some((row, message)) = answer.rows.first().and_then(|row| Some((row, row.message(&answer.body)?))) else {
            return Ok(None);
        };
        let is_of_queue = message.topic() == queue.topic.as_bytes() && message.queue_id() == queue.queue_id;
        Ok(Some(FoundMessage {
            store_timestamp: message.store_timestamp(),
            physical_offset: message.physical_offset(),
            len: row.layout.total,
            body_crc: message.body_crc(),
            is_own: is_of_queue && message.queue_offset() == offset && row.layout.sys_flag & INNER_BATCH == 0,
        }))
    }

    /// Returns all options of the broker's configuration.
    pub fn config(&self) -> Result<HashMap<String, String>> {
        let answer = self.ask(self.cluster.usual(request::GET_BROKER_CONFIG, &[]))?;
        // the format of `MixAll.properties2String`
        let text = String::from_utf8_lossy(&answer.body);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns the end of the broker's commit log.
    pub fn log_end(&self) -> Result<i64> {
        let answer = self.ask(self.cluster.usual(request::GET_BROKER_RUNTIME_INFO, &[]))?;
        let info = self.json(&answer.body)?;
        let end = info.member("table").and_then(|table| table.member("commitLogMaxOffset")).and_then(Json::text);
        let end = end.and_then(|end| end.parse().ok());
        end.ok_or_else(|| self.malformed("table: expected a commitLogMaxOffset".to_owned()))
    }

    /// Returns whether the topic's messages cannot be read from the commit log by queue offset; see
    /// `TopicCluster::are_listed_otherwise`.
    pub fn is_listed_otherwise(&self, topic: &str) -> Result<bool> {
        let answer = self.answer(request::GET_TOPIC_CONFIG, &[("topic", Value::Text(topic))])?;
        match answer.code {
            response::SUCCESS => {}
            response::REQUEST_CODE_NOT_SUPPORTED => return Ok(false),
            code => return Err(self.refused(code, answer.remark.unwrap_or_default())),
        }
        let config = self.json(&answer.body)?;
        let has = |name, value: &str| {
            let text = config.member("attributes").and_then(|attributes| attributes.member(name)).and_then(Json::text);
            text.is_some_and(|text| text.eq_ignore_ascii_case(value))
        };
        let is_mapped = matches!(config.member("mappingDetail"), Some(Json::Object(_)));
        Ok(is_mapped || has("cleanup.policy", "COMPACTION") || has("queue.type", "BatchCQ"))
    }

    /// Sends a request. Returns its answer, or an error if the response code is not SUCCESS.
    pub fn ask(&self, ask: Ask<'_>) -> Result<OwnedCommand> {
        self.cluster.ask(self.address, Ask { interrupt: self.interrupt, ..ask })
    }

    fn answer(&self, code: i32, fields: &[(&str, Value<'_>)]) -> Result<OwnedCommand> {
        let usual = self.cluster.usual(code, fields);
        self.cluster.answer(self.address, Ask { interrupt: self.interrupt, ..usual })
    }

    fn offset(&self, code: i32, fields: &[(&str, Value<'_>)]) -> Result<i64> {
        let answer = self.ask(self.cluster.usual(code, fields))?;
        let offset = answer.fields.get("offset");
        let number = offset.and_then(|offset| offset.parse().ok());
        number.ok_or_else(|| self.malformed(format!("offset: expected a whole number, got {offset:?}")))
    }

    fn json(&self, body: &[u8]) -> Result<Json> {
        Json::of_body(body).map_err(|error| self.malformed(format!("body: {error}")))
    }

    fn malformed(&self, problem: String) -> Error {
        malformed(self.address, problem)
    }

    fn refused(&self, code: i32, remark: String) -> Error {
        Error::Response { code, remark, address: self.address.to_owned() }
    }
}

/// Returns the error for an answer that cannot be parsed.
pub fn malformed(address: &str, remark: String) -> Error {
    Error::Response { code: response::SYSTEM_ERROR, remark, address: address.to_owned() }
}

/// Returns the header fields that identify a queue.
pub fn queue_fields(queue: &Queue) -> [(&str, Value<'_>); 2] {
    [("topic", Value::Text(&queue.topic)), ("queueId", Value::Number(queue.queue_id.into()))]
}

/// The bounds of a queue, and the store time of its last message.
type Listed = (Bounds, Option<i64>);

/// Parses a `TopicStatsTable` into a map with broker name and queue id as key.
fn listed_queues(stats: &Json) -> Result<HashMap<(&str, i64), Listed>, String> {
    let Some(Json::Object(table)) = stats.member("offsetTable") else { return Ok(HashMap::new()) };
    let mut queues = HashMap::new();
    for (key, offsets) in table {
        // fastjson writes a `MessageQueue` key as an object, which is not valid JSON
        let Key::Queue { broker_name, queue_id, .. } = key else { continue };
        let number = |name: &str| match offsets.member(name) {
            // a missing field is 0, as with fastjson
            None => Ok(0),
            Some(value) => {
                value.number().ok_or_else(|| format!("{name}: expected a whole number of 64 bits, got {value:?}"))
            }
        };
        // 0 or -1 for a queue without messages
        let last_stored = Some(number("lastUpdateTimestamp")?).filter(|when| *when > 0);
        queues.insert((broker_name.as_str(), *queue_id), ((number("minOffset")?, number("maxOffset")?), last_stored));
    }
    Ok(queues)
}

/// Returns an error for bounds that no queue can have, so that later arithmetic with them cannot overflow.
fn check_bounds(queue: &Queue, (first, last): Bounds) -> Result<(), String> {
    if 0 <= first && first <= last && last <= MOST_OFFSETS {
        return Ok(());
    }
    let Queue { topic, queue_id, .. } = queue;
    let expected = format!("0 <= first <= end <= {MOST_OFFSETS}");
    Err(format!("offsets of topic {topic}, queue {queue_id}: expected {expected}, got {first} to {last}"))
}
