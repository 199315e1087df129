//! Writes strings and numbers of JSON headers. Reads them also in the other forms that peers send, such as a number in
//! a string.
//!
//! Source: fastjson's `StringCodec`, `IntegerCodec`.
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Appends the string as JSON source with quotes.
#[inline]
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    let (bytes, mut from) = (text.as_bytes(), 0);
    out.push(b'"');
    for (at, &byte) in bytes.iter().enumerate() {
        // copies whole runs of bytes that need no escape
        if byte < b' ' || byte == b'"' || byte == b'\\' {
            out.extend_from_slice(&bytes[from..at]);
            write_escape(byte, out);
            from = at + 1;
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Appends the escape of a control character, quote or backslash. Property strings contain many of them, since their
/// separators are 0x01 and 0x02.
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[inline]
pub fn write_number(number: i64, out: &mut Vec<u8>) {
    with_digits(number, |digits| out.extend_from_slice(digits.as_bytes()));
}

/// Calls `take` with the decimal digits of a number, without an allocation.
#[inline]
pub fn with_digits(number: i64, take: impl FnOnce(&str)) {
    // an i64 has at most twenty characters
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number.unsigned_abs());
    loop {
        at -= 1;
        // from the last digit to the first
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    take(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// A JSON string. Any other value is read as its JSON source, and null as `None`.
pub struct Text<'a>(pub Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl TextVisitor {
    fn owned_text<'de, E>(text: impl ToString) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Some(Cow::Owned(text.to_string()))))
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
        Self::owned_text(text)
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Self::Value, E> {
        Self::owned_text(number)
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Self::Value, E> {
        Self::owned_text(number)
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Self::Value, E> {
        Self::owned_text(number)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Self::Value, E> {
        Self::owned_text(value)
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Self::Value, A::Error> {
        let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
        Self::owned_text(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> std::result::Result<Self::Value, A::Error> {
        let value = serde_json::Value::deserialize(SeqAccessDeserializer::new(seq))?;
        Self::owned_text(value)
    }
}

/// A 32-bit number, or a string of its digits.
pub struct Number(i64);

impl Number {
    /// Returns the number, whose range was checked when it was parsed.
    pub fn as_i32(&self) -> i32 {
        self.0 as i32
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        // a number that is null counts as 0
        let text = text.unwrap_or(Cow::Borrowed("0"));
        let number = text.parse::<i64>().ok().filter(|number| i32::try_from(*number).is_ok());
        number.map(Self).ok_or_else(|| {
            let start: String = text.chars().take(40).collect();
            serde::de::Error::custom(format_args!("{start:?} is no number of 32 bits"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_others_write_them() {
        let all: String = (0..0x300_u32).filter_map(char::from_u32).collect();
        for text in ["", "plain", "a\u{1}b\u{2}", "\"\\", "ends\n", &all] {
            let mut out = b"before".to_vec();
            write_text(text, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("before{}", json_text(text)));
        }
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 1, -1, 9, 10, -10, 1_795_319_938_000, i64::MAX, i64::MIN, i64::from(i32::MIN)] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), number.to_string());
        }
    }
}
