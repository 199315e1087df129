//! Chooses the queue of a request: the queue that its rows name, or otherwise each queue of the topic in turn.
use super::row_batches::Target;
use rmqfast_client::producer::select_queue;
use rmqfast_client::puller::Queue;
use std::collections::{BTreeMap, HashSet};

/// Chooses queues in turn.
///
/// Source: `TopicPublishInfo.selectOneMessageQueue`.
#[derive(Clone, Copy, Debug)]
pub struct QueueChoice {
    turn: usize,
}

impl QueueChoice {
    /// Starts with the queue at index `turn`. Tasks start at random queues, since otherwise all would send to the same
    /// queue first.
    pub fn new(turn: usize) -> Self {
        Self { turn }
    }

    /// Returns the next of `queues`.
    pub fn next<'a>(&mut self, queues: &'a [Queue]) -> Option<&'a Queue> {
        self.select(queues, None)
    }

    /// Returns the queue for a retry, if possible of another broker than `last`. `None` if all brokers have refused.
    pub fn again(&mut self, queues: Vec<Queue>, last: &Queue, refused_by: &HashSet<String>) -> Option<Queue> {
        let left: Vec<Queue> = queues.into_iter().filter(|queue| !refused_by.contains(&*queue.broker_name)).collect();
        self.select(&left, Some(&last.broker_name)).cloned()
    }

    fn select<'a>(&mut self, queues: &'a [Queue], last_broker: Option<&str>) -> Option<&'a Queue> {
        let next_index = || {
            self.turn = self.turn.wrapping_add(1);
            self.turn
        };
        select_queue(queues, last_broker, next_index).map(|index| &queues[index])
    }
}

/// Returns the queues of a topic that match a target.
///
/// # Errors
/// The topic has no matching queue, or several brokers have the queue id.
pub fn matching(target: &Target, queues: &[Queue]) -> Result<Vec<Queue>, String> {
    let topic = target.topic.as_deref().unwrap_or_default();
    let is_broker = |queue: &Queue| target.broker_name.as_deref().is_none_or(|name| name == &*queue.broker_name);
    let is_queue = |queue: &Queue| target.queue_id.is_none_or(|id| id == i64::from(queue.queue_id));
    let matching: Vec<Queue> = queues.iter().filter(|queue| is_broker(queue) && is_queue(queue)).cloned().collect();
    let queue_id = target.queue_id.map_or_else(|| "None".to_owned(), |id| id.to_string());
    let asked_for = format!("queue_id {queue_id}, broker_name {}", target.broker_name.as_deref().unwrap_or("None"));
    if matching.is_empty() {
        let listed = listed(queues);
        return Err(format!("topic {topic} has no such queue that may be written to: {asked_for}; {listed}"));
    }
    // a queue id alone is ambiguous, since each broker numbers its queues from 0
    if target.queue_id.is_some() && matching.len() > 1 {
        let mut brokers: Vec<&str> = matching.iter().map(|queue| &*queue.broker_name).collect();
        brokers.sort_unstable();
        let brokers = brokers.join(", ");
        return Err(format!("topic {topic}, {asked_for}: expected a broker_name, as several have it: {brokers}"));
    }
    Ok(matching)
}

fn listed(queues: &[Queue]) -> String {
    let mut by_broker: BTreeMap<&str, (i32, i32)> = BTreeMap::new();
    for Queue { broker_name, queue_id, .. } in queues {
        let (least, most) = by_broker.entry(broker_name).or_insert((*queue_id, *queue_id));
        (*least, *most) = ((*least).min(*queue_id), (*most).max(*queue_id));
    }
    let told: Vec<_> =
        by_broker.into_iter().map(|(name, (least, most))| format!("{name} has {least} to {most}")).collect();
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues() -> Vec<Queue> {
        let places = ["a", "b"].into_iter().flat_map(|broker| (0..2).map(move |id| (broker, id)));
        places.map(|(broker, queue_id)| Queue { topic: "t".into(), broker_name: broker.into(), queue_id }).collect()
    }

    fn target(broker_name: Option<&str>, queue_id: Option<i64>) -> Target {
        Target { topic: Some("t".into()), broker_name: broker_name.map(str::to_owned), queue_id, delay_level: 0 }
    }

    #[test]
    fn queues_come_in_turn() {
        let (queues, mut choice) = (queues(), QueueChoice::new(usize::MAX - 2));
        let chosen: Vec<_> = (0..8).filter_map(|_| choice.next(&queues).cloned()).collect();
        assert_eq!(chosen[..4].iter().collect::<HashSet<_>>().len(), 4);
        assert_eq!(chosen[..4], chosen[4..]);
    }

    #[test]
    fn what_a_broker_did_not_take_goes_to_another_one_if_it_may() {
        let (queues, mut choice) = (queues(), QueueChoice::new(7));
        let refused = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
        let last = queues[0].clone();
        let found: HashSet<_> = (0..20).map(|_| choice.again(queues.clone(), &last, &refused(&[]))).collect();
        assert_eq!(found, queues[2..].iter().cloned().map(Some).collect());
        let only = matching(&target(Some("a"), Some(0)), &queues).expect("there");
        assert_eq!(choice.again(only.clone(), &last, &refused(&[])), Some(last.clone()));
        assert_eq!(choice.again(only, &last, &refused(&["a"])), None);
        assert_eq!(choice.again(queues, &last, &refused(&["a", "b"])), None);
    }

    #[test]
    fn a_target_that_is_not_there_is_refused() {
        let text = matching(&target(None, Some(1)), &queues()).expect_err("two have it");
        assert_eq!(text, "topic t, queue_id 1, broker_name None: expected a broker_name, as several have it: a, b");
        let text = matching(&target(Some("a"), Some(2)), &queues()).expect_err("none has it");
        let words =
            "topic t has no such queue that may be written to: queue_id 2, broker_name a; a has 0 to 1; b has 0 to 1";
        assert_eq!(text, words);
    }
}
