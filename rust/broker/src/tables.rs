//! Tables that the control plane fills for the data plane: topics, groups, and subscriptions of online consumers.
use crate::subscription::Subscription;
use rmqfast_remoting::code::perm;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A topic on this broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    pub read_queues: i32,
    pub write_queues: i32,
    pub perm: i32,
    pub is_multi_tag: bool,
    pub is_ordered: bool,
}

/// A consumer group's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub consume_enable: bool,
    pub broadcast_enable: bool,
    /// Which broker of the name its consumers pull from (`brokerId`): 0 is the master.
    pub broker_id: i64,
    /// Which one where they read what is not in memory (`whichBrokerWhenConsumeSlowly`).
    pub slow_broker_id: i64,
}

/// A group with consumers online.
#[derive(Debug, Default)]
struct Online {
    is_broadcasting: bool,
    subscriptions: HashMap<Box<str>, Arc<Subscription>>,
}

/// A group's subscription to a topic.
#[derive(Debug)]
pub enum GroupSubscription {
    /// It has no consumer online.
    Offline,
    /// It has none to the topic; whether its model is broadcasting.
    Nothing(bool),
    /// Its subscription, and whether its model is broadcasting.
    To(Arc<Subscription>, bool),
}

/// Is called with the name of a group after what its consumers subscribe to has changed.
type OnChange = Box<dyn Fn(&str) + Send + Sync>;

/// The tables. Every request reads them; a heartbeat writes only what it changes.
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
            permission: AtomicI32::new(perm::READ | perm::WRITE),
            on_subscription_change: OnceLock::new(),
        }
    }
}

impl Tables {
    /// Returns a topic, if there is one.
    #[inline]
    pub fn topic(&self, name: &str) -> Option<Topic> {
        read(&self.topics).get(name).copied()
    }

    /// Puts a topic in.
    pub fn put_topic(&self, name: &str, topic: Topic) {
        write(&self.topics).insert(name.into(), topic);
    }

    /// Takes a topic out.
    pub fn remove_topic(&self, name: &str) {
        write(&self.topics).remove(name);
    }

    /// Returns a group's configuration, if there is one.
    #[inline]
    pub fn group(&self, name: &str) -> Option<Group> {
        read(&self.groups).get(name).copied()
    }

    /// Puts a group in.
    pub fn put_group(&self, name: &str, group: Group) {
        write(&self.groups).insert(name.into(), group);
    }

    /// Takes a group out.
    pub fn remove_group(&self, name: &str) {
        write(&self.groups).remove(name);
    }

    /// Looks up an online group's subscription to a topic.
    pub fn subscription(&self, group: &str, topic: &str) -> GroupSubscription {
        let online = read(&self.online);
        let Some(group) = online.get(group) else { return GroupSubscription::Offline };
        match group.subscriptions.get(topic) {
            None => GroupSubscription::Nothing(group.is_broadcasting),
            Some(subscription) => GroupSubscription::To(subscription.clone(), group.is_broadcasting),
        }
    }

    /// Returns whether an online group has only registered an older version of what it wants of a topic.
    pub fn is_behind(&self, group: &str, topic: &str, version: i64) -> bool {
        matches!(self.subscription(group, topic), GroupSubscription::To(subscription, _) if subscription.version < version)
    }

    /// Has `on_change` called, without a lock, with each group whose subscriptions have changed. The first one stays.
    pub fn on_subscription_change(&self, on_change: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.on_subscription_change.set(Box::new(on_change));
    }

    /// Says that a group is online, and its model.
    pub fn put_online(&self, group: &str, is_broadcasting: bool) {
        write(&self.online).entry(group.into()).or_default().is_broadcasting = is_broadcasting;
    }

    /// Says that a group is online no more.
    pub fn remove_online(&self, group: &str) {
        // the lock ends with this line, for the same reason as in `put_subscription`
        write(&self.online).remove(group);
        self.subscriptions_changed(group);
    }

    /// Says what an online group wants of a topic.
    pub fn put_subscription(&self, group: &str, topic: &str, subscription: Subscription) {
        let mut online = write(&self.online);
        online.entry(group.into()).or_default().subscriptions.insert(topic.into(), Arc::new(subscription));
        // unlocked first: who is called looks into the tables
        drop(online);
        self.subscriptions_changed(group);
    }

    /// Says that an online group wants nothing of a topic any more.
    pub fn remove_subscription(&self, group: &str, topic: &str) {
        write(&self.online).get_mut(group).map(|group| group.subscriptions.remove(topic));
        self.subscriptions_changed(group);
    }

    fn subscriptions_changed(&self, group: &str) {
        if let Some(on_change) = self.on_subscription_change.get() {
            on_change(group);
        }
    }

    /// Sets what the broker as a whole allows.
    pub fn set_permission(&self, perm: i32) {
        self.permission.store(perm, Ordering::Relaxed);
    }

    /// Returns whether the broker as a whole allows it.
    #[inline]
    pub fn allows(&self, perm: i32) -> bool {
        self.permission.load(Ordering::Relaxed) & perm != 0
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
