//! Answers PULL_MESSAGE. Returns messages of a queue, or parks the request until a message arrives.
//!
//! Source: `PullMessageProcessor.processRequest`, `DefaultMessageStore.nextOffsetCorrection`,
//! `RebalancePushImpl.messageQueueChanged`, `MQClientInstance.sendHeartbeatToAllBrokerWithLockV2`.
use crate::broker_state::BrokerState;
use crate::group_commit::{HandOver, Reply};
use crate::headers::PullHeader;
use crate::parked_pulls::{Look, Message, ParkedPull};
use crate::tables::{Group, GroupSubscription, Subscription};
use rmqfast_remoting::code::{perm, response};
use rmqfast_remoting::{Command, Connection, Outgoing, SerializeType, Value};
use rmqfast_store::Result as StoreResult;
use rmqfast_store::store::get::GetMessageStatus;
use rmqfast_store::store::serve::{Places, PullResult};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of pulls to answer on the thread that wakes them. More pulls are answered on another thread, so
/// that the waking thread is not delayed.
const FEW: usize = 16;
/// Maximum bytes of the subscription in a pull request. A larger subscription is not parsed on the thread of the
/// socket, but on the thread for expensive filters.
const LARGE_TEXT: usize = 16 << 10;
/// Maximum number of compiled filters that each thread caches, for pull requests that carry large filters.
const KEPT_FILTERS: usize = 8;
const FAQ: &str = "\nSee http://rocketmq.apache.org/docs/faq/ for further details.";

const MASTER_ID: i64 = 0;

type Refusal = (i32, String);

/// A cached filter: type and text of the expression, and its compiled form.
type Kept = (Option<Box<str>>, Box<str>, Arc<Subscription>);

thread_local! {
    static KEPT: RefCell<VecDeque<Kept>> = const { RefCell::new(VecDeque::new()) };
    // The header precedes the records but describes them, so the records are located first and copied later.
    static RECORDS: RefCell<Places> = RefCell::default();
}

pub struct Pulling<'a> {
    pub state: &'a Arc<BrokerState>,
    pub connection: &'a Arc<Connection>,
    pub request: &'a Command<'a>,
    pub look: Look,
    /// Whether this code runs on the thread for expensive filters.
    pub is_aside: bool,
}

/// Answers the parked pulls of a queue that wait for an offset below `max` and match `message`. Without a message,
/// answers all pulls of the queue that wait for an offset below `max`.
pub fn wake_queue(state: &Arc<BrokerState>, queue: (&str, i32), max: i64, message: Option<Message<'_>>) {
    let woken = state.parked_pulls.take_arrived(queue, max, message);
    if woken.len() <= FEW {
        return answer_parked(state, &woken, Look::Last);
    }
    answer_elsewhere(state, woken, Look::Last);
}

/// Answers parked pulls that waited long enough, or whose queue got messages without a notification.
pub fn wake_overdue(state: &Arc<BrokerState>) {
    let woken = state.parked_pulls.take_overdue(|topic, queue_id| state.max_offset(topic, queue_id));
    answer_elsewhere(state, woken, Look::Last);
}

/// Answers the pulls of a group that waited for a heartbeat, if the heartbeat has arrived or they waited long enough.
pub fn wake_early(state: &Arc<BrokerState>, group: &str) {
    let is_early = |topic: &str, version| state.tables.is_behind(group, topic, version);
    // never on this thread: the control plane may hold locks while it registers a heartbeat
    answer_elsewhere(state, state.parked_pulls.take_early(group, is_early), Look::AfterHeartbeat);
}

fn answer_elsewhere(state: &Arc<BrokerState>, pulls: Vec<ParkedPull>, look: Look) {
    if pulls.is_empty() {
        return;
    }
    let state = state.clone();
    // without a runtime there are no connections, so a failure affects nobody
    rmqfast_remoting::spawn_blocking(move || answer_parked(&state, &pulls, look));
}

fn answer_parked(state: &Arc<BrokerState>, pulls: &[ParkedPull], look: Look) {
    for pull in pulls {
        answer_waiting(state, pull, look, false);
    }
}

/// Answers a pull with an expensive filter. Called by the thread for such pulls.
pub fn answer_aside(state: &Arc<BrokerState>, pull: &ParkedPull, look: Look) {
    answer_waiting(state, pull, look, true);
}

fn answer_waiting(state: &Arc<BrokerState>, pull: &ParkedPull, look: Look, is_aside: bool) {
    let ParkedPull { answer, request, .. } = pull;
    // no work for a peer that is gone
    if answer.connection.is_open() {
        Pulling { state, connection: &answer.connection, request: &request.borrow(), look, is_aside }.answer_later();
    }
}

impl Pulling<'_> {
    /// Answers the request, parks it, or passes it to the thread for expensive filters. Fails with [`HandOver`] if the group
    /// is unknown.
    pub fn answer(&self, out: &mut Outgoing) -> Result<(), HandOver> {
        let mut reply = Reply::to(self.request, out);
        let header = match PullHeader::read(self.request) {
            Ok(header) => header,
            Err(remark) => {
                reply.end(response::SYSTEM_ERROR, &remark);
                return Ok(());
            }
        };
        if self.state.tables.group(header.group).is_none() {
            // the control plane creates the group if allowed (`autoCreateSubscriptionGroup`), and retries the request
            return Err(HandOver);
        }
        if !self.is_aside && header.subscription.is_some_and(|text| text.len() > LARGE_TEXT) {
            self.set_aside(&mut reply);
            return Ok(());
        }
        match self.subscription(&header) {
            Ok(subscription) if subscription.is_heavy() && !self.is_aside => self.set_aside(&mut reply),
            Err((response::SUBSCRIPTION_NOT_LATEST, _)) if self.look == Look::First => self.park_early(&header),
            Err((code, remark)) => reply.end(code, &remark),
            Ok(subscription) => self.pull(&header, subscription, &mut reply),
        }
        Ok(())
    }

    fn answer_later(&self) {
        let mut out = Outgoing::default();
        match self.answer(&mut out) {
            Ok(()) => self.connection.send_frames(out),
            Err(HandOver) => self.state.hand_over(self.connection, self.request),
        };
    }

    /// Passes the request to the thread for expensive filters.
    fn set_aside(&self, reply: &mut Reply<'_>) {
        let pull = ParkedPull::new(self.connection, self.request, Duration::ZERO);
        if !self.state.heavy_pulls.push(pull, self.look) {
            reply.end(
                response::SYSTEM_BUSY,
                "[OVERLOAD]too many pulls by large filters wait, start flow control for a while",
            );
        }
    }

    /// Parks a pull until the heartbeat that registers its subscription arrives. The pull is refused if the heartbeat
    /// does not arrive in time.
    fn park_early(&self, header: &PullHeader<'_>) {
        let wait = self.state.options.early_pull_wait;
        let (state, group) = (Arc::downgrade(self.state), Box::from(header.group));
        let pull = ParkedPull::new(self.connection, self.request, wait);
        self.state.parked_pulls.park_early(header.group, (header.topic, header.sub_version), pull);
        rmqfast_remoting::spawn_after(wait, move || {
            if let Some(state) = state.upgrade() {
                wake_early(&state, &group);
            }
        });
        wake_early(self.state, header.group);
    }

    /// Checks permissions, topic and queue in Java's order, and returns the subscription.
    fn subscription(&self, header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
        let (tables, options) = (&self.state.tables, &self.state.options);
        if !tables.allows(perm::READ) {
            return Err((
                response::NO_PERMISSION,
                format!("the broker[{}] pulling message is forbidden", options.address.ip),
            ));
        }
        if tables.group(header.group).is_none_or(|group| !group.consume_enable) {
            return Err((response::NO_PERMISSION, format!("subscription group no permission, {}", header.group)));
        }
        let Some(topic) = tables.topic(header.topic) else {
            let remark = format!("topic[{}] not exist, apply first please! {FAQ}", header.topic);
            return Err((response::TOPIC_NOT_EXIST, remark));
        };
        if topic.perm & perm::READ == 0 {
            return Err((response::NO_PERMISSION, format!("the topic[{}] pulling message is forbidden", header.topic)));
        }
        if header.queue_id < 0 || header.queue_id >= topic.read_queues {
            let remark = format!(
                "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[{}]",
                header.queue_id,
                header.topic,
                topic.read_queues,
                self.connection.peer()
            );
            return Err((response::SYSTEM_ERROR, remark));
        }
        // pull and lite pull consumers send their subscription; that of push consumers came with a heartbeat
        let subscription = if header.has_subscription() { of_request(header) } else { self.of_group(header) }?;
        if let Some(filter_type) = &subscription.filter_type {
            self.state.check_filter_type(filter_type)?;
        }
        Ok(subscription)
    }

    fn of_group(&self, header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
        let not_exist = |what| (response::SUBSCRIPTION_NOT_EXIST, format!("{what}{FAQ}"));
        let (subscription, is_broadcasting) = match self.state.tables.subscription(header.group, header.topic) {
            GroupSubscription::Offline => return Err(not_exist("the consumer's group info not exist")),
            GroupSubscription::Nothing(is_broadcasting) => (None, is_broadcasting),
            GroupSubscription::To(subscription, is_broadcasting) => (Some(subscription), is_broadcasting),
        };
        if is_broadcasting && self.state.tables.group(header.group).is_some_and(|group| !group.broadcast_enable) {
            let remark = format!("the consumer group[{}] can not consume by broadcast way", header.group);
            return Err((response::NO_PERMISSION, remark));
        }
        let subscription = subscription.ok_or_else(|| not_exist("the consumer's subscription not exist"))?;
        if subscription.version < header.sub_version {
            return of_early_pull(header);
        }
        if subscription.problem().is_some() {
            let remark = "The broker's consumer filter data is not exist!Your expression may be wrong!";
            return Err((response::FILTER_DATA_NOT_EXIST, remark.into()));
        }
        Ok(subscription)
    }

    fn pull(&self, header: &PullHeader<'_>, subscription: Arc<Subscription>, reply: &mut Reply<'_>) {
        // taken, not borrowed: the code below may answer other pulls on this thread
        let mut records = RECORDS.take();
        let started = Instant::now();
        match self.get(header, &subscription, &mut records) {
            Ok(pulled) => {
                self.state.skipped_messages.add((header.topic, header.queue_id), records.skipped());
                self.state.times.note_get(started.elapsed().as_millis() as u64);
                let pulled = self.as_of_slave(header, pulled);
                self.reply(header, subscription, (&pulled, &mut records), reply);
            }
            Err(error) => reply.end(response::SYSTEM_ERROR, &error.to_string()),
        }
        // releases the mapped files
        records.clear();
        RECORDS.set(records);
    }

    fn reply(
        &self,
        header: &PullHeader<'_>,
        subscription: Arc<Subscription>,
        (pulled, records): (&PullResult, &mut Places),
        reply: &mut Reply<'_>,
    ) {
        let code = self.code(header, pulled);
        // an earlier stage committed the offset: a woken pull must not overwrite a later commit
        let may_wait = self.look != Look::Last;
        if may_wait && header.commits_offset() && !self.state.options.is_slave {
            self.state.commit(header.place(), self.connection, header.client_id, header.commit_offset);
        }
        if code == response::PULL_NOT_FOUND && may_wait && header.may_be_parked() {
            return self.park_at_queue_end(header, subscription);
        }
        self.count(header, pulled, records.bytes());
        self.note(header, &subscription, pulled);
        if code == response::PULL_OFFSET_MOVED {
            self.state.offset_moved(header, pulled.next_begin_offset);
        }
        let fields = fields(pulled, self.suggested_broker(header, pulled));
        match code {
            response::SUCCESS => reply.write_records(code, pulled.status.name(), &fields, records),
            // Java's client requires the four numbers in every answer
            _ => reply.write(code, Some(pulled.status.name()), &fields, b""),
        }
    }

    /// Corrects the answer of a slave, which may be behind its master. A consumer that asks for an offset that the
    /// slave does not have shall ask for the same offset again.
    fn as_of_slave(&self, header: &PullHeader<'_>, pulled: PullResult) -> PullResult {
        let is_found = matches!(pulled.status, GetMessageStatus::Found | GetMessageStatus::NoMatchedMessage);
        if is_found || !self.may_be_behind() {
            return pulled;
        }
        PullResult { next_begin_offset: header.queue_offset, ..pulled }
    }

    /// Returns whether messages that are missing here may exist on the master.
    fn may_be_behind(&self) -> bool {
        self.state.options.is_slave && !self.state.settings().checks_offsets_in_slave
    }

    fn code(&self, header: &PullHeader<'_>, pulled: &PullResult) -> i32 {
        match code_of(pulled.status, header.queue_offset) {
            response::PULL_OFFSET_MOVED if self.may_be_behind() => response::PULL_RETRY_IMMEDIATELY,
            code => code,
        }
    }

    /// Returns the broker id for the consumer's next pull. It is a slave if slaves may be read, the messages are not
    /// in memory, and the configuration of the group allows it.
    fn suggested_broker(&self, header: &PullHeader<'_>, pulled: &PullResult) -> i64 {
        let group = self.state.tables.group(header.group).filter(|_| self.state.settings().slave_read);
        let suggested = |group: Group| match pulled.suggest_pulling_from_slave {
            true => group.slow_broker_id,
            false => group.broker_id,
        };
        group.map_or(MASTER_ID, suggested)
    }

    fn get(&self, header: &PullHeader<'_>, subscription: &Subscription, out: &mut Places) -> StoreResult<PullResult> {
        let (live, limits) = (&self.state.live, self.state.settings().limits);
        match live.queue(header.topic, header.queue_id) {
            Some(queue) => {
                let most = usize::try_from(header.max_messages).unwrap_or_default();
                live.get_message(&queue, header.queue_offset, most, subscription, limits, out)
            }
            // empty, not unknown: RocketMQ creates a queue at its look-up, so NO_MATCHED_LOGIC_QUEUE never occurs
            None => Ok(PullResult {
                status: GetMessageStatus::NoMessageInQueue,
                next_begin_offset: 0,
                min_offset: 0,
                max_offset: 0,
                messages: 0,
                bytes: 0,
                suggest_pulling_from_slave: false,
            }),
        }
    }

    fn park_at_queue_end(&self, header: &PullHeader<'_>, subscription: Arc<Subscription>) {
        let settings = self.state.settings();
        let wait =
            if settings.long_polling { Duration::from_millis(header.suspend_ms) } else { settings.short_polling };
        // Java always answers woken pulls in JSON (`executeRequestWhenWakeup`)
        let request = Command { serialize_type: SerializeType::Json, ..self.request.clone() };
        let queue = (header.topic, header.queue_id);
        let pull = ParkedPull::new(self.connection, &request, wait);
        self.state.parked_pulls.park_at_queue_end(queue, (header.queue_offset, subscription), pull);
        // checks again now that appends see the parked pull: a message may have arrived in between
        let max = self.state.max_offset(header.topic, header.queue_id);
        if max > header.queue_offset {
            wake_queue(self.state, queue, max, None);
        }
    }

    /// Notes in the ledger what the client is handed, and what the filter passes over.
    fn note(&self, header: &PullHeader<'_>, subscription: &Arc<Subscription>, pulled: &PullResult) {
        if matches!(pulled.status, GetMessageStatus::Found | GetMessageStatus::NoMatchedMessage) {
            let stretch = (header.queue_offset, pulled.next_begin_offset);
            self.state.note(self.connection, header.client_id, |ledger, client| {
                ledger.note_pull(header.place(), client, subscription, stretch);
            });
        }
    }

    fn count(&self, header: &PullHeader<'_>, pulled: &PullResult, bytes: usize) {
        match pulled.status {
            GetMessageStatus::Found => {
                // the key of `BrokerStatsManager`, which mqadmin queries
                let key = format!("{}@{}", header.topic, header.group);
                self.state.counters.of("GROUP_GET", &key).add(pulled.messages, bytes as u64);
                self.state.gets.add(pulled.messages, bytes as u64);
            }
            _ => self.state.missed_gets.add(0, 0),
        }
    }
}

/// Returns a subscription to all messages, for a pull that arrived before its heartbeat. Refuses the pull unless it
/// filters by tags, because only then the consumer checks each message itself.
///
/// After a rebalance a client raises the version of its subscription, pulls with it, and only then sends the heartbeat
/// with that version. Java's client skips the heartbeat while another is in flight, and sends the next half a minute
/// later. RocketMQ refuses all pulls until then. Only the broker can apply SQL92, so such a pull is refused here too.
fn of_early_pull(header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
    match header.wants_tags() {
        true => Ok(Subscription::all(header.sub_version).into()),
        false => Err((response::SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest".into())),
    }
}

fn code_of(status: GetMessageStatus, asked_offset: i64) -> i32 {
    use GetMessageStatus as Status;
    match status {
        Status::Found => response::SUCCESS,
        Status::MessageWasRemoving | Status::NoMatchedMessage => response::PULL_RETRY_IMMEDIATELY,
        Status::NoMessageInQueue if asked_offset != 0 => response::PULL_OFFSET_MOVED,
        Status::NoMessageInQueue | Status::OffsetFoundNull | Status::OffsetOverflowOne => response::PULL_NOT_FOUND,
        Status::OffsetOverflowBadly | Status::OffsetTooSmall => response::PULL_OFFSET_MOVED,
    }
}

fn of_request(header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
    let text = header.subscription.unwrap_or_default();
    let parsed = if text.len() > LARGE_TEXT { kept_filter(header, text) } else { compile(header, text) };
    parsed.ok_or_else(|| (response::SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed".into()))
}

fn compile(header: &PullHeader<'_>, text: &str) -> Option<Arc<Subscription>> {
    Subscription::parse(header.expression_type, text, header.sub_version).map(Arc::new)
}

/// Returns the compiled filter from this thread's cache. If it is not there, compiles the filter and caches it. Returns
/// `None` if the filter is invalid.
fn kept_filter(header: &PullHeader<'_>, text: &str) -> Option<Arc<Subscription>> {
    let kind = header.expression_type;
    KEPT.with_borrow_mut(|kept| {
        if let Some(at) = kept.iter().position(|(of_kind, of_text, _)| of_kind.as_deref() == kind && **of_text == *text)
        {
            // the list is ordered by last use: a used filter moves to the back
            let filter = kept.remove(at)?;
            kept.push_back(filter);
        } else {
            if kept.len() == KEPT_FILTERS {
                kept.pop_front();
            }
            kept.push_back((kind.map(Into::into), text.into(), compile(header, text)?));
        }
        kept.back().map(|(_, _, subscription)| subscription.clone())
    })
}

fn fields(pulled: &PullResult, suggested_broker: i64) -> [(&'static str, Value<'static>); 4] {
    [
        ("suggestWhichBrokerId", Value::Number(suggested_broker)),
        ("nextBeginOffset", Value::Number(pulled.next_begin_offset)),
        ("minOffset", Value::Number(pulled.min_offset)),
        ("maxOffset", Value::Number(pulled.max_offset)),
    ]
}
