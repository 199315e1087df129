//! Where a topic's queues are.
//!
//! Source: `TopicRouteData`, `MQClientInstance.topicRouteData2TopicSubscribeInfo`, `findBrokerAddressInSubscribe`.
use crate::puller::Queue;
use rmqfast_remoting::code::perm;
use rmqfast_remoting::{Json, Key};
use std::collections::{BTreeMap, BTreeSet};

/// Queues that a broker may have of a topic; a route that says more is not believed.
pub(super) const MAX_QUEUES: i64 = 65_536;
/// Queues that a topic may have on all its brokers together.
pub(super) const MAX_QUEUES_IN_ALL: i64 = 1 << 18;
/// The id of a master; all others are slaves.
pub(super) const MASTER: i128 = 0;

/// The readable queues of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRoute {
    /// The queues, sorted.
    pub queues: Vec<Queue>,
    /// By broker name, the address to read from: the master's, or else a slave's.
    pub addresses: BTreeMap<String, String>,
    /// The brokers whose address is that of their master.
    pub masters: BTreeSet<String>,
    /// By broker name, where its slaves are, in the order of their ids.
    pub slaves: BTreeMap<String, Vec<String>>,
}

impl TopicRoute {
    /// The route that a name server's answer says.
    ///
    /// # Errors
    /// What is wrong with the text of the answer.
    pub fn of_body(topic: &str, body: &[u8]) -> Result<Self, String> {
        let route = Json::of_body(body).map_err(|error| error.to_string()).and_then(|route| Self::read(topic, &route));
        route.map_err(|problem| format!("body: {problem}"))
    }

    fn read(topic: &str, route: &Json) -> Result<Self, String> {
        let (mut queues, mut read_only, mut total) = (BTreeSet::new(), BTreeSet::new(), 0);
        for data in route.member("queueDatas").map_or(&[][..], Json::items) {
            let broker_name =
                data.member("brokerName").and_then(Json::text).ok_or("queueDatas: expected a brokerName")?;
            // fastjson, too, leaves a field that is missing at 0
            let number = |name| data.member(name).and_then(Json::number).unwrap_or(0);
            let count = number("readQueueNums");
            if !(0..=MAX_QUEUES).contains(&count) {
                return Err(format!("readQueueNums: expected 0 to {MAX_QUEUES}, got {count}"));
            }
            // as Java's consumers: no master and no permission to write are asked for
            let count = if number("perm") & i64::from(perm::READ) == 0 { 0 } else { count };
            total += count;
            check_in_all("readQueueNums", total)?;
            if number("perm") & i64::from(perm::WRITE) == 0 {
                read_only.insert(broker_name);
            }
            let queue = |queue_id| Queue { topic: topic.to_owned(), broker_name: broker_name.into(), queue_id };
            queues.extend((0..count as i32).map(queue));
        }
        let (mut addresses, mut masters, mut slaves) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        for data in route.member("brokerDatas").map_or(&[][..], Json::items) {
            let broker_name =
                data.member("brokerName").and_then(Json::text).ok_or("brokerDatas: expected a brokerName")?;
            let Some(Json::Object(by_id)) = data.member("brokerAddrs") else { continue };
            // a slave answers pulls as well, so that a topic can be read while its master is away
            let master = by_id.iter().find(|(key, _)| id_of(key) == Some(MASTER));
            // `RouteInfoManager.pickupTopicRouteData` of 5.x gives a slave the id of a master that is away, to read only
            let may_be_slave = matches!(data.member("enableActingMaster"), Some(Json::Flag(true)));
            if master.is_some() && !(may_be_slave && read_only.contains(broker_name)) {
                masters.insert(broker_name.to_owned());
            }
            if let Some(address) = master.or(by_id.first()).and_then(|(_, address)| address.text()) {
                addresses.insert(broker_name.to_owned(), address.to_owned());
            }
            let by_id = by_id.iter().filter_map(|(key, address)| Some((id_of(key)?, address.text()?.to_owned())));
            let by_id: BTreeMap<i128, String> = by_id.filter(|(id, _)| *id != MASTER).collect();
            slaves.insert(broker_name.to_owned(), by_id.into_values().collect());
        }
        let queues: Vec<Queue> = queues.into_iter().collect();
        // a broker without a readable queue must not be asked whether it takes an expression
        let is_read = |name: &str| queues.iter().any(|queue| *queue.broker_name == *name);
        addresses.retain(|name, _| is_read(name));
        slaves.retain(|name, _| is_read(name));
        masters.retain(|name| is_read(name));
        Ok(Self { queues, addresses, masters, slaves })
    }
}

/// Refuses more queues of all brokers than a topic may have.
pub(super) fn check_in_all(what: &str, total: i64) -> Result<(), String> {
    if total > MAX_QUEUES_IN_ALL {
        return Err(format!("{what}: expected {MAX_QUEUES_IN_ALL} queues of all brokers at most, got {total} or more"));
    }
    Ok(())
}

/// The id of a broker.
pub(super) fn id_of(key: &Key) -> Option<i128> {
    match key {
        Key::Number(id) => Some(*id),
        // name servers write ids as texts for clients from 4.9.4 on, and as bare numbers for older ones
        Key::Text(id) => id.parse().ok(),
        Key::Queue { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(body: &str) -> Result<TopicRoute, String> {
        TopicRoute::of_body("orders", body.as_bytes())
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
