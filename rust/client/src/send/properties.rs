//! The property string of a message to send, in the order of Java's map.
//!
//! Source: `Message`, `MessageAccessor`, `MessageDecoder.messageProperties2String`.
use rmqfast_store::format::java::in_map_order;
use rmqfast_store::format::properties::{DELAY, KEYS, NAME_END, PROPERTY_END, TAGS, UNIQ_KEY, is_storable};
use std::fmt;

const WAIT: &str = "WAIT";
const INSTANCE_ID: &str = "INSTANCE_ID";

#[derive(Clone, Copy, Debug)]
pub struct Properties<'a> {
    pub tags: Option<&'a str>,
    /// The keys, separated by spaces.
    pub keys: Option<&'a str>,
    /// Whether the broker waits for its disk and slaves before it answers.
    pub wait_store: bool,
    /// Delay level; 0 for no delay.
    pub delay_level: i32,
    /// Properties of the application. If a field above has the same property, the field's value counts.
    pub pairs: &'a [(&'a str, &'a str)],
    /// Properties of the producer, which override all others.
    pub added: &'a [(&'a str, &'a str)],
    /// Message id; not used if `pairs` contains an id.
    pub unique_id: Option<&'a str>,
}

/// A property whose name or value contains a separator of the property string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unstorable {
    pub name: String,
}

impl fmt::Display for Unstorable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the property {:?} has a character 0x01 or 0x02 in its name or its value", self.name)
    }
}

impl Properties<'_> {
    /// Appends the property string to `out`.
    ///
    /// # Errors
    /// [`Unstorable`].
    pub fn write(&self, out: &mut String) -> Result<(), Unstorable> {
        let delay = (self.delay_level != 0).then(|| self.delay_level.to_string());
        let all = self.in_java_order(delay.as_deref());
        for (index, (name, value)) in in_map_order(all.into_iter()).into_iter().enumerate() {
            // a separator in a value would forge further properties, for example a delay
            if !is_storable(name) || !is_storable(value) {
                return Err(Unstorable { name: name.chars().take(80).collect() });
            }
            if index > 0 {
                out.push(PROPERTY_END.into());
            }
            out.push_str(name);
            out.push(NAME_END.into());
            out.push_str(value);
        }
        Ok(())
    }

    /// Appends the property string with the producer's instance and an id. `make_id` is called unless the application
    /// set the id. Returns the id.
    ///
    /// # Errors
    /// [`Unstorable`].
    pub fn write_with_id(
        &self,
        instance_id: Option<&str>,
        make_id: impl FnOnce() -> String,
        out: &mut String,
    ) -> Result<String, Unstorable> {
        let mut added = self.added.to_vec();
        added.extend(instance_id.map(|id| (INSTANCE_ID, id)));
        // as in `MessageClientIDSetter.setUniqID`, which keeps an existing id
        let own_id = self.given_id();
        let new_id = own_id.is_none().then(make_id);
        Properties { added: &added, unique_id: new_id.as_deref(), ..*self }.write(out)?;
        Ok(new_id.or(own_id.map(str::to_owned)).unwrap_or_default())
    }

    /// Returns the id that the application set, or `None` if it set no id.
    pub fn given_id(&self) -> Option<&str> {
        self.pairs.iter().rev().find(|(name, _)| *name == UNIQ_KEY).map(|(_, value)| *value)
    }

    /// Returns all properties, in the order in which a Java application would put them into a map.
    fn in_java_order<'b>(&'b self, delay: Option<&'b str>) -> Vec<(&'b str, &'b str)> {
        let wait = if self.wait_store { "true" } else { "false" };
        let first = [(TAGS, self.tags), (KEYS, self.keys), (WAIT, Some(wait))];
        let mut all = Vec::with_capacity(6 + self.pairs.len() + self.added.len());
        // Java's `Message` ignores an empty tag or key
        all.extend(first.into_iter().filter_map(|(name, value)| value.filter(|v| !v.is_empty()).map(|v| (name, v))));
        let fixed = all.len();
        for (name, value) in self.pairs {
            let has_argument = all[..fixed].iter().any(|(other, _)| other == name) || *name == DELAY && delay.is_some();
            if !has_argument {
                all.push((name, value));
            }
        }
        all.extend(delay.map(|level| (DELAY, level)));
        all.extend_from_slice(self.added);
        all.extend(self.unique_id.map(|id| (UNIQ_KEY, id)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain<'a>() -> Properties<'a> {
        Properties { tags: None, keys: None, wait_store: true, delay_level: 0, pairs: &[], added: &[], unique_id: None }
    }

    fn written(properties: Properties<'_>) -> String {
        let mut out = String::new();
        properties.write(&mut out).expect("storable");
        out.replace('\u{1}', "=").replace('\u{2}', ";")
    }

    #[test]
    fn the_order_is_that_of_the_java_client() {
        let sent = Properties { tags: Some("TagA"), keys: Some("k0"), unique_id: Some("FD00"), ..plain() };
        // as recorded from a Java client
        assert_eq!(written(sent), "KEYS=k0;UNIQ_KEY=FD00;WAIT=true;TAGS=TagA");
        assert_eq!(written(plain()), "WAIT=true");
    }

    #[test]
    fn arguments_win_over_properties_of_their_name_and_an_empty_tag_is_none() {
        let pairs = [("TAGS", "not this"), ("DELAY", "9"), ("WAIT", "false"), ("KEYS", "k"), ("a", "1")];
        let sent = Properties { tags: Some("t"), keys: Some(""), delay_level: 2, pairs: &pairs, ..plain() };
        let mut stored: Vec<_> = written(sent).split(';').map(str::to_owned).collect();
        stored.sort();
        assert_eq!(stored, ["DELAY=2", "KEYS=k", "TAGS=t", "WAIT=true", "a=1"]);
        assert_eq!(Properties { pairs: &[("UNIQ_KEY", "mine")], ..plain() }.given_id(), Some("mine"));
    }

    #[test]
    fn what_would_forge_a_property_is_refused() {
        for pairs in [[("a", "x\u{2}DELAY\u{1}3")], [("a\u{1}b", "x")]] {
            let refused = Properties { pairs: &pairs, ..plain() }.write(&mut String::new());
            assert!(refused.expect_err("refused").to_string().contains("0x01 or 0x02"));
        }
    }
}
