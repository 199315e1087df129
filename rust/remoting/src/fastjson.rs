//! Parses JSON as RocketMQ's fastjson does. It accepts more than JSON: strings in single quotes, and keys that are
//! bare words, whole numbers or objects.
//!
//! Source: `DefaultJSONParser` of fastjson 1.2.69, below `RemotingSerializable`.
use std::borrow::Cow;
use std::fmt;

pub const MAX_DEPTH: usize = 64;
/// Maximum number of values in a document, which are counted by commas and opening brackets, even inside strings.
/// Without a limit the parsed values could take far more memory than the document.
pub const MAX_VALUES: usize = 2_000_000;
// Maximum digits of a whole number.
const MAX_DIGITS: usize = 4000;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`, or an empty document.
    Null,
    Flag(bool),
    Number(i64),
    /// A whole number that does not fit into 64 bits, as digits.
    BigNumber(String),
    /// A number with a fraction or an exponent.
    Fraction(f64),
    /// A string. Unpaired surrogates are replaced by U+FFFD.
    Text(String),
    Array(Vec<Json>),
    /// Members of an object, in order. If a key is repeated, the last member counts.
    Object(Vec<(Key, Json)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A string or a bare word.
    Text(String),
    /// A bare whole number.
    Number(i128),
    /// The key is a `MessageQueue`: an object with these three members, or a string that contains such an object.
    Queue { topic: String, broker_name: String, queue_id: i64 },
}

/// Reason why a document is not valid JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    #[error("no json at character {at}: expected {expected}, got {got}")]
    At {
        /// Index of the character in the document, from 0.
        at: usize,
        expected: Cow<'static, str>,
        got: String,
    },
    /// There are more than [`MAX_VALUES`] values.
    #[error("no json of more than {MAX_VALUES} values")]
    TooMany,
}

impl Json {
    /// Parses the body of a command. Invalid UTF-8 is replaced by U+FFFD. Fails with [`NoJson`], also for more than
    /// [`MAX_DEPTH`] levels or [`MAX_VALUES`] values.
    ///
    /// ```
    /// use rmqfast_remoting::{Json, Key};
    /// let body = Json::of_body(b"{0:'x'}").unwrap();
    /// assert_eq!(body, Json::Object(vec![(Key::Number(0), Json::Text("x".into()))]));
    /// ```
    pub fn of_body(body: &[u8]) -> Result<Self, NoJson> {
        // a cheap upper limit, before any memory is allocated
        if memchr::memchr3_iter(b',', b'[', b'{', body).nth(MAX_VALUES).is_some() {
            return Err(NoJson::TooMany);
        }
        let text = String::from_utf8_lossy(body);
        // without a byte order mark
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() { Ok(Self::Null) } else { Parser { text, at: 0 }.document() }
    }

    /// Returns a member of an object. Returns `None` if the member is missing or null, or if this value is not an
    /// object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        // searched from the end, because the last member with a repeated key counts
        let is_named = |(key, _): &&(Key, Self)| matches!(key, Key::Text(key) if key == name);
        members.iter().rev().find(is_named).map(|(_, value)| value).filter(|value| **value != Self::Null)
    }

    /// Returns the string, or `None` for other values.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns a whole number, also from a string of digits. Returns `None` for other values.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the items of an array, or an empty slice for other values.
    pub fn items(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn document(mut self) -> Result<Json, NoJson> {
        let value = self.value(0)?;
        if self.peek().is_some() { Err(self.error("the end")) } else { Ok(value) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, NoJson> {
        match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                Err(self.error(format!("no more than {MAX_DEPTH} objects in one another")))
            }
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(quote @ (b'"' | b'\'')) => Ok(Json::Text(self.string(quote)?)),
            _ => self.scalar(),
        }
    }

    /// Parses an object. As in fastjson, a comma may follow the last member.
    fn object(&mut self, depth: usize) -> Result<Json, NoJson> {
        self.at += 1;
        let mut members = Vec::new();
        while self.peek() != Some(b'}') {
            let key = self.key(depth)?;
            self.expect(b':')?;
            members.push((key, self.value(depth)?));
            if self.peek() != Some(b'}') {
                self.expect(b',')?;
            }
        }
        self.at += 1;
        Ok(Json::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Json, NoJson> {
        self.at += 1;
        let mut items = Vec::new();
        while self.peek() != Some(b']') {
            items.push(self.value(depth)?);
            if self.peek() != Some(b']') {
                self.expect(b',')?;
            }
        }
        self.at += 1;
        Ok(Json::Array(items))
    }

    fn key(&mut self, depth: usize) -> Result<Key, NoJson> {
        let start = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => return Ok(key_of_text(self.string(quote)?)),
            _ => self.at,
        };
        let rest = &self.text.as_bytes()[start..];
        if rest.first() == Some(&b'{') {
            let queue = queue(self.value(depth)?);
            return queue.ok_or_else(|| self.error_at(start, "a queue as key"));
        }
        // bare words are JavaScript identifiers, which fastjson accepts as keys
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let word = rest.iter().take_while(|byte| is_word(byte)).count();
        if word > 0 && !rest[0].is_ascii_digit() {
            self.at += word;
            return Ok(Key::Text(self.text[start..self.at].to_owned()));
        }
        let end = usize::from(rest.first() == Some(&b'-'));
        let end = end + rest[end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        // an i64 with its sign has at most 20 characters
        let number = self.text[start..start + end].parse::<i128>().ok().filter(|_| end <= 20);
        let is_whole = !matches!(rest.get(end), Some(b'.' | b'e' | b'E'));
        let number = number.filter(|_| is_whole).ok_or_else(|| self.error("a key"))?;
        self.at += end;
        Ok(Key::Number(number))
    }

    /// Parses a string. It may contain line breaks.
    fn string(&mut self, quote: u8) -> Result<String, NoJson> {
        let start = self.at;
        let mut text = String::new();
        let mut at = start + 1;
        loop {
            let rest = &self.text.as_bytes()[at..];
            let Some(length) = memchr::memchr2(quote, b'\\', rest) else {
                return Err(self.error("a text that ends"));
            };
            text.push_str(&self.text[at..at + length]);
            at += length + 1;
            if rest[length] == quote {
                self.at = at;
                return Ok(text);
            }
            let escaped = escape(&self.text.as_bytes()[at..], quote);
            let (character, length) = escaped.ok_or_else(|| self.error("a text that ends"))?;
            text.push(character);
            at += length;
        }
    }

    fn scalar(&mut self) -> Result<Json, NoJson> {
        let rest = &self.text[self.at..];
        let words = [("true", Json::Flag(true)), ("false", Json::Flag(false)), ("null", Json::Null)];
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        let (end, is_whole) = number_end(rest.as_bytes()).ok_or_else(|| self.error("a value"))?;
        let digits = &rest[..end];
        let value = if !is_whole {
            // a huge exponent gives infinity, which JSON cannot express
            let fraction = digits.parse().ok().filter(|number: &f64| number.is_finite());
            Json::Fraction(fraction.ok_or_else(|| self.error("a number that a double holds"))?)
        } else {
            digits.parse().map_or_else(|_| Json::BigNumber(digits.to_owned()), Json::Number)
        };
        self.at += end;
        Ok(value)
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.at += blank;
        rest.get(blank).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), NoJson> {
        if self.peek() != Some(byte) {
            return Err(self.error(format!("'{}'", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    fn error(&self, expected: impl Into<Cow<'static, str>>) -> NoJson {
        self.error_at(self.at, expected)
    }

    fn error_at(&self, at: usize, expected: impl Into<Cow<'static, str>>) -> NoJson {
        let (before, rest) = self.text.split_at(at);
        let got: String = rest.chars().take(20).collect();
        let got = if got.is_empty() { "the end".to_owned() } else { format!("'{}'", got.escape_debug()) };
        NoJson::At { at: before.chars().count(), expected: expected.into(), got }
    }
}

/// Converts a string to a key. As in RocketMQ, a string that contains a `MessageQueue` becomes a queue.
fn key_of_text(text: String) -> Key {
    // the check of the first character avoids parsing every key
    let parsed = text.starts_with('{').then(|| Parser { text: &text, at: 0 }.document().ok().and_then(queue));
    parsed.flatten().unwrap_or(Key::Text(text))
}

fn queue(value: Json) -> Option<Key> {
    let Json::Object(members) = &value else { return None };
    let is_of_queue =
        |key: &Key| matches!(key, Key::Text(name) if ["topic", "brokerName", "queueId"].contains(&name.as_str()));
    if !members.iter().all(|(key, _)| is_of_queue(key)) {
        return None;
    }
    let (topic, broker_name) = (value.member("topic")?.text()?, value.member("brokerName")?.text()?);
    let Json::Number(queue_id) = *value.member("queueId")? else { return None };
    Some(Key::Queue { topic: topic.to_owned(), broker_name: broker_name.to_owned(), queue_id })
}

/// Decodes an escape. `rest` begins behind the backslash. Returns the character and the number of bytes consumed, or
/// `None` for an invalid escape.
fn escape(rest: &[u8], quote: u8) -> Option<(char, usize)> {
    let character = match rest.first()? {
        b'"' => '"',
        // valid in single quotes only
        b'\'' if quote == b'\'' => '\'',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(rest),
        _ => return None,
    };
    Some((character, 1))
}

/// Decodes `uXXXX` as [`escape`] does. Two surrogates such as `uD83D\uDE00` become one character. An unpaired surrogate
/// becomes U+FFFD.
fn unicode(rest: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(1)?;
    let second = if rest.get(5..7) == Some(b"\\u") { unit(7) } else { None };
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match pair.filter(|pair| pair.len_utf16() == 2) {
        // 11 bytes: `uXXXX`, a backslash, and `uXXXX` again
        Some(character) => Some((character, 11)),
        None => Some((char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 5)),
    }
}

/// Returns the length of the number at the start, and whether the number is whole. Returns `None` if no valid number is
/// there.
fn number_end(rest: &[u8]) -> Option<(usize, bool)> {
    let digits = |at: usize| rest[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(rest.first() == Some(&b'-'));
    let whole = start + digits(start);
    if whole == start || whole - start > MAX_DIGITS {
        return None;
    }
    let mut end = whole;
    if rest.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        end = if fraction == 0 { return None } else { end + 1 + fraction };
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(rest.len()));
        end += if exponent == 0 { 0 } else { 1 + sign + exponent };
    }
    // a second point, as in `1.2.3`, is an error
    (rest.get(end) != Some(&b'.')).then_some((end, end == whole))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Queue { topic, broker_name, queue_id } => write!(f, "queue {queue_id} of {topic} at {broker_name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[{}\[\]"':,0-9.eE\\u dfalsrtn$é-]{0,40}"#) {
            let _ = Json::of_body(text.as_bytes());
        }

        #[test]
        fn real_json_is_what_everybody_reads(text in "\\PC{0,8}", number in any::<i64>(), fraction in -1e300..1e300) {
            let value = serde_json::json!({ "a": [text, number, fraction, null, true], "": {} });
            let read = Json::of_body(value.to_string().as_bytes()).expect("JSON");
            let items = read.member("a").expect("a member").items();
            prop_assert_eq!(items[0].text(), Some(text.as_str()));
            prop_assert_eq!(items[1].number(), Some(number));
            prop_assert_eq!(&items[2], &Json::Fraction(fraction));
            prop_assert_eq!(&items[3..], &[Json::Null, Json::Flag(true)]);
        }
    }
}
