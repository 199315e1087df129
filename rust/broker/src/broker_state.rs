//! The state of a broker's data plane, which all requests share: store, tables, offsets, counters.
//!
//! Source: `BrokerController`.
use crate::counters::{Counter, Counters, PutTimes};
use crate::group_commit::{GroupCommit, NotFlushed, SlaveWait};
use crate::heavy_pulls::HeavyPulls;
use crate::offsets::Offsets;
use crate::options::{BrokerOptions, Settings};
use crate::parked_pulls::ParkedPulls;
use crate::pull_header::PullHeader;
use crate::quota::Quota;
use crate::skipped_messages::SkippedMessages;
use crate::subscription::Subscription;
use crate::tables::Tables;
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Answer, Command, Connection, Mailbox, json_text};
use rmqfast_replication::{ReplicaWait, Replicas};
use rmqfast_store::store::append::{Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::store::serve::Live;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

const OFFSET_MOVED_EVENT: &str = "OFFSET_MOVED_EVENT";

/// The state of a broker's data plane.
pub struct BrokerState {
    pub appender: Arc<Appender>,
    pub live: Live,
    /// Whether a send waits for the disk.
    pub flush: Flush,
    /// Options at the start.
    pub options: BrokerOptions,
    /// Topics, groups and subscriptions.
    pub tables: Tables,
    pub offsets: Offsets,
    /// Groups and topics of which a connection may bring in offsets.
    pub new_offsets: Quota,
    /// Pulls that cannot be answered yet.
    pub parked_pulls: ParkedPulls,
    /// Pulls by filters that cost much.
    pub heavy_pulls: HeavyPulls,
    /// By name, and by topic or group.
    pub counters: Counters,
    /// Answers that wait for the disk, or for a slave.
    pub group_commit: GroupCommit,
    /// Positions that slaves have reported.
    pub replicas: Arc<Replicas>,
    // These four are in `counters`, too: kept here, no message costs a look-up by name.
    /// Messages that were stored.
    pub puts: Arc<Counter>,
    /// Messages that could not be stored.
    pub failed_puts: Arc<Counter>,
    /// Messages that pulls delivered.
    pub gets: Arc<Counter>,
    /// Pulls that delivered none.
    pub missed_gets: Arc<Counter>,
    /// Messages that pulls had to skip.
    pub skipped_messages: SkippedMessages,
    /// Durations of puts and gets.
    pub times: PutTimes,
    /// Takes the requests that are not answered here.
    pub control: Arc<Mailbox>,
    settings: RwLock<Settings>,
    disk_usage: RwLock<String>,
}

impl BrokerState {
    /// The state of a broker that has answered nothing yet.
    pub fn new(appender: Arc<Appender>, flush: Flush, options: BrokerOptions, control: Arc<Mailbox>) -> Self {
        let counters = Counters::default();
        let of_cluster = |name| counters.of(name, &options.cluster_name);
        let live = appender.live();
        // off unless it is set: no broker of RocketMQ compares bodies with their CRC (decision 0009)
        live.check_bodies(options.settings.checks_bodies);
        Self {
            live,
            flush,
            settings: RwLock::new(options.settings),
            skipped_messages: SkippedMessages::default(),
            times: PutTimes::default(),
            tables: Tables::default(),
            offsets: Offsets::default(),
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

    /// Decides whether the answer to a send that ends at `position` waits for a slave.
    ///
    /// Source: `HAService.isSlaveOK`.
    pub fn slave_wait(&self, position: u64) -> SlaveWait {
        let Some(sync) = self.options.sync_replication else { return SlaveWait::None };
        if !self.replicas.is_near(position, sync.most_behind) {
            return SlaveWait::NotAvailable;
        }
        // slaves get nothing that the disk does not have, where sends wait for the disk
        SlaveWait::Since((self.flush == Flush::Async).then(Instant::now))
    }

    /// Waits until a slave has the log up to `position`, for `slaveTimeout` from `since` on. Returns the code of the answer: the message
    /// is stored in any case.
    ///
    /// Source: `CommitLog.submitReplicaRequest`.
    pub fn wait_replicated(&self, position: u64, since: Instant) -> i32 {
        let Some(sync) = self.options.sync_replication else { return response::SUCCESS };
        let timeout = sync.timeout.saturating_sub(since.elapsed());
        match self.replicas.wait(position, timeout) {
            ReplicaWait::Yes => response::SUCCESS,
            ReplicaWait::Late => response::FLUSH_SLAVE_TIMEOUT,
        }
    }

    /// Waits until the disk has the log up to `position`, where sends wait for the disk.
    ///
    /// # Errors
    /// [`NotFlushed`]. Where the files came to harm, what is on the disk may not be what was appended.
    pub fn wait_flushed(&self, position: u64, timeout: Duration) -> Result<(), NotFlushed> {
        if self.flush == Flush::Async {
            return Ok(());
        }
        match self.appender.wait_flushed(position, Some(timeout)) {
            Ok(()) => Ok(()),
            // not FLUSH_DISK_TIMEOUT, which tells a producer that the message is stored
            Err(_) if self.appender.harm().is_some() => Err(NotFlushed::Harmed(self.not_available())),
            Err(_) => Err(NotFlushed::InTime),
        }
    }

    /// Hands a request to the control plane. Returns false where its backlog is full.
    pub fn hand_over(&self, connection: &Arc<Connection>, request: &Command<'_>) -> bool {
        self.control.request(request, Answer::to(connection, request))
    }

    /// Min and max offset of a queue; 0 where there is none.
    pub fn bounds(&self, topic: &str, queue_id: i32) -> (i64, i64) {
        self.live.queue(topic, queue_id).map_or((0, 0), |queue| queue.bounds())
    }

    /// Max offset of a queue; 0 where there is none.
    pub fn max_offset(&self, topic: &str, queue_id: i32) -> i64 {
        self.live.queue(topic, queue_id).map_or(0, |queue| queue.max_offset())
    }

    /// Returns whether a queue still has its first message, in what counts as memory. An empty queue is young, too.
    ///
    /// Source: `ConsumerManageProcessor.queryConsumerOffset`, `DefaultMessageStore.checkInDiskByConsumeOffset`.
    pub fn is_young(&self, topic: &str, queue_id: i32) -> bool {
        let Some(queue) = self.live.queue(topic, queue_id) else { return true };
        let first = queue.unit(0).ok().flatten();
        // 4.9.4 goes by the distance from the log's end; 5.x asks whether the page is in memory
        let in_disk =
            first.is_some_and(|unit| self.settings().limits.is_in_disk(unit.physical_offset, self.live.log_bounds().1));
        // once messages were removed, a new group does not begin at 0: its `consumeFromWhere` decides
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

    /// Sets the text by which refusals say how full the disks are.
    pub fn set_disk_usage(&self, text: &str) {
        text.clone_into(&mut self.disk_usage.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the remark of a refusal where nothing can be stored.
    pub fn not_available(&self) -> String {
        if let Some((path, reason)) = self.appender.harm() {
            return format!("service not available now. {}: {reason}", path.display());
        }
        let usage = self.disk_usage.read().unwrap_or_else(PoisonError::into_inner);
        // Java's words: people search for them
        format!(
            "service not available now. It may be caused by one of the following reasons: the broker's disk is full [{usage}], messages are put to the slave, message store has been shut down, etc."
        )
    }

    /// Refuses a filter other than by tags, unless `enablePropertyFilter` is set.
    ///
    /// # Errors
    /// The code of the answer and its remark.
    pub fn check_filter_type(&self, expression_type: &str) -> Result<(), (i32, String)> {
        if self.settings().property_filter {
            return Ok(());
        }
        let remark = format!("The broker does not support consumer to filter message by {expression_type}");
        Err((response::SYSTEM_ERROR, remark))
    }

    /// Refuses an expression that pulls could not use.
    ///
    /// # Errors
    /// The code of the answer and its remark.
    ///
    /// Source: `ClientManageProcessor.checkClientConfig`.
    pub fn check_filter(&self, expression_type: &str, expression: &str) -> Result<(), (i32, String)> {
        self.check_filter_type(expression_type)?;
        match Subscription::compile(expression_type, expression, 0).problem() {
            Some(problem) => Err((response::SUBSCRIPTION_PARSE_FAILED, problem.into())),
            None => Ok(()),
        }
    }

    /// Stores a message which says that a consumer's offset was out of range, and where it goes on.
    ///
    /// Source: `PullMessageProcessor.generateOffsetMovedEvent`.
    pub fn offset_moved(&self, header: &PullHeader<'_>, new_offset: i64) {
        // the names come from the request, and may have quotes in them
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
        // only a note: the answer is sent all the same
        let _ = self.appender.append_unsynced(&Messages::new(vec![event]), None, |_| {});
    }
}

fn to_owned_pair((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
