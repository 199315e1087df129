//! Reads and writes headers as JSON objects.
//!
//! Numbers and booleans may replace strings, and keys may have any order, as in fastjson. Unknown keys are skipped.
//!
//! Source: `RemotingSerializable`, `RemotingCommand.headerDecode`, fastjson.
use crate::command::Command;
use crate::error::{Error, Result};
use crate::frame::Limits;
use crate::header::Header;
use crate::json_scan;
use crate::json_text::{Number, Text, write_number, write_text};
use crate::language::Language;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Decodes a header.
///
/// # Errors
/// [`Error::Malformed`], [`Error::TooLarge`].
pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Command<'a>> {
    // usual headers by the fast parser, others by the general parser
    let command = match json_scan::decode(bytes) {
        Some(command) => command,
        None => decode_any(bytes)?,
    };
    limits.check_fields(command.fields.len())?;
    Ok(command)
}

/// Decodes any JSON header with the general parser.
///
/// # Errors
/// [`Error::Malformed`].
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

/// Parses the name or the code of a language.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::SerializeType;
    use crate::header::Value;

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
}
