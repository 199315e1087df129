//! The routes of topics and the addresses of brokers that a client fetched last.
//!
//! Source: `MQClientInstance.topicRouteTable`, `brokerAddrTable`, `brokerVersionTable`, `findBrokerAddressIn*`.
use super::route_data::{MASTER_ID, RouteData};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A broker's ids and addresses, in the order of the route.
pub type Addresses = Vec<(i64, Arc<str>)>;

/// Code and remark of a name server's answer that contains no route.
pub type RouteRefusal = (i32, String);

/// Routes of topics and addresses of brokers. Each call is atomic.
#[derive(Debug, Default)]
pub struct RouteTable {
    tables: Mutex<Tables>,
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    routes: HashMap<String, Route>,
    refusals: HashMap<String, RouteRefusal>,
    brokers: BTreeMap<Arc<str>, Addresses>,
    releases: HashMap<(Arc<str>, Arc<str>), i32>,
}

/// A route, and the addresses of its brokers as this machine can reach them.
#[derive(Debug)]
struct Route {
    data: Arc<RouteData>,
    addresses: HashSet<Arc<str>>,
}

/// The address of a broker from which a queue can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBroker {
    pub address: Arc<str>,
    pub is_slave: bool,
    /// RocketMQ version of the broker, as its number in Java's `MQVersion`; 0 until the broker has answered a
    /// heartbeat.
    pub release: i32,
}

impl RouteTable {
    /// Fetches a route without storing it. For a topic without a route, `default` is used if given: the topic whose
    /// route a new topic copies, and the maximum number of queues per broker.
    ///
    /// Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
    pub fn fetch<E>(
        &self,
        topic: &str,
        default: Option<(&str, i32)>,
        mut fetch: impl FnMut(&str) -> Result<Result<RouteData, RouteRefusal>, E>,
    ) -> Result<Result<RouteData, RouteRefusal>, E> {
        let route = fetch(topic)?;
        match default {
            Some((default, queues)) if route.is_err() && self.get(topic).is_none() => {
                Ok(fetch(default)?.map(|default| default.for_new_topic(queues)).or(route))
            }
            _ => Ok(route),
        }
    }

    /// Stores the route of a topic. Returns whether `route` differs from the route known before. `translate` maps the
    /// brokers' addresses to addresses that this machine can reach.
    ///
    /// # Errors
    /// The error of `translate`; the old route stays.
    pub fn put<E>(
        &self,
        topic: &str,
        route: RouteData,
        mut translate: impl FnMut(&Arc<str>) -> Result<Arc<str>, E>,
    ) -> Result<bool, E> {
        // called before locking, as `translate` may be code of the application
        let mut brokers = Vec::with_capacity(route.brokers.len());
        for broker in &route.brokers {
            let mut addresses = Addresses::with_capacity(broker.addresses.len());
            for (id, address) in &broker.addresses {
                addresses.push((*id, translate(address)?));
            }
            brokers.push((broker.broker_name.clone(), addresses));
        }
        let addresses = brokers.iter().flat_map(|(_, addresses)| addresses.iter().map(|(_, at)| at.clone())).collect();
        let mut tables = self.lock();
        tables.refusals.remove(topic);
        tables.brokers.extend(brokers);
        // an equal route keeps the version, so that cached queues stay valid
        let equal = tables.routes.get(topic).map(|known| known.data.clone()).filter(|known| route.says_as(known));
        let is_new = equal.is_none();
        let data = equal.unwrap_or_else(|| Arc::new(route));
        tables.routes.insert(topic.to_owned(), Route { data, addresses });
        self.version.fetch_add(is_new.into(), Ordering::Release);
        Ok(is_new)
    }

    /// Stores why a topic has no route, until [`put`](Self::put). Its old route stays.
    pub fn refuse(&self, topic: &str, refusal: RouteRefusal) {
        self.lock().refusals.insert(topic.to_owned(), refusal);
    }

    pub fn refusal(&self, topic: &str) -> Option<RouteRefusal> {
        self.lock().refusals.get(topic).cloned()
    }

    /// Returns a number that grows with each new route.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the last route of a topic; `None` if no route was stored.
    pub fn get(&self, topic: &str) -> Option<Arc<RouteData>> {
        self.lock().routes.get(topic).map(|route| route.data.clone())
    }

    /// Returns the addresses of all brokers by name.
    pub fn brokers(&self) -> Vec<(Arc<str>, Addresses)> {
        self.lock().brokers.iter().map(|(name, addresses)| (name.clone(), addresses.clone())).collect()
    }

    /// Returns the address of a broker's master, to which messages are sent; `None` if it is not known.
    ///
    /// Source: `MQClientInstance.findBrokerAddressInPublish`.
    pub fn publish_address(&self, broker_name: &str) -> Option<Arc<str>> {
        address_of(self.lock().brokers.get(broker_name)?, MASTER_ID)
    }

    /// Returns the address with the id `broker_id`, from which to read a broker's queues. For a missing slave, the
    /// address with the next id is tried. The last choice is the broker's first address, unless `only_this` is set.
    /// `None` if no address is found.
    ///
    /// Source: `MQClientInstance.findBrokerAddressInSubscribe`.
    pub fn subscribe_address(&self, broker_name: &str, broker_id: i64, only_this: bool) -> Option<FoundBroker> {
        let tables = self.lock();
        let addresses = tables.brokers.get(broker_name)?;
        let at = |id: i64| address_of(addresses, id).map(|address| (id, address));
        // Java's order: this id, the next id, any id of the broker
        let next = || if broker_id == MASTER_ID { None } else { at(broker_id.wrapping_add(1)) };
        let any = || addresses.first().filter(|_| !only_this).cloned();
        let (id, address) = at(broker_id).or_else(next).or_else(any)?;
        let release = tables.release(broker_name, &address);
        Some(FoundBroker { address, is_slave: id != MASTER_ID, release })
    }

    /// Chooses one of a topic's brokers. Returns the address of its master, or of a slave if there is no master.
    /// `choose` gets the number of candidates and returns an index.
    ///
    /// Source: `MQClientInstance.findBrokerAddrByTopic`, `TopicRouteData.BrokerData.selectBrokerAddr`.
    pub fn any_address(&self, topic: &str, mut choose: impl FnMut(usize) -> usize) -> Option<Arc<str>> {
        let tables = self.lock();
        let brokers = &tables.routes.get(topic)?.data.brokers;
        if brokers.is_empty() {
            return None;
        }
        let addresses = tables.brokers.get(&brokers[choose(brokers.len())].broker_name)?;
        let any = || addresses.get(choose(addresses.len())).map(|(_, address)| address.clone());
        address_of(addresses, MASTER_ID).or_else(any)
    }

    /// Stores the RocketMQ version of a broker, which its answer to a heartbeat contains.
    pub fn set_release(&self, broker_name: &str, address: &str, release: i32) {
        self.lock().releases.insert((broker_name.into(), address.into()), release);
    }

    /// Returns the RocketMQ version of a broker as a number, or 0 if it is not known.
    ///
    /// Source: `MQClientInstance.findBrokerVersion`.
    pub fn release(&self, broker_name: &str, address: &str) -> i32 {
        self.lock().release(broker_name, address)
    }

    /// Removes and returns the addresses that are no longer in any route.
    ///
    /// Source: `MQClientInstance.cleanOfflineBroker`.
    pub fn clean_offline_brokers(&self) -> Vec<Arc<str>> {
        let mut tables = self.lock();
        let routed: HashSet<Arc<str>> = tables.routes.values().flat_map(|route| &route.addresses).cloned().collect();
        let mut gone = Vec::new();
        tables.brokers.retain(|_, addresses| {
            gone.extend(addresses.iter().filter(|(_, at)| !routed.contains(at)).map(|(_, at)| at.clone()));
            addresses.retain(|(_, address)| routed.contains(address));
            !addresses.is_empty()
        });
        tables.releases.retain(|(_, address), _| routed.contains(address));
        gone
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn release(&self, broker_name: &str, address: &str) -> i32 {
        self.releases.get(&(broker_name.into(), address.into())).copied().unwrap_or(0)
    }
}

fn address_of(addresses: &Addresses, id: i64) -> Option<Arc<str>> {
    addresses.iter().find(|(other, _)| *other == id).map(|(_, address)| address.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brokers `a` and `s` have a slave; `c` has two slaves but no master.
    const ROUTE: &str = r#"{"brokerDatas":[{"brokerAddrs":{0:"a:1",1:"a:2"},"brokerName":"a"},
        {"brokerAddrs":{1:"c:2",2:"c:3"},"brokerName":"c"},{"brokerAddrs":{0:"s:0",3:"s:3"},"brokerName":"s"}]}"#;

    fn put(table: &RouteTable, route: RouteData) {
        assert_eq!(table.put("t", route, |address| Ok::<_, ()>(address.clone())), Ok(true));
    }

    fn table() -> RouteTable {
        let table = RouteTable::default();
        put(&table, RouteData::of_body(ROUTE.as_bytes()).expect("a route"));
        table
    }

    #[test]
    fn addresses_are_where_they_are_reached_from_here() {
        let (table, route) = (RouteTable::default(), RouteData::for_tests(&[("a", 1)]));
        table.put("t", route.clone(), |at| Ok::<_, ()>(format!("gate-{at}").into())).expect("translated");
        assert_eq!(table.publish_address("a").as_deref(), Some("gate-a:10911"));
        assert_eq!(table.clean_offline_brokers(), []);
        assert_eq!(table.get("t").as_deref(), Some(&route));
        assert_eq!(table.put("t", route, |_| Err("unreachable")), Err("unreachable"));
        assert_eq!(table.publish_address("a").as_deref(), Some("gate-a:10911"));
    }

    #[test]
    fn a_producer_finds_masters_only() {
        let found = ["a", "c", "z"].map(|name| table().publish_address(name));
        assert_eq!(found, [Some("a:1".into()), None, None]);
    }

    #[test]
    fn a_consumer_finds_the_one_the_next_one_or_any() {
        let table = table();
        for (broker, id, only_this, expected) in [
            ("a", 0, false, Some(("a:1", false))),
            ("a", 1, false, Some(("a:2", true))),
            ("c", 0, false, Some(("c:2", true))),
            ("c", 0, true, None),
            ("c", 1, true, Some(("c:2", true))),
            ("a", 5, false, Some(("a:1", false))),
            ("a", 5, true, None),
            ("s", 2, true, Some(("s:3", true))),
            ("z", 0, false, None),
        ] {
            let found = table.subscribe_address(broker, id, only_this);
            let found = found.as_ref().map(|broker| (&*broker.address, broker.is_slave));
            assert_eq!(found, expected, "{broker} {id} {only_this}");
        }
    }

    #[test]
    fn one_of_a_topics_brokers_is_its_master_or_else_a_slave() {
        let table = table();
        assert_eq!(table.any_address("t", |_| 0).as_deref(), Some("a:1"));
        assert_eq!(table.any_address("t", |_| 1).as_deref(), Some("c:3"));
        assert_eq!(table.any_address("unknown", |_| 0), None);
    }

    #[test]
    fn addresses_in_no_route_any_more_are_forgotten() {
        let table = table();
        table.set_release("a", "a:2", 401);
        assert_eq!(table.subscribe_address("a", 1, true).map(|broker| broker.release), Some(401));
        assert_eq!(table.clean_offline_brokers(), []);
        put(&table, RouteData::for_tests(&[("b", 1)]));
        let gone: HashSet<_> = table.clean_offline_brokers().into_iter().collect();
        assert_eq!(gone, ["a:1", "a:2", "c:2", "c:3", "s:0", "s:3"].map(Into::into).into());
        assert_eq!(table.brokers(), [("b".into(), vec![(0, "b:10911".into())])]);
        assert_eq!(table.release("a", "a:2"), 0);
    }
}
