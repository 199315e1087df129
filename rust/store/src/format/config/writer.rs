//! Writes JSON exactly as fastjson does, byte for byte.
//!
//! Source: `TopicConfigManager`, `SubscriptionGroupManager`, `java.util.concurrent.ConcurrentHashMap`.
use crate::format::fastjson::{Escapes, write_text};
use crate::format::java::bucket;
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Version 1 of fastjson, used by RocketMQ 4.9.4, and by 5.x up to 5.3.3.
    Fastjson1,
    Fastjson2,
}

/// Formats `value` exactly as RocketMQ does.
pub fn write(value: &Value, dialect: Dialect) -> String {
    let mut writer = Writer { dialect, member: "", out: String::new() };
    writer.value(value, 0);
    writer.out
}

struct Writer<'a> {
    dialect: Dialect,
    /// Name of the top-level member that is being written. It tells which maps have integer keys.
    member: &'a str,
    out: String,
}

impl<'a> Writer<'a> {
    fn value(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Number(n) => self.out.push_str(&n.to_string()),
            Value::String(s) => self.string(s),
            Value::Array(items) => self.array(items, depth),
            Value::Object(map) => self.map(map, depth),
        }
    }

    fn map(&mut self, map: &'a Map<String, Value>, depth: usize) {
        if map.is_empty() {
            return self.empty_map(depth);
        }
        // Java knows a map's type. Here only the member's name tells it.
        let bare = matches!(self.member, "offsetTable" | "table") && map.keys().all(|key| is_integer(key));
        self.out.push('{');
        for (i, (key, value)) in map.iter().enumerate() {
            self.comma(i);
            // fastjson 1 writes a map with integer keys on one line, and only its end on a new one.
            if !bare || self.dialect == Dialect::Fastjson2 {
                self.line(depth + 1);
            }
            // Only the top-level member tells the type of the maps below it.
            if depth == 0 {
                self.member = key;
            }
            if bare {
                self.out.push_str(key)
            } else {
                self.string(key)
            }
            self.out.push(':');
            self.value(value, depth + 1);
        }
        self.line(depth);
        self.out.push('}');
    }

    fn empty_map(&mut self, depth: usize) {
        self.out.push('{');
        if self.dialect == Dialect::Fastjson2 {
            self.line(depth + 1);
            self.line(depth);
        }
        self.out.push('}');
    }

    fn array(&mut self, items: &'a [Value], depth: usize) {
        let lines = !items.is_empty()
            && match self.dialect {
                Dialect::Fastjson1 => self.member == "table",
                Dialect::Fastjson2 => !items.iter().all(Value::is_number),
            };
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.comma(i);
            if lines {
                self.line(depth + 1);
            }
            self.value(item, depth + usize::from(lines));
        }
        if lines {
            self.line(depth);
        }
        self.out.push(']');
    }

    fn string(&mut self, text: &str) {
        let escapes = match self.dialect {
            Dialect::Fastjson1 => Escapes::Fastjson1,
            Dialect::Fastjson2 => Escapes::Fastjson2,
        };
        write_text(text, escapes, &mut self.out);
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n('\t', depth));
    }
}

/// Returns whether `key` is an integer in the form that Java prints, without a plus sign or leading zeroes.
fn is_integer(key: &str) -> bool {
    // A key such as `007` would change if Java read it as a number and wrote it again.
    key.parse::<i64>().is_ok_and(|number| number.to_string() == key)
}

// A broker writes topics and groups in the iteration order of Java's `ConcurrentHashMap`. The map is created for 1024 entries
// and has 2048 bins; it doubles when it is three quarters full. The size of the maps of offsets and filters depends on the
// broker's history, so these maps keep their order here.

const TABLES: [&str; 2] = ["topicConfigTable", "subscriptionGroupTable"];
/// Number of bins of `new ConcurrentHashMap<>(1024)`.
const BINS: usize = 2048;

/// Sorts topics and groups into the order of a broker's hash map. Entries in the same bin keep their order.
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
