//! A request or a response: a parsed header, and the body.
//!
//! Source: `RemotingCommand`.
use crate::frame::SerializeType;
use crate::language::Language;
use std::borrow::Cow;

/// Bit of the flag: the command is a response.
pub const RESPONSE: i32 = 1;
/// Bit of the flag: the sender expects no response.
pub const ONEWAY: i32 = 2;

/// A parsed header and its body. Strings are borrowed from the frame unless they contain escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The request code, or the response code.
    pub code: i32,
    /// The peer's programming language.
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
    /// The body; empty if there is none.
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
