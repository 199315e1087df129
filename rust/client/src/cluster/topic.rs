//! The brokers of topics: all of them are asked at once, and each about all queues of a topic in one request.
//!
//! Source: `DefaultMQAdminExtImpl.examineTopicStats`, `MQAdminImpl`, `MQClientInstance.checkClientInBroker`.
use super::parallel::{all, each};
use super::requests::{Cluster, ClusterOptions};
use super::route::TopicRoute;
use super::search::first_offset_at;
use crate::error::{Error, Result};
use crate::names::is_system;
use crate::puller::{Answer, Body, PullHeader, PullStatus, PullerOptions, Queue, Subscription};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{self as remoting, Ask, Interrupt, Json, Key, OwnedCommand, Value};
use rmqfast_store::format::message::INNER_BATCH;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The codes of a broker that starts, stops, or has too much to do.
const BUSY: [i32; 3] = [response::SYSTEM_BUSY, response::SERVICE_NOT_AVAILABLE, response::TOPIC_NOT_EXIST];
/// What follows a cluster's name in that of the topic for its replies.
const REPLIES: &str = "_REPLY_TOPIC";
const CLIENT_ID: &str = "rmqfast-spark";
/// A broker counts all its queues for the answer.
const SLOW: u32 = 5;

/// A queue's first offset, and the one behind its last.
pub type Bounds = (i64, i64);

/// Offsets end before this: an entry of a consume queue has 20 bytes, and a queue's size is a number of 63 bits.
///
/// Source: `ConsumeQueue.CQ_STORE_UNIT_SIZE`.
const MOST_OFFSETS: i64 = i64::MAX / 20;

/// A queue as its broker describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The first offset, and the one behind the last.
    pub bounds: Bounds,
    /// When the last message was stored, in milliseconds; `None` of a queue without messages, or where the broker does not say.
    pub last_stored: Option<i64>,
    /// Whether a master answered: a slave may not have the last messages yet.
    pub is_of_master: bool,
}

/// A message of a queue, as far as a plan needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// When the broker stored it, in milliseconds.
    pub store_timestamp: i64,
    /// Where its record stands in the broker's log.
    pub physical_offset: i64,
    /// Bytes of its record.
    pub len: u32,
    /// CRC of its body.
    pub body_crc: i32,
    /// Whether its record says the queue and the offset that it was asked for by, and is one message.
    pub is_own: bool,
}

/// The brokers of topics, as whoever plans a read of them sees them.
#[derive(Debug)]
pub struct TopicCluster {
    cluster: Cluster,
    /// Those that were looked up last, by topic.
    routes: Mutex<BTreeMap<String, TopicRoute>>,
}

impl TopicCluster {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// As [`Cluster::new`].
    pub fn new(options: ClusterOptions) -> Result<Self> {
        Ok(Self { cluster: Cluster::new(options)?, routes: Mutex::default() })
    }

    /// The topics that name servers know, sorted, without those that are RocketMQ's own. Those of retries and dead letters,
    /// `%RETRY%group` and `%DLQ%group`, are among them.
    ///
    /// # Errors
    /// [`Error::Client`]: no name server answers. [`Error::Response`]: it refuses.
    pub fn topics(&self, interrupt: Interrupt<'_>) -> Result<Vec<String>> {
        // each cluster and each broker has a topic of its name
        let own = self.topic_list(request::GET_SYSTEM_TOPIC_LIST_FROM_NS, interrupt)?;
        let is_reply = |topic: &str| topic.strip_suffix(REPLIES).is_some_and(|name| own.contains(name));
        let mut topics = self.topic_list(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, interrupt)?;
        topics.retain(|topic| !is_system(topic) && !own.contains(topic) && !is_reply(topic));
        Ok(topics.into_iter().collect())
    }

    /// Where a topic is now.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]: the name servers do not know it. [`Error::Client`]: no name server answers, or the topic has no
    /// queue that may be read.
    pub fn route(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<TopicRoute> {
        let route = match self.cluster.route_data(topic, interrupt) {
            Err(Error::Response { code: response::TOPIC_NOT_EXIST, .. }) => {
                return Err(self.unknown(topic, interrupt));
            }
            route => route?,
        };
        let mut route = TopicRoute::of(topic, &route);
        if let Some(translate) = &self.cluster.options().translate {
            for address in route.addresses.values_mut() {
                *address = translate(address)?;
            }
        }
        // a plan without queues would look like a topic without messages
        if route.queues.is_empty() {
            return Err(Error::Client {
                text: format!("topic {topic} has no queue that may be read"),
                remark: String::new(),
                code: response::NO_PERMISSION,
                next_step: "its permission (perm) must have the bit 4, and readQueueNums be more than 0",
            });
        }
        self.lock().insert(topic.to_owned(), route.clone());
        Ok(route)
    }

    /// Where topics are now, in their order.
    ///
    /// # Errors
    /// Those of `interrupt`; those of [`route`](Self::route) are items of the result.
    pub fn routes(&self, topics: &[String], interrupt: Interrupt<'_>) -> Result<Vec<Result<TopicRoute>>> {
        each(topics, interrupt, |topic, interrupt| self.route(topic, interrupt))
    }

    /// Where queues begin and end. With `is_patient` those of a broker that does not answer now are left out, with a warning.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker does not answer, or refuses.
    pub fn bounds(&self, queues: &[Queue], is_patient: bool, interrupt: Interrupt<'_>) -> Result<Vec<(Queue, Bounds)>> {
        let states = self.states(queues, is_patient, interrupt)?;
        Ok(states.into_iter().map(|(queue, state)| (queue, state.bounds)).collect())
    }

    /// Queues as their brokers describe them. With `is_patient` those of a broker that does not answer now are left out, with a
    /// warning.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn states(
        &self,
        queues: &[Queue],
        is_patient: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<(Queue, QueueState)>> {
        let mut by_place: BTreeMap<(&str, &str), Vec<&Queue>> = BTreeMap::new();
        queues.iter().for_each(|queue| by_place.entry((&queue.broker_name, &queue.topic)).or_default().push(queue));
        let places: Vec<((&str, &str), Vec<&Queue>)> = by_place.into_iter().collect();
        let routes = self.last_routes(queues, interrupt)?;
        let answers = each(&places, interrupt, |((broker, topic), queues), interrupt| {
            let is_of_master = routes.get(*topic).is_some_and(|route| route.masters.contains(*broker));
            self.states_at(address_of(&routes, topic, broker)?, topic, queues, is_of_master, interrupt)
        })?;
        let (mut states, mut silent) = (HashMap::new(), BTreeSet::new());
        for (((broker, topic), _), answer) in places.iter().zip(answers) {
            match answer {
                Ok(of_place) => states.extend(of_place),
                Err(error) if is_patient && is_passing(&error) => self.warn_of_silence(&mut silent, broker, &error),
                Err(error) => return Err(unasked(&routes, topic, broker, error)),
            }
        }
        Ok(queues.iter().filter_map(|queue| Some((queue.clone(), *states.get(queue)?))).collect())
    }

    /// The messages at offsets of queues; `None` for one that has expired. Those of a broker that does not answer now are left out,
    /// with a warning.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker refuses.
    pub fn messages_of_present(
        &self,
        places: &[(Queue, i64)],
        group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<BTreeMap<Queue, Option<FoundMessage>>> {
        let routes = self.last_routes(places.iter().map(|(queue, _)| queue), interrupt)?;
        let answers = each_heard(&routes, places, interrupt, |address, (queue, offset), interrupt| {
            self.found_at(address, queue, *offset, group, interrupt)
        })?;
        let (mut found, mut silent) = (BTreeMap::new(), BTreeSet::new());
        for ((queue, _), answer) in places.iter().zip(answers) {
            match answer {
                Ok(message) => drop(found.insert(queue.clone(), message)),
                Err(error) if is_passing(&error) => self.warn_of_silence(&mut silent, &queue.broker_name, &error),
                Err(error) => return Err(unasked(&routes, &queue.topic, &queue.broker_name, error)),
            }
        }
        Ok(found)
    }

    /// Whether the last route of a queue's topic has its broker.
    pub fn has_broker(&self, queue: &Queue) -> bool {
        self.lock().get(&queue.topic).is_some_and(|route| route.addresses.contains_key(&*queue.broker_name))
    }

    /// Warns once of a broker, however many topics and queues it has.
    fn warn_of_silence<'a>(&self, silent: &mut BTreeSet<&'a str>, broker: &'a str, error: &Error) {
        if silent.insert(broker) {
            self.cluster.warn(format!("broker {broker} does not answer, its queues stay where they are: {error}"));
        }
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
        self.of_queues(
            queues,
            |(queue, _)| queue,
            interrupt,
            |address, (queue, bounds), interrupt| self.offset_at(address, queue, when, *bounds, group, interrupt),
        )
    }

    /// The first offset of each queue whose message stands at `place` of its broker's log or behind it, in their order; each is
    /// looked for from an offset on.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn offsets_behind(
        &self,
        place: i64,
        queues: &[(Queue, Bounds, i64)],
        group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<i64>> {
        self.of_queues(
            queues,
            |(queue, ..)| queue,
            interrupt,
            |address, (queue, bounds, hint), interrupt| {
                first_offset_at(place, *bounds, *hint, |offset| {
                    let found = self.found_at(address, queue, offset, group, interrupt)?;
                    Ok(found.map(|found| found.physical_offset))
                })
            },
        )
    }

    /// The messages at offsets of queues, in their order; `None` for one that has expired.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn messages(
        &self,
        places: &[(Queue, i64)],
        group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<Option<FoundMessage>>> {
        self.of_queues(
            places,
            |(queue, _)| queue,
            interrupt,
            |address, (queue, offset), interrupt| self.found_at(address, queue, *offset, group, interrupt),
        )
    }

    /// The configuration of a broker of a topic, and its address.
    ///
    /// # Errors
    /// [`Error::Response`]: it refuses. [`Error::Remoting`]: it does not answer. [`Error::Client`]: it is not in the route.
    pub fn broker_config(&self, queue: &Queue, interrupt: Interrupt<'_>) -> Result<(String, HashMap<String, String>)> {
        let routes = self.last_routes([queue], interrupt)?;
        let address = address_of(&routes, &queue.topic, &queue.broker_name)?;
        Ok((address.to_owned(), self.config_at(address, interrupt)?))
    }

    /// What the broker at an address, a master or a slave, says of its configuration.
    ///
    /// # Errors
    /// [`Error::Response`]: it refuses. [`Error::Remoting`]: it does not answer.
    pub fn config_at(&self, address: &str, interrupt: Interrupt<'_>) -> Result<HashMap<String, String>> {
        let answer = self.cluster.ask(address, self.cluster.usual(request::GET_BROKER_CONFIG, &[]), interrupt)?;
        // as `MixAll.properties2String` writes it
        let text = String::from_utf8_lossy(&answer.body);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Where the log of the broker at an address ends.
    ///
    /// # Errors
    /// [`Error::Response`]: it refuses, or does not say. [`Error::Remoting`]: it does not answer.
    pub fn log_end_at(&self, address: &str, interrupt: Interrupt<'_>) -> Result<i64> {
        let usual = self.cluster.usual(request::GET_BROKER_RUNTIME_INFO, &[]);
        let answer = self.cluster.ask(address, usual, interrupt)?;
        let info = Json::of_body(&answer.body).map_err(|error| malformed(address, format!("body: {error}")))?;
        let end = info.member("table").and_then(|table| table.member("commitLogMaxOffset")).and_then(Json::text);
        let end = end.and_then(|end| end.parse().ok());
        end.ok_or_else(|| malformed(address, "table: expected a commitLogMaxOffset".to_owned()))
    }

    /// Where the slaves of the broker of a queue are, in the order of their ids.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub fn slaves(&self, queue: &Queue, interrupt: Interrupt<'_>) -> Result<Vec<String>> {
        let mut routes = self.last_routes([queue], interrupt)?;
        let slaves = routes.get_mut(&queue.topic).and_then(|route| route.slaves.remove(&*queue.broker_name));
        let mut slaves = slaves.unwrap_or_default();
        if let Some(translate) = &self.cluster.options().translate {
            for address in &mut slaves {
                *address = translate(address)?;
            }
        }
        Ok(slaves)
    }

    /// Whether a broker of 5.x gives other messages of the topic of each queue than its log lists, or counts them otherwise: it
    /// compacts the topic, its records are batches, or its queues are parts of others. One that does not know the question has no
    /// such topics.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn are_listed_otherwise(&self, queues: &[Queue], interrupt: Interrupt<'_>) -> Result<Vec<bool>> {
        self.of_queues(
            queues,
            |queue| queue,
            interrupt,
            |address, queue, interrupt| self.is_listed_otherwise(address, &queue.topic, interrupt),
        )
    }

    fn is_listed_otherwise(&self, address: &str, topic: &str, interrupt: Interrupt<'_>) -> Result<bool> {
        let fields = [("topic", Value::Text(topic))];
        let usual = self.cluster.usual(request::GET_TOPIC_CONFIG, &fields);
        let answer = self.cluster.answer(address, usual, interrupt)?;
        match answer.code {
            response::SUCCESS => {}
            response::REQUEST_CODE_NOT_SUPPORTED => return Ok(false),
            code => {
                let (remark, address) = (answer.remark.unwrap_or_default(), address.to_owned());
                return Err(Error::Response { code, remark, address });
            }
        }
        let config = Json::of_body(&answer.body).map_err(|error| malformed(address, format!("body: {error}")))?;
        let has = |name, wanted: &str| {
            let value = config.member("attributes").and_then(|attributes| attributes.member(name)).and_then(Json::text);
            value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let is_mapped = matches!(config.member("mappingDetail"), Some(Json::Object(_)));
        Ok(is_mapped || has("cleanup.policy", "COMPACTION") || has("queue.type", "BatchCQ"))
    }

    /// What `ask` says of each item at the broker of its queue, in their order.
    fn of_queues<I: Sync, T: Send>(
        &self,
        items: &[I],
        queue_of: impl Fn(&I) -> &Queue + Sync,
        interrupt: Interrupt<'_>,
        ask: impl Fn(&str, &I, Interrupt<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let routes = self.last_routes(items.iter().map(&queue_of), interrupt)?;
        all(items, interrupt, |item, interrupt| {
            let Queue { topic, broker_name, .. } = queue_of(item);
            let answer = address_of(&routes, topic, broker_name).and_then(|address| ask(address, item, interrupt));
            answer.map_err(|error| unasked(&routes, topic, broker_name, error))
        })
    }

    /// Has each broker of `queues` compile an SQL92 expression: one that a broker does not understand it takes for all
    /// messages. With `is_patient` a broker that does not answer now is passed over.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker does not take it.
    pub fn check_expression(
        &self,
        subscription: &Subscription,
        group: &str,
        queues: &[Queue],
        is_patient: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<()> {
        // as Java's clients, which have every other type of expression checked
        if subscription.expression_type == "TAG" {
            return Ok(());
        }
        // a broker compiles it whatever the topic is, so one of its topics will do
        let topics: BTreeMap<&str, &str> = queues.iter().map(|queue| (&*queue.broker_name, &*queue.topic)).collect();
        let brokers: Vec<(&str, &str)> = topics.into_iter().collect();
        let routes = self.last_routes(queues, interrupt)?;
        let answers = each(&brokers, interrupt, |(broker, topic), interrupt| {
            let data = serde_json::json!({
                "classFilterMode": false,
                // the sets of tags and of their hashes are of no use to SQL92
                "codeSet": [],
                "expressionType": subscription.expression_type,
                "subString": subscription.expression,
                "subVersion": subscription.version,
                "tagsSet": [],
                "topic": topic,
            });
            let body = serde_json::json!({ "clientId": CLIENT_ID, "group": group, "subscriptionData": data });
            let (address, body) = (address_of(&routes, topic, broker)?, body.to_string());
            let check = Ask { body: body.as_bytes(), ..self.cluster.usual(request::CHECK_CLIENT_CONFIG, &[]) };
            self.cluster.ask(address, check, interrupt)
        })?;
        for ((broker, topic), answer) in brokers.into_iter().zip(answers) {
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
                Err(error) if !is_patient => return Err(unasked(&routes, topic, broker, error)),
                Err(_) | Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Stores offsets of a group at the brokers, so that tools see how far it is; what fails is a warning.
    ///
    /// # Errors
    /// Those of `interrupt`; no name server answers.
    pub fn commit(&self, group: &str, offsets: &[(Queue, i64)], interrupt: Interrupt<'_>) -> Result<()> {
        let mut routes = self.lock().clone();
        let topics: BTreeSet<&str> = offsets.iter().map(|(queue, _)| queue.topic.as_str()).collect();
        for topic in topics {
            if !routes.contains_key(topic) {
                match self.route(topic, interrupt) {
                    Ok(route) => drop(routes.insert(topic.to_owned(), route)),
                    // of one that is gone no broker stores offsets, which is a warning for each
                    Err(Error::UnknownTopic(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let answers = each_heard(&routes, offsets, interrupt, |address, (queue, offset), interrupt| {
            // the broker stores any offset that it is told, also one that is less than before
            let fields = [("consumerGroup", Value::Text(group)), ("commitOffset", Value::Number(*offset))];
            let fields = [&fields[..], &of_queue(queue)].concat();
            self.cluster.ask(address, self.cluster.usual(request::UPDATE_CONSUMER_OFFSET, &fields), interrupt)
        })?;
        for ((queue, offset), answer) in offsets.iter().zip(answers) {
            if let Err(error) = answer {
                let Queue { topic, broker_name, queue_id } = queue;
                let place = format!("topic {topic}, queue {queue_id} at {broker_name}");
                self.cluster.warn(format!("group {group}: the offset {offset} of {place} is not stored: {error}"));
            }
        }
        Ok(())
    }

    /// Where a broker of a topic is read now, as a range reader asks while it does not answer.
    ///
    /// # Errors
    /// As [`route`](Self::route); [`Error::Client`] where the broker is not in it.
    pub fn locate(&self, topic: &str, broker_name: &str, interrupt: Interrupt<'_>) -> Result<String> {
        let routes = BTreeMap::from([(topic.to_owned(), self.route(topic, interrupt)?)]);
        address_of(&routes, topic, broker_name).map(str::to_owned)
    }

    /// What is worth a warning since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.cluster.take_warnings()
    }

    /// Ends the connections.
    pub fn close(&self) {
        self.cluster.close();
    }

    /// The routes of the last look-ups of the topics of queues; looked up where there was none.
    fn last_routes<'a>(
        &self,
        queues: impl IntoIterator<Item = &'a Queue>,
        interrupt: Interrupt<'_>,
    ) -> Result<BTreeMap<String, TopicRoute>> {
        let topics: BTreeSet<&str> = queues.into_iter().map(|queue| queue.topic.as_str()).collect();
        let mut routes = self.lock().clone();
        for topic in topics {
            if !routes.contains_key(topic) {
                routes.insert(topic.to_owned(), self.route(topic, interrupt)?);
            }
        }
        Ok(routes)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TopicRoute>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn topic_list(&self, code: i32, interrupt: Interrupt<'_>) -> Result<BTreeSet<String>> {
        let answer = self.cluster.ask_name_server(self.cluster.usual(code, &[]), interrupt)?;
        let list = Json::of_body(&answer.body).map_err(|error| malformed("name server", format!("body: {error}")))?;
        let topics = list.member("topicList").map_or(&[][..], Json::items);
        Ok(topics.iter().filter_map(Json::text).map(str::to_owned).collect())
    }

    fn unknown(&self, topic: &str, interrupt: Interrupt<'_>) -> Error {
        let topics = self.topic_list(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, interrupt).unwrap_or_default();
        // nobody means a retry or dead-letter topic, `%RETRY%group` and `%DLQ%group`
        let names = topics.iter().map(String::as_str).filter(|name| !name.starts_with('%'));
        let hint = match rmqfast_store::Error::unknown("topic", topic, names) {
            rmqfast_store::Error::Unknown { near, .. } if !near.is_empty() => {
                format!("did you mean {}?", near.join(", "))
            }
            _ => "create it, or see that its brokers are registered there".to_owned(),
        };
        Error::UnknownTopic(format!("unknown topic '{topic}' at the name server; {hint}"))
    }

    fn states_at(
        &self,
        address: &str,
        topic: &str,
        queues: &[&Queue],
        is_of_master: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<(Queue, QueueState)>> {
        let fields = [("topic", Value::Text(topic))];
        let usual = self.cluster.usual(request::GET_TOPIC_STATS_INFO, &fields);
        let answer = self.cluster.ask(address, Ask { timeout: SLOW * usual.timeout, ..usual }, interrupt)?;
        let stats = Json::of_body(&answer.body).map_err(|error| malformed(address, format!("body: {error}")))?;
        let by_queue = listed_queues(&stats).map_err(|problem| malformed(address, problem))?;
        let listed = |queue: &Queue| by_queue.get(&(&*queue.broker_name, i64::from(queue.queue_id))).copied();
        // brokers list the queues that are written to, and of a topic that shrinks more may be read
        let unlisted: Vec<&Queue> = queues.iter().copied().filter(|queue| listed(queue).is_none()).collect();
        let asked = all(&unlisted, interrupt, |queue, interrupt| self.bounds_at(address, queue, interrupt))?;
        let asked = unlisted.iter().copied().zip(asked.into_iter().map(|bounds| (bounds, None)));
        let listed = queues.iter().filter_map(|queue| Some((*queue, listed(queue)?)));
        let states = listed.chain(asked).map(|(queue, (bounds, last_stored))| {
            check_bounds(queue, bounds).map_err(|problem| malformed(address, problem))?;
            Ok((queue.clone(), QueueState { bounds, last_stored, is_of_master }))
        });
        states.collect()
    }

    fn bounds_at(&self, address: &str, queue: &Queue, interrupt: Interrupt<'_>) -> Result<Bounds> {
        let first = self.offset(address, request::GET_MIN_OFFSET, &of_queue(queue), interrupt)?;
        Ok((first, self.offset(address, request::GET_MAX_OFFSET, &of_queue(queue), interrupt)?))
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
        first_offset_at(when, bounds, hint, |offset| {
            Ok(self.found_at(address, queue, offset, group, interrupt)?.map(|found| found.store_timestamp))
        })
    }

    fn found_at(
        &self,
        address: &str,
        queue: &Queue,
        offset: i64,
        consumer_group: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<FoundMessage>> {
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
        let answer = Answer::read(code, &remark, |name| fields.get(name), body, queue, offset, true);
        if answer.status == PullStatus::Failed {
            let (code, remark, address) = (answer.code, answer.remark, address.to_owned());
            return Err(Error::Response { code, remark, address });
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

    fn offset(&self, address: &str, code: i32, fields: &[(&str, Value<'_>)], interrupt: Interrupt<'_>) -> Result<i64> {
        let answer = self.cluster.ask(address, self.cluster.usual(code, fields), interrupt)?;
        let offset = answer.fields.get("offset");
        let number = offset.and_then(|offset| offset.parse().ok());
        number.ok_or_else(|| malformed(address, format!("offset: expected a whole number, got {offset:?}")))
    }
}

/// What `ask` says of each queue at its broker, in their order. A broker that did not answer in time is not asked for further queues: the
/// wait would be one for each.
fn each_heard<I: Sync, T: Send>(
    routes: &BTreeMap<String, TopicRoute>,
    items: &[(Queue, I)],
    interrupt: Interrupt<'_>,
    ask: impl Fn(&str, &(Queue, I), Interrupt<'_>) -> Result<T> + Sync,
) -> Result<Vec<Result<T>>> {
    let silent: Mutex<BTreeSet<Arc<str>>> = Mutex::default();
    let lock = || silent.lock().unwrap_or_else(PoisonError::into_inner);
    each(items, interrupt, |item, interrupt| {
        let Queue { topic, broker_name, .. } = &item.0;
        if lock().contains(broker_name) {
            let text = format!("broker {broker_name} did not answer for another queue");
            return Err(Error::client(text, "", "see that it runs and that the driver reaches its address"));
        }
        let answer = ask(address_of(routes, topic, broker_name)?, item, interrupt);
        answer.inspect_err(|error| {
            if matches!(error, Error::Remoting(remoting::Error::Timeout { .. })) {
                lock().insert(broker_name.clone());
            }
        })
    })
}

fn of_queue(queue: &Queue) -> [(&str, Value<'_>); 2] {
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

fn address_of<'a>(routes: &'a BTreeMap<String, TopicRoute>, topic: &str, broker_name: &str) -> Result<&'a str> {
    routes.get(topic).and_then(|route| route.addresses.get(broker_name)).map(String::as_str).ok_or_else(|| {
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

fn unasked(routes: &BTreeMap<String, TopicRoute>, topic: &str, broker_name: &str, error: Error) -> Error {
    let code = match &error {
        Error::Response { code, .. } => *code,
        // nobody is to blame
        Error::Remoting(remoting::Error::Interrupted) => return error,
        Error::Remoting(_) => -1,
        _ => return error,
    };
    let address = address_of(routes, topic, broker_name).unwrap_or_default();
    Error::Client {
        text: format!("broker {broker_name} at {address} cannot be asked: "),
        remark: error.remark(),
        code,
        next_step: "see that it runs and that the driver and the executors reach that address, and that the account \
                    (accessKey, secretKey) may read the topic and use the group",
    }
}
