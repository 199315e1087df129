//! Tables written by the control plane and read by the data plane: topics, groups, and subscriptions of online
//! consumers.
use crate::subscription::Subscription;
use rmqfast_remoting::code::perm;
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

/// Subscriptions of a group that has consumers online.
#[derive(Debug, Default)]
struct Online {
    is_broadcasting: bool,
    subscriptions: HashMap<Box<str>, Arc<Subscription>>,
}

/// A group's subscription to a topic.
#[derive(Debug)]
pub enum GroupSubscription {
    /// The group has no consumer online.
    Offline,
    /// The group has no subscription to the topic. Holds true if the group uses the broadcasting model.
    Nothing(bool),
    /// The group's subscription. The second value is true if the group uses the broadcasting model.
    To(Arc<Subscription>, bool),
}

/// Called with the name of a group after its subscriptions changed.
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

    /// Returns whether a group is online but has only registered versions of its subscription older than `version`.
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

    /// Marks a group as offline.
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
