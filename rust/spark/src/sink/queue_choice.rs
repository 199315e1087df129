//! Chooses the queue of a request: the queue that its rows name, or otherwise each queue of the topic in turn.
use super::row_batches::Target;
use rmqfast_client::producer::{PublishQueues, select_queue};
use rmqfast_client::puller::Queue;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Returns the next queue for a target, if possible of another broker than `last_broker`. `None` if all brokers have
/// refused.
///
/// # Errors
/// See [`matching`].
pub fn next_queue(
    target: &Target,
    queues: &PublishQueues,
    last_broker: Option<&str>,
    refused_by: &HashSet<Arc<str>>,
) -> Result<Option<Queue>, String> {
    let mut candidates = matching(target, &queues.queues)?;
    candidates.retain(|queue| !refused_by.contains(&queue.broker_name));
    let index = select_queue(&candidates, last_broker, || queues.next_index());
    Ok(index.map(|index| candidates[index].clone()))
}

/// Returns the queues of a topic that match a target.
///
/// # Errors
/// The topic has no matching queue, or several brokers have the queue id.
pub fn matching<'a>(target: &Target, queues: &'a [Queue]) -> Result<Vec<&'a Queue>, String> {
    let topic = target.topic.as_deref().unwrap_or_default();
    let is_broker = |queue: &Queue| target.broker_name.as_deref().is_none_or(|name| name == &*queue.broker_name);
    let is_queue = |queue: &Queue| target.queue_id.is_none_or(|id| id == i64::from(queue.queue_id));
    let matching: Vec<&Queue> = queues.iter().filter(|queue| is_broker(queue) && is_queue(queue)).collect();
    let asked_for = || {
        let queue_id = target.queue_id.map_or_else(|| "None".to_owned(), |id| id.to_string());
        format!("queue_id {queue_id}, broker_name {}", target.broker_name.as_deref().unwrap_or("None"))
    };
    if matching.is_empty() {
        let (asked_for, listed) = (asked_for(), listed(queues));
        return Err(format!("topic {topic} has no such queue that may be written to: {asked_for}; {listed}"));
    }
    // a queue id alone is ambiguous, since each broker numbers its queues from 0
    if target.queue_id.is_some() && matching.len() > 1 {
        let mut brokers: Vec<&str> = matching.iter().map(|queue| &*queue.broker_name).collect();
        brokers.sort_unstable();
        let (asked_for, brokers) = (asked_for(), brokers.join(", "));
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
    use rmqfast_client::cluster::RouteData;

    fn queues() -> PublishQueues {
        let places = ["a", "b"].map(|name| {
            (
                format!(r#"{{"brokerAddrs":{{"0":"{name}:1"}},"brokerName":"{name}"}}"#),
                format!(r#"{{"brokerName":"{name}","perm":6,"readQueueNums":2,"writeQueueNums":2}}"#),
            )
        });
        let [(a, a_queues), (b, b_queues)] = places;
        let route = format!(r#"{{"brokerDatas":[{a},{b}],"queueDatas":[{a_queues},{b_queues}]}}"#);
        PublishQueues::of("t", &RouteData::of_body(route.as_bytes()).expect("a route"))
    }

    fn target(broker_name: Option<&str>, queue_id: Option<i64>) -> Target {
        Target { topic: Some("t".into()), broker_name: broker_name.map(str::to_owned), queue_id, delay_level: 0 }
    }

    #[test]
    fn the_queues_of_a_target_come_in_turn() {
        let queues = queues();
        let next = || next_queue(&target(None, None), &queues, None, &HashSet::new()).expect("there");
        let chosen: Vec<_> = (0..8).map(|_| next()).collect();
        assert_eq!(
            chosen[..4].iter().collect::<HashSet<_>>(),
            queues.queues.iter().cloned().map(Some).collect::<Vec<_>>().iter().collect()
        );
        assert_eq!(chosen[..4], chosen[4..]);
    }

    #[test]
    fn what_a_broker_did_not_take_goes_to_another_one_if_it_may() {
        let queues = queues();
        let next = |target: &Target, refused_by: &[&str]| {
            let refused_by = refused_by.iter().map(|name| (*name).into()).collect();
            next_queue(target, &queues, Some("a"), &refused_by)
                .expect("there")
                .map(|queue| queue.broker_name.to_string())
        };
        let (any, only) = (target(None, None), target(Some("a"), Some(0)));
        assert!((0..20).all(|_| next(&any, &[]).as_deref() == Some("b")));
        assert_eq!(next(&any, &["b"]).as_deref(), Some("a"));
        assert_eq!(next(&any, &["a", "b"]), None);
        assert_eq!(next(&only, &[]).as_deref(), Some("a"));
        assert_eq!(next(&only, &["a"]), None);
    }

    #[test]
    fn a_target_that_is_not_there_is_refused() {
        let text = matching(&target(None, Some(1)), &queues().queues).expect_err("two have it");
        assert_eq!(text, "topic t, queue_id 1, broker_name None: expected a broker_name, as several have it: a, b");
        let text = matching(&target(Some("a"), Some(2)), &queues().queues).expect_err("none has it");
        let words =
            "topic t has no such queue that may be written to: queue_id 2, broker_name a; a has 0 to 1; b has 0 to 1";
        assert_eq!(text, words);
    }
}
