//! How far consumer groups are.
//!
//! Source: `ConsumerOffsetManager`.
use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

/// Next offset by queue.
type Queues = BTreeMap<i32, i64>;
/// By topic.
type Topics = HashMap<Box<str>, Queues>;

/// The next offset that each group consumes: by group, topic and queue.
#[derive(Debug, Default)]
pub struct Offsets {
    groups: RwLock<HashMap<Box<str>, Topics>>,
}

impl Offsets {
    /// Notes an offset, a smaller one than before, too.
    pub fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(queues) = groups.get_mut(group).and_then(|topics| topics.get_mut(topic)) {
            queues.insert(queue_id, offset);
            return;
        }
        groups.entry(group.into()).or_default().entry(topic.into()).or_default().insert(queue_id, offset);
    }

    /// The offset that was noted.
    pub fn get(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(group)?.get(topic)?.get(&queue_id).copied()
    }

    /// Forgets those of a group, or those of it in one topic.
    pub fn remove(&self, group: &str, topic: Option<&str>) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        match topic {
            None => drop(groups.remove(group)),
            Some(topic) => drop(groups.get_mut(group).and_then(|topics| topics.remove(topic))),
        }
    }

    /// A copy: group, topic, offsets by queue.
    pub fn all(&self) -> Vec<(String, String, Queues)> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (group, topics) in groups.iter() {
            all.extend(topics.iter().map(|(topic, queues)| (group.to_string(), topic.to_string(), queues.clone())));
        }
        all
    }
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
        assert_eq!((offsets.get("g", "t", 0), offsets.get("g", "u", 1), offsets.all().len()), (Some(3), Some(9), 2));
        offsets.remove("g", Some("t"));
        assert_eq!((offsets.get("g", "t", 0), offsets.get("g", "u", 1)), (None, Some(9)));
        offsets.remove("g", None);
        assert!(offsets.all().is_empty());
    }
}
