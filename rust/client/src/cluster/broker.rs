//! Calls to one broker: offsets, times and messages of queues, configuration.
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

/// A broker counts all its queues for the statistics of a topic, so that answer takes longer.
const SLOW: u32 = 5;

/// Offsets end before this: an entry of a consume queue has 20 bytes, and a queue's size is a number of 63 bits.
///
/// Source: `ConsumeQueue.CQ_STORE_UNIT_SIZE`.
const MOST_OFFSETS: i64 = i64::MAX / 20;

/// A queue's first offset, and the one behind its last.
pub type Bounds = (i64, i64);

/// A queue as its broker describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    pub bounds: Bounds,
    /// When the last message was stored, in milliseconds; `None` of a queue without messages, or where the broker does not say.
    pub last_stored: Option<i64>,
    /// Whether a master answered: a slave may not have the last messages yet.
    pub is_of_master: bool,
}

/// The parts of a message that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// When the broker stored it, in milliseconds.
    pub store_timestamp: i64,
    /// Position of its record in the broker's log.
    pub physical_offset: i64,
    /// Bytes of its record.
    pub len: u32,
    pub body_crc: i32,
    /// Whether its record says the queue and the offset that it was asked for by, and is one message.
    pub is_own: bool,
}

/// Asks one broker, until its interrupt ends the wait.
#[derive(Clone, Copy)]
pub struct BrokerCall<'a> {
    pub cluster: &'a Cluster,
    pub address: &'a str,
    pub interrupt: Interrupt<'a>,
}

impl BrokerCall<'_> {
    /// The states of queues of a topic, in their order.
    pub fn states(&self, topic: &str, queues: &[&Queue], is_of_master: bool) -> Result<Vec<(Queue, QueueState)>> {
        let fields = [("topic", Value::Text(topic))];
        let usual = self.cluster.usual(request::GET_TOPIC_STATS_INFO, &fields);
        let answer = self.ask(Ask { timeout: SLOW * usual.timeout, ..usual })?;
        let stats = self.json(&answer.body)?;
        let by_queue = listed_queues(&stats).map_err(|problem| self.malformed(problem))?;
        let listed = |queue: &Queue| by_queue.get(&(&*queue.broker_name, i64::from(queue.queue_id))).copied();
        // brokers list the queues that are written to, and of a topic that shrinks more may be read
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

    /// The first offset of a queue whose message was stored at `when` or later.
    pub fn offset_at(&self, queue: &Queue, when: i64, bounds: Bounds, group: &str) -> Result<i64> {
        // an empty queue has no message to look at; the next one will stand at its end
        if bounds.0 >= bounds.1 {
            return Ok(bounds.1);
        }
        let fields = [&queue_fields(queue)[..], &[("timestamp", Value::Number(when))]].concat();
        let hint = match self.offset(request::SEARCH_OFFSET_BY_TIMESTAMP, &fields) {
            // without the broker's hint the search takes longer, and comes to the same
            Err(Error::Response { .. }) => bounds.0,
            hint => hint?,
        };
        first_offset_at(when, bounds, hint, |offset| {
            Ok(self.message(queue, offset, group)?.map(|message| message.store_timestamp))
        })
    }

    /// The message at an offset of a queue; `None` for one that has expired.
    pub fn message(&self, queue: &Queue, offset: i64, consumer_group: &str) -> Result<Option<FoundMessage>> {
        let header = PullHeader {
            consumer_group,
            queue,
            offset,
            max_messages: 1,
            // no heartbeat told the broker what this group wants, so the pull says it
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
        // an answer without a message says that the offset has expired
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

    /// The broker's configuration.
    pub fn config(&self) -> Result<HashMap<String, String>> {
        let answer = self.ask(self.cluster.usual(request::GET_BROKER_CONFIG, &[]))?;
        // as `MixAll.properties2String` writes it
        let text = String::from_utf8_lossy(&answer.body);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The end of the broker's log.
    pub fn log_end(&self) -> Result<i64> {
        let answer = self.ask(self.cluster.usual(request::GET_BROKER_RUNTIME_INFO, &[]))?;
        let info = self.json(&answer.body)?;
        let end = info.member("table").and_then(|table| table.member("commitLogMaxOffset")).and_then(Json::text);
        let end = end.and_then(|end| end.parse().ok());
        end.ok_or_else(|| self.malformed("table: expected a commitLogMaxOffset".to_owned()))
    }

    /// Whether the queues of a topic hold other messages than the log lists: see `TopicCluster::are_listed_otherwise`.
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

    /// The answer to a request, if it is a success.
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

/// The error for an answer that cannot be read; 1 is `SYSTEM_ERROR`.
pub fn malformed(address: &str, remark: String) -> Error {
    Error::Response { code: response::SYSTEM_ERROR, remark, address: address.to_owned() }
}

/// The fields that name a queue in a request's header.
pub fn queue_fields(queue: &Queue) -> [(&str, Value<'_>); 2] {
    [("topic", Value::Text(&queue.topic)), ("queueId", Value::Number(queue.queue_id.into()))]
}

/// A queue's bounds, and when its last message was stored.
type Listed = (Bounds, Option<i64>);

/// Bounds by broker name and queue, and when the last message was stored, as `TopicStatsTable` has them.
fn listed_queues(stats: &Json) -> Result<HashMap<(&str, i64), Listed>, String> {
    let Some(Json::Object(table)) = stats.member("offsetTable") else { return Ok(HashMap::new()) };
    let mut queues = HashMap::new();
    for (key, offsets) in table {
        // fastjson writes a key that is a `MessageQueue` as an object, which is no JSON
        let Key::Queue { broker_name, queue_id, .. } = key else { continue };
        let number = |name: &str| match offsets.member(name) {
            // fastjson, too, leaves a field that is missing at 0
            None => Ok(0),
            Some(value) => {
                value.number().ok_or_else(|| format!("{name}: expected a whole number of 64 bits, got {value:?}"))
            }
        };
        // 0 or -1 of a queue without messages
        let last_stored = Some(number("lastUpdateTimestamp")?).filter(|when| *when > 0);
        queues.insert((broker_name.as_str(), *queue_id), ((number("minOffset")?, number("maxOffset")?), last_stored));
    }
    Ok(queues)
}

/// Refuses bounds that no queue has: plans count with them.
fn check_bounds(queue: &Queue, (first, last): Bounds) -> Result<(), String> {
    if 0 <= first && first <= last && last <= MOST_OFFSETS {
        return Ok(());
    }
    let Queue { topic, queue_id, .. } = queue;
    let expected = format!("0 <= first <= end <= {MOST_OFFSETS}");
    Err(format!("offsets of topic {topic}, queue {queue_id}: expected {expected}, got {first} to {last}"))
}
