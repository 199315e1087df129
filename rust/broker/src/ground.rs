//! What answers to requests have in common.
//!
//! Source: `BrokerController`.
use crate::counters::{Counter, Counters};
use crate::flush_wait::FlushWaits;
use crate::hold::Holds;
use crate::offsets::Offsets;
use crate::options::{BrokerOptions, Settings};
use crate::passed_over::PassedOvers;
use crate::pull_header::PullHeader;
use crate::put_times::PutTimes;
use crate::quota::Quota;
use crate::tables::Tables;
use rmqfast_remoting::{Answer, Command, Connection, Mailbox, json_text};
use rmqfast_store::store::append::{Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::store::serve::Live;
use std::sync::{Arc, PoisonError, RwLock};

const OFFSET_MOVED_EVENT: &str = "OFFSET_MOVED_EVENT";

/// What answers requests have in common.
pub struct Ground {
    /// The store.
    pub appender: Arc<Appender>,
    /// Its live side.
    pub live: Live,
    /// Whether a send waits for the disk.
    pub flush: Flush,
    /// How the broker answers.
    pub options: BrokerOptions,
    /// What the control plane tells.
    pub tables: Tables,
    /// How far groups are.
    pub offsets: Offsets,
    /// Groups and topics of which a connection may bring in offsets.
    pub new_offsets: Quota,
    /// Pulls that wait.
    pub holds: Holds,
    /// By topic, by group.
    pub counters: Counters,
    /// Answers that wait for the disk.
    pub flush_waits: FlushWaits,
    /// Messages that were stored.
    pub puts: Arc<Counter>,
    /// Messages that were not.
    pub failed_puts: Arc<Counter>,
    /// Messages that were given.
    pub gets: Arc<Counter>,
    /// Pulls that did not.
    pub missed_gets: Arc<Counter>,
    /// Messages that pulls could not give.
    pub passed_over: PassedOvers,
    /// How long puts and gets took.
    pub times: PutTimes,
    /// Gets what is not answered here.
    pub control: Arc<Mailbox>,
    settings: RwLock<Settings>,
    disk_usage: RwLock<String>,
}

impl Ground {
    /// Of a broker that has answered nothing yet.
    pub fn new(appender: Arc<Appender>, flush: Flush, options: BrokerOptions, control: Arc<Mailbox>) -> Self {
        let counters = Counters::default();
        let whole = |name| counters.of(name, &options.cluster_name);
        let live = appender.live();
        live.check_bodies(options.settings.checks_bodies);
        Self {
            live,
            flush,
            settings: RwLock::new(options.settings),
            passed_over: PassedOvers::default(),
            times: PutTimes::default(),
            tables: Tables::default(),
            offsets: Offsets::default(),
            new_offsets: Quota::new(options.new_names.0, options.new_names.1),
            holds: Holds::default(),
            flush_waits: FlushWaits::default(),
            puts: whole("BROKER_PUT"),
            failed_puts: whole("BROKER_PUT_FAILED"),
            gets: whole("BROKER_GET"),
            missed_gets: whole("BROKER_GET_MISS"),
            disk_usage: RwLock::default(),
            counters,
            appender,
            options,
            control,
        }
    }

    /// Hands a request to the control plane. Returns false where too many wait for it.
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

    /// Whether the first message of a queue is there, and taken to be in memory; so it is of a queue that is empty.
    ///
    /// Source: `ConsumerManageProcessor.queryConsumerOffset`, `DefaultMessageStore.checkInDiskByConsumeOffset`.
    pub fn is_young(&self, topic: &str, queue_id: i32) -> bool {
        let Some(queue) = self.live.queue(topic, queue_id) else { return true };
        let first = queue.unit(0).ok().flatten();
        let in_disk =
            first.is_some_and(|unit| self.settings().limits.is_in_disk(unit.physical_offset, self.live.log_bounds().1));
        queue.min_offset() <= 0 && !in_disk
    }

    /// What may change, as it is now.
    #[inline]
    pub fn settings(&self) -> Settings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what may change.
    pub fn set_settings(&self, settings: Settings) {
        self.live.check_bodies(settings.checks_bodies);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Says how full the disks are, as an answer tells it.
    pub fn set_disk_usage(&self, text: &str) {
        text.clone_into(&mut self.disk_usage.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Why nothing is stored.
    pub fn not_available(&self) -> String {
        if let Some((path, reason)) = self.appender.harm() {
            return format!("service not available now. {}: {reason}", path.display());
        }
        let usage = self.disk_usage.read().unwrap_or_else(PoisonError::into_inner);
        format!(
            "service not available now. It may be caused by one of the following reasons: the broker's disk is full [{usage}], messages are put to the slave, message store has been shut down, etc."
        )
    }

    /// Leaves a message where an offset was set right.
    ///
    /// Source: `PullMessageProcessor.generateOffsetMovedEvent`.
    pub fn offset_moved(&self, header: &PullHeader<'_>, new_offset: i64) {
        // a group may have any name
        let [group, broker, topic] = [header.group, &self.options.broker_name, header.topic].map(json_text);
        let body = format!(
            r#"{{"consumerGroup":{group},"messageQueue":{{"brokerName":{broker},"queueId":{},"topic":{topic}}},"offsetNew":{new_offset},"offsetRequest":{}}}"#,
            header.queue_id, header.queue_offset
        );
        let event = OwnedMessage {
            topic: OFFSET_MOVED_EVENT.into(),
            body: body.into_bytes(),
            // in the order of Java's map
            properties: [("KEYS", header.group), ("DELAY", "0"), ("TAGS", header.group)].map(owned).into(),
            ..OwnedMessage::default()
        };
        // only a note: the answer is sent all the same
        let _ = self.appender.append_unsynced(&Messages::new(vec![event]), None, |_| {});
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
