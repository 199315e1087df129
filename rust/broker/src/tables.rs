//! Tables written by the control plane and read by the data plane: topics, groups, and subscriptions of online
//! consumers.
//!
//! Source: `SubscriptionData`, `ConsumerFilterData`, `ExpressionMessageFilter`.
use rmqfast_remoting::code::perm;
use rmqfast_store::filter::TagExpression;
use rmqfast_store::filter::sql92::{Dialect, Sql92};
use rmqfast_store::format::message::Message;
use rmqfast_store::format::properties;
use rmqfast_store::store::serve::{PullFilter, TagCodes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    pub read_queues: i32,
    pub write_queues: i32,
    pub perm: i32,
    pub is_multi_tag: bool,
    pub is_ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub consume_enable: bool,
    pub broadcast_enable: bool,
    /// Id of the broker from which the group pulls (`brokerId`); 0 is the master.
    pub broker_id: i64,
    /// Id of the broker from which the group pulls messages that are not in memory (`whichBrokerWhenConsumeSlowly`).
    pub slow_broker_id: i64,
}

#[derive(Debug, Default)]
struct Online {
    is_broadcasting: bool,
    subscriptions: HashMap<Box<str>, Arc<Subscription>>,
}

#[derive(Debug)]
pub enum GroupSubscription {
    Offline,
    /// The group has no subscription to the topic. Holds true if the group uses the broadcasting model.
    Nothing(bool),
    /// The group's subscription. The second value is true if the group uses the broadcasting model.
    To(Arc<Subscription>, bool),
}

type OnChange = Box<dyn Fn(&str) + Send + Sync>;

/// Tables of the data plane. Each request reads them. A heartbeat changes them only if its content is new.
pub struct Tables {
    topics: RwLock<HashMap<Box<str>, Topic>>,
    groups: RwLock<HashMap<Box<str>, Group>>,
    online: RwLock<HashMap<Box<str>, Online>>,
    permission: AtomicI32,
    on_subscription_change: OnceLock<OnChange>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            topics: RwLock::default(),
            groups: RwLock::default(),
            online: RwLock::default(),
            // Java's default of `brokerPermission`
            permission: AtomicI32::new(perm::READ | perm::WRITE),
            on_subscription_change: OnceLock::new(),
        }
    }
}

impl Tables {
    #[inline]
    pub fn topic(&self, name: &str) -> Option<Topic> {
        read(&self.topics).get(name).copied()
    }

    pub fn put_topic(&self, name: &str, topic: Topic) {
        write(&self.topics).insert(name.into(), topic);
    }

    pub fn remove_topic(&self, name: &str) {
        write(&self.topics).remove(name);
    }

    #[inline]
    pub fn group(&self, name: &str) -> Option<Group> {
        read(&self.groups).get(name).copied()
    }

    pub fn put_group(&self, name: &str, group: Group) {
        write(&self.groups).insert(name.into(), group);
    }

    pub fn remove_group(&self, name: &str) {
        write(&self.groups).remove(name);
    }

    pub fn subscription(&self, group: &str, topic: &str) -> GroupSubscription {
        let online = read(&self.online);
        let Some(group) = online.get(group) else { return GroupSubscription::Offline };
        match group.subscriptions.get(topic) {
            None => GroupSubscription::Nothing(group.is_broadcasting),
            Some(subscription) => GroupSubscription::To(subscription.clone(), group.is_broadcasting),
        }
    }

    /// Returns whether an online group has a subscription to the topic whose version is less than `version`.
    pub fn is_behind(&self, group: &str, topic: &str, version: i64) -> bool {
        matches!(self.subscription(group, topic), GroupSubscription::To(subscription, _) if subscription.version < version)
    }

    /// Registers the callback for changed subscriptions. No lock is held while the callback runs. Only the first
    /// registration counts.
    pub fn on_subscription_change(&self, on_change: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.on_subscription_change.set(Box::new(on_change));
    }

    /// Marks a group as online, with its message model.
    pub fn put_online(&self, group: &str, is_broadcasting: bool) {
        write(&self.online).entry(group.into()).or_default().is_broadcasting = is_broadcasting;
    }

    pub fn remove_online(&self, group: &str) {
        // unlocked after this line, as in `put_subscription`
        write(&self.online).remove(group);
        self.subscriptions_changed(group);
    }

    pub fn put_subscription(&self, group: &str, topic: &str, subscription: Subscription) {
        let mut online = write(&self.online);
        online.entry(group.into()).or_default().subscriptions.insert(topic.into(), Arc::new(subscription));
        // unlocked first, as the callback reads the tables
        drop(online);
        self.subscriptions_changed(group);
    }

    pub fn remove_subscription(&self, group: &str, topic: &str) {
        write(&self.online).get_mut(group).map(|group| group.subscriptions.remove(topic));
        self.subscriptions_changed(group);
    }

    fn subscriptions_changed(&self, group: &str) {
        if let Some(on_change) = self.on_subscription_change.get() {
            on_change(group);
        }
    }

    /// Sets the broker's permission, which applies to all topics.
    pub fn set_permission(&self, perm: i32) {
        self.permission.store(perm, Ordering::Relaxed);
    }

    /// Returns whether the broker's permission has any of the bits in `perm`.
    #[inline]
    pub fn allows(&self, perm: i32) -> bool {
        // Relaxed, because no other data depends on the permission
        self.permission.load(Ordering::Relaxed) & perm != 0
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

const SQL92: &str = "SQL92";

/// Maximum cost of a filter per message on a shared thread, which is about 50 µs. More expensive filters run on a
/// separate thread.
const HEAVY: usize = 512;

/// Maximum number of characters to keep of a filter's type or of a compile error.
const MAX_TEXT: usize = 1000;

#[derive(Debug)]
pub struct Subscription {
    /// Version of the subscription, as sent by the client. It is a time in milliseconds, and a later time is newer.
    pub version: i64,
    /// Type of the filter, which is `SQL92` or an unknown name. `None` for tags.
    pub filter_type: Option<Box<str>>,
    /// The expression, as the client sent it.
    pub text: Box<str>,
    filter: Filter,
}

#[derive(Debug)]
enum Filter {
    All,
    Codes(TagCodes),
    Sql(Box<Sql92>),
    /// The expression does not compile; holds the reason. A pull that carries an invalid expression gets all
    /// messages.
    Invalid(Box<str>),
}

impl Subscription {
    /// Creates the subscription that a heartbeat contains, from the hash codes of its tags or an SQL92 expression.
    pub fn new(expression_type: &str, sub_string: &str, version: i64, codes: &[i32]) -> Self {
        if !is_tag_type(expression_type) {
            return Self::compile(expression_type, sub_string, version);
        }
        let filter = match sub_string {
            "*" => Filter::All,
            _ => Filter::Codes(TagCodes::new(codes.iter().copied())),
        };
        Self { version, filter_type: None, text: sub_string.into(), filter }
    }

    pub fn compile(filter_type: &str, expression: &str, version: i64) -> Self {
        let filter = match filter_type {
            SQL92 => compile_sql(expression),
            _ => Filter::Invalid(clip(&format!("no filter is called {filter_type}"))),
        };
        Self { version, filter_type: Some(clip(filter_type)), text: expression.into(), filter }
    }

    pub fn all(version: i64) -> Self {
        Self { version, filter_type: None, text: "*".into(), filter: Filter::All }
    }

    /// Parses the subscription in a pull request. Returns `None` for invalid tags.
    pub fn parse(expression_type: Option<&str>, text: &str, version: i64) -> Option<Self> {
        if let Some(filter_type) = expression_type.filter(|name| !is_tag_type(name)) {
            return Some(Self::compile(filter_type, text, version));
        }
        let filter = match TagExpression::parse(text).ok()? {
            tags if tags.is_all() => Filter::All,
            // hashes only, as in RocketMQ: the consumer compares the tags themselves
            tags => Filter::Codes(TagCodes::new(tags.codes().iter().copied())),
        };
        Some(Self { version, filter_type: None, text: text.into(), filter })
    }

    /// Returns whether two subscriptions have the same expression; their versions may differ.
    pub fn is_same_filter(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || (self.filter_type == other.filter_type && self.text == other.text)
    }

    /// Returns the compile error of the expression, if any.
    pub fn problem(&self) -> Option<&str> {
        match &self.filter {
            Filter::Invalid(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns whether pulls with this filter are answered on the thread for expensive filters.
    pub fn is_heavy(&self) -> bool {
        // for a message without properties, as no message is known yet
        self.cost(0) > HEAVY
    }

    /// Returns whether a new message may match, by its tag hash or properties. Always true for an expensive filter,
    /// which is not evaluated here, because the appending thread waits for the result.
    pub fn matches_arrival(&self, tags_code: i64, properties: &[u8]) -> bool {
        match &self.filter {
            // the pull then evaluates the filter itself, on the thread for expensive filters
            Filter::Sql(_) if self.cost(properties.len()) > HEAVY => true,
            Filter::Sql(sql) => {
                let value = |name: &str| std::str::from_utf8(properties::get(properties, name)?).ok();
                sql.matches(value)
            }
            _ => self.matches_code(tags_code),
        }
    }
}

fn is_tag_type(expression_type: &str) -> bool {
    matches!(expression_type, "" | "TAG")
}

fn compile_sql(expression: &str) -> Filter {
    // the dialect of 4.9, which this broker implements; readers of stores accept more
    match Sql92::parse_dialect(expression, Dialect::V4) {
        Ok(sql) => Filter::Sql(sql.into()),
        Err(error) => Filter::Invalid(clip(&error.to_string())),
    }
}

/// Shortens a string from a client, which may be very long.
fn clip(text: &str) -> Box<str> {
    text.chars().take(MAX_TEXT).collect()
}

impl PullFilter for Subscription {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        match &self.filter {
            Filter::Codes(codes) => codes.matches_code(tags_code),
            _ => true,
        }
    }

    #[inline]
    fn reads_messages(&self) -> bool {
        matches!(self.filter, Filter::Sql(_))
    }

    fn matches_message(&self, message: &Message<'_>) -> bool {
        match &self.filter {
            Filter::Sql(sql) => sql.matches_message(message),
            _ => true,
        }
    }

    fn cost(&self, properties: usize) -> usize {
        match &self.filter {
            Filter::Sql(sql) => sql.cost(properties),
            _ => 0,
        }
    }
}
