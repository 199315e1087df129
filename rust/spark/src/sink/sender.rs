//! Sends requests until they are stored: what fails is tried again, elsewhere or in parts, or tells which row it was.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, for its tries.
use super::columns::SinkColumn;
use super::failure::{Failure, Stop};
use super::local_address::local_address;
use super::options::SinkOptions;
use super::queue_choice::{QueueChoice, matching};
use super::row_batches::{Parcel, Request, RowBatches, RowPlace, Target};
use super::row_text::row_text;
use super::written::Written;
use crate::error::{Error, Result};
use crate::stream::{Level, Log};
use rmqfast_client::cluster::{Cluster, ClusterOptions, Heartbeats, NO_ANSWER, RouteData, RouteTable};
use rmqfast_client::names::{check_sendable_topic, wrap};
use rmqfast_client::producer::{
    DEFAULT_QUEUES, DEFAULT_TOPIC, NO_ROUTE, PublishQueues, SendStatus, StoredMessage, broker_not_exist, no_route,
};
use rmqfast_client::puller::Queue;
use rmqfast_client::send::{SendHeader, UniqueIds};
use rmqfast_client::{Error as ClientError, plain_remark, step_after};
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Ask, Error as RemotingError};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// As often as `pollNameServerInterval` of Java's clients.
const ROUTE_AGE: Duration = Duration::from_secs(30);
const NAME_SERVER_STEP: &str =
    "see that a name server runs there and that name_server is its address; what runs goes on by itself";

/// Sends the requests of a partition.
pub struct Sender {
    pub options: SinkOptions,
    pub columns: Vec<SinkColumn>,
    pub ids: &'static UniqueIds,
    pub stop: Arc<Stop>,
    partition: i32,
    cluster: Cluster,
    heartbeats: Heartbeats,
    routes: RouteTable,
    topics: Mutex<HashMap<String, KnownQueues>>,
    choice: Mutex<QueueChoice>,
    written: Mutex<Written>,
    log: Mutex<Log>,
}

/// The queues of a topic, and since when they are known.
struct KnownQueues {
    queues: Arc<PublishQueues>,
    since: Instant,
}

/// Asks a name server whether the option `topic` is there, before any task does.
///
/// # Errors
/// Nobody has the topic and no broker would make it, or no name server answers; or several brokers have the queues that a column
/// `queue_id` names, and there is no `broker_name`.
pub fn check_topic(options: SinkOptions, columns: &[SinkColumn], ids: &'static UniqueIds) -> Result<()> {
    let Some(topic) = options.topic.clone() else { return Ok(()) };
    let sender = Sender::new(options, columns.to_vec(), 0, ids)?;
    let target = Target { topic: Some(topic), ..Target::default() };
    let failed = |error: ClientError| match error {
        // whoever interrupts says why
        ClientError::Remoting(RemotingError::Interrupted) => Error::Client(error),
        error => Failure { text: error_text(&error), code: code_of(&error) }.into(),
    };
    let queues = sender.queues(&target, false).map_err(failed)?;
    if columns.contains(&SinkColumn::QueueId) && !columns.contains(&SinkColumn::BrokerName) {
        let least = queues.iter().map(|queue| i64::from(queue.queue_id)).min();
        sender.queues(&Target { queue_id: least, ..target }, false).map_err(failed)?;
    }
    Ok(())
}

impl Sender {
    /// Nobody is asked yet; `partition` is for errors.
    ///
    /// # Errors
    /// There is no name server.
    pub fn new(
        options: SinkOptions,
        columns: Vec<SinkColumn>,
        partition: i32,
        ids: &'static UniqueIds,
    ) -> Result<Self> {
        let (stop, interrupt) = (Arc::new(Stop::default()), options.cluster.interrupt.clone());
        let stopped = stop.clone();
        // the task's other lanes may have failed while this one waits for an answer
        let interrupt = Arc::new(move || if stopped.is_set() { Err(RemotingError::Interrupted) } else { interrupt() });
        let cluster = Cluster::new(ClusterOptions { interrupt, ..options.cluster.clone() })?;
        let heartbeats = Heartbeats::of_producer(&client_id(&options.cluster.name_servers), &options.group);
        let chance = RandomState::new().build_hasher().finish() as usize;
        let (routes, topics, choice) = (RouteTable::default(), Mutex::default(), Mutex::new(QueueChoice::new(chance)));
        let (written, log) = (Mutex::default(), Mutex::default());
        Ok(Self { options, columns, ids, stop, partition, cluster, heartbeats, routes, topics, choice, written, log })
    }

    /// What is stored so far.
    pub fn written(&self) -> Written {
        *lock(&self.written)
    }

    /// What happened since the last call.
    pub fn take_log(&self) -> Vec<(Level, String)> {
        let mut log = lock(&self.log);
        log.warn(self.cluster.take_warnings());
        log.take()
    }

    /// The queue to try first; waits for a name server that does not answer.
    ///
    /// # Errors
    /// The topic or the queue is not there, or not in time.
    pub fn first_queue(&self, target: &Target, rows: &[RowPlace]) -> Result<Queue, Failure> {
        let (end, mut pause) = (Instant::now() + self.options.retry_timeout, FIRST_PAUSE);
        let mut has_waited = false;
        loop {
            let queues = self.queues(target, false);
            let chosen = queues.map(|queues| lock(&self.choice).next(&queues).cloned());
            let error = match chosen {
                Ok(Some(queue)) => return Ok(queue),
                Ok(None) => refused("expected a queue, got none"),
                Err(error) => error,
            };
            // a topic that is not there at first is the user's mistake; a name server that comes back knows no topic before
            // brokers have registered with it
            let code = code_of(&error);
            if code != NO_ANSWER && !(has_waited && code == NO_ROUTE) {
                return Err(self.failed(target, rows, &error_text(&error), &error));
            }
            self.wait(target, rows, &error, pause, end)?;
            has_waited = true;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    /// Sends a request until it is stored.
    ///
    /// # Errors
    /// It cannot be, or not in time.
    pub fn send(&self, parcel: &Parcel, queue: &Queue) -> Result<(), Failure> {
        let (end, mut pause) = (Instant::now() + self.options.retry_timeout, FIRST_PAUSE);
        let (mut queue, mut refused_by) = (queue.clone(), HashSet::new());
        loop {
            let error = match self.ask(&parcel.request, &queue) {
                Ok(is_safe) => {
                    lock(&self.written).add(parcel.rows.len(), parcel.request.body.len(), is_safe);
                    return Ok(());
                }
                Err(error) => error,
            };
            // the broker's limit may be less than the option, and it does not say what it is
            if is_too_large(&error) && parcel.rows.len() > 1 {
                return self.send_halves(parcel, &queue);
            }
            // the request may be stored though its answer was lost: it goes again with the same ids
            if passes(&error) {
                self.wait(&parcel.target, &parcel.rows, &error, pause, end)?;
                lock(&self.written).retries += 1;
                pause = LONGEST_PAUSE.min(2 * pause);
            } else {
                // a broker that refuses is not asked again; another one may have the permission
                refused_by.insert(queue.broker_name.to_string());
            }
            queue = self.choose_again(parcel, queue, &refused_by, &error)?;
        }
    }

    /// The failure of rows.
    pub fn failed(&self, target: &Target, rows: &[RowPlace], text: &str, error: &ClientError) -> Failure {
        let rest = if rows.len() > 1 { format!(" and {} more with it", rows.len() - 1) } else { String::new() };
        let row = rows.first().map(|place| row_text(target, &place.row(&self.columns), place.number));
        let (partition, row) = (self.partition, row.unwrap_or_default());
        Failure { text: format!("partition {partition}, {row}{rest}: {text}"), code: code_of(error) }
    }

    /// Waits before the next try, unless the time is over.
    fn wait(
        &self,
        target: &Target,
        rows: &[RowPlace],
        error: &ClientError,
        pause: Duration,
        end: Instant,
    ) -> Result<(), Failure> {
        let text = error_text(error);
        if Instant::now() + pause > end {
            let seconds = self.options.retry_timeout.as_secs_f64();
            return Err(self.failed(target, rows, &format!("tried for {seconds} s (retryTimeoutMs): {text}"), error));
        }
        let (partition, topic) = (self.partition, target.topic.as_deref().unwrap_or_default());
        let seconds = pause.as_secs_f64();
        lock(&self.log).info(format!("partition {partition}, topic {topic}: tries again in {seconds:.2} s: {text}"));
        // the pause ends at once where something else has failed
        if self.stop.wait(pause) {
            return Err(self.failed(target, rows, &format!("the task ends: {text}"), error));
        }
        Ok(())
    }

    fn choose_again(
        &self,
        parcel: &Parcel,
        last: Queue,
        refused_by: &HashSet<String>,
        error: &ClientError,
    ) -> Result<Queue, Failure> {
        let chosen = match self.queues(&parcel.target, true) {
            Ok(queues) => lock(&self.choice).again(queues, &last, refused_by),
            // no name server, or the broker is in no route while it is down
            Err(_) if refused_by.contains(&*last.broker_name) => None,
            Err(_) => Some(last.clone()),
        };
        chosen.ok_or_else(|| {
            let topic = parcel.target.topic.as_deref().unwrap_or_default();
            let place = format!("topic {topic}, queue {} of {}", last.queue_id, last.broker_name);
            self.failed(&parcel.target, &parcel.rows, &format!("{place}: {}", error_text(error)), error)
        })
    }

    /// Sends in smaller parts what a broker refuses whole, down to the row that is too large.
    fn send_halves(&self, parcel: &Parcel, queue: &Queue) -> Result<(), Failure> {
        // rounded up, so that there are two parts and no third of one row
        let half = parcel.rows.len().div_ceil(2);
        let mut batches = RowBatches::new(&self.options, &self.columns, half, self.ids);
        let mut parts = Vec::new();
        for place in &parcel.rows {
            let part = batches.add(&place.row(&self.columns), place.clone(), now_ms());
            parts.extend(part.map_err(|wrong| {
                self.failed(&wrong.target, std::slice::from_ref(&wrong.place), &wrong.text, &refused(""))
            })?);
        }
        parts.extend(batches.flush(now_ms()));
        parts.iter().try_for_each(|part| self.send(part, queue))
    }

    /// The queues that a target leaves to choose from; with `is_new` a name server is asked.
    fn queues(&self, target: &Target, is_new: bool) -> Result<Vec<Queue>, ClientError> {
        let topic = target.topic.as_deref().filter(|topic| !topic.is_empty());
        let topic = topic.ok_or_else(|| refused("expected a topic, got null"))?;
        let known = self.publish_queues(topic, is_new)?;
        matching(target, &known.queues).map_err(refused)
    }

    fn publish_queues(&self, topic: &str, is_new: bool) -> Result<Arc<PublishQueues>, ClientError> {
        let known = lock(&self.topics).get(topic).map(|known| (known.queues.clone(), known.since));
        match known {
            Some((queues, since)) if !is_new && since.elapsed() < ROUTE_AGE => return Ok(queues),
            None => check_sendable_topic(topic).map_err(refused)?,
            Some(_) => {}
        }
        let known = known.map(|(queues, _)| queues);
        let queues = match self.newest_queues(topic, known.is_some()) {
            Ok(queues) => Arc::new(queues),
            // what was known stays while nobody knows better; who asks because it failed must hear of it
            Err(error) => match known {
                Some(queues) if !is_new || code_of(&error) == NO_ROUTE => queues,
                _ => return Err(error),
            },
        };
        let newest = KnownQueues { queues: queues.clone(), since: Instant::now() };
        lock(&self.topics).insert(topic.to_owned(), newest);
        Ok(queues)
    }

    fn newest_queues(&self, topic: &str, is_known: bool) -> Result<PublishQueues, ClientError> {
        let wrapped = wrap(&self.options.namespace, topic);
        let route = match self.cluster.route_data(&wrapped, self.cluster.interrupt()) {
            Err(refused @ ClientError::Response { .. }) if !is_known => match self.new_route() {
                Err(ClientError::Response { .. }) => Err(refused),
                route => route,
            },
            route => route,
        };
        let route = route.map_err(|error| match error {
            ClientError::Response { code, remark, .. } => no_route(&wrapped, Some((code, remark))),
            // which name servers do not answer, and why
            ClientError::Client { remark, code: NO_ANSWER, .. } => ClientError::Client {
                text: remark,
                remark: String::new(),
                code: NO_ANSWER,
                next_step: NAME_SERVER_STEP,
            },
            error => error,
        })?;
        let queues = PublishQueues::of(&wrapped, &route);
        let translate = &self.cluster.options().translate;
        self.routes.put(&wrapped, route, |address| match translate {
            Some(translate) => translate(address).map(Into::into),
            None => Ok(address.clone()),
        })?;
        if queues.queues.is_empty() { Err(no_route(&wrapped, None)) } else { Ok(queues) }
    }

    /// The route of a topic that is not there: its brokers make it with the first message.
    fn new_route(&self) -> Result<RouteData, ClientError> {
        Ok(self.cluster.route_data(DEFAULT_TOPIC, self.cluster.interrupt())?.for_new_topic(DEFAULT_QUEUES))
    }

    /// Sends a request once: whether it is stored as safely as the broker is told to.
    fn ask(&self, request: &Request, queue: &Queue) -> Result<bool, ClientError> {
        let address = self.address_of(queue)?;
        // where it fails the send does, too, and says why
        let _ = self.heartbeats.beat(&self.cluster, &address);
        let header = SendHeader {
            producer_group: &self.options.group,
            topic: &queue.topic,
            default_topic: DEFAULT_TOPIC,
            default_topic_queue_nums: DEFAULT_QUEUES,
            queue_id: queue.queue_id,
            sys_flag: request.sys_flag,
            born_timestamp: request.born_timestamp,
            flag: request.flag,
            properties: &request.properties,
            reconsume_times: 0,
            max_reconsume_times: None,
            is_unit_mode: false,
            is_batch: request.is_batch,
            is_reply: false,
        };
        let (fields, timeout) = (header.fields(), self.options.send_timeout);
        let ask = Ask { body: &request.body, timeout, ..self.cluster.usual(header.code(), &fields) };
        let answer = self.cluster.answer(&address, ask)?;
        Ok(StoredMessage::of_broker(&answer, &address)?.status == SendStatus::SendOk)
    }

    /// The master of a queue's broker.
    fn address_of(&self, queue: &Queue) -> Result<Arc<str>, ClientError> {
        let address = self.routes.publish_address(&queue.broker_name);
        address.ok_or_else(|| broker_not_exist(&queue.broker_name))
    }
}

/// Who sends, as one of perhaps several tasks of a process.
///
/// Source: `ClientConfig.buildMQClientId`.
fn client_id(name_servers: &[String]) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (rmqfast_remoting::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("{}@{process}#{number}", local_address(name_servers))
}

/// Whether it may be taken a little later: nobody answered, or whoever did has too much to do.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Response { code, .. } => [response::SYSTEM_BUSY, response::SERVICE_NOT_AVAILABLE].contains(code),
        ClientError::Client { .. } => true,
        ClientError::Remoting(error) => matches!(
            error,
            RemotingError::Closed { .. }
                | RemotingError::Connect { .. }
                | RemotingError::Timeout { .. }
                | RemotingError::TooManyRequests { .. }
        ),
        _ => false,
    }
}

fn is_too_large(error: &ClientError) -> bool {
    matches!(error, ClientError::Response { code: response::MESSAGE_ILLEGAL, .. })
}

fn code_of(error: &ClientError) -> i32 {
    match error {
        ClientError::Response { code, .. } | ClientError::Client { code, .. } => *code,
        _ => -1,
    }
}

fn refused(text: impl Into<String>) -> ClientError {
    ClientError::Client { text: text.into(), remark: String::new(), code: -1, next_step: "" }
}

/// An error with what to do next.
fn error_text(error: &ClientError) -> String {
    let (text, next_step) = match error {
        ClientError::Client { text, remark, next_step, .. } => {
            (format!("{text}{}", plain_remark(remark)), step_after(remark).unwrap_or(next_step))
        }
        ClientError::Response { code, remark, address } => {
            let text = format!("CODE: {code}  DESC: {} BROKER: {address}", plain_remark(remark));
            (text, step_after(remark).unwrap_or_default())
        }
        error => (error.to_string(), ""),
    };
    if next_step.is_empty() { text } else { format!("{text}\n{next_step}") }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
