//! Header fields that outlive their frame.

/// Header fields in their order, all texts in one piece of memory: most commands have some, and many threads hand commands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedFields {
    text: String,
    /// Ends of each name and value in the text.
    ends: Vec<(u32, u32)>,
}

impl OwnedFields {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.ends.iter().enumerate().map(|(index, &(name_end, end))| {
            let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].1 as usize);
            (&self.text[begin..name_end as usize], &self.text[name_end as usize..end as usize])
        })
    }

    /// The value of a name; of one that stands twice, the last.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for OwnedFields {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let expected = fields.size_hint().0;
        let mut owned = Self { text: String::with_capacity(expected * 24), ends: Vec::with_capacity(expected) };
        for (name, value) in fields {
            owned.text.push_str(name);
            let name_end = owned.text.len() as u32;
            owned.text.push_str(value);
            owned.ends.push((name_end, owned.text.len() as u32));
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_their_order_and_the_last_of_a_name_counts() {
        let pairs = [("a", "1"), ("", ""), ("long name", "v\u{e4}lue"), ("a", "2")];
        let fields = OwnedFields::from_iter(pairs);
        assert_eq!(fields.iter().collect::<Vec<_>>(), pairs);
        assert_eq!((fields.get("a"), fields.get(""), fields.get("b")), (Some("2"), Some(""), None));
        assert_eq!((fields.len(), fields.is_empty(), OwnedFields::default().get("a")), (4, false, None));
    }
}
