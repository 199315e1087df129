//! Consumer offsets of all groups, in memory. Remembers which offsets have changed since they were saved.
//!
//! Source: `ConsumerOffsetManager`.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Next offset to consume, by queue id.
type Queues = BTreeMap<i32, i64>;

/// Next offset to consume of each queue, by group and topic.
#[derive(Debug, Default)]
pub struct Offsets {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    groups: HashMap<Arc<str>, GroupOffsets>,
    /// Names of topics. Each name is stored once and shared by all groups.
    topics: HashSet<Arc<str>>,
    /// Pairs of group and topic that changed since the last [`take_changed`](Offsets::take_changed).
    changed: Vec<(Arc<str>, Arc<str>)>,
    len: usize,
}

/// Offsets of a group, by topic. Stored as a list, since most groups read few topics.
#[derive(Debug)]
struct GroupOffsets {
    name: Arc<str>,
    topics: Vec<TopicOffsets>,
}

/// Offsets of a group for a topic, sorted by queue id.
#[derive(Debug)]
struct TopicOffsets {
    topic: Arc<str>,
    queues: Vec<(i32, i64)>,
    is_changed: bool,
}

/// Offsets of a group and topic that must be saved. The key in the file is `topic@group`.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedOffsets {
    pub key: String,
    /// Offsets by queue id, as JSON. `None` if the offsets were removed.
    pub json: Option<String>,
}

impl Offsets {
    /// Stores the offset of a group for a queue, even if it is lower than the stored offset. Returns the offset that
    /// was stored before.
    pub fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64) -> Option<i64> {
        let mut inner = self.write();
        let Inner { groups, topics, changed, len } = &mut *inner;
        if !groups.contains_key(group) {
            let name: Arc<str> = group.into();
            groups.insert(Arc::clone(&name), GroupOffsets { name, topics: Vec::with_capacity(1) });
        }
        let group = groups.get_mut(group).expect("it was put there");
        let entry = group.of_topic(topic, || {
            *len += 1;
            intern(topics, topic)
        });
        let before = match entry.queues.binary_search_by_key(&queue_id, |(queue, _)| *queue) {
            // a lower offset is stored too, for example after a reset; Java only logs a warning
            Ok(at) => Some(mem::replace(&mut entry.queues[at].1, offset)),
            Err(at) => {
                entry.queues.insert(at, (queue_id, offset));
                None
            }
        };
        // listed once until it is saved
        if !mem::replace(&mut entry.is_changed, true) {
            let topic = Arc::clone(&entry.topic);
            changed.push((Arc::clone(&group.name), topic));
        }
        before
    }

    pub fn get(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let inner = self.read();
        let offsets = inner.groups.get(group)?.topics.iter().find(|offsets| &*offsets.topic == topic)?;
        let at = offsets.queues.binary_search_by_key(&queue_id, |(queue, _)| *queue).ok()?;
        Some(offsets.queues[at].1)
    }

    pub fn has(&self, group: &str, topic: &str) -> bool {
        self.read()
            .groups
            .get(group)
            .is_some_and(|offsets| offsets.topics.iter().any(|offsets| &*offsets.topic == topic))
    }

    pub fn len(&self) -> usize {
        self.read().len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn remove(&self, group: &str, topic: Option<&str>) {
        let mut inner = self.write();
        // removed and reinserted below, as `changed` must be borrowed meanwhile
        let Some(mut removed) = inner.groups.remove(group) else { return };
        let before = removed.topics.len();
        removed.topics.retain(|offsets| {
            let is_kept = topic.is_some_and(|topic| topic != &*offsets.topic);
            // its row in the database must be deleted too; a changed pair is already listed
            if !is_kept && !offsets.is_changed {
                inner.changed.push((Arc::clone(&removed.name), Arc::clone(&offsets.topic)));
            }
            is_kept
        });
        inner.len -= before - removed.topics.len();
        if !removed.topics.is_empty() {
            inner.groups.insert(Arc::clone(&removed.name), removed);
        }
    }

    /// Returns at most `limit` pairs of group and topic whose offsets were changed or removed. Each change is returned
    /// by one call only.
    pub fn take_changed(&self, limit: usize) -> Vec<ChangedOffsets> {
        let mut inner = self.write();
        let rest = inner.changed.len().saturating_sub(limit);
        // from the end, which moves no other entries
        let keys = inner.changed.split_off(rest);
        if rest == 0 {
            // frees the memory of a burst
            inner.changed.shrink_to(limit);
        }
        keys.into_iter().map(|(group, topic)| inner.take(&group, &topic)).collect()
    }

    /// Returns a copy of the offsets. Each row has group, topic and offsets by queue id. Arguments that are not
    /// `None` select one group or one topic.
    pub fn of(&self, group: Option<&str>, topic: Option<&str>) -> Vec<(String, String, Queues)> {
        let inner = self.read();
        let groups: Box<dyn Iterator<Item = &GroupOffsets>> = match group {
            Some(group) => Box::new(inner.groups.get(group).into_iter()),
            None => Box::new(inner.groups.values()),
        };
        let mut rows = Vec::new();
        for GroupOffsets { name, topics } in groups {
            let selected = topics.iter().filter(|offsets| topic.is_none_or(|topic| topic == &*offsets.topic));
            let row = |offsets: &TopicOffsets| {
                (name.to_string(), offsets.topic.to_string(), offsets.queues.iter().copied().collect())
            };
            rows.extend(selected.map(row));
        }
        rows
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self, group: &str, topic: &str) -> ChangedOffsets {
        let key = format!("{topic}@{group}");
        let group = self.groups.get_mut(group);
        let offsets = group.and_then(|offsets| offsets.topics.iter_mut().find(|offsets| &*offsets.topic == topic));
        // other groups may still use the name; `intern` then creates a second copy, which only costs memory
        let Some(offsets) = offsets else {
            self.topics.remove(topic);
            return ChangedOffsets { key, json: None };
        };
        offsets.is_changed = false;
        ChangedOffsets { key, json: Some(json_of(&offsets.queues)) }
    }
}

impl GroupOffsets {
    fn of_topic(&mut self, topic: &str, name: impl FnOnce() -> Arc<str>) -> &mut TopicOffsets {
        let at = self.topics.iter().position(|offsets| &*offsets.topic == topic).unwrap_or_else(|| {
            self.topics.push(TopicOffsets { topic: name(), queues: Vec::with_capacity(1), is_changed: false });
            self.topics.len() - 1
        });
        &mut self.topics[at]
    }
}

/// Returns the topic's name as a string that all groups share.
fn intern(topics: &mut HashSet<Arc<str>>, topic: &str) -> Arc<str> {
    if let Some(name) = topics.get(topic) {
        return Arc::clone(name);
    }
    let name: Arc<str> = topic.into();
    topics.insert(Arc::clone(&name));
    name
}

fn json_of(queues: &[(i32, i64)]) -> String {
    let pairs: Vec<_> = queues.iter().map(|(queue, offset)| format!("\"{queue}\":{offset}")).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_commit_counts_and_a_removed_group_has_none() {
        let offsets = Offsets::default();
        assert_eq!(offsets.get("g", "t", 0), None);
        offsets.commit("g", "t", 0, 5);
        offsets.commit("g", "t", 0, 3);
        offsets.commit("g", "u", 1, 9);
        assert_eq!(
            (offsets.get("g", "t", 0), offsets.get("g", "u", 1), offsets.of(None, None).len()),
            (Some(3), Some(9), 2)
        );
        offsets.commit("h", "u", 2, 7);
        let names = |group, topic| {
            let mut joined: Vec<_> =
                offsets.of(group, topic).into_iter().map(|(group, topic, _)| group + &topic).collect();
            joined.sort_unstable();
            joined
        };
        assert_eq!(
            (names(Some("g"), None), names(None, Some("u"))),
            (vec!["gt".into(), "gu".into()], vec!["gu".into(), "hu".into()])
        );
        assert_eq!((names(Some("h"), Some("u")), names(Some("x"), None)), (vec!["hu".to_owned()], vec![]));
        offsets.remove("h", None);
        offsets.remove("g", Some("t"));
        assert_eq!((offsets.get("g", "t", 0), offsets.get("g", "u", 1)), (None, Some(9)));
        assert_eq!((offsets.has("g", "t"), offsets.has("g", "u"), offsets.len()), (false, true, 1));
        offsets.remove("g", None);
        assert!(offsets.is_empty());
        assert!(offsets.of(None, None).is_empty());
    }

    #[test]
    fn what_changed_is_taken_once_and_what_was_removed_as_well() {
        let offsets = Offsets::default();
        let take = |limit| {
            let changed = offsets.take_changed(limit).into_iter().map(|changed| (changed.key, changed.json));
            let mut changed: Vec<_> = changed.collect();
            changed.sort_unstable();
            changed
        };
        let row = |key: &str, json: Option<&str>| (key.to_owned(), json.map(str::to_owned));
        for (topic, queue, offset) in [("t", 7, 5), ("t", 0, 1), ("u", 0, 2), ("t", 7, 6)] {
            offsets.commit("g", topic, queue, offset);
        }
        assert_eq!(take(1).len(), 1);
        assert_eq!(take(9).len(), 1);
        assert_eq!(take(9), []);
        offsets.commit("g", "t", 7, 8);
        offsets.remove("g", Some("u"));
        assert_eq!(take(9), [row("t@g", Some(r#"{"0":1,"7":8}"#)), row("u@g", None)]);
        offsets.commit("g", "t", 7, 9);
        offsets.remove("g", None);
        offsets.commit("h", "t", -1, 0);
        assert_eq!(take(9), [row("t@g", None), row("t@h", Some(r#"{"-1":0}"#))]);
        assert_eq!(offsets.get("h", "t", -1), Some(0));
    }
}
