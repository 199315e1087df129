//! Requests about topics. The brokers of a topic are asked in parallel, and each broker is asked for all queues in one
//! request.
//!
//! Source: `DefaultMQAdminExtImpl.examineTopicStats`, `MQAdminImpl`, `MQClientInstance.checkClientInBroker`.
use super::broker::{Bounds, BrokerCall, FoundMessage, QueueState, malformed, queue_fields};
use super::parallel::{all, each};
use super::requests::{Cluster, ClusterOptions};
use super::route::TopicRoute;
use super::search::first_offset_at;
use crate::error::{Error, Result};
use crate::names::is_system;
use crate::puller::{Queue, Subscription};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{self as remoting, Ask, Interrupt, Json, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Response codes of a broker that is starting, stopping or overloaded.
const BUSY: [i32; 3] = [response::SYSTEM_BUSY, response::SERVICE_NOT_AVAILABLE, response::TOPIC_NOT_EXIST];
/// Prefix of topics in which RocketMQ keeps its own messages.
const OWN: &str = "RMQ_SYS_";
/// Suffix of the topic for replies, after the cluster's name.
const REPLIES: &str = "_REPLY_TOPIC";
const CLIENT_ID: &str = "rmqfast-spark";
/// Requests about topics to the brokers of a cluster, mainly to plan reads.
#[derive(Debug)]
pub struct TopicCluster {
    cluster: Cluster,
    /// The last fetched route of each topic.
    routes: Mutex<BTreeMap<String, TopicRoute>>,
}

impl TopicCluster {
    /// Creates the client of a cluster; opens no connection yet.
    ///
    /// # Errors
    /// Fails like [`Cluster::new`].
    pub fn new(options: ClusterOptions) -> Result<Self> {
        Ok(Self { cluster: Cluster::new(options)?, routes: Mutex::default() })
    }

    /// Returns all topics sorted, without RocketMQ's own topics, but with retry and dead-letter topics (`%RETRY%group`,
    /// `%DLQ%group`).
    ///
    /// # Errors
    /// [`Error::Client`] if no name server answers; [`Error::Response`] if it refuses.
    pub fn topics(&self) -> Result<Vec<String>> {
        // each cluster and each broker has a topic with its own name
        let own = self.topic_list(request::GET_SYSTEM_TOPIC_LIST_FROM_NS, self.interrupt())?;
        let is_reply = |topic: &str| topic.strip_suffix(REPLIES).is_some_and(|name| own.contains(name));
        let mut topics = self.topic_list(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self.interrupt())?;
        // 5.5 has such topics that 4.9 does not know
        let is_own = |topic: &str| topic.starts_with(OWN) || own.contains(topic) || is_reply(topic);
        topics.retain(|topic| !is_system(topic) && !is_own(topic));
        Ok(topics.into_iter().collect())
    }

    /// Fetches the route of a topic.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`] if the name servers do not know the topic; [`Error::Client`] if no name server answers,
    /// or the topic has no readable queue.
    pub fn route(&self, topic: &str) -> Result<TopicRoute> {
        self.look_up(topic, self.interrupt())
    }

    fn look_up(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<TopicRoute> {
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
        // without this error, a topic without readable queues would look like an empty topic
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

    /// Fetches the routes of topics, in order.
    ///
    /// # Errors
    /// An interrupt. Errors of [`route`](Self::route) are items of the result.
    pub fn routes(&self, topics: &[String]) -> Result<Vec<Result<TopicRoute>>> {
        each(topics, self.interrupt(), |topic, interrupt| self.look_up(topic, interrupt))
    }

    /// Returns the bounds of queues. With `is_patient`, queues of a broker that does not answer are left out with a
    /// warning.
    ///
    /// # Errors
    /// [`Error::Client`] if a broker does not answer or refuses.
    pub fn bounds(&self, queues: &[Queue], is_patient: bool) -> Result<Vec<(Queue, Bounds)>> {
        let states = self.states(queues, is_patient)?;
        Ok(states.into_iter().map(|(queue, state)| (queue, state.bounds)).collect())
    }

    /// Returns the states of queues. With `is_patient`, queues of a broker that does not answer are left out with a
    /// warning.
    ///
    /// # Errors
    /// Fails like [`bounds`](Self::bounds).
    pub fn states(&self, queues: &[Queue], is_patient: bool) -> Result<Vec<(Queue, QueueState)>> {
        let mut by_place: BTreeMap<(&str, &str), Vec<&Queue>> = BTreeMap::new();
        queues.iter().for_each(|queue| by_place.entry((&queue.broker_name, &queue.topic)).or_default().push(queue));
        let places: Vec<((&str, &str), Vec<&Queue>)> = by_place.into_iter().collect();
        let routes = self.last_routes(queues)?;
        let answers = each(&places, self.interrupt(), |((broker, topic), queues), interrupt| {
            let is_of_master = routes.get(*topic).is_some_and(|route| route.masters.contains(*broker));
            self.call(address_of(&routes, topic, broker)?, interrupt).states(topic, queues, is_of_master)
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

    /// Looks up messages by queue and offset; `None` for expired messages. Queues of a broker that does not answer are
    /// left out with a warning.
    ///
    /// # Errors
    /// [`Error::Client`] if a broker refuses.
    pub fn messages_of_present(
        &self,
        places: &[(Queue, i64)],
        group: &str,
    ) -> Result<BTreeMap<Queue, Option<FoundMessage>>> {
        let routes = self.last_routes(places.iter().map(|(queue, _)| queue))?;
        let answers =
            self.each_heard(&routes, places, |broker, (queue, offset)| broker.message(queue, *offset, group))?;
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

    /// Returns whether the last route of the queue's topic contains its broker.
    pub fn has_broker(&self, queue: &Queue) -> bool {
        self.lock().get(&queue.topic).is_some_and(|route| route.addresses.contains_key(&*queue.broker_name))
    }

    /// Adds a warning that a broker does not answer, unless the broker is already in `silent`. Adds it to `silent`.
    fn warn_of_silence<'a>(&self, silent: &mut BTreeSet<&'a str>, broker: &'a str, error: &Error) {
        if silent.insert(broker) {
            self.cluster.warn(format!("broker {broker} does not answer, its queues stay where they are: {error}"));
        }
    }

    /// Returns for each queue the offset of the first message that was stored at `when` (milliseconds) or later.
    /// Messages are pulled in the name of `group`.
    ///
    /// # Errors
    /// Fails like [`bounds`](Self::bounds).
    pub fn offsets_at(&self, when: i64, queues: &[(Queue, Bounds)], group: &str) -> Result<Vec<i64>> {
        self.of_queues(
            queues,
            |(queue, _)| queue,
            |broker, (queue, bounds)| broker.offset_at(queue, when, *bounds, group),
        )
    }

    /// Returns for each queue the offset of the first message whose record is at the physical offset `place` or later.
    /// The third part of an item of `queues` is the queue offset at which the search begins.
    ///
    /// # Errors
    /// Fails like [`bounds`](Self::bounds).
    pub fn offsets_behind(&self, place: i64, queues: &[(Queue, Bounds, i64)], group: &str) -> Result<Vec<i64>> {
        self.of_queues(
            queues,
            |(queue, ..)| queue,
            |broker, (queue, bounds, hint)| {
                first_offset_at(place, *bounds, *hint, |offset| {
                    Ok(broker.message(queue, offset, group)?.map(|message| message.physical_offset))
                })
            },
        )
    }

    /// Looks up messages by queue and offset, in order; `None` for expired messages.
    ///
    /// # Errors
    /// Fails like [`bounds`](Self::bounds).
    pub fn messages(&self, places: &[(Queue, i64)], group: &str) -> Result<Vec<Option<FoundMessage>>> {
        self.of_queues(places, |(queue, _)| queue, |broker, (queue, offset)| broker.message(queue, *offset, group))
    }

    /// Returns the address and the configuration of the queue's broker.
    ///
    /// # Errors
    /// [`Error::Response`] if the broker refuses; [`Error::Remoting`] if it does not answer; [`Error::Client`] if it is
    /// not in the route.
    pub fn broker_config(&self, queue: &Queue) -> Result<(String, HashMap<String, String>)> {
        let routes = self.last_routes([queue])?;
        let address = address_of(&routes, &queue.topic, &queue.broker_name)?;
        Ok((address.to_owned(), self.broker(address).config()?))
    }

    /// Returns the addresses of the slaves of the queue's broker, sorted by broker id.
    ///
    /// # Errors
    /// Fails like [`route`](Self::route).
    pub fn slaves(&self, queue: &Queue) -> Result<Vec<String>> {
        let mut routes = self.last_routes([queue])?;
        let slaves = routes.get_mut(&queue.topic).and_then(|route| route.slaves.remove(&*queue.broker_name));
        let mut slaves = slaves.unwrap_or_default();
        if let Some(translate) = &self.cluster.options().translate {
            for address in &mut slaves {
                *address = translate(address)?;
            }
        }
        Ok(slaves)
    }

    /// Returns for each queue whether its messages cannot be read from the commit log by queue offset. This is the case
    /// for 5.x topics with compaction, batch consume queues or static queues. False for brokers before 5.x, which have
    /// no such topics.
    ///
    /// # Errors
    /// Fails like [`bounds`](Self::bounds).
    pub fn are_listed_otherwise(&self, queues: &[Queue]) -> Result<Vec<bool>> {
        self.of_queues(queues, |queue| queue, |broker, queue| broker.is_listed_otherwise(&queue.topic))
    }

    /// Calls `ask` for each item at its queue's broker, in parallel. Returns the answers in order.
    fn of_queues<I: Sync, T: Send>(
        &self,
        items: &[I],
        queue_of: impl Fn(&I) -> &Queue + Sync,
        ask: impl Fn(BrokerCall<'_>, &I) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let routes = self.last_routes(items.iter().map(&queue_of))?;
        all(items, self.interrupt(), |item, interrupt| {
            let Queue { topic, broker_name, .. } = queue_of(item);
            let address = address_of(&routes, topic, broker_name);
            let answer = address.and_then(|address| ask(self.call(address, interrupt), item));
            answer.map_err(|error| unasked(&routes, topic, broker_name, error))
        })
    }

    /// Asks each broker of `queues` to compile an SQL92 expression, since a broker delivers all messages for an
    /// expression that it cannot compile. With `is_patient`, brokers that do not answer are skipped.
    ///
    /// # Errors
    /// [`Error::Client`] if a broker refuses the expression.
    pub fn check_expression(
        &self,
        subscription: &Subscription,
        group: &str,
        queues: &[Queue],
        is_patient: bool,
    ) -> Result<()> {
        // as in Java's clients, which let brokers check every other type of expression
        if subscription.expression_type == "TAG" {
            return Ok(());
        }
        // the topic does not matter for the compilation, so any topic of the broker will do
        let topics: BTreeMap<&str, &str> = queues.iter().map(|queue| (&*queue.broker_name, &*queue.topic)).collect();
        let brokers: Vec<(&str, &str)> = topics.into_iter().collect();
        let routes = self.last_routes(queues)?;
        let answers = each(&brokers, self.interrupt(), |(broker, topic), interrupt| {
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
            self.call(address, interrupt).ask(check)
        })?;
        for ((broker, topic), answer) in brokers.into_iter().zip(answers) {
            match answer {
                // the broker answered, so a retry would not help
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

    /// Stores offsets of a group at the brokers, so that tools show the group's progress. If a broker does not store an
    /// offset, a warning is added.
    ///
    /// # Errors
    /// An interrupt, or no name server answers.
    pub fn commit(&self, group: &str, offsets: &[(Queue, i64)]) -> Result<()> {
        let mut routes = self.lock().clone();
        let topics: BTreeSet<&str> = offsets.iter().map(|(queue, _)| queue.topic.as_str()).collect();
        for topic in topics {
            if !routes.contains_key(topic) {
                match self.route(topic) {
                    Ok(route) => drop(routes.insert(topic.to_owned(), route)),
                    // a deleted topic: each of its offsets gets a warning below
                    Err(Error::UnknownTopic(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let answers = self.each_heard(&routes, offsets, |broker, (queue, offset)| {
            // the broker also stores an offset that is lower than the last
            let fields = [("consumerGroup", Value::Text(group)), ("commitOffset", Value::Number(*offset))];
            let fields = [&fields[..], &queue_fields(queue)].concat();
            broker.ask(self.cluster.usual(request::UPDATE_CONSUMER_OFFSET, &fields))
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

    /// Fetches the topic's route again and returns the address from which to read a broker. Called while the broker
    /// does not answer.
    ///
    /// # Errors
    /// Fails like [`route`](Self::route); [`Error::Client`] if the broker is not in the route.
    pub fn locate(&self, topic: &str, broker_name: &str) -> Result<String> {
        let routes = BTreeMap::from([(topic.to_owned(), self.route(topic)?)]);
        address_of(&routes, topic, broker_name).map(str::to_owned)
    }

    /// Returns the warnings that were added since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.cluster.take_warnings()
    }

    /// Closes all connections. Requests in flight fail.
    pub fn close(&self) {
        self.cluster.close();
    }

    /// Returns the known routes of the queues' topics, and fetches the missing routes.
    fn last_routes<'a>(&self, queues: impl IntoIterator<Item = &'a Queue>) -> Result<BTreeMap<String, TopicRoute>> {
        let topics: BTreeSet<&str> = queues.into_iter().map(|queue| queue.topic.as_str()).collect();
        let mut routes = self.lock().clone();
        for topic in topics {
            if !routes.contains_key(topic) {
                routes.insert(topic.to_owned(), self.route(topic)?);
            }
        }
        Ok(routes)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TopicRoute>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `ask` for each item in parallel, and returns the answers in order. A broker is not asked again after a
    /// timeout, since each further request would wait for the timeout, too.
    fn each_heard<I: Sync, T: Send>(
        &self,
        routes: &BTreeMap<String, TopicRoute>,
        items: &[(Queue, I)],
        ask: impl Fn(BrokerCall<'_>, &(Queue, I)) -> Result<T> + Sync,
    ) -> Result<Vec<Result<T>>> {
        let silent: Mutex<BTreeSet<Arc<str>>> = Mutex::default();
        let lock = || silent.lock().unwrap_or_else(PoisonError::into_inner);
        each(items, self.interrupt(), |item, interrupt| {
            let Queue { topic, broker_name, .. } = &item.0;
            if lock().contains(broker_name) {
                let text = format!("broker {broker_name} did not answer for another queue");
                return Err(Error::client(text, "", "see that it runs and that the driver reaches its address"));
            }
            let answer = ask(self.call(address_of(routes, topic, broker_name)?, interrupt), item);
            answer.inspect_err(|error| {
                if matches!(error, Error::Remoting(remoting::Error::Timeout { .. })) {
                    lock().insert(broker_name.clone());
                }
            })
        })
    }

    /// Returns an object that sends requests to the broker at this address.
    pub fn broker<'a>(&'a self, address: &'a str) -> BrokerCall<'a> {
        self.call(address, self.interrupt())
    }

    fn call<'a>(&'a self, address: &'a str, interrupt: Interrupt<'a>) -> BrokerCall<'a> {
        BrokerCall { cluster: &self.cluster, address, interrupt }
    }

    fn interrupt(&self) -> Interrupt<'_> {
        self.cluster.interrupt()
    }

    fn topic_list(&self, code: i32, interrupt: Interrupt<'_>) -> Result<BTreeSet<String>> {
        let answer = self.cluster.ask_name_server(Ask { interrupt, ..self.cluster.usual(code, &[]) })?;
        let list = Json::of_body(&answer.body).map_err(|error| malformed("name server", format!("body: {error}")))?;
        let topics = list.member("topicList").map_or(&[][..], Json::items);
        Ok(topics.iter().filter_map(Json::text).map(str::to_owned).collect())
    }

    fn unknown(&self, topic: &str, interrupt: Interrupt<'_>) -> Error {
        let topics = self.topic_list(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, interrupt).unwrap_or_default();
        // retry and dead-letter topics are no useful suggestions
        let names = topics.iter().map(String::as_str).filter(|name| !name.starts_with('%'));
        let hint = match rmqfast_store::Error::unknown("topic", topic, names) {
            rmqfast_store::Error::Unknown { near, .. } if !near.is_empty() => {
                format!("did you mean {}?", near.join(", "))
            }
            _ => "create it, or see that its brokers are registered there".to_owned(),
        };
        Error::UnknownTopic(format!("unknown topic '{topic}' at the name server; {hint}"))
    }
}

fn address_of<'a>(routes: &'a BTreeMap<String, TopicRoute>, topic: &str, broker_name: &str) -> Result<&'a str> {
    routes.get(topic).and_then(|route| route.addresses.get(broker_name)).map(String::as_str).ok_or_else(|| {
        let text = format!("broker {broker_name} is not in the route of topic {topic}");
        Error::client(text, "", "is it running, and registered at this name server?")
    })
}

/// Returns whether the failure may be temporary, so that a retry may succeed.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Response { code, .. } => BUSY.contains(code),
        // `Client`: the broker is not in the route, for example while it restarts
        Error::Remoting(_) | Error::Client { .. } => true,
        _ => false,
    }
}

fn unasked(routes: &BTreeMap<String, TopicRoute>, topic: &str, broker_name: &str, error: Error) -> Error {
    let code = match &error {
        Error::Response { code, .. } => *code,
        // an interrupt is not the broker's fault
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
