//! Reads and writes headers as JSON objects.
//!
//! Numbers and booleans may replace strings, and keys may have any order, as in fastjson. Unknown keys are skipped.
//!
//! Source: `RemotingSerializable`, `RemotingCommand.headerDecode`.
use crate::command::{Command, Header, Language};
use crate::error::{Error, Result};
use crate::frame::Limits;
use crate::json_text::{Number, Text, write_number, write_text};
use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Command<'a>> {
    // usual headers by the fast parser, others by the general parser
    let command = match scan(bytes) {
        Some(command) => command,
        None => decode_any(bytes)?,
    };
    limits.check_fields(command.fields.len())?;
    Ok(command)
}

/// Decodes any JSON header with the general parser.
pub(crate) fn decode_any(bytes: &[u8]) -> Result<Command<'_>> {
    let parsed = serde_json::from_slice::<JsonHeader<'_>>(bytes);
    parsed.map(|header| header.0).map_err(|e| Error::malformed("JSON header", "an object of RemotingCommand", e))
}

pub fn encode(header: &Header<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"code\":");
    write_number(header.code.into(), out);
    // as in fastjson: keys in alphabetical order, empty members left out
    if !header.fields.is_empty() {
        out.extend_from_slice(b",\"extFields\":{");
        for (index, (name, value)) in header.fields.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_text(name, out);
            out.push(b':');
            value.with_text(|value| write_text(value, out));
        }
        out.push(b'}');
    }
    out.extend_from_slice(b",\"flag\":");
    write_number(header.flag.into(), out);
    out.extend_from_slice(b",\"language\":\"JAVA\",\"opaque\":");
    write_number(header.opaque.into(), out);
    if let Some(remark) = header.remark {
        out.extend_from_slice(b",\"remark\":");
        write_text(remark, out);
    }
    out.extend_from_slice(b",\"serializeTypeCurrentRPC\":\"");
    out.extend_from_slice(header.serialize_type.name().as_bytes());
    out.extend_from_slice(b"\",\"version\":");
    write_number(header.version.into(), out);
    out.push(b'}');
}

struct JsonHeader<'a>(Command<'a>);

impl<'de> Deserialize<'de> for JsonHeader<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = JsonHeader<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut command = Command::empty();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_deref().unwrap_or_default() {
                "code" => command.code = map.next_value::<Number>()?.as_i32(),
                "flag" => command.flag = map.next_value::<Number>()?.as_i32(),
                "opaque" => command.opaque = map.next_value::<Number>()?.as_i32(),
                "version" => command.version = map.next_value::<Number>()?.as_i32(),
                "language" => command.language = language(&map.next_value::<Text<'_>>()?),
                "remark" => command.remark = map.next_value::<Text<'_>>()?.0,
                "extFields" => command.fields = map.next_value::<Fields<'_>>()?.0,
                // later versions of RocketMQ may add members
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(JsonHeader(command))
    }
}

fn language(text: &Text<'_>) -> Language {
    let Some(text) = text.0.as_deref() else { return Language::UNKNOWN };
    // fastjson accepts the ordinal of an enum as well as its name
    text.parse().map_or_else(|_| Language::of_name(text), Language::of_code)
}

struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor).map(Self)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(Cow<'de, str>, Cow<'de, str>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some((Text(name), Text(value))) = map.next_entry()? {
            // null counts as missing
            if let (Some(name), Some(value)) = (name, value) {
                fields.push((name, value));
            }
        }
        Ok(fields)
    }
}

// Usual headers are parsed in one pass, several times faster than by a general parser. For unusual or invalid headers the scan
// returns `None`, and the general parser decides. Both give the same result for every header that both accept.

fn scan(header: &[u8]) -> Option<Command<'_>> {
    let mut scan = Scan { text: std::str::from_utf8(header).ok()?, at: 0 };
    let mut command = Command::empty();
    scan.token(b'{')?;
    loop {
        let key = scan.plain_text()?;
        scan.token(b':')?;
        match key {
            "code" => command.code = scan.number()?,
            "flag" => command.flag = scan.number()?,
            "opaque" => command.opaque = scan.number()?,
            "version" => command.version = scan.number()?,
            "language" => command.language = Language::of_name(scan.plain_text()?),
            "remark" => command.remark = Some(scan.any_text()?),
            "extFields" => command.fields = scan.fields()?,
            "serializeTypeCurrentRPC" => drop(scan.plain_text()?),
            // an unknown key may have any value, which the general parser skips
            _ => return None,
        }
        match scan.next()? {
            b',' => {}
            // bytes after the object are left to the general parser
            b'}' => return (scan.at == header.len()).then_some(command),
            _ => return None,
        }
    }
}

/// A header, and the position up to which it is decoded. Methods return `None` for unusual JSON, such as blanks between
/// tokens.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn token(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn number(&mut self) -> Option<i32> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'-')?;
        let digits = self.text.get(self.at..self.at + len)?;
        // JSON forbids a leading zero
        let unsigned = digits.strip_prefix('-').unwrap_or(digits);
        if unsigned.len() > 1 && unsigned.starts_with('0') || matches!(rest[len], b'.' | b'e' | b'E') {
            return None;
        }
        self.at += len;
        digits.parse().ok()
    }

    #[inline]
    fn plain_text(&mut self) -> Option<&'a str> {
        match self.any_text()? {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    #[inline]
    fn any_text(&mut self) -> Option<Cow<'a, str>> {
        self.token(b'"')?;
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', &self.text.as_bytes()[start..])?;
        let text = self.text.get(start..end)?;
        // JSON requires an escape for control characters
        if text.bytes().any(|b| b < b' ') {
            return None;
        }
        self.at = end;
        match self.next()? {
            b'"' => Some(Cow::Borrowed(text)),
            _ => self.unescape(text).map(Cow::Owned),
        }
    }

    /// Parses a string that has an escape. `before` is the part before the first backslash, and the position is behind
    /// that backslash. Returns `None` if the string is invalid, or has an escape for a surrogate.
    fn unescape(&mut self, before: &str) -> Option<String> {
        let mut out = String::with_capacity(2 * before.len() + 64);
        out.push_str(before);
        loop {
            out.push(self.escape()?);
            let start = self.at;
            let end = start + memchr2(b'"', b'\\', &self.text.as_bytes()[start..])?;
            let plain = self.text.get(start..end)?;
            if plain.bytes().any(|b| b < b' ') {
                return None;
            }
            out.push_str(plain);
            self.at = end;
            if self.next()? == b'"' {
                return Some(out);
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                // surrogates are left to the general parser
                let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
                char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?)?
            }
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            same @ (b'"' | b'\\' | b'/') => char::from(same),
            _ => return None,
        })
    }

    fn fields(&mut self) -> Option<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
        self.token(b'{')?;
        let mut fields = Vec::with_capacity(16);
        loop {
            let name = self.any_text()?;
            self.token(b':')?;
            fields.push((name, self.any_text()?));
            match self.next()? {
                b',' => {}
                b'}' => return Some(fields),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Value;
    use crate::frame::SerializeType;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Command<'_>> {
        decode(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn the_header_of_a_java_client_is_read_without_a_copy() {
        let text = r#"{"code":105,"extFields":{"topic":"t","q":"\n"},"flag":2,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":401}"#;
        let command = read(text).expect("sound");
        assert_eq!((command.code, command.flag, command.opaque, command.version), (105, 2, 7, 401));
        assert!(matches!(command.fields[0].1, Cow::Borrowed("t")));
        assert_eq!((command.field("q"), command.field("none")), (Some("\n"), None));
    }

    #[test]
    fn what_fastjson_takes_is_taken() {
        let command = read(
            r#"{"extFields":{"a":1,"b":true,"c":null,"d":{"e":[1]},"f":[2],"a":"2"},"new":[{}],"language":9,"code":"3"}"#,
        );
        let command = command.expect("sound");
        let fields = ["a", "b", "c", "d", "f"].map(|name| command.field(name));
        assert_eq!(fields, [Some("2"), Some("true"), None, Some(r#"{"e":[1]}"#), Some("[2]")]);
        assert_eq!((command.code, command.language.name(), command.version), (3, Some("GO"), 0));
        assert_eq!(read(r#"{"extFields":null,"language":"KLINGON"}"#).expect("sound").language, Language::UNKNOWN);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let deep = format!("{{\"x\":{}", "[".repeat(60_000));
        let many = format!(
            "{{\"extFields\":{{{}\"z\":1}}}}",
            (0..Limits::default().fields).map(|n| format!("\"{n}\":1,")).collect::<String>()
        );
        for wrong in ["", "[]", "{", "{\"code\":1.5}", "{\"code\":4294967296}", "{\"opaque\":\"x\"}", &deep, &many] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(decode(b"{\"remark\":\"\xff\"}", &Limits::default()).is_err());
        let long = read(&format!("{{\"code\":\"{}\"}}", "9".repeat(60_000))).expect_err("refused").to_string();
        assert!(long.len() < 300, "what is logged is short: {long}");
    }

    #[test]
    fn what_is_written_is_what_java_writes() {
        let fields = [("queueId", Value::Number(3)), ("msgId", Value::Text("A\"")), ("ok", Value::Flag(true))];
        let header =
            Header { code: 0, opaque: -1, fields: &fields, remark: Some("x"), ..Header::response(SerializeType::Json) };
        let mut out = Vec::new();
        encode(&header, &mut out);
        let expected = r#"{"code":0,"extFields":{"queueId":"3","msgId":"A\"","ok":"true"},"flag":1,"language":"JAVA","opaque":-1,"remark":"x","serializeTypeCurrentRPC":"JSON","version":401}"#;
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(decode(&out, &Limits::default()).expect("sound").field("msgId"), Some("A\""));
    }

    const SENT: &str = r#"{"code":310,"extFields":{"a":"g","b":"t\/","e":"0","i":"KEYS\u0001k\u0002TAGS\u0001\u6807"},"flag":0,"language":"JAVA","opaque":-7,"remark":"é","serializeTypeCurrentRPC":"JSON","version":401}"#;

    #[test]
    fn what_clients_send_is_read_here() {
        let command = scan(SENT.as_bytes()).expect("usual");
        assert_eq!(Some(&command), decode_any(SENT.as_bytes()).ok().as_ref());
        assert_eq!(
            (command.opaque, command.field("b"), command.field("i")),
            (-7, Some("t/"), Some("KEYS\u{1}k\u{2}TAGS\u{1}标"))
        );
    }

    proptest! {
        #[test]
        fn whatever_is_read_here_is_read_so_by_the_general_parser(
            changes in proptest::collection::vec((0..SENT.len(), any::<u8>(), 0..3usize), 0..4),
        ) {
            let mut bytes = SENT.as_bytes().to_vec();
            for (at, byte, kind) in changes {
                let at = at.min(bytes.len() - 1);
                let byte = br#""\{}:,0123456789-.eun x"#.get(usize::from(byte)).copied().unwrap_or(byte);
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Some(command) = scan(&bytes) {
                let general = decode_any(&bytes).ok();
                prop_assert_eq!(general.as_ref(), Some(&command));
            }
        }
    }
}
