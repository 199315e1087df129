//! Where messages of a topic may be sent to.
//!
//! Source: `MQClientInstance.topicRouteData2TopicPublishInfo`, `findBrokerAddressInPublish`,
//! `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
use super::requests::Cluster;
use super::route::{MASTER, MAX_QUEUES, check_in_all, id_of};
use crate::error::{Error, Result};
use crate::puller::Queue;
use rmqfast_remoting::code::{perm, request};
use rmqfast_remoting::{Interrupt, Json, Value};
use std::collections::BTreeMap;

/// The topic after whose settings a broker makes one that is missing.
pub const DEFAULT_TOPIC: &str = "TBW102";
/// How many queues such a topic gets.
pub const DEFAULT_QUEUES: i32 = 4;
/// `ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION`.
pub const NO_ROUTE: i32 = 10005;

/// The writable queues of a topic, of brokers that have a master.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishRoute {
    /// The queues, broker by broker.
    pub queues: Vec<Queue>,
    /// By broker name, the address of the master.
    pub masters: BTreeMap<String, String>,
}

impl PublishRoute {
    /// The route that a name server's answer says; of a topic that is not there yet the queues that it would get.
    ///
    /// # Errors
    /// What is wrong with the text of the answer.
    pub fn of_body(topic: &str, body: &[u8], is_new: bool) -> Result<Self, String> {
        let route = Json::of_body(body).map_err(|error| error.to_string());
        route.and_then(|route| Self::read(topic, &route, is_new)).map_err(|problem| format!("body: {problem}"))
    }

    fn read(topic: &str, route: &Json, is_new: bool) -> Result<Self, String> {
        let mut masters = BTreeMap::new();
        for data in route.member("brokerDatas").map_or(&[][..], Json::items) {
            let name = data.member("brokerName").and_then(Json::text).ok_or("brokerDatas: expected a brokerName")?;
            let Some(Json::Object(by_id)) = data.member("brokerAddrs") else { continue };
            let master = by_id.iter().find(|(key, _)| id_of(key) == Some(MASTER));
            masters.extend(master.and_then(|(_, address)| Some((name.to_owned(), address.text()?.to_owned()))));
        }
        let queue = |broker: &str, id| Queue { topic: topic.to_owned(), broker_name: broker.into(), queue_id: id };
        if let Some(ordered) = route.member("orderTopicConf").and_then(Json::text).filter(|text| !text.is_empty()) {
            let entries = ordered.split(';').map(|entry| entry.split_once(':').unwrap_or((entry, "")));
            let entries = entries.filter_map(|(broker, count)| Some((broker, count.parse::<i64>().ok()?)));
            let entries: Vec<_> = entries.filter(|(_, count)| (0..=MAX_QUEUES).contains(count)).collect();
            check_in_all("orderTopicConf", entries.iter().map(|(_, count)| count).sum())?;
            let queues =
                entries.into_iter().flat_map(|(broker, count)| (0..count as i32).map(move |id| queue(broker, id)));
            return Ok(Self { queues: queues.collect(), masters });
        }
        let mut counts = Vec::new();
        for data in route.member("queueDatas").map_or(&[][..], Json::items) {
            let name = data.member("brokerName").and_then(Json::text).ok_or("queueDatas: expected a brokerName")?;
            // fastjson, too, leaves a field that is missing at 0
            let number = |name| data.member(name).and_then(Json::number).unwrap_or(0);
            // the broker makes so many queues when the first message arrives
            let count =
                if is_new { number("readQueueNums").min(DEFAULT_QUEUES.into()) } else { number("writeQueueNums") };
            if !(0..=MAX_QUEUES).contains(&count) {
                return Err(format!("writeQueueNums: expected 0 to {MAX_QUEUES}, got {count}"));
            }
            if number("perm") & i64::from(perm::WRITE) != 0 && masters.contains_key(name) {
                counts.push((name, count as i32));
            }
        }
        check_in_all("writeQueueNums", counts.iter().map(|(_, count)| i64::from(*count)).sum())?;
        // stable, as Java's sort of brokers by their names
        counts.sort_by_key(|(name, _)| *name);
        let queues = counts.into_iter().flat_map(|(broker, count)| (0..count).map(move |id| queue(broker, id)));
        Ok(Self { queues: queues.collect(), masters })
    }
}

impl Cluster {
    /// Where messages of a topic may be sent to.
    ///
    /// # Errors
    /// [`Error::Response`]: the name server tells none. [`Error::Client`]: no name server answers.
    pub fn publish_route(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<PublishRoute> {
        self.publish_route_of(topic, &self.route_body(topic, interrupt)?, false)
    }

    /// Where messages of a topic may be sent to that is not there: its brokers make it with the first of them.
    ///
    /// # Errors
    /// As [`publish_route`](Self::publish_route).
    pub fn new_publish_route(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<PublishRoute> {
        self.publish_route_of(topic, &self.route_body(DEFAULT_TOPIC, interrupt)?, true)
    }

    fn route_body(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<Vec<u8>> {
        let fields = [("topic", Value::Text(topic))];
        Ok(self.ask_name_server(self.usual(request::GET_ROUTEINFO_BY_TOPIC, &fields), interrupt)?.body)
    }

    fn publish_route_of(&self, topic: &str, body: &[u8], is_new: bool) -> Result<PublishRoute> {
        let route = PublishRoute::of_body(topic, body, is_new);
        let mut route = route.map_err(|problem| Error::Remoting(malformed(problem)))?;
        if let Some(translate) = &self.options().translate {
            for address in route.masters.values_mut() {
                *address = translate(address)?;
            }
        }
        Ok(route)
    }
}

fn malformed(got: String) -> rmqfast_remoting::Error {
    rmqfast_remoting::Error::Malformed { what: "answer of a name server", expected: "a route".into(), got }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKERS: &str = r#""brokerDatas":[{"brokerAddrs":{1:"b:1",0:"b:0"},"brokerName":"b"},
        {"brokerAddrs":{"0":"a:0"},"brokerName":"a"},{"brokerAddrs":{1:"s:1"},"brokerName":"s"}]"#;

    fn places(body: &str, is_new: bool) -> Vec<(String, i32)> {
        let route = PublishRoute::of_body("orders", body.as_bytes(), is_new).expect("a route");
        assert_eq!(route.masters.get("b").map(String::as_str), Some("b:0"));
        route.queues.iter().map(|queue| (queue.broker_name.to_string(), queue.queue_id)).collect()
    }

    fn named(places: &[(&str, i32)]) -> Vec<(String, i32)> {
        places.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect()
    }

    #[test]
    fn queues_are_writable_and_of_brokers_with_a_master() {
        let queues = r#""queueDatas":[{"brokerName":"b","perm":2,"readQueueNums":8,"writeQueueNums":2},
            {"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1},
            {"brokerName":"s","perm":6,"writeQueueNums":4},{"brokerName":"a","perm":4,"writeQueueNums":4}]"#;
        let body = format!("{{{BROKERS},{queues}}}");
        assert_eq!(places(&body, false), named(&[("a", 0), ("b", 0), ("b", 1)]));
        // of a topic that is not there: as many as may be read of the one that it is made after, four at most
        assert_eq!(places(&body, true), named(&[("a", 0), ("b", 0), ("b", 1), ("b", 2), ("b", 3)]));
    }

    #[test]
    fn an_ordered_topic_lists_its_queues() {
        let body = format!(r#"{{{BROKERS},"orderTopicConf":"b:2;a:1;c;d:x"}}"#);
        assert_eq!(places(&body, false), named(&[("b", 0), ("b", 1), ("a", 0)]));
    }

    #[test]
    fn a_route_that_says_too_much_is_refused() {
        let many = [r#"{"brokerName":"b","perm":6,"writeQueueNums":65536}"#; 5].join(",");
        let ordered = ["b:65536"; 5].join(";");
        for (body, what) in [
            (format!(r#"{{{BROKERS},"queueDatas":[{many}]}}"#), "writeQueueNums"),
            (format!(r#"{{{BROKERS},"orderTopicConf":"{ordered}"}}"#), "orderTopicConf"),
        ] {
            let error = PublishRoute::of_body("orders", body.as_bytes(), false).expect_err("too many in all");
            let expected = format!("body: {what}: expected 262144 queues of all brokers at most, got 327680 or more");
            assert_eq!(error, expected);
        }
        let body = format!(r#"{{{BROKERS},"queueDatas":[{{"brokerName":"a","perm":6,"writeQueueNums":65537}}]}}"#);
        let text = PublishRoute::of_body("orders", body.as_bytes(), false).expect_err("too many");
        assert_eq!(text, "body: writeQueueNums: expected 0 to 65536, got 65537");
    }
}
