//! State of a broker's data plane, shared by all requests: store, tables, offsets, counters.
//!
//! Source: `BrokerController`, `HAService.isSlaveOK`, `CommitLog.submitReplicaRequest`,
//! `ConsumerManageProcessor.queryConsumerOffset`, `DefaultMessageStore.checkInDiskByConsumeOffset`,
//! `ClientManageProcessor.checkClientConfig`, `PullMessageProcessor.generateOffsetMovedEvent`.
use crate::counters::{Counter, Counters, PutTimes, Quota, SkippedMessages};
use crate::group_commit::{GroupCommit, NotFlushed, SlaveWait};
use crate::headers::PullHeader;
use crate::ledger::{Ledger, Place};
use crate::offsets::Offsets;
use crate::options::{BrokerOptions, Settings};
use crate::parked_pulls::{HeavyPulls, ParkedPulls};
use crate::tables::{Subscription, Tables};
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Answer, Command, Connection, Mailbox, json_text};
use rmqfast_replication::Replicas;
use rmqfast_store::store::append::{Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::store::serve::Live;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

const OFFSET_MOVED_EVENT: &str = "OFFSET_MOVED_EVENT";

pub struct BrokerState {
    pub appender: Arc<Appender>,
    pub live: Live,
    /// Whether sends wait until their messages are flushed.
    pub flush: Flush,
    pub options: BrokerOptions,
    /// Topics, groups and subscriptions.
    pub tables: Tables,
    pub offsets: Offsets,
    /// The ledger of pulls: rows of who was handed which stretch of a queue.
    pub ledger: Ledger,
    /// Limits the pairs of group and topic for which a connection may commit offsets for the first time.
    pub new_offsets: Quota,
    /// Pulls that wait for a message or for a heartbeat.
    pub parked_pulls: ParkedPulls,
    /// Pulls that wait for the thread that evaluates expensive filters.
    pub heavy_pulls: HeavyPulls,
    /// Counters by name and by key, such as a topic or a group.
    pub counters: Counters,
    /// Answers to sends that wait until the disk or a slave has their messages.
    pub group_commit: GroupCommit,
    /// Positions up to which slaves have the log, as they reported.
    pub replicas: Arc<Replicas>,
    // These four are also in `counters`. Kept here, they cost no look-up per message.
    /// Counts messages stored since the start.
    pub puts: Arc<Counter>,
    /// Counts messages that could not be stored, since the start.
    pub failed_puts: Arc<Counter>,
    /// Counts messages that pulls have returned, since the start.
    pub gets: Arc<Counter>,
    /// Counts pulls that returned no message, since the start.
    pub missed_gets: Arc<Counter>,
    /// Messages that pulls skipped because the log is damaged.
    pub skipped_messages: SkippedMessages,
    /// Durations of puts (stored sends) and gets (answered pulls).
    pub times: PutTimes,
    /// Queue of requests that the control plane must answer.
    pub control: Arc<Mailbox>,
    settings: RwLock<Settings>,
    disk_usage: RwLock<String>,
}

/// Bytes of a client id in a pull; a longer one counts as none.
const MAX_CLIENT_ID: usize = 1024;

impl BrokerState {
    pub fn new(appender: Arc<Appender>, flush: Flush, options: BrokerOptions, control: Arc<Mailbox>) -> Self {
        let counters = Counters::default();
        let of_cluster = |name| counters.of(name, &options.cluster_name);
        let live = appender.live();
        // off by default: no broker of RocketMQ checks CRCs on delivery (decision 0009)
        live.check_bodies(options.settings.checks_bodies);
        Self {
            live,
            flush,
            settings: RwLock::new(options.settings),
            skipped_messages: SkippedMessages::default(),
            times: PutTimes::default(),
            tables: Tables::default(),
            offsets: Offsets::default(),
            ledger: Ledger::default(),
            new_offsets: Quota::new(options.new_names.0, options.new_names.1),
            parked_pulls: ParkedPulls::default(),
            heavy_pulls: HeavyPulls::default(),
            group_commit: GroupCommit::default(),
            replicas: Arc::default(),
            puts: of_cluster("BROKER_PUT"),
            failed_puts: of_cluster("BROKER_PUT_FAILED"),
            gets: of_cluster("BROKER_GET"),
            missed_gets: of_cluster("BROKER_GET_MISS"),
            disk_usage: RwLock::default(),
            counters,
            appender,
            options,
            control,
        }
    }

    /// Decides whether the answer to a send waits for a slave. `position` is the end of the send's messages in the log.
    pub fn slave_wait(&self, position: u64) -> SlaveWait {
        let Some(sync) = self.options.sync_replication else { return SlaveWait::None };
        if !self.replicas.is_near(position, sync.most_behind) {
            return SlaveWait::NotAvailable;
        }
        // with SYNC_FLUSH slaves only get what is on the disk, so their time starts after the flush
        SlaveWait::Since((self.flush == Flush::Async).then(Instant::now))
    }

    /// Waits until a slave has the log up to `position`, but at most for `slaveTimeout` after `since`. Returns the
    /// response code. The message is stored, even if no slave has it.
    pub fn wait_replicated(&self, position: u64, since: Instant) -> i32 {
        let Some(sync) = self.options.sync_replication else { return response::SUCCESS };
        let timeout = sync.timeout.saturating_sub(since.elapsed());
        let is_replicated = self.replicas.wait(position, timeout);
        if is_replicated { response::SUCCESS } else { response::FLUSH_SLAVE_TIMEOUT }
    }

    /// Waits until the log up to `position` is on the disk. Returns at once if sends do not wait for the disk. Fails with
    /// [`NotFlushed`] if the log was not flushed in time, or if another process has changed the files.
    pub fn wait_flushed(&self, position: u64, timeout: Duration) -> Result<(), NotFlushed> {
        if self.flush == Flush::Async {
            return Ok(());
        }
        match self.appender.wait_flushed(position, Some(timeout)) {
            Ok(()) => Ok(()),
            // not FLUSH_DISK_TIMEOUT, which means that the message is stored
            Err(_) if self.appender.harm().is_some() => Err(NotFlushed::Harmed(self.not_available())),
            Err(_) => Err(NotFlushed::InTime),
        }
    }

    /// Stores the offset of a group, and notes which client moved it.
    pub fn commit(&self, place: Place<'_>, connection: &Connection, client_id: Option<&str>, offset: i64) {
        let before = self.offsets.commit(place.group, place.topic, place.queue_id, offset);
        if before != Some(offset) {
            self.note(connection, client_id, |ledger, client| ledger.note_commit(place, client, (before, offset)));
        }
    }

    /// Notes in the ledger what a client did. Its name is the id that the request tells, or else the one of the
    /// connection's heartbeats, or else its address.
    pub fn note(&self, connection: &Connection, client_id: Option<&str>, note: impl FnOnce(&Ledger, &str)) {
        if !self.ledger.is_kept() {
            return;
        }
        if let Some(told) = client_id.filter(|id| (1..=MAX_CLIENT_ID).contains(&id.len())) {
            return note(&self.ledger, told);
        }
        match self.ledger.client_of(connection.id()) {
            Some(known) => note(&self.ledger, &known),
            None => note(&self.ledger, &connection.peer().to_string()),
        }
    }

    /// Passes a request to the control plane. Returns false if the queue of the control plane is full.
    pub fn hand_over(&self, connection: &Arc<Connection>, request: &Command<'_>) -> bool {
        self.control.request(request, Answer::to(connection, request))
    }

    /// Returns the first offset of a queue and its end (exclusive). Both are 0 for a missing queue.
    pub fn bounds(&self, topic: &str, queue_id: i32) -> (i64, i64) {
        self.live.queue(topic, queue_id).map_or((0, 0), |queue| queue.bounds())
    }

    /// Returns the end of a queue (exclusive). The end of a missing queue is 0.
    pub fn max_offset(&self, topic: &str, queue_id: i32) -> i64 {
        self.live.queue(topic, queue_id).map_or(0, |queue| queue.max_offset())
    }

    /// Returns whether the first message of a queue still exists and counts as being in memory. Also returns true for
    /// an empty queue.
    pub fn is_young(&self, topic: &str, queue_id: i32) -> bool {
        let Some(queue) = self.live.queue(topic, queue_id) else { return true };
        let first = queue.unit(0).ok().flatten();
        // as in 4.9.4, the distance from the log's end decides; 5.x asks whether the page is in memory
        let in_disk =
            first.is_some_and(|unit| self.settings().limits.is_in_disk(unit.physical_offset, self.live.log_bounds().1));
        // once messages expired, a new group must not begin at 0: its `consumeFromWhere` decides
        queue.min_offset() <= 0 && !in_disk
    }

    #[inline]
    pub fn settings(&self) -> Settings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_settings(&self, settings: Settings) {
        self.live.check_bodies(settings.checks_bodies);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub fn set_disk_usage(&self, text: &str) {
        text.clone_into(&mut self.disk_usage.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the remark with which sends are refused while nothing can be stored.
    pub fn not_available(&self) -> String {
        if let Some((path, reason)) = self.appender.harm() {
            return format!("service not available now. {}: {reason}", path.display());
        }
        let usage = self.disk_usage.read().unwrap_or_else(PoisonError::into_inner);
        // Java's text, which people search for
        format!(
            "service not available now. It may be caused by one of the following reasons: the broker's disk is full [{usage}], messages are put to the slave, message store has been shut down, etc."
        )
    }

    /// Refuses filters other than tags unless `enablePropertyFilter` is set.
    pub fn check_filter_type(&self, expression_type: &str) -> Result<(), (i32, String)> {
        if self.settings().property_filter {
            return Ok(());
        }
        let remark = format!("The broker does not support consumer to filter message by {expression_type}");
        Err((response::SYSTEM_ERROR, remark))
    }

    /// Refuses a filter expression that does not compile.
    pub fn check_filter(&self, expression_type: &str, expression: &str) -> Result<(), (i32, String)> {
        self.check_filter_type(expression_type)?;
        match Subscription::compile(expression_type, expression, 0).problem() {
            Some(problem) => Err((response::SUBSCRIPTION_PARSE_FAILED, problem.into())),
            None => Ok(()),
        }
    }

    /// Stores a message in the topic OFFSET_MOVED_EVENT. It says that a consumer pulled an offset out of range, and
    /// continues at `new_offset`.
    pub fn offset_moved(&self, header: &PullHeader<'_>, new_offset: i64) {
        // the names come from the request and may contain quotes
        let [group, broker, topic] = [header.group, &self.options.broker_name, header.topic].map(json_text);
        let body = format!(
            r#"{{"consumerGroup":{group},"messageQueue":{{"brokerName":{broker},"queueId":{},"topic":{topic}}},"offsetNew":{new_offset},"offsetRequest":{}}}"#,
            header.queue_id, header.queue_offset
        );
        let event = OwnedMessage {
            topic: OFFSET_MOVED_EVENT.into(),
            body: body.into_bytes(),
            // in the order of Java's map
            properties: [("KEYS", header.group), ("DELAY", "0"), ("TAGS", header.group)].map(to_owned_pair).into(),
            ..OwnedMessage::default()
        };
        // a failure is ignored, as the event is informational
        let _ = self.appender.append_unsynced(&Messages::new(vec![event]), None, false, |_| {});
    }
}

fn to_owned_pair((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
