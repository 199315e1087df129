//! The queues to which a producer may send, and a round-robin position for each thread.
//!
//! Source: `TopicPublishInfo`, `ThreadLocalIndex`, `MQClientInstance.topicRouteData2TopicPublishInfo`.
use crate::cluster::RouteData;
use crate::puller::Queue;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The topic whose settings a broker copies to a topic that it creates automatically.
pub const DEFAULT_TOPIC: &str = "TBW102";
/// Number of queues of an automatically created topic.
pub const DEFAULT_QUEUES: i32 = 4;

/// Mask that keeps an index positive, like `Math.abs` in Java.
const POSITIVE: u32 = 0x7FFF_FFFF;
/// Maximum number of round-robin positions that a thread keeps. If there are more, all are dropped and start at random
/// again.
const MOST_WALKS: usize = 1024;

thread_local! {
    static WALKS: RefCell<HashMap<u64, u32>> = RefCell::default();
}

/// Writable queues of brokers that have a master, sorted by broker. For an ordered topic, the queues that the name
/// server lists.
#[derive(Debug)]
pub struct PublishQueues {
    pub queues: Vec<Queue>,
    /// Numbers of writable queues by broker.
    write_queues: Vec<(Arc<str>, i32)>,
    walk: u64,
}

impl PublishQueues {
    /// Selects the queues of a route that a producer may use.
    pub fn of(topic: &str, route: &RouteData) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let queue =
            |broker: &Arc<str>, queue_id| Queue { topic: topic.to_owned(), broker_name: broker.clone(), queue_id };
        let queues = match route.ordered_queues() {
            Some(ordered) => {
                ordered.iter().flat_map(|(broker, count)| (0..*count).map(|id| queue(broker, id))).collect()
            }
            None => {
                let masters: HashSet<&str> =
                    route.brokers.iter().filter(|broker| broker.master().is_some()).map(|b| &*b.broker_name).collect();
                let mut open: Vec<_> = route.queues.iter().filter(|data| data.is_writable()).collect();
                open.retain(|data| masters.contains(&*data.broker_name));
                // stable sort by broker name, as in Java
                open.sort_by(|one, other| one.broker_name.cmp(&other.broker_name));
                open.iter().flat_map(|data| (0..data.write_queues).map(|id| queue(&data.broker_name, id))).collect()
            }
        };
        let write_queues = route.queues.iter().map(|data| (data.broker_name.clone(), data.write_queues)).collect();
        Self { queues, write_queues, walk: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the index of this thread's next queue, if possible on a broker other than `last_broker`. `None` if there
    /// are no queues.
    pub fn select(&self, last_broker: Option<&str>) -> Option<usize> {
        select_queue(&self.queues, last_broker, || self.next_index())
    }

    /// Returns the number of writable queues of a broker, or `None` if it is not in the route.
    ///
    /// Source: `TopicPublishInfo.getQueueIdByBroker`.
    pub fn write_queues(&self, broker_name: &str) -> Option<i32> {
        self.write_queues.iter().find(|(name, _)| **name == *broker_name).map(|(_, count)| *count)
    }

    /// Advances this thread's round-robin position, which starts at random, and returns it.
    pub fn next_index(&self) -> usize {
        WALKS.with_borrow_mut(|walks| {
            if walks.len() >= MOST_WALKS && !walks.contains_key(&self.walk) {
                walks.clear();
            }
            let index = walks.entry(self.walk).or_insert_with(|| RandomState::new().hash_one(0) as u32);
            *index = index.wrapping_add(1) & POSITIVE;
            *index as usize
        })
    }
}

/// The queue of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A queue by its index in [`PublishQueues::queues`].
    Listed(usize),
    /// A queue given by its broker's name and its queue id. It may be missing in the list of queues.
    Named(Arc<str>, i32),
}

impl Choice {
    pub fn broker_name<'a>(&'a self, queues: &'a PublishQueues) -> &'a Arc<str> {
        match self {
            Self::Listed(index) => &queues.queues[*index].broker_name,
            Self::Named(broker_name, _) => broker_name,
        }
    }

    pub fn queue_id(&self, queues: &PublishQueues) -> i32 {
        match self {
            Self::Listed(index) => queues.queues[*index].queue_id,
            Self::Named(_, queue_id) => *queue_id,
        }
    }
}

/// Returns the index of the next queue. Queues of `last_broker` are skipped, unless there are no other queues. `None`
/// if there are no queues at all.
///
/// Source: `TopicPublishInfo.selectOneMessageQueue`.
pub fn select_queue<Q: Borrow<Queue>>(
    queues: &[Q],
    last_broker: Option<&str>,
    mut next_index: impl FnMut() -> usize,
) -> Option<usize> {
    if queues.is_empty() {
        return None;
    }
    if let Some(last) = last_broker {
        for _ in queues {
            let index = next_index() % queues.len();
            if *queues[index].borrow().broker_name != *last {
                return Some(index);
            }
        }
    }
    Some(next_index() % queues.len())
}

#[cfg(test)]
impl PublishQueues {
    /// Creates queues from the count per broker. The first choice is the queue after `start`.
    pub fn for_tests(brokers: &[(&str, i32)], start: u32) -> Self {
        let route = RouteData::for_tests(brokers);
        let queues = Self::of("t", &route);
        WALKS.with_borrow_mut(|walks| walks.insert(queues.walk, start));
        queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(queues: &PublishQueues, chosen: &[usize]) -> Vec<(String, i32)> {
        chosen.iter().map(|at| (queues.queues[*at].broker_name.to_string(), queues.queues[*at].queue_id)).collect()
    }

    #[test]
    fn a_thread_walks_the_queues_in_their_order_from_anywhere() {
        let queues = PublishQueues::for_tests(&[("a", 4)], 1);
        let chosen: Vec<_> = (0..8).filter_map(|_| queues.select(None)).collect();
        assert_eq!(chosen, [2, 3, 0, 1, 2, 3, 0, 1]);
        let route = RouteData::for_tests(&[("a", 4)]);
        let starts: HashSet<_> = (0..200).map(|_| PublishQueues::of("t", &route).select(None)).collect();
        assert_eq!(starts.len(), 4);
    }

    #[test]
    fn each_thread_has_a_walk_of_its_own() {
        let queues = PublishQueues::for_tests(&[("a", 4)], 0);
        assert_eq!(queues.select(None), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| (0..7).for_each(|_| assert!(queues.select(None).is_some()))).join().expect("ends")
        });
        assert_eq!(queues.select(None), Some(2));
    }

    #[test]
    fn after_a_failure_the_walk_goes_on_to_another_broker() {
        let queues = PublishQueues::for_tests(&[("a", 2), ("b", 2)], u32::MAX);
        let walk = [Some("a"), Some("b"), Some("b"), None].map(|last| queues.select(last).expect("queues"));
        // skipping the queues of the failed broker also advances the position
        let expected = [("b", 0), ("a", 0), ("a", 1), ("b", 0)].map(|(name, id)| (name.to_owned(), id));
        assert_eq!(places(&queues, &walk), expected);
    }

    #[test]
    fn a_broker_that_is_alone_is_tried_again() {
        let queues = PublishQueues::for_tests(&[("a", 3)], u32::MAX);
        // three steps searched for another broker
        assert_eq!([queues.select(Some("a")), queues.select(Some("a"))], [Some(0), Some(1)]);
    }

    #[test]
    fn the_index_does_not_leave_31_bits() {
        let queues = PublishQueues::for_tests(&[("a", 1)], POSITIVE - 1);
        assert_eq!([queues.next_index(), queues.next_index(), queues.next_index()], [POSITIVE as usize, 0, 1]);
    }

    const BROKERS: &str = r#""brokerDatas":[{"brokerAddrs":{1:"b:1",0:"b:0"},"brokerName":"b"},
        {"brokerAddrs":{"0":"a:0"},"brokerName":"a"},{"brokerAddrs":{1:"s:1"},"brokerName":"s"}]"#;

    fn route(body: &str) -> RouteData {
        RouteData::of_body(body.as_bytes()).expect("a route")
    }

    fn places_of(route: &RouteData) -> Vec<(String, i32)> {
        let queues = PublishQueues::of("orders", route).queues;
        queues.into_iter().map(|queue| (queue.broker_name.to_string(), queue.queue_id)).collect()
    }

    fn named(places: &[(&str, i32)]) -> Vec<(String, i32)> {
        places.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect()
    }

    #[test]
    fn queues_to_send_to_are_writable_and_of_brokers_with_a_master() {
        let queues = r#""queueDatas":[{"brokerName":"b","perm":2,"readQueueNums":8,"writeQueueNums":2},
            {"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1},
            {"brokerName":"s","perm":6,"writeQueueNums":4},{"brokerName":"a","perm":4,"writeQueueNums":4}]"#;
        let route = route(&format!("{{{BROKERS},{queues}}}"));
        assert_eq!(places_of(&route), named(&[("a", 0), ("b", 0), ("b", 1)]));
        assert_eq!(route.brokers[0].master().map(|address| &**address), Some("b:0"));
        // a new topic gets as many queues as are readable in the default topic, at most four
        let expected = named(&[("a", 0), ("b", 0), ("b", 1), ("b", 2), ("b", 3)]);
        assert_eq!(places_of(&route.for_new_topic(4)), expected);
    }

    #[test]
    fn an_ordered_topic_lists_its_queues() {
        let ordered = |conf: &str| route(&format!(r#"{{{BROKERS},"orderTopicConf":"{conf}"}}"#));
        assert_eq!(places_of(&ordered("b:2;a:1;c;d:x")), named(&[("b", 0), ("b", 1), ("a", 0)]));
        for conf in ["b", "b:", "b:x", ":", ";;", "b:99999999999"] {
            assert_eq!(places_of(&ordered(conf)), []);
        }
    }
}
