//! The route of a topic from a name server: queues per broker, and addresses of brokers.
//!
//! Source: `TopicRouteData`, `QueueData`, `BrokerData`.
use rmqfast_remoting::code::perm;
use rmqfast_remoting::{Json, Key};
use std::sync::Arc;

/// Maximum queues of a topic per broker. A route with more is refused.
const MAX_QUEUES: i64 = 65_536;
/// Maximum queues of a topic over all brokers.
const MAX_QUEUES_IN_ALL: i64 = 1 << 18;
/// Id of a master; other ids are slaves.
pub const MASTER_ID: i64 = 0;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteData {
    pub queues: Vec<QueueData>,
    pub brokers: Vec<BrokerData>,
    /// Queues of an ordered topic, for example `broker-a:4;broker-b:2`; empty for other topics.
    pub order_topic_conf: String,
}

/// Queues of a topic on one broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueData {
    pub broker_name: Arc<str>,
    pub read_queues: i32,
    pub write_queues: i32,
    pub perm: i64,
    pub topic_sys_flag: i64,
}

/// A master and its slaves, which share a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerData {
    pub cluster: String,
    pub broker_name: Arc<str>,
    /// Addresses by broker id, in the order of the name server's answer.
    pub addresses: Vec<(i64, Arc<str>)>,
    /// Whether a slave may serve reads under the master's id while the master is down (`enableActingMaster` of 5.x).
    pub may_act_as_master: bool,
}

impl QueueData {
    pub fn is_readable(&self) -> bool {
        self.perm & i64::from(perm::READ) != 0
    }

    pub fn is_writable(&self) -> bool {
        self.perm & i64::from(perm::WRITE) != 0
    }
}

impl BrokerData {
    pub fn master(&self) -> Option<&Arc<str>> {
        self.addresses.iter().find(|(id, _)| *id == MASTER_ID).map(|(_, address)| address)
    }
}

impl RouteData {
    /// Parses the body of a name server's answer.
    ///
    /// # Errors
    /// The defect of the body.
    pub fn of_body(body: &[u8]) -> Result<Self, String> {
        let route = Json::of_body(body).map_err(|error| error.to_string()).and_then(|route| Self::read(&route));
        route.map_err(|problem| format!("body: {problem}"))
    }

    fn read(route: &Json) -> Result<Self, String> {
        let objects = |name| route.member(name).map_or(&[][..], Json::items);
        let (mut queues, mut readable, mut writable) = (Vec::new(), 0, 0);
        for data in objects("queueDatas") {
            let broker_name = name_of(data, "queueDatas")?;
            let queue = QueueData {
                broker_name,
                read_queues: count(data, "readQueueNums")?,
                write_queues: count(data, "writeQueueNums")?,
                perm: number(data, "perm")?,
                topic_sys_flag: number(data, "topicSysFlag")?,
            };
            // queues that nobody may read or write do not count towards the limit
            readable += if queue.is_readable() { i64::from(queue.read_queues) } else { 0 };
            writable += if queue.is_writable() { i64::from(queue.write_queues) } else { 0 };
            check_in_all("readQueueNums", readable)?;
            check_in_all("writeQueueNums", writable)?;
            queues.push(queue);
        }
        let mut brokers = Vec::new();
        for data in objects("brokerDatas") {
            let broker_name = name_of(data, "brokerDatas")?;
            let by_id = match data.member("brokerAddrs") {
                Some(Json::Object(by_id)) => &by_id[..],
                _ => &[],
            };
            brokers.push(BrokerData {
                cluster: data.member("cluster").and_then(Json::text).unwrap_or_default().to_owned(),
                broker_name,
                addresses: by_id.iter().filter_map(|(key, at)| Some((id_of(key)?, at.text()?.into()))).collect(),
                may_act_as_master: matches!(data.member("enableActingMaster"), Some(Json::Flag(true))),
            });
        }
        let order_topic_conf = route.member("orderTopicConf").and_then(Json::text).unwrap_or_default().to_owned();
        let route = Self { queues, brokers, order_topic_conf };
        let ordered = route.ordered_queues().unwrap_or_default();
        check_in_all("orderTopicConf", ordered.iter().map(|(_, count)| i64::from(*count)).sum())?;
        Ok(route)
    }

    /// Returns the queue count per broker of an ordered topic, or `None` for other topics.
    pub fn ordered_queues(&self) -> Option<Vec<(Arc<str>, i32)>> {
        if self.order_topic_conf.is_empty() {
            return None;
        }
        let entries = self.order_topic_conf.split(';').filter_map(|entry| entry.split_once(':'));
        let numbers = entries.filter_map(|(broker, count)| Some((broker.into(), count.parse::<i64>().ok()?)));
        let known = numbers.filter(|(_, count)| (0..=MAX_QUEUES).contains(count));
        Some(known.map(|(broker, count)| (broker, count as i32)).collect())
    }

    /// Returns whether two routes are equal, regardless of the order of their queues and brokers.
    ///
    /// Source: `MQClientInstance.topicRouteDataIsChange`.
    pub fn says_as(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }

    fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.queues.sort_by(|one, other| one.broker_name.cmp(&other.broker_name));
        sorted.brokers.sort_by(|one, other| one.broker_name.cmp(&other.broker_name));
        sorted.brokers.iter_mut().for_each(|broker| broker.addresses.sort());
        sorted
    }

    /// Returns the route of a topic that does not exist yet, made from this route of the default topic. When the first
    /// message of the new topic arrives at a broker, the broker creates the topic with at most `queues` queues.
    ///
    /// Source: `MQClientInstance.updateTopicRouteInfoFromNameServer` with `isDefault`.
    #[must_use]
    pub fn for_new_topic(mut self, queues: i32) -> Self {
        for data in &mut self.queues {
            let count = queues.min(data.read_queues);
            (data.read_queues, data.write_queues) = (count, count);
        }
        self
    }
}

fn name_of(data: &Json, list: &str) -> Result<Arc<str>, String> {
    let name = data.member("brokerName").and_then(Json::text);
    name.map(Into::into).ok_or_else(|| format!("{list}: expected a brokerName"))
}

/// Returns the field `name` of a queue as a number. A missing field is 0, as with fastjson.
fn number(data: &Json, name: &str) -> Result<i64, String> {
    let Some(value) = data.member(name) else { return Ok(0) };
    value.number().ok_or_else(|| format!("{name}: expected a whole number, got {value:?}"))
}

fn count(data: &Json, name: &str) -> Result<i32, String> {
    let number = number(data, name)?;
    let is_believed = (0..=MAX_QUEUES).contains(&number);
    if is_believed { Ok(number as i32) } else { Err(format!("{name}: expected 0 to {MAX_QUEUES}, got {number}")) }
}

/// Refuses a topic with too many queues over all brokers.
fn check_in_all(what: &str, total: i64) -> Result<(), String> {
    if total > MAX_QUEUES_IN_ALL {
        return Err(format!("{what}: expected {MAX_QUEUES_IN_ALL} queues of all brokers at most, got {total} or more"));
    }
    Ok(())
}

fn id_of(key: &Key) -> Option<i64> {
    match key {
        Key::Number(id) => i64::try_from(*id).ok(),
        // name servers write ids as strings for clients since 4.9.4, and as numbers for older clients
        Key::Text(id) => id.parse().ok(),
        Key::Queue { .. } => None,
    }
}

#[cfg(test)]
impl RouteData {
    /// Creates a route of masters at `NAME:10911`, each with this number of queues.
    pub fn for_tests(brokers: &[(&str, i32)]) -> Self {
        let queues = brokers.iter().map(|(name, count)| QueueData {
            broker_name: (*name).into(),
            read_queues: *count,
            write_queues: *count,
            perm: 6,
            topic_sys_flag: 0,
        });
        let brokers = brokers.iter().map(|(name, _)| BrokerData {
            cluster: "c".into(),
            broker_name: (*name).into(),
            addresses: vec![(MASTER_ID, format!("{name}:10911").into())],
            may_act_as_master: false,
        });
        Self { queues: queues.collect(), brokers: brokers.collect(), order_topic_conf: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKERS: &str = r#""brokerDatas":[{"brokerAddrs":{1:"b:1",0:"b:0"},"brokerName":"b"},
        {"brokerAddrs":{"0":"a:0"},"brokerName":"a"},{"brokerAddrs":{1:"s:1"},"brokerName":"s"}]"#;

    #[test]
    fn a_route_in_another_order_says_the_same() {
        let route = RouteData::of_body(format!("{{{BROKERS}}}").as_bytes()).expect("a route");
        let mut turned = route.clone();
        turned.brokers.reverse();
        turned.brokers[2].addresses.reverse();
        assert!(route != turned && route.says_as(&turned));
        turned.brokers.pop();
        assert!(!route.says_as(&turned));
    }

    #[test]
    fn a_route_that_says_too_much_is_refused() {
        let many = [r#"{"brokerName":"b","perm":6,"writeQueueNums":65536}"#; 5].join(",");
        let ordered = ["b:65536"; 5].join(";");
        for (body, what) in [
            (format!(r#"{{{BROKERS},"queueDatas":[{many}]}}"#), "writeQueueNums"),
            (format!(r#"{{{BROKERS},"orderTopicConf":"{ordered}"}}"#), "orderTopicConf"),
        ] {
            let error = RouteData::of_body(body.as_bytes()).expect_err("too many in all");
            let expected = format!("body: {what}: expected 262144 queues of all brokers at most, got 327680 or more");
            assert_eq!(error, expected);
        }
        let body = format!(r#"{{{BROKERS},"queueDatas":[{{"brokerName":"a","perm":6,"writeQueueNums":65537}}]}}"#);
        let text = RouteData::of_body(body.as_bytes()).expect_err("too many");
        assert_eq!(text, "body: writeQueueNums: expected 0 to 65536, got 65537");
    }
}
