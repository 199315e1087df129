//! A received request or response (parsed header and body, borrowed or owned), and the header of a frame to write.
//!
//! Source: `RemotingCommand`, `LanguageCode`.
use crate::frame::SerializeType;
use crate::json_text::with_digits;
use std::borrow::Cow;

/// Bit of the flag: the command is a response.
pub const RESPONSE: i32 = 1;
/// Bit of the flag: the sender expects no response.
pub const ONEWAY: i32 = 2;

/// A parsed header and its body. Strings are borrowed from the frame unless they contain escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    pub code: i32,
    pub language: Language,
    /// RocketMQ release of the sender, as an ordinal of `MQVersion.Version`.
    pub version: i32,
    /// Number of the request. The response to it has the same number.
    pub opaque: i32,
    /// Combination of [`RESPONSE`] and [`ONEWAY`].
    pub flag: i32,
    /// Message for people, such as the text of an error.
    pub remark: Option<Cow<'a, str>>,
    /// Header fields in the order of the frame.
    pub fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub serialize_type: SerializeType,
    pub body: &'a [u8],
}

impl Command<'_> {
    /// Returns the value of a header field, the last if the name is repeated.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    pub fn is_oneway(&self) -> bool {
        self.flag & ONEWAY != 0
    }

    pub(crate) fn empty() -> Self {
        Self {
            code: 0,
            // Java's default for a header without this field
            language: Language::JAVA,
            version: 0,
            opaque: 0,
            flag: 0,
            remark: None,
            fields: Vec::new(),
            serialize_type: SerializeType::Json,
            body: &[],
        }
    }
}

// Names in the order of their codes.
const NAMES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
    "NODE_JS",
];

/// A programming language. [`UNKNOWN`](Self::UNKNOWN) stands for all languages that this side does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(u8);

impl Language {
    /// Java, the default for a header without a language.
    pub const JAVA: Self = Self(0);
    /// Any language that this side does not know.
    pub const UNKNOWN: Self = Self(u8::MAX);

    pub fn of_code(code: i64) -> Self {
        usize::try_from(code).ok().filter(|code| *code < NAMES.len()).map_or(Self::UNKNOWN, |code| Self(code as u8))
    }

    pub fn of_name(name: &str) -> Self {
        NAMES.iter().position(|candidate| *candidate == name).map_or(Self::UNKNOWN, |code| Self(code as u8))
    }

    pub fn code(self) -> u8 {
        self.0
    }

    /// Returns the name, or `None` for an unknown language.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }
}

/// Version number that this side sends: that of 4.9.4 in `MQVersion.Version`.
pub const VERSION: i32 = 401;

/// Value of a header field. On the wire all values are strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Text(&'a str),
    Number(i64),
    Flag(bool),
}

#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    pub code: i32,
    pub opaque: i32,
    /// Combination of [`RESPONSE`] and [`crate::ONEWAY`].
    pub flag: i32,
    /// Message for people, such as the text of an error.
    pub remark: Option<&'a str>,
    pub fields: &'a [(&'a str, Value<'a>)],
    pub serialize_type: SerializeType,
    pub version: i32,
}

impl<'a> Header<'a> {
    /// Creates the header of a response with code 0. The caller sets `opaque`.
    pub fn response(serialize_type: SerializeType) -> Self {
        Self { code: 0, opaque: 0, flag: RESPONSE, remark: None, fields: &[], serialize_type, version: VERSION }
    }

    pub fn request(code: i32, opaque: i32, fields: &'a [(&'a str, Value<'a>)]) -> Self {
        Self { code, opaque, flag: 0, remark: None, fields, serialize_type: SerializeType::Json, version: VERSION }
    }
}

impl Value<'_> {
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.with_text(|value| text.push_str(value));
        text
    }

    /// Calls `take` with the value as string, without an allocation.
    #[inline]
    pub(crate) fn with_text(&self, take: impl FnOnce(&str)) {
        match *self {
            Value::Text(text) => take(text),
            Value::Flag(true) => take("true"),
            Value::Flag(false) => take("false"),
            Value::Number(number) => with_digits(number, take),
        }
    }
}

/// A [`Command`] with its own memory.
#[derive(Clone, Debug)]
pub struct OwnedCommand {
    pub code: i32,
    pub language: Language,
    pub version: i32,
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
    /// For each field, the position in `text` at which its name ends, and the position at which its value ends.
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
