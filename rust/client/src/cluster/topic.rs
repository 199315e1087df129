//! The brokers of a topic: all of them are asked at once, and each about all its queues in one request.
//!
//! Source: `DefaultMQAdminExtImpl.examineTopicStats`, `MQAdminImpl`, `MQClientInstance.checkClientInBroker`.
use super::parallel::each;
use super::requests::{Cluster, ClusterOptions};
use super::route::TopicRoute;
use super::search::first_offset_at;
use crate::error::{Error, Result};
use crate::puller::{Answer, Body, PullHeader, PullStatus, PullerOptions, Queue, Subscription};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{Ask, Interrupt, Json, Key, OwnedCommand, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The codes of a broker that starts, stops, or has too much to do.
const BUSY: [i32; 3] = [response::SYSTEM_BUSY, response::SERVICE_NOT_AVAILABLE, response::TOPIC_NOT_EXIST];
const CLIENT_ID: &str = "rmqfast-spark";
/// A broker counts all its queues for the answer.
const SLOW: u32 = 5;

/// A queue's first offset, and the one behind its last.
pub type Bounds = (i64, i64);

/// The brokers of a topic, as whoever plans a read of it sees them.
#[derive(Debug)]
pub struct TopicCluster {
    cluster: Cluster,
    topic: String,
    /// The last one that was looked up.
    route: Mutex<Option<TopicRoute>>,
}

impl TopicCluster {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// As [`Cluster::new`].
    pub fn new(options: ClusterOptions, topic: &str) -> Result<Self> {
        Ok(Self { cluster: Cluster::new(options)?, topic: topic.to_owned(), route: Mutex::default() })
    }

    /// Where the topic is now.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]: the name servers do not know it. [`Error::Client`]: no name server answers, or the topic has no
    /// queue that may be read.
    pub fn route(&self, interrupt: Interrupt<'_>) -> Result<TopicRoute> {
        let fields = [("topic", Value::Text(&self.topic))];
        let answer =
            match self.cluster.ask_name_server(self.cluster.usual(request::GET_ROUTEINFO_BY_TOPIC, &fields), interrupt)
            {
                Err(Error::Response { code: response::TOPIC_NOT_EXIST, .. }) => return Err(self.unknown(interrupt)),
                answer => answer?,
            };
        let route = TopicRoute::of_body(&self.topic, &answer.body);
        let mut route = route.map_err(|problem| malformed("name server", problem))?;
        if let Some(translate) = &self.cluster.options().translate {
            for address in route.addresses.values_mut() {
                *address = translate(address)?;
            }
        }
        // a plan without queues would look like a topic without messages
        if route.queues.is_empty() {
            return Err(Error::Client {
                text: format!("topic {} has no queue that may be read", self.topic),
                remark: String::new(),
                code: response::NO_PERMISSION,
                next_step: "its permission (perm) must have the bit 4, and readQueueNums be more than 0",
            });
        }
        *self.route.lock().unwrap_or_else(PoisonError::into_inner) = Some(route.clone());
        Ok(route)
    }

    /// Where queues begin and end. With `is_patient` those of a broker that does not answer now are left out, with a warning.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker does not answer, or refuses.
    pub fn bounds(&self, queues: &[Queue], is_patient: bool, interrupt: Interrupt<'_>) -> Result<Vec<(Queue, Bounds)>> {
        let mut by_broker: BTreeMap<&str, Vec<&Queue>> = BTreeMap::new();
        queues.iter().for_each(|queue| by_broker.entry(&queue.broker_name).or_default().push(queue));
        let brokers: Vec<(&str, Vec<&Queue>)> = by_broker.into_iter().collect();
        let route = self.last_route(interrupt)?;
        let answers = each(&brokers, interrupt, |(broker, queues), interrupt| {
            self.bounds_at(address_of(&route, &self.topic, broker)?, queues, interrupt)
        })?;
        let mut bounds = HashMap::new();
        for ((broker, _), answer) in brokers.iter().zip(answers) {
            match answer {
                Ok(of_broker) => bounds.extend(of_broker),
                Err(error) if is_patient && is_passing(&error) => {
                    self.cluster
                        .warn(format!("broker {broker} does not answer, its queues stay where they are: {error}"));
                }
                Err(error) => return Err(unasked(&route, broker, error)),
            }
        }
        Ok(queues.iter().filter_map(|queue| Some((queue.clone(), *bounds.get(queue)?))).collect())
    }

    /// The first offset of each queue whose message was stored at `when` or later, in their order; `group` looks at messages.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn offsets_at(
        &self,
        when: i64,
        queues: &[(Queue, Bounds)],
        group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<i64>> {
        let route = self.last_route(interrupt)?;
        let answers = each(queues, interrupt, |(queue, bounds), interrupt| {
            let address = address_of(&route, &self.topic, &queue.broker_name)?;
            self.offset_at(address, queue, when, *bounds, group, interrupt)
        })?;
        let offsets = queues.iter().zip(answers);
        offsets.map(|((queue, _), answer)| answer.map_err(|error| unasked(&route, &queue.broker_name, error))).collect()
    }

    /// Has each broker compile an SQL92 expression: one that a broker does not understand it takes for all messages. With
    /// `is_patient` a broker that does not answer now is passed over.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker does not take it.
    pub fn check_expression(
        &self,
        subscription: &Subscription,
        group: &str,
        is_patient: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<()> {
        // as Java's clients, which have every other type of expression checked
        if subscription.expression_type == "TAG" {
            return Ok(());
        }
        let data = serde_json::json!({
            "classFilterMode": false,
            // the sets of tags and of their hashes are of no use to SQL92
            "codeSet": [],
            "expressionType": subscription.expression_type,
            "subString": subscription.expression,
            "subVersion": subscription.version,
            "tagsSet": [],
            "topic": self.topic,
        });
        let body = serde_json::json!({ "clientId": CLIENT_ID, "group": group, "subscriptionData": data }).to_string();
        let route = self.last_route(interrupt)?;
        let brokers: Vec<(&String, &String)> = route.addresses.iter().collect();
        let answers = each(&brokers, interrupt, |(_, address), interrupt| {
            let check = Ask { body: body.as_bytes(), ..self.cluster.usual(request::CHECK_CLIENT_CONFIG, &[]) };
            self.cluster.ask(address, check, interrupt)
        })?;
        for ((broker, _), answer) in brokers.into_iter().zip(answers) {
            match answer {
                // this broker is there and will not change its mind, so patience does not help
                Err(error @ Error::Response { code, .. }) => {
                    return Err(Error::Client {
                        text: format!("broker {broker} does not filter by sql: "),
                        remark: error.remark(),
                        code,
                        next_step: "correct the expression, or set enablePropertyFilter=true in its broker.conf; or read all \
                                    messages and filter by properties['...'] in Spark",
                    });
                }
                Err(error) if !is_patient => return Err(unasked(&route, broker, error)),
                Err(_) | Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Stores offsets of a group at the brokers, so that tools see how far it is; what fails is a warning.
    ///
    /// # Errors
    /// Those of `interrupt`.
    pub fn commit(&self, group: &str, offsets: &[(Queue, i64)], interrupt: Interrupt<'_>) -> Result<()> {
        let route = self.last_route(interrupt)?;
        let answers = each(offsets, interrupt, |(queue, offset), interrupt| {
            let address = address_of(&route, &self.topic, &queue.broker_name)?;
            // the broker stores any offset that it is told, also one that is less than before
            let fields = [("consumerGroup", Value::Text(group)), ("commitOffset", Value::Number(*offset))];
            let fields = [&fields[..], &of_queue(queue)].concat();
            self.cluster.ask(address, self.cluster.usual(request::UPDATE_CONSUMER_OFFSET, &fields), interrupt)
        })?;
        for ((queue, offset), answer) in offsets.iter().zip(answers) {
            if let Err(error) = answer {
                let Queue { broker_name, queue_id, .. } = queue;
                let place = format!("queue {queue_id} at {broker_name}");
                self.cluster.warn(format!("group {group}: the offset {offset} of {place} is not stored: {error}"));
            }
        }
        Ok(())
    }

    /// Where a broker is read now, as a range reader asks while it does not answer.
    ///
    /// # Errors
    /// As [`route`](Self::route); [`Error::Client`] where the broker is not in it.
    pub fn locate(&self, broker_name: &str, interrupt: Interrupt<'_>) -> Result<String> {
        let route = self.route(interrupt)?;
        address_of(&route, &self.topic, broker_name).map(str::to_owned)
    }

    /// What is worth a warning since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.cluster.take_warnings()
    }

    /// Ends the connections.
    pub fn close(&self) {
        self.cluster.close();
    }

    /// The route of the last look-up; looked up where there was none.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub fn last_route(&self, interrupt: Interrupt<'_>) -> Result<TopicRoute> {
        let last = self.route.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map_or_else(|| self.route(interrupt), Ok)
    }

    fn unknown(&self, interrupt: Interrupt<'_>) -> Error {
        let answer = self
            .cluster
            .ask_name_server(self.cluster.usual(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, &[]), interrupt);
        let topics = answer.ok().and_then(|answer| Json::of_body(&answer.body).ok());
        let topics = topics.as_ref().and_then(|topics| topics.member("topicList")).map_or(&[][..], Json::items);
        // nobody means a retry or dead-letter topic, `%RETRY%group` and `%DLQ%group`
        let names = topics.iter().filter_map(Json::text).filter(|name| !name.starts_with('%'));
        let hint = match rmqfast_store::Error::unknown("topic", &self.topic, names) {
            rmqfast_store::Error::Unknown { near, .. } if !near.is_empty() => {
                format!("did you mean {}?", near.join(", "))
            }
            _ => "create it, or see that its brokers are registered there".to_owned(),
        };
        Error::UnknownTopic(format!("unknown topic '{}' at the name server; {hint}", self.topic))
    }

    fn bounds_at(&self, address: &str, queues: &[&Queue], interrupt: Interrupt<'_>) -> Result<Vec<(Queue, Bounds)>> {
        let fields = [("topic", Value::Text(&self.topic))];
        let usual = self.cluster.usual(request::GET_TOPIC_STATS_INFO, &fields);
        let answer = self.cluster.ask(address, Ask { timeout: SLOW * usual.timeout, ..usual }, interrupt)?;
        let stats = Json::of_body(&answer.body).map_err(|error| malformed(address, format!("body: {error}")))?;
        let by_queue = bounds_of(&stats);
        let bounds = queues.iter().map(|queue| {
            // brokers list the queues that are written to, and of a topic that shrinks more may be read
            let bounds = match by_queue.get(&(&*queue.broker_name, i64::from(queue.queue_id))) {
                Some(bounds) => *bounds,
                None => (
                    self.offset(address, request::GET_MIN_OFFSET, &of_queue(queue), interrupt)?,
                    self.offset(address, request::GET_MAX_OFFSET, &of_queue(queue), interrupt)?,
                ),
            };
            Ok(((*queue).clone(), bounds))
        });
        bounds.collect()
    }

    fn offset_at(
        &self,
        address: &str,
        queue: &Queue,
        when: i64,
        bounds: Bounds,
        group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<i64> {
        // an empty queue has no message to look at; the next one will stand at its end
        if bounds.0 >= bounds.1 {
            return Ok(bounds.1);
        }
        let fields = [&of_queue(queue)[..], &[("timestamp", Value::Number(when))]].concat();
        let hint = match self.offset(address, request::SEARCH_OFFSET_BY_TIMESTAMP, &fields, interrupt) {
            // without the broker's hint the search takes longer, and comes to the same
            Err(Error::Response { .. }) => bounds.0,
            hint => hint?,
        };
        first_offset_at(when, bounds, hint, |offset| self.store_time(address, queue, offset, group, interrupt))
    }

    fn store_time(
        &self,
        address: &str,
        queue: &Queue,
        offset: i64,
        consumer_group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<i64>> {
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
        let OwnedCommand { code, remark, fields, body, .. } =
            self.cluster.answer(address, self.cluster.usual(request::PULL_MESSAGE, &fields), interrupt)?;
        let body = Body::copied(&body, None);
        let remark = remark.unwrap_or_default();
        let answer = Answer::read(code, &remark, |name| fields.get(name), body, &queue.topic, offset);
        if answer.status == PullStatus::Failed {
            let (code, remark, address) = (answer.code, answer.remark, address.to_owned());
            return Err(Error::Response { code, remark, address });
        }
        // an answer without a message says that the offset has expired
        let message = answer.rows.first().and_then(|row| row.message(&answer.body));
        Ok(message.map(|message| message.store_timestamp()))
    }

    fn offset(&self, address: &str, code: i32, fields: &[(&str, Value<'_>)], interrupt: Interrupt<'_>) -> Result<i64> {
        let answer = self.cluster.ask(address, self.cluster.usual(code, fields), interrupt)?;
        let offset = answer.fields.get("offset");
        let number = offset.and_then(|offset| offset.parse().ok());
        number.ok_or_else(|| malformed(address, format!("offset: expected a whole number, got {offset:?}")))
    }
}

fn of_queue(queue: &Queue) -> [(&str, Value<'_>); 2] {
    [("topic", Value::Text(&queue.topic)), ("queueId", Value::Number(queue.queue_id.into()))]
}

/// First and last offsets by broker name and queue, as `TopicStatsTable` has them.
fn bounds_of(stats: &Json) -> HashMap<(&str, i64), Bounds> {
    let Some(Json::Object(table)) = stats.member("offsetTable") else { return HashMap::new() };
    let bounds = table.iter().filter_map(|(key, offsets)| {
        // fastjson writes a key that is a `MessageQueue` as an object, which is no JSON
        let Key::Queue { broker_name, queue_id, .. } = key else { return None };
        let number = |name| offsets.member(name).and_then(Json::number).unwrap_or(0);
        Some(((broker_name.as_str(), *queue_id), (number("minOffset"), number("maxOffset"))))
    });
    bounds.collect()
}

fn address_of<'a>(route: &'a TopicRoute, topic: &str, broker_name: &str) -> Result<&'a str> {
    route.addresses.get(broker_name).map(String::as_str).ok_or_else(|| {
        let text = format!("broker {broker_name} is not in the route of topic {topic}");
        Error::client(text, "", "is it running, and registered at this name server?")
    })
}

/// The error for an answer that cannot be read; 1 is `SYSTEM_ERROR`.
fn malformed(address: &str, remark: String) -> Error {
    Error::Response { code: response::SYSTEM_ERROR, remark, address: address.to_owned() }
}

/// Whether the failure may be over in a while.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Response { code, .. } => BUSY.contains(code),
        // `Client`: the broker is not in the route, as while it starts anew
        Error::Remoting(_) | Error::Client { .. } => true,
        _ => false,
    }
}

fn unasked(route: &TopicRoute, broker_name: &str, error: Error) -> Error {
    let code = match &error {
        Error::Response { code, .. } => *code,
        Error::Remoting(_) => -1,
        _ => return error,
    };
    let address = route.addresses.get(broker_name).map(String::as_str).unwrap_or_default();
    Error::Client {
        text: format!("broker {broker_name} at {address} cannot be asked: "),
        remark: error.remark(),
        code,
        next_step: "see that it runs and that the driver and the executors reach that address, and that the account \
                    (accessKey, secretKey) may read the topic and use the group",
    }
}
