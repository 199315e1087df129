//! A consumer asks for messages of a queue.
//!
//! Source: `PullMessageProcessor.processRequest`.
use crate::ahead;
use crate::code::{perm, response};
use crate::data_plane::Done;
use crate::ground::Ground;
use crate::hold::Held;
use crate::pull_header::PullHeader;
use crate::pull_status::code_of;
use crate::reply::Reply;
use crate::subscription::Subscription;
use crate::tables::Subscribed;
use rmqfast_remoting::{Answer, Command, Connection, Outgoing, Value};
use rmqfast_store::Result as StoreResult;
use rmqfast_store::store::get::GetMessageStatus;
use rmqfast_store::store::serve::{Places, Pulled};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FAQ: &str = "\nSee http://rocketmq.apache.org/docs/faq/ for further details.";

/// Why nothing is looked for: a code and what a person reads.
type Refusal = (i32, String);

thread_local! {
    // the header of an answer stands before the records, and says what only they tell: first they are found, then copied
    static RECORDS: RefCell<Places> = RefCell::default();
}

/// One request to pull.
pub struct Pulling<'a> {
    /// The data plane.
    pub ground: &'a Arc<Ground>,
    /// Where it came from.
    pub connection: &'a Arc<Connection>,
    /// What is asked for.
    pub request: &'a Command<'a>,
    /// The request is here for the first time: it may be held, and may tell how far the group is.
    pub is_first: bool,
    /// How often it may still look whether the heartbeat has come that tells of its subscription.
    pub looks: u16,
}

impl Pulling<'_> {
    /// Answers the request, or holds it, unless the control plane has to do something first.
    pub fn answer(&self, out: &mut Outgoing) -> Done {
        let mut reply = Reply::to(self.request, out);
        let header = match PullHeader::read(self.request) {
            Ok(header) => header,
            Err(remark) => {
                reply.end(response::SYSTEM_ERROR, &remark);
                return Done::Yes;
            }
        };
        if self.ground.tables.group(header.group).is_none() {
            return Done::NotYet;
        }
        match self.subscription(&header) {
            Err((response::SUBSCRIPTION_NOT_LATEST, _)) if self.may_wait() => {}
            Err((code, remark)) => reply.end(code, &remark),
            Ok(subscription) => self.pull(&header, subscription, &mut reply),
        }
        Done::Yes
    }

    /// Answers the request over its connection.
    pub fn answer_later(&self) {
        let mut out = Outgoing::default();
        if self.answer(&mut out).is_done() {
            self.connection.send_frames(out);
        } else {
            self.ground.hand_over(self.connection, self.request);
        }
    }

    fn may_wait(&self) -> bool {
        self.looks > 0 && ahead::wait(self.ground, self.connection, self.request, self.looks - 1)
    }

    /// What is wanted, once all is checked that can be wrong: in the order of Java's checks.
    fn subscription(&self, header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
        let (tables, options) = (&self.ground.tables, &self.ground.options);
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
        let subscription = if header.has_subscription() { of_request(header) } else { self.of_group(header) }?;
        if subscription.is_sql() && !self.ground.settings().property_filter {
            let remark = "The broker does not support consumer to filter message by SQL92";
            return Err((response::SYSTEM_ERROR, remark.into()));
        }
        Ok(subscription)
    }

    fn of_group(&self, header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
        let not_exist = |what| (response::SUBSCRIPTION_NOT_EXIST, format!("{what}{FAQ}"));
        let (subscription, is_broadcasting) = match self.ground.tables.subscribed(header.group, header.topic) {
            Subscribed::Offline => return Err(not_exist("the consumer's group info not exist")),
            Subscribed::Nothing(is_broadcasting) => (None, is_broadcasting),
            Subscribed::To(subscription, is_broadcasting) => (Some(subscription), is_broadcasting),
        };
        if is_broadcasting && self.ground.tables.group(header.group).is_some_and(|group| !group.broadcast_enable) {
            let remark = format!("the consumer group[{}] can not consume by broadcast way", header.group);
            return Err((response::NO_PERMISSION, remark));
        }
        let subscription = subscription.ok_or_else(|| not_exist("the consumer's subscription not exist"))?;
        if subscription.version < header.sub_version {
            return Err((response::SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest".into()));
        }
        if subscription.is_broken() {
            let remark = "The broker's consumer filter data is not exist!Your expression may be wrong!";
            return Err((response::FILTER_DATA_NOT_EXIST, remark.into()));
        }
        Ok(subscription)
    }

    fn pull(&self, header: &PullHeader<'_>, subscription: Arc<Subscription>, reply: &mut Reply<'_>) {
        // taken, not borrowed: what follows may wake other pulls, which are answered on this thread
        let mut records = RECORDS.take();
        let begun = Instant::now();
        match self.get(header, &subscription, &mut records) {
            Ok(pulled) => {
                self.ground.passed_over.add((header.topic, header.queue_id), records.passed_over());
                self.ground.times.note_get(begun.elapsed().as_millis() as u64);
                self.tell(header, subscription, (&pulled, &mut records), reply);
            }
            Err(error) => reply.end(response::SYSTEM_ERROR, &error.to_string()),
        }
        // no file is to stay mapped for it
        records.clear();
        RECORDS.set(records);
    }

    fn tell(
        &self,
        header: &PullHeader<'_>,
        subscription: Arc<Subscription>,
        (pulled, records): (&Pulled, &mut Places),
        reply: &mut Reply<'_>,
    ) {
        let code = code_of(pulled.status, header.queue_offset);
        if self.is_first && header.commits_offset() {
            self.ground.offsets.commit(header.group, header.topic, header.queue_id, header.commit_offset);
        }
        if code == response::PULL_NOT_FOUND && self.is_first && header.may_be_held() {
            return self.hold(header, subscription);
        }
        self.count(header, pulled, records.bytes());
        if code == response::PULL_OFFSET_MOVED {
            self.ground.offset_moved(header, pulled.next_begin_offset);
        }
        match code {
            response::SUCCESS => reply.write_records(code, pulled.status.name(), &fields(pulled), records),
            _ => reply.write(code, Some(pulled.status.name()), &fields(pulled), b""),
        }
    }

    fn get(&self, header: &PullHeader<'_>, subscription: &Subscription, out: &mut Places) -> StoreResult<Pulled> {
        let (live, limits) = (&self.ground.live, self.ground.settings().limits);
        match live.queue(header.topic, header.queue_id) {
            Some(queue) => {
                let most = usize::try_from(header.max_messages).unwrap_or_default();
                live.get_message(&queue, header.queue_offset, most, subscription, limits, out)
            }
            None => Ok(Pulled {
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

    fn hold(&self, header: &PullHeader<'_>, subscription: Arc<Subscription>) {
        let options = self.ground.settings();
        let time = if options.long_polling { Duration::from_millis(header.suspend_ms) } else { options.short_polling };
        let held = Held {
            answer: Answer::to(self.connection, self.request),
            request: Held::kept(self.request),
            offset: header.queue_offset,
            until: Instant::now() + time,
            subscription,
        };
        self.ground.holds.hold(self.ground, (header.topic, header.queue_id), held);
    }

    fn count(&self, header: &PullHeader<'_>, pulled: &Pulled, bytes: usize) {
        match pulled.status {
            GetMessageStatus::Found => {
                let key = format!("{}@{}", header.topic, header.group);
                self.ground.counters.of("GROUP_GET", &key).add(pulled.messages, bytes as u64);
                self.ground.gets.add(pulled.messages, bytes as u64);
            }
            _ => self.ground.missed_gets.add(0, 0),
        }
    }
}

fn of_request(header: &PullHeader<'_>) -> Result<Arc<Subscription>, Refusal> {
    let text = header.subscription.unwrap_or_default();
    let parsed = Subscription::parse(header.expression_type, text, header.sub_version);
    parsed
        .map(Arc::new)
        .ok_or_else(|| (response::SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed".into()))
}

fn fields(pulled: &Pulled) -> [(&'static str, Value<'static>); 4] {
    [
        ("suggestWhichBrokerId", Value::Number(0)),
        ("nextBeginOffset", Value::Number(pulled.next_begin_offset)),
        ("minOffset", Value::Number(pulled.min_offset)),
        ("maxOffset", Value::Number(pulled.max_offset)),
    ]
}
