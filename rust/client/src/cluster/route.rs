//! The readable queues of a topic and their brokers.
//!
//! Source: `TopicRouteData`, `MQClientInstance.topicRouteData2TopicSubscribeInfo`, `findBrokerAddressInSubscribe`.
use super::route_data::{MASTER_ID, RouteData};
use crate::puller::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The readable queues of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRoute {
    pub queues: Vec<Queue>,
    /// Address to read from, by broker name: the master's address, or a slave's if there is no master.
    pub addresses: BTreeMap<String, String>,
    /// Names of the brokers for which `addresses` has the master's address.
    pub masters: BTreeSet<String>,
    /// Addresses of the slaves by broker name, sorted by broker id.
    pub slaves: BTreeMap<String, Vec<String>>,
}

impl TopicRoute {
    pub fn of(topic: &str, route: &RouteData) -> Self {
        let queues = readable_queues(topic, route);
        let read_only: BTreeSet<_> =
            route.queues.iter().filter(|data| !data.is_writable()).map(|data| &data.broker_name).collect();
        let mut this = Self { queues, ..Self::default() };
        // brokers without a readable queue are left out, so that they are not asked about filter expressions
        let is_read: BTreeSet<Arc<str>> = this.queues.iter().map(|queue| queue.broker_name.clone()).collect();
        for broker in route.brokers.iter().filter(|broker| is_read.contains(&broker.broker_name)) {
            let (name, master) = (broker.broker_name.to_string(), broker.master());
            // `RouteInfoManager.pickupTopicRouteData` of 5.x gives a slave the master's id while the master is away,
            // for reads only
            if master.is_some() && !(broker.may_act_as_master && read_only.contains(&broker.broker_name)) {
                this.masters.insert(name.clone());
            }
            // slaves answer pulls, so a topic can be read while its master is away
            let any = || broker.addresses.first().map(|(_, address)| address);
            if let Some(address) = master.or_else(any) {
                this.addresses.insert(name.clone(), address.to_string());
            }
            let slaves = broker.addresses.iter().filter(|(id, _)| *id != MASTER_ID);
            let by_id: BTreeMap<_, _> = slaves.map(|(id, address)| (*id, address.to_string())).collect();
            this.slaves.insert(name, by_id.into_values().collect());
        }
        this
    }
}

/// Returns the queues that consumers may read, sorted. As in Java, a queue counts even if its broker has no master or
/// accepts no sends.
///
/// Source: `MQClientInstance.topicRouteData2TopicSubscribeInfo`.
pub fn readable_queues(topic: &str, route: &RouteData) -> Vec<Queue> {
    let queues = route.queues.iter().filter(|data| data.is_readable()).flat_map(|data| {
        let queue = |queue_id| Queue { topic: topic.to_owned(), broker_name: data.broker_name.clone(), queue_id };
        (0..data.read_queues).map(queue)
    });
    queues.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(body: &str) -> Result<TopicRoute, String> {
        Ok(TopicRoute::of("orders", &RouteData::of_body(body.as_bytes())?))
    }

    #[test]
    fn queues_are_sorted_and_a_master_goes_before_its_slaves() {
        let body = r#"{"brokerDatas":[{"brokerAddrs":{1:"b:1",0:"b:0"},"brokerName":"b"},
            {"brokerAddrs":{"2":"a:2","1":"a:1"},"brokerName":"a"},{"brokerAddrs":{0:"x:0"},"brokerName":"x"}],
            "queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2},{"brokerName":"a","perm":4,"readQueueNums":"1"},
            {"brokerName":"w","perm":2,"readQueueNums":8}]}"#;
        let route = route(body).expect("a route");
        let places: Vec<_> = route.queues.iter().map(|queue| (&*queue.broker_name, queue.queue_id)).collect();
        assert_eq!(places, [("a", 0), ("b", 0), ("b", 1)]);
        let addresses: Vec<_> =
            route.addresses.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
        assert_eq!(addresses, [("a", "a:2"), ("b", "b:0")]);
        assert_eq!(route.masters, BTreeSet::from(["b".to_owned()]));
        let slaves: Vec<_> = route.slaves.into_iter().collect();
        let expected = [("a", vec!["a:1", "a:2"]), ("b", vec!["b:1"])];
        assert_eq!(slaves, expected.map(|(name, all)| (name.to_owned(), all.into_iter().map(str::to_owned).collect())));
    }

    #[test]
    fn a_slave_that_acts_as_a_master_is_none() {
        let masters = |is_acting: bool, perm: i32| {
            let broker =
                format!(r#"{{"brokerAddrs":{{"0":"a:1"}},"brokerName":"a","enableActingMaster":{is_acting}}}"#);
            let queues = format!(r#"{{"brokerName":"a","perm":{perm},"readQueueNums":1}}"#);
            route(&format!(r#"{{"brokerDatas":[{broker}],"queueDatas":[{queues}]}}"#)).expect("a route").masters.len()
        };
        assert_eq!([masters(true, 4), masters(true, 6), masters(false, 4), masters(false, 6)], [0, 1, 1, 1]);
    }

    #[test]
    fn a_route_that_says_too_much_or_nothing_is_refused() {
        let body = r#"{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":65537}]}"#;
        assert_eq!(route(body).expect_err("too many"), "body: readQueueNums: expected 0 to 65536, got 65537");
        let many = |name: usize| format!(r#"{{"brokerName":"b{name}","perm":6,"readQueueNums":65536}}"#);
        let many = format!(r#"{{"queueDatas":[{}]}}"#, (0..5).map(many).collect::<Vec<_>>().join(","));
        let error = route(&many).expect_err("too many in all");
        assert_eq!(error, "body: readQueueNums: expected 262144 queues of all brokers at most, got 327680 or more");
        let negative = r#"{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":-1}]}"#;
        assert_eq!(route(negative).expect_err("negative"), "body: readQueueNums: expected 0 to 65536, got -1");
        assert!(route("{").expect_err("no JSON").starts_with("body: no json at character 1"));
        assert_eq!(route("{}"), Ok(TopicRoute::default()));
    }
}
