//! Answers SEND_MESSAGE and its variants: checks a message, stores it, and returns its id and offset.
//!
//! Source: `SendMessageProcessor.asyncSendMessage`, `asyncSendBatchMessage`, `handlePutMessageResult`,
//! `AbstractSendMessageProcessor.msgCheck`, `HookUtils.handleScheduleMessage`, `checkIfTimerMessage` of 5.x.
use crate::broker_state::BrokerState;
use crate::counters::Counter;
use crate::group_commit::{HandOver, Reply, SendReceipt, SlaveWait};
use crate::headers::SendHeader;
use crate::parsed_send::{
    self, DELAY, HALF_TOPIC, ParsedBatch, ParsedSend, Property, TRAN_MSG, WAIT, value, with_cluster, without_wait,
};
use crate::tables::Topic;
use rmqfast_remoting::code::{perm, request, response};
use rmqfast_remoting::{Answer, Command, Connection, Outgoing};
use rmqfast_store::Error;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::names::FORBIDDEN_TOPICS;
use rmqfast_store::store::append::{Flush, Place, PutMessageStatus, Rows};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const RETRY: &str = "%RETRY%";
/// Properties of 5.x that set the delivery time of a message.
const TIMER: [&[u8]; 3] = [b"TIMER_DELIVER_MS", b"TIMER_DELAY_MS", b"TIMER_DELAY_SEC"];
const MULTI_TAG: i32 = 2;
const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

type Refusal = (i32, String);

/// An answer that can be sent at once, with its response code.
type Receipt = (i32, SendReceipt);

pub struct Sending<'a> {
    pub state: &'a BrokerState,
    pub connection: &'a Arc<Connection>,
    pub request: &'a Command<'a>,
    /// Set if the control plane has prepared the request, see [`PreparedSend`].
    pub prepared: Option<PreparedSend<'a>>,
}

/// Result of the preparation by the control plane, which has created what the request needs, such as its topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct PreparedSend<'a> {
    /// Topic and queue id that replace those of the message.
    pub target: Option<(&'a str, i32)>,
}

impl Sending<'_> {
    /// Stores the messages and answers the request. Fails with [`HandOver`] for an unknown topic, and for messages sent back
    /// to a retry topic.
    pub fn answer(&self, out: &mut Outgoing) -> Result<(), HandOver> {
        let mut reply = Reply::to(self.request, out);
        if self.state.options.is_slave {
            // refused before the control plane could create a topic for it
            reply.end(response::SERVICE_NOT_AVAILABLE, &self.state.not_available());
            return Ok(());
        }
        // batches use the one-letter field names too
        let mut header = match SendHeader::read(self.request, self.request.code != request::SEND_MESSAGE) {
            Ok(header) => header,
            Err(remark) => {
                reply.end(response::SYSTEM_ERROR, &remark);
                return Ok(());
            }
        };
        match self.prepared {
            // only the control plane knows the group's maximum of retries
            None if header.topic.starts_with(RETRY) => return Err(HandOver),
            Some(PreparedSend { target: Some(target) }) => (header.topic, header.queue_id) = target,
            _ => {}
        }
        let Some(topic) = self.state.tables.topic(header.topic) else { return Err(HandOver) };
        match self.store(header, topic) {
            Err((code, remark)) => reply.end(code, &remark),
            Ok(None) => {}
            Ok(Some((code, receipt))) => receipt.write(code, &self.state.options, &mut reply),
        }
        Ok(())
    }

    /// Checks and stores the messages. Returns `None` if the answer must wait for the disk or a slave.
    fn store(&self, header: SendHeader<'_>, topic: Topic) -> Result<Option<Receipt>, Refusal> {
        self.check(&header, topic)?;
        if self.request.code == request::SEND_BATCH_MESSAGE && self.prepared.is_some() {
            check_batch(SendHeader::read(self.request, true).map_or("", |own| own.topic))?;
        }
        let queue_id = if header.queue_id < 0 { any_queue(topic) } else { header.queue_id };
        let sys_flag = header.sys_flag | if topic.is_multi_tag { MULTI_TAG } else { 0 };
        let header = SendHeader { queue_id, sys_flag, ..header };
        match self.request.code {
            request::SEND_BATCH_MESSAGE => self.store_batch(header),
            _ => self.store_one(header),
        }
    }

    fn check(&self, header: &SendHeader<'_>, topic: Topic) -> Result<(), Refusal> {
        let options = &self.state.options;
        let accepts_sends_from = self.state.settings().accepts_sends_from;
        if accepts_sends_from > 0 && now_ms() < accepts_sends_from {
            return Err((response::SYSTEM_ERROR, format!("broker unable to service, until {accepts_sends_from}")));
        }
        // only for ordered topics, as in `msgCheck`
        if !self.state.tables.allows(perm::WRITE) && topic.is_ordered {
            let remark = format!("the broker[{}] sending message is forbidden", options.address.ip);
            return Err((response::NO_PERMISSION, remark));
        }
        if FORBIDDEN_TOPICS.contains(&header.topic) {
            let remark = format!("Sending message to topic[{}] is forbidden.", header.topic);
            return Err((response::NO_PERMISSION, remark));
        }
        // Java's rule; the store itself accepts any queue id
        if header.queue_id >= topic.read_queues.max(topic.write_queues) {
            let peer = self.connection.peer();
            let remark = format!(
                "request queueId[{}] is illegal, {} Producer: {peer}",
                header.queue_id,
                describe(header.topic, topic)
            );
            return Err((response::SYSTEM_ERROR, remark));
        }
        Ok(())
    }

    fn store_one(&self, header: SendHeader<'_>) -> Result<Option<Receipt>, Refusal> {
        let properties = with_cluster(&header, &self.state.options.cluster_name);
        check_timer(&properties)?;
        // waits unless WAIT is "false"
        let waits = value(&properties, WAIT) != Some(b"false");
        // a message sent back by a consumer keeps TRAN_MSG but is no half message: Java's exception for clients before
        // 4.6.1
        let is_half = value(&properties, TRAN_MSG).is_some_and(|text| text.eq_ignore_ascii_case(b"true"))
            && !(header.reconsume_times > 0 && value(&properties, DELAY).is_some());
        let mut message = ParsedSend { header, body: self.request.body, born_host: self.born_host(), properties };
        let queue = header.queue_id.to_string();
        let is_delayed = value(&message.properties, DELAY).is_some_and(is_level);
        if is_half {
            self.check_transaction()?;
            message = message.into_half(&queue);
        } else {
            message.properties = without_wait(message.properties);
        }
        let mut place = None;
        let started = Instant::now();
        let appended = self.state.appender.append_unsynced(&message, None, false, |at| place = Some(at));
        self.note_time(started);
        let position = appended.map_err(|error| self.refusal_of(&error))?;
        let places: Vec<Place> = place.into_iter().collect();
        // the topic in which the store put it: delayed messages, half messages included, go to the schedule topic
        let topic = match (is_delayed, is_half) {
            (true, _) => SCHEDULE_TOPIC,
            (false, true) => HALF_TOPIC,
            (false, false) => header.topic,
        };
        self.count(topic, &places, position);
        Ok(self.receipt(&header, &places, position, waits))
    }

    fn check_transaction(&self) -> Result<(), Refusal> {
        if self.state.settings().rejects_transactions {
            let remark =
                format!("the broker[{}] sending transaction message is forbidden", self.state.options.address.ip);
            return Err((response::NO_PERMISSION, remark));
        }
        Ok(())
    }

    fn store_batch(&self, header: SendHeader<'_>) -> Result<Option<Receipt>, Refusal> {
        let Some(messages) = parsed_send::batch_messages(self.request.body) else {
            return Err((response::MESSAGE_ILLEGAL, self.illegal()));
        };
        let common = with_cluster(&header, &self.state.options.cluster_name);
        let waits = value(&common, WAIT) != Some(b"false");
        let batch = ParsedBatch::new(header, messages, self.born_host(), &common);
        let mut places = Vec::with_capacity(batch.len());
        let started = Instant::now();
        let appended = self.state.appender.append_unsynced(&batch, None, true, |at| places.push(at));
        self.note_time(started);
        let position = appended.map_err(|error| self.refusal_of(&error))?;
        self.count(header.topic, &places, position);
        Ok(self.receipt(&header, &places, position, waits))
    }

    fn receipt(&self, header: &SendHeader<'_>, places: &[Place], position: u64, waits: bool) -> Option<Receipt> {
        places.first()?;
        let receipt = SendReceipt::new(self.state.options.address, places, header.queue_id);
        let slave = if waits { self.state.slave_wait(position) } else { SlaveWait::None };
        match (waits && self.state.flush == Flush::Sync, slave) {
            (false, SlaveWait::None) => Some((response::SUCCESS, receipt)),
            (false, SlaveWait::NotAvailable) => Some((response::SLAVE_NOT_AVAILABLE, receipt)),
            // another thread answers, so that this connection continues with its next request
            _ => {
                let answer = Answer::to(self.connection, self.request);
                let pushed = self.state.group_commit.push(position, slave, answer, receipt);
                let code = match slave {
                    SlaveWait::Since(_) => response::FLUSH_SLAVE_TIMEOUT,
                    SlaveWait::None | SlaveWait::NotAvailable => response::FLUSH_DISK_TIMEOUT,
                };
                // the broker ends, and nobody waits any more; the message is stored nevertheless
                pushed.err().map(|receipt| (code, receipt))
            }
        }
    }

    /// Counts the messages for the topic in which they are stored. For delayed and half messages this is not their
    /// own topic.
    fn count(&self, topic: &str, places: &[Place], position: u64) {
        let Some(first) = places.first() else { return };
        // records of a request are contiguous, so their bytes end at the log's end after the append
        let bytes = position.saturating_sub(first.physical_offset.cast_unsigned());
        let count = |counter: &Counter| counter.add(places.len(), bytes);
        count(&self.state.counters.of("TOPIC_PUT", topic));
        count(&self.state.puts);
        if topic == SCHEDULE_TOPIC {
            count(&self.state.counters.of("QUEUE_PUT", &format!("{topic}@{}", first.queue_id)));
        }
    }

    fn note_time(&self, started: Instant) {
        self.state.times.note_put(started.elapsed().as_millis() as u64);
    }

    fn born_host(&self) -> Host {
        self.connection.peer().into()
    }

    fn illegal(&self) -> String {
        illegal(self.state.options.max_message_size)
    }

    /// Returns the response code and remark for messages that could not be stored, as `handlePutMessageResult` does.
    fn refusal_of(&self, error: &Error) -> Refusal {
        use PutMessageStatus as Status;
        self.state.failed_puts.add(1, 0);
        match PutMessageStatus::of(error) {
            Status::ServiceNotAvailable => (response::SERVICE_NOT_AVAILABLE, self.state.not_available()),
            Status::CreateMapedFileFailed => {
                (response::SYSTEM_ERROR, "create mapped file failed, server is busy or broken.".into())
            }
            Status::MessageIllegal | Status::PropertiesSizeExceeded => (response::MESSAGE_ILLEGAL, self.illegal()),
            Status::OsPagecacheBusy => {
                (response::SYSTEM_ERROR, "[PC_SYNCHRONIZED]broker busy, start flow control for a while".into())
            }
            Status::LmqConsumeQueueNumExceeded => {
                (response::SYSTEM_ERROR, "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]broker config enableLmq and enableMultiDispatch, lmq consumeQueue num exceed maxLmqConsumeQueueNum config num, default limit 2w.".into())
            }
            _ => (response::SYSTEM_ERROR, "UNKNOWN_ERROR".into()),
        }
    }
}

/// Returns the remark for a message that is too large: its body exceeds `most` bytes, or its properties are too long.
pub fn illegal(most: usize) -> String {
    format!(
        "the message is illegal, maybe msg body or properties length not matched. msg body length limit {most}B, msg properties length limit 32KB."
    )
}

/// Refuses a batch to a retry topic. `topic` is that of the original request, for which the control plane may have
/// substituted another topic.
fn check_batch(topic: &str) -> Result<(), Refusal> {
    if topic.starts_with(RETRY) {
        return Err((response::MESSAGE_ILLEGAL, format!("batch request does not support retry group {topic}")));
    }
    Ok(())
}

/// Refuses messages with a delivery time of 5.x, which are not supported. Without the refusal the messages would be
/// delivered at once, as by a 4.9 broker.
fn check_timer(properties: &[Property<'_>]) -> Result<(), Refusal> {
    let is_timed = TIMER.iter().any(|name| value(properties, name).is_some());
    if is_timed && !value(properties, DELAY).is_some_and(is_level) {
        let remark = "accurate timer message is not enabled, timerWheelEnable is false";
        return Err((response::SYSTEM_ERROR, remark.into()));
    }
    Ok(())
}

/// Returns whether the value of a property `DELAY` is a number above 0.
fn is_level(value: &[u8]) -> bool {
    std::str::from_utf8(value).ok().and_then(|text| text.parse::<i32>().ok()).is_some_and(|level| level > 0)
}

/// Formats a topic as `TopicConfig.toString` does.
fn describe(name: &str, topic: Topic) -> String {
    let letter = |bit: i32, letter: char| if topic.perm & bit != 0 { letter } else { '-' };
    let perm: String = [letter(4, 'R'), letter(2, 'W'), letter(1, 'X')].into_iter().collect();
    format!(
        "TopicConfig [topicName={name}, readQueueNums={}, writeQueueNums={}, perm={perm}, topicFilterType={}, topicSysFlag=0, order={}]",
        topic.read_queues,
        topic.write_queues,
        if topic.is_multi_tag { "MULTI_TAG" } else { "SINGLE_TAG" },
        topic.is_ordered,
    )
}

/// Returns the next queue in turn. Java chooses a random queue; no client can rely on either.
fn any_queue(topic: Topic) -> i32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (NEXT.fetch_add(1, Ordering::Relaxed) % topic.write_queues.max(1).cast_unsigned()).cast_signed()
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
