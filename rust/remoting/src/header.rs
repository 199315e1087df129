//! The header of a frame to write.
use crate::command::RESPONSE;
use crate::frame::SerializeType;
use crate::json_text::with_digits;

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
    /// Number of the request. The response to it has the same number.
    pub opaque: i32,
    /// Combination of [`RESPONSE`] and [`crate::ONEWAY`].
    pub flag: i32,
    /// Message for people, such as the text of an error.
    pub remark: Option<&'a str>,
    /// Header fields of this code.
    pub fields: &'a [(&'a str, Value<'a>)],
    pub serialize_type: SerializeType,
    /// Ordinal of the sender's release.
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
