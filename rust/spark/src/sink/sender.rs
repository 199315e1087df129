//! Sends requests until brokers have stored them. A failed request is sent again, to another broker or in smaller
//! parts.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, for the retries.
use super::columns::SinkColumn;
use super::failure::{Failure, Stop};
use super::local_address::local_address;
use super::options::SinkOptions;
use super::queue_choice::{matching, next_queue};
use super::row_batches::{Parcel, Request, RowBatches, RowPlace, Target};
use super::row_text::row_text;
use super::written::Written;
use crate::error::{Error, Result};
use crate::stream::{Level, Log};
use rmqfast_client::cluster::{Cluster, ClusterOptions, Heartbeats, NO_ANSWER, RouteTable, unreachable};
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The default of `pollNameServerInterval` in Java's clients.
const ROUTE_AGE: Duration = Duration::from_secs(30);

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
    written: Mutex<Written>,
    log: Mutex<Log>,
}

/// The queues of a topic, and when they were fetched.
struct KnownQueues {
    queues: Arc<PublishQueues>,
    since: Instant,
}

/// Checks in the driver that messages can be sent to the topic of the option `topic`.
///
/// # Errors
/// The topic does not exist and no broker would create it, or no name server answers. Also if there is a column
/// `queue_id` but no `broker_name`, and several brokers have that queue.
pub fn check_topic(options: SinkOptions, columns: &[SinkColumn], ids: &'static UniqueIds) -> Result<()> {
    let Some(topic) = options.topic.clone() else { return Ok(()) };
    let sender = Sender::new(options, columns.to_vec(), 0, ids)?;
    let failed = |error: ClientError| match error {
        // the interrupt has a reason of its own, so it is passed on unchanged
        ClientError::Remoting(RemotingError::Interrupted) => Error::Client(error),
        error => Failure { text: error_text(&error), code: code_of(&error) }.into(),
    };
    let queues = &sender.publish_queues(&topic, false).map_err(failed)?.queues;
    if columns.contains(&SinkColumn::QueueId) && !columns.contains(&SinkColumn::BrokerName) {
        let least = queues.iter().map(|queue| i64::from(queue.queue_id)).min();
        let target = Target { topic: Some(topic), queue_id: least, ..Target::default() };
        matching(&target, queues).map_err(|text| failed(refused(text)))?;
    }
    Ok(())
}

impl Sender {
    /// Creates a sender; sends nothing yet. `partition` is the number that errors mention.
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
        // ends waits for answers when another lane of the task has failed
        let interrupt = Arc::new(move || if stopped.is_set() { Err(RemotingError::Interrupted) } else { interrupt() });
        let cluster = Cluster::new(ClusterOptions { interrupt, ..options.cluster.clone() })?;
        let heartbeats = Heartbeats::of_producer(&client_id(&options.cluster.name_servers), &options.group);
        let (routes, topics) = (RouteTable::default(), Mutex::default());
        let (written, log) = (Mutex::default(), Mutex::default());
        Ok(Self { options, columns, ids, stop, partition, cluster, heartbeats, routes, topics, written, log })
    }

    /// Returns the counts of rows that are stored so far.
    pub fn written(&self) -> Written {
        *lock(&self.written)
    }

    /// Returns log lines since the last call.
    pub fn take_log(&self) -> Vec<(Level, String)> {
        let mut log = lock(&self.log);
        log.warn(self.cluster.take_warnings());
        log.take()
    }

    /// Returns the queue to try first. Waits while no name server answers.
    ///
    /// # Errors
    /// The topic or the queue does not exist, or no name server answers in time.
    pub fn first_queue(&self, target: &Target, rows: &[RowPlace]) -> Result<Queue, Failure> {
        let (end, mut pause) = (Instant::now() + self.options.retry_timeout, FIRST_PAUSE);
        let mut has_waited = false;
        loop {
            let error = match self.next_queue(target, None, &HashSet::new(), false) {
                Ok(Some(queue)) => return Ok(queue),
                Ok(None) => refused("expected a queue, got none"),
                Err(error) => error,
            };
            // an unknown topic is an error at the first try; after a wait it is not, since a restarted name server
            // knows no topics until brokers register
            let code = code_of(&error);
            if code != NO_ANSWER && !(has_waited && code == NO_ROUTE) {
                return Err(self.failed(target, rows, &error_text(&error), &error));
            }
            self.wait(target, rows, &error, pause, end)?;
            has_waited = true;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    /// Sends a request until a broker has stored it.
    ///
    /// # Errors
    /// Brokers refuse the request, or do not store it in time.
    pub fn send(&self, parcel: &Parcel, mut queue: Queue) -> Result<(), Failure> {
        let (end, mut pause) = (Instant::now() + self.options.retry_timeout, FIRST_PAUSE);
        let mut refused_by = HashSet::new();
        loop {
            let error = match self.ask(&parcel.request, &queue) {
                Ok(is_safe) => {
                    lock(&self.written).add(parcel.rows.len(), parcel.request.body.len(), is_safe);
                    return Ok(());
                }
                Err(error) => error,
            };
            // the broker's limit may be lower than the option, and its answer does not tell the limit
            if is_too_large(&error) && parcel.rows.len() > 1 {
                return self.send_halves(parcel, &queue);
            }
            // the request may be stored although the answer was lost; the retry has the same message ids
            if passes(&error) {
                self.wait(&parcel.target, &parcel.rows, &error, pause, end)?;
                lock(&self.written).retries += 1;
                pause = LONGEST_PAUSE.min(2 * pause);
            } else {
                // a broker that refused is not tried again, but another broker may accept
                refused_by.insert(queue.broker_name.clone());
            }
            queue = self.choose_again(parcel, queue, &refused_by, &error)?;
        }
    }

    /// Builds the failure of rows from an error.
    pub fn failed(&self, target: &Target, rows: &[RowPlace], text: &str, error: &ClientError) -> Failure {
        let rest = if rows.len() > 1 { format!(" and {} more with it", rows.len() - 1) } else { String::new() };
        let row = rows.first().map(|place| row_text(target, &place.row(&self.columns), place.number));
        let (partition, row) = (self.partition, row.unwrap_or_default());
        Failure { text: format!("partition {partition}, {row}{rest}: {text}"), code: code_of(error) }
    }

    /// Waits before the next attempt, or fails if the time for retries is over.
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
        // the pause ends early when another lane fails
        if self.stop.wait(pause) {
            return Err(self.failed(target, rows, &format!("the task ends: {text}"), error));
        }
        Ok(())
    }

    fn choose_again(
        &self,
        parcel: &Parcel,
        last: Queue,
        refused_by: &HashSet<Arc<str>>,
        error: &ClientError,
    ) -> Result<Queue, Failure> {
        let next = match self.next_queue(&parcel.target, Some(&last.broker_name), refused_by, true) {
            Ok(queue) => queue,
            // either no name server answers, or the route lacks the broker while it is down
            Err(_) if refused_by.contains(&last.broker_name) => None,
            Err(_) => Some(last.clone()),
        };
        next.ok_or_else(|| {
            let topic = parcel.target.topic.as_deref().unwrap_or_default();
            let place = format!("topic {topic}, queue {} of {}", last.queue_id, last.broker_name);
            self.failed(&parcel.target, &parcel.rows, &format!("{place}: {}", error_text(error)), error)
        })
    }

    /// Sends a request that is too large as two halves, which are split again if needed. In the end, only a row that is
    /// itself too large fails.
    fn send_halves(&self, parcel: &Parcel, queue: &Queue) -> Result<(), Failure> {
        // rounded up, so that there are two parts and not a third part of one row
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
        parts.iter().try_for_each(|part| self.send(part, queue.clone()))
    }

    /// Returns the next queue for a target, see [`next_queue`]. With `is_new`, a name server is asked for the queues
    /// again.
    fn next_queue(
        &self,
        target: &Target,
        last_broker: Option<&str>,
        refused_by: &HashSet<Arc<str>>,
        is_new: bool,
    ) -> Result<Option<Queue>, ClientError> {
        let topic = target.topic.as_deref().filter(|topic| !topic.is_empty());
        let topic = topic.ok_or_else(|| refused("expected a topic, got null"))?;
        next_queue(target, &*self.publish_queues(topic, is_new)?, last_broker, refused_by).map_err(refused)
    }

    fn publish_queues(&self, topic: &str, is_new: bool) -> Result<Arc<PublishQueues>, ClientError> {
        let known = lock(&self.topics).get(topic).map(|known| (known.queues.clone(), known.since));
        match known {
            Some((queues, since)) if !is_new && since.elapsed() < ROUTE_AGE => return Ok(queues),
            None => check_sendable_topic(topic).map_err(refused)?,
            Some(_) => {}
        }
        let known = known.map(|(queues, _)| queues);
        let queues = match self.newest_queues(topic) {
            Ok(queues) => Arc::new(queues),
            // old queues stay in use while no name server answers; but a retry after a failure gets the error
            Err(error) => match known {
                Some(queues) if !is_new || code_of(&error) == NO_ROUTE => queues,
                _ => return Err(error),
            },
        };
        let newest = KnownQueues { queues: queues.clone(), since: Instant::now() };
        lock(&self.topics).insert(topic.to_owned(), newest);
        Ok(queues)
    }

    fn newest_queues(&self, topic: &str) -> Result<PublishQueues, ClientError> {
        let wrapped = wrap(&self.options.namespace, topic);
        let fetch = |topic: &str| match self.cluster.route_data(topic, self.cluster.interrupt()) {
            Ok(route) => Ok(Ok(route)),
            Err(ClientError::Response { code, remark, .. }) => Ok(Err((code, remark))),
            // the remark names the name servers that did not answer, and the reason
            Err(ClientError::Client { remark, code: NO_ANSWER, .. }) => Err(unreachable(remark)),
            Err(error) => Err(error),
        };
        let route = self.routes.fetch(&wrapped, Some((DEFAULT_TOPIC, DEFAULT_QUEUES)), fetch)?;
        let route = route.map_err(|refusal| no_route(&wrapped, Some(refusal)))?;
        let queues = PublishQueues::of(&wrapped, &route);
        if queues.queues.is_empty() {
            // the caller keeps the queues that it has, and so their masters stay known
            return Err(no_route(&wrapped, None));
        }
        let translate = &self.cluster.options().translate;
        self.routes.put(&wrapped, route, |address| match translate {
            Some(translate) => translate(address).map(Into::into),
            None => Ok(address.clone()),
        })?;
        Ok(queues)
    }

    /// Sends a request once. Returns whether the broker confirmed the requested flush and copy to a slave.
    fn ask(&self, request: &Request, queue: &Queue) -> Result<bool, ClientError> {
        let address = self.address_of(queue)?;
        // a failed heartbeat is ignored: the send fails, too, and reports the reason
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

    /// Returns the address of a broker's master.
    fn address_of(&self, queue: &Queue) -> Result<Arc<str>, ClientError> {
        let address = self.routes.publish_address(&queue.broker_name);
        address.ok_or_else(|| broker_not_exist(&queue.broker_name))
    }
}

/// Builds a client id that is unique among the tasks of a process.
///
/// Source: `ClientConfig.buildMQClientId`.
fn client_id(name_servers: &[String]) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (rmqfast_remoting::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("{}@{process}#{number}", local_address(name_servers))
}

/// Whether a retry may succeed: no answer came, or the broker is overloaded.
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

/// Formats an error with its advice.
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

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
