//! The brokers of topics: all of them are asked at once, and each about all queues of a topic in one request.
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

/// The codes of a broker that starts, stops, or has too much to do.
const BUSY: [i32; 3] = [response::SYSTEM_BUSY, response::SERVICE_NOT_AVAILABLE, response::TOPIC_NOT_EXIST];
/// What follows a cluster's name in that of the topic for its replies.
const REPLIES: &str = "_REPLY_TOPIC";
const CLIENT_ID: &str = "rmqfast-spark";
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
    pub fn topics(&self) -> Result<Vec<String>> {
        // each cluster and each broker has a topic of its name
        let own = self.topic_list(request::GET_SYSTEM_TOPIC_LIST_FROM_NS, self.interrupt())?;
        let is_reply = |topic: &str| topic.strip_suffix(REPLIES).is_some_and(|name| own.contains(name));
        let mut topics = self.topic_list(request::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self.interrupt())?;
        topics.retain(|topic| !is_system(topic) && !own.contains(topic) && !is_reply(topic));
        Ok(topics.into_iter().collect())
    }

    /// Where a topic is now.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]: the name servers do not know it. [`Error::Client`]: no name server answers, or the topic has no
    /// queue that may be read.
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
    /// An interrupt; those of [`route`](Self::route) are items of the result.
    pub fn routes(&self, topics: &[String]) -> Result<Vec<Result<TopicRoute>>> {
        each(topics, self.interrupt(), |topic, interrupt| self.look_up(topic, interrupt))
    }

    /// Where queues begin and end. With `is_patient` those of a broker that does not answer now are left out, with a warning.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker does not answer, or refuses.
    pub fn bounds(&self, queues: &[Queue], is_patient: bool) -> Result<Vec<(Queue, Bounds)>> {
        let states = self.states(queues, is_patient)?;
        Ok(states.into_iter().map(|(queue, state)| (queue, state.bounds)).collect())
    }

    /// Queues as their brokers describe them. With `is_patient` those of a broker that does not answer now are left out, with a
    /// warning.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
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

    /// The messages at offsets of queues; `None` for one that has expired. Those of a broker that does not answer now are left out,
    /// with a warning.
    ///
    /// # Errors
    /// [`Error::Client`]: a broker refuses.
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
    pub fn offsets_at(&self, when: i64, queues: &[(Queue, Bounds)], group: &str) -> Result<Vec<i64>> {
        self.of_queues(
            queues,
            |(queue, _)| queue,
            |broker, (queue, bounds)| broker.offset_at(queue, when, *bounds, group),
        )
    }

    /// The first offset of each queue whose message stands at `place` of its broker's log or behind it, in their order; each is
    /// looked for from an offset on.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
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

    /// The messages at offsets of queues, in their order; `None` for one that has expired.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn messages(&self, places: &[(Queue, i64)], group: &str) -> Result<Vec<Option<FoundMessage>>> {
        self.of_queues(places, |(queue, _)| queue, |broker, (queue, offset)| broker.message(queue, *offset, group))
    }

    /// The configuration of a broker of a topic, and its address.
    ///
    /// # Errors
    /// [`Error::Response`]: it refuses. [`Error::Remoting`]: it does not answer. [`Error::Client`]: it is not in the route.
    pub fn broker_config(&self, queue: &Queue) -> Result<(String, HashMap<String, String>)> {
        let routes = self.last_routes([queue])?;
        let address = address_of(&routes, &queue.topic, &queue.broker_name)?;
        Ok((address.to_owned(), self.broker(address).config()?))
    }

    /// Where the slaves of the broker of a queue are, in the order of their ids.
    ///
    /// # Errors
    /// As [`route`](Self::route).
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

    /// Whether a broker of 5.x gives other messages of the topic of each queue than its log lists, or counts them otherwise: it
    /// compacts the topic, its records are batches, or its queues are parts of others. One that does not know the question has no
    /// such topics.
    ///
    /// # Errors
    /// As [`bounds`](Self::bounds).
    pub fn are_listed_otherwise(&self, queues: &[Queue]) -> Result<Vec<bool>> {
        self.of_queues(queues, |queue| queue, |broker, queue| broker.is_listed_otherwise(&queue.topic))
    }

    /// What `ask` says of each item at the broker of its queue, in their order.
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
    ) -> Result<()> {
        // as Java's clients, which have every other type of expression checked
        if subscription.expression_type == "TAG" {
            return Ok(());
        }
        // a broker compiles it whatever the topic is, so one of its topics will do
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
    /// An interrupt; no name server answers.
    pub fn commit(&self, group: &str, offsets: &[(Queue, i64)]) -> Result<()> {
        let mut routes = self.lock().clone();
        let topics: BTreeSet<&str> = offsets.iter().map(|(queue, _)| queue.topic.as_str()).collect();
        for topic in topics {
            if !routes.contains_key(topic) {
                match self.route(topic) {
                    Ok(route) => drop(routes.insert(topic.to_owned(), route)),
                    // of one that is gone no broker stores offsets, which is a warning for each
                    Err(Error::UnknownTopic(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let answers = self.each_heard(&routes, offsets, |broker, (queue, offset)| {
            // the broker stores any offset that it is told, also one that is less than before
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

    /// Where a broker of a topic is read now, as a range reader asks while it does not answer.
    ///
    /// # Errors
    /// As [`route`](Self::route); [`Error::Client`] where the broker is not in it.
    pub fn locate(&self, topic: &str, broker_name: &str) -> Result<String> {
        let routes = BTreeMap::from([(topic.to_owned(), self.route(topic)?)]);
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

    /// The calls' answers for queues, in their order. A broker that did not answer in time is not asked for further queues: the
    /// wait would be one for each.
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

    /// Calls to the broker at an address.
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
}

fn address_of<'a>(routes: &'a BTreeMap<String, TopicRoute>, topic: &str, broker_name: &str) -> Result<&'a str> {
    routes.get(topic).and_then(|route| route.addresses.get(broker_name)).map(String::as_str).ok_or_else(|| {
        let text = format!("broker {broker_name} is not in the route of topic {topic}");
        Error::client(text, "", "is it running, and registered at this name server?")
    })
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
