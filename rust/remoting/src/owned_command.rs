//! A command that can be kept longer than its frame, for another thread or a later answer.
use crate::command::{Command, RESPONSE};
use crate::frame::SerializeType;
use crate::language::Language;

/// A [`Command`] with its own memory.
#[derive(Clone, Debug)]
pub struct OwnedCommand {
    pub code: i32,
    pub language: Language,
    pub version: i32,
    /// Number of the request. Its response has the same number.
    pub opaque: i32,
    pub flag: i32,
    /// Message for people, such as the text of an error.
    pub remark: Option<String>,
    pub fields: OwnedFields,
    pub serialize_type: SerializeType,
    pub body: Vec<u8>,
}

impl From<&Command<'_>> for OwnedCommand {
    fn from(command: &Command<'_>) -> Self {
        Self {
            code: command.code,
            language: command.language,
            version: command.version,
            opaque: command.opaque,
            flag: command.flag,
            remark: command.remark.as_ref().map(ToString::to_string),
            fields: command.fields.iter().map(|(name, value)| (&**name, &**value)).collect(),
            serialize_type: command.serialize_type,
            body: command.body.to_vec(),
        }
    }
}

impl OwnedCommand {
    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    /// Returns a command that borrows from this one.
    pub fn borrow(&self) -> Command<'_> {
        Command {
            code: self.code,
            language: self.language,
            version: self.version,
            opaque: self.opaque,
            flag: self.flag,
            remark: self.remark.as_deref().map(Into::into),
            fields: self.fields.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            serialize_type: self.serialize_type,
            body: &self.body,
        }
    }
}

/// Header fields in order. They share one allocation, since commands are passed between threads often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedFields {
    text: String,
    /// End of each name and of its value in `text`.
    ends: Vec<(u32, u32)>,
}

impl OwnedFields {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.ends.iter().enumerate().map(|(index, &(name_end, end))| {
            let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].1 as usize);
            (&self.text[begin..name_end as usize], &self.text[name_end as usize..end as usize])
        })
    }

    /// Returns the value of a field, the last if the name is repeated.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for OwnedFields {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let expected = fields.size_hint().0;
        // 24 bytes is a guess for a name and its value
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
