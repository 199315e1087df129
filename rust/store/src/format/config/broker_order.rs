//! The order in which a broker writes topics and groups. It is the iteration order of Java's `ConcurrentHashMap`.
//!
//! The map is created for 1024 entries and has 2048 bins; it doubles when it is three quarters full. The size of the maps of offsets and
//! filters depends on the broker's history, so these maps keep their order here.
//!
//! Source: `TopicConfigManager`, `SubscriptionGroupManager`, `java.util.concurrent.ConcurrentHashMap`.
use crate::format::java_map::bucket;
use serde_json::{Map, Value};

const TABLES: [&str; 2] = ["topicConfigTable", "subscriptionGroupTable"];
/// Number of bins of `new ConcurrentHashMap<>(1024)`.
const BINS: usize = 2048;

/// Sorts topics and groups into a broker's order. Entries of the same bin keep their order.
pub fn in_broker_order(mut value: Value) -> Value {
    for table in TABLES {
        if let Some(map) = value.get_mut(table).and_then(Value::as_object_mut) {
            let bins = bins_for(map.len());
            let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
            // A stable sort, so that entries of one bin keep their order.
            entries.sort_by_key(|(name, _)| bucket(name.as_bytes(), bins));
            *map = Map::from_iter(entries);
        }
    }
    value
}

fn bins_for(entries: usize) -> usize {
    std::iter::successors(Some(BINS), |bins| Some(bins * 2)).find(|bins| entries < bins / 4 * 3).unwrap_or(BINS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn topics_come_in_the_order_of_a_real_broker() {
        // In the order in which a 4.9.4 broker wrote the topics.
        let names = ["SCHEDULE_TOPIC_XXXX", "fx_q8", "fx_q4", "fx_q1", "fx_q2", "SELF_TEST_TOPIC", "DefaultCluster"];
        let mut shuffled: Vec<_> = names.to_vec();
        shuffled.sort_unstable();
        let table: Map<String, Value> = shuffled.iter().map(|name| ((*name).to_owned(), json!(1))).collect();
        let ordered = in_broker_order(json!({"dataVersion": 1, "topicConfigTable": table, "other": {"b": 1, "a": 2}}));
        let keys: Vec<_> = ordered["topicConfigTable"].as_object().expect("a map").keys().collect();
        assert_eq!(keys, names);
        assert_eq!(ordered["other"].to_string(), r#"{"b":1,"a":2}"#);
    }

    #[test]
    fn a_map_is_doubled_when_three_quarters_are_full() {
        assert_eq!([0, 1535, 1536, 3071, 3072].map(bins_for), [2048, 2048, 4096, 4096, 8192]);
    }
}
