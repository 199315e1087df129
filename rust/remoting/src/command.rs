//! A request or a response: what a header says, and the body behind it.
//!
//! Source: `RemotingCommand`.
use crate::frame::SerializeType;
use crate::language::Language;
use std::borrow::Cow;

/// Bit of the flag: this is a response.
pub const RESPONSE: i32 = 1;
/// Bit of the flag: nobody waits for a response.
pub const ONEWAY: i32 = 2;

/// A frame's header as values, and its body; texts are borrowed from the frame where they stand there as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The request code, or the response code.
    pub code: i32,
    /// The peer's programming language.
    pub language: Language,
    /// Ordinal of the peer's release.
    pub version: i32,
    /// Which response belongs to which request.
    pub opaque: i32,
    /// A sum of [`RESPONSE`] and [`ONEWAY`].
    pub flag: i32,
    /// Text for people, such as an error message.
    pub remark: Option<Cow<'a, str>>,
    /// Header fields, in the order in which they stand.
    pub fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub serialize_type: SerializeType,
    /// The body; empty where there is none.
    pub body: &'a [u8],
}

impl Command<'_> {
    /// Returns the value of a header field; of one that stands twice, the last.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// Returns whether this answers a request of this side.
    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    /// Returns whether nobody waits for an answer.
    pub fn is_oneway(&self) -> bool {
        self.flag & ONEWAY != 0
    }

    pub(crate) fn empty() -> Self {
        Self {
            code: 0,
            // what Java assumes where a header does not say it
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
