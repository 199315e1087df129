//! The header of a frame that is to be written.
use crate::command::RESPONSE;
use crate::frame::SerializeType;
use crate::json_text::with_digits;

/// Ordinal of 4.9.4 in `MQVersion.Version`: what this side says of itself.
pub const VERSION: i32 = 401;

/// The value of a header field; all are texts on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Text(&'a str),
    Number(i64),
    Flag(bool),
}

/// The fields of a header to write.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The request code, or the response code.
    pub code: i32,
    /// Which response belongs to which request.
    pub opaque: i32,
    /// A sum of [`RESPONSE`] and [`crate::ONEWAY`].
    pub flag: i32,
    /// Text for people, such as an error message.
    pub remark: Option<&'a str>,
    /// The fields of the code.
    pub fields: &'a [(&'a str, Value<'a>)],
    pub serialize_type: SerializeType,
    /// Ordinal of the release.
    pub version: i32,
}

impl<'a> Header<'a> {
    /// Returns a response that says nothing yet.
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

    /// Hands the text over.
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
