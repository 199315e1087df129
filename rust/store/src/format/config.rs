//! The files `config/*.json`, in the dialect of fastjson: JSON, but maps with integer keys have them bare, `{0:5,1:7}`.
//!
//! Read: JSON, with integer keys bare or quoted. A bare key becomes the string of its digits in the value.
//! Written, so that what a broker wrote comes out byte for byte:
//!
//! | | fastjson 1 (4.9.4, 5.3.3) | fastjson 2 (5.4.0) |
//! |---|---|---|
//! | indentation | tabs, no space after `:`, no last newline | the same |
//! | map with integer keys | `{0:5,1:7`, a new line, `}` | a line for each key |
//! | empty map | `{}` | `{`, a line of indentation, `}` |
//! | array | on one line; in `table` a line for each item | numbers on one line, else a line for each |
//! | control characters | `\u001F`; U+007F to U+009F, U+2028 and U+2029, too | `\u001f`; only those below U+0020 |
//!
//! Java knows from a map's type whether its keys are integers; here they are if all are and the map lies in
//! `offsetTable` or `table` (consumerOrderInfo.json), the members of a file that hold such maps. Members keep the order
//! they have: RocketMQ sorts the fields of an object by name, and leaves maps as they hash.
//! Nothing carries a checksum: a flipped digit is another number.
//!
//! Source: `RemotingSerializable.toJson`, `ConfigManager.load`.
use memchr::memchr2;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// The longest text that is read, in bytes: some hundred thousand topics.
pub const MAX_LEN: usize = 64 << 20;

/// The writer whose bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RocketMQ 4.9.4, and 5.x up to 5.3.3.
    Fastjson1,
    /// RocketMQ 5.4.0.
    Fastjson2,
}

/// Why a text is not a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// More than [`MAX_LEN`].
    #[error("expected a configuration of at most {MAX_LEN} bytes, got {0}")]
    TooLong(usize),
    /// No JSON, not even with bare integer keys; or nested deeper than 127 levels.
    #[error("line {line} column {column}: {reason}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1, in bytes; 0 for the end of the line before.
        column: usize,
        /// In words.
        reason: String,
    },
}

/// Reads the text of a file.
pub fn parse(text: &[u8]) -> Result<Value, ConfigError> {
    if text.len() > MAX_LEN {
        return Err(ConfigError::TooLong(text.len()));
    }
    serde_json::from_slice(&quote_integer_keys(text)).map_err(|error| syntax_error(text, &error))
}

/// The text that RocketMQ 4.9 writes for `value`.
pub fn to_fastjson(value: &Value) -> String {
    write(value, Dialect::Fastjson1)
}

/// The text that RocketMQ writes for `value`, in the dialect of a version.
pub fn write(value: &Value, dialect: Dialect) -> String {
    let mut writer = Writer { dialect, member: "", out: String::new() };
    writer.value(value, 0);
    writer.out
}

/// Quotes the keys that JSON wants quoted: a number between `{` or `,` and `:`. The parser refuses all else.
fn quote_integer_keys(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut copied, mut at, mut before) = (Vec::new(), 0, 0, 0);
    while let Some(&byte) = text.get(at) {
        let start = at;
        at += 1;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'"' => at += string_len(&text[at..]),
            b'-' | b'0'..=b'9' => {
                at += text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
                if matches!(before, b'{' | b',') && is_key(&text[start..at], &text[at..]) {
                    out.extend_from_slice(&text[copied..start]);
                    out.push(b'"');
                    out.extend_from_slice(&text[start..at]);
                    out.push(b'"');
                    copied = at;
                }
            }
            _ => {}
        }
        before = byte;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

/// Whether `token` is an integer, not just a sign, and a colon follows.
fn is_key(token: &[u8], rest: &[u8]) -> bool {
    token.last().is_some_and(u8::is_ascii_digit) && rest.trim_ascii_start().first() == Some(&b':')
}

/// Bytes from behind the opening quote to behind the closing one, or to the end.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', &text[at..]) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at = (at + 1).min(text.len());
    }
    text.len()
}

/// The parser's error, at its place before the keys were quoted.
fn syntax_error(text: &[u8], error: &serde_json::Error) -> ConfigError {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    let reason = words.split(" at line ").next().unwrap_or_default().to_owned();
    let source = text.split(|b| *b == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    ConfigError::Syntax { line, column: column_before_quoting(source, column), reason }
}

/// The column of `line` that `quoted` is in the same line with its keys quoted.
fn column_before_quoting(line: &[u8], quoted: usize) -> usize {
    // A key may open the line: what came before it, on the line above, was a brace or a comma.
    let led = [b",", line].concat();
    let quoted_line = quote_integer_keys(&led);
    let (mut column, mut added) = (0, 0);
    for byte in quoted_line.iter().skip(1).take(quoted) {
        if line.get(column) == Some(byte) { column += 1 } else { added += 1 }
    }
    quoted - added
}

struct Writer<'a> {
    dialect: Dialect,
    /// The member of the file that is being written.
    member: &'a str,
    out: String,
}

impl<'a> Writer<'a> {
    fn value(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Number(n) => self.out.push_str(&n.to_string()),
            Value::String(s) => self.string(s),
            Value::Array(items) => self.array(items, depth),
            Value::Object(map) => self.map(map, depth),
        }
    }

    fn map(&mut self, map: &'a Map<String, Value>, depth: usize) {
        if map.is_empty() {
            return self.empty_map(depth);
        }
        let bare = matches!(self.member, "offsetTable" | "table") && map.keys().all(|key| is_integer(key));
        self.out.push('{');
        for (i, (key, value)) in map.iter().enumerate() {
            self.comma(i);
            if !bare || self.dialect == Dialect::Fastjson2 {
                self.line(depth + 1);
            }
            if depth == 0 {
                self.member = key;
            }
            if bare {
                self.out.push_str(key)
            } else {
                self.string(key)
            }
            self.out.push(':');
            self.value(value, depth + 1);
        }
        self.line(depth);
        self.out.push('}');
    }

    fn empty_map(&mut self, depth: usize) {
        self.out.push('{');
        if self.dialect == Dialect::Fastjson2 {
            self.line(depth + 1);
            self.line(depth);
        }
        self.out.push('}');
    }

    fn array(&mut self, items: &'a [Value], depth: usize) {
        let lines = !items.is_empty()
            && match self.dialect {
                Dialect::Fastjson1 => self.member == "table",
                Dialect::Fastjson2 => !items.iter().all(Value::is_number),
            };
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.comma(i);
            if lines {
                self.line(depth + 1);
            }
            self.value(item, depth + usize::from(lines));
        }
        if lines {
            self.line(depth);
        }
        self.out.push(']');
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\u{8}' => self.out.push_str("\\b"),
                '\t' => self.out.push_str("\\t"),
                '\n' => self.out.push_str("\\n"),
                '\u{c}' => self.out.push_str("\\f"),
                '\r' => self.out.push_str("\\r"),
                c => self.char(c),
            }
        }
        self.out.push('"');
    }

    /// A character without a short escape.
    fn char(&mut self, c: char) {
        let escape = match (self.dialect, c) {
            (Dialect::Fastjson1, '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}') => {
                write!(self.out, "\\u{:04X}", u32::from(c))
            }
            (Dialect::Fastjson2, '\0'..='\u{1F}') => write!(self.out, "\\u{:04x}", u32::from(c)),
            _ => self.out.write_char(c),
        };
        debug_assert!(escape.is_ok(), "a string takes all");
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n('\t', depth));
    }
}

/// As Java prints one: no plus sign, no leading zero.
fn is_integer(key: &str) -> bool {
    key.parse::<i64>().is_ok_and(|number| number.to_string() == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{Fastjson1, Fastjson2};

    /// Files of brokers of 4.9.4 and 5.3.3, shortened, but for consumerOrderInfo: from fastjson 1.2.69 itself.
    const FASTJSON1: [&str; 7] = [
        "{\n\t\"offsetTable\":{1:6,2:6,3:20,4:20\n\t}\n}",
        "{\n\t\"offsetTable\":{}\n}",
        "{\n\t\"offsetTable\":{\n\t\t\"%RETRY%g@g\":{0:0\n\t\t},\n\t\t\"fx_tx@fx_g_tx\":{0:2,1:2\n\t\t}\n\t}\n}",
        "{\n\t\"filterDataByTopic\":{\n\t\t\"12\":{\n\t\t\t\"groupFilterData\":{\n\t\t\t\t\"fx_sql\":{\n\t\t\t\t\t\
         \"bloomFilterData\":{\n\t\t\t\t\t\t\"bitNum\":112,\n\t\t\t\t\t\t\"bitPos\":[68,99,18]\n\t\t\t\t\t},\
         \n\t\t\t\t\t\"dead\":true,\n\t\t\t\t\t\"expression\":\"a > 0 AND color IS NOT NULL\"\n\t\t\t\t}\
         \n\t\t\t},\n\t\t\t\"topic\":\"12\"\n\t\t}\n\t}\n}",
        "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1795232018211\n\t},\n\t\
         \"groupTopicMap\":{\n\t\t\"fy_failing\":[\"fy_retry\",\"%RETRY%fy_failing\"]\n\t},\n\t\"offsetTable\":{\n\t\t\
         \"fy_retry@fy_failing\":{0:7,1:6,2:7\n\t\t}\n\t}\n}",
        "{\n\t\"table\":{\n\t\t\"t@g\":{0:{\n\t\t\t\t\"o\":[\n\t\t\t\t\t1,\n\t\t\t\t\t2\n\t\t\t\t],\
         \n\t\t\t\t\"oc\":{5:1\n\t\t\t\t}\n\t\t\t},3:{\n\t\t\t\t\"o\":[]\n\t\t\t}\n\t\t}\n\t}\n}",
        "{\n\t\"other\":{\n\t\t\"k\":[{\n\t\t\t\"y\":\"1\",\n\t\t\t\"z\":1\n\t\t},{\n\t\t\t\"z\":1\n\t\t}]\n\t}\n}",
    ];

    /// Files of a broker of 5.4.0, shortened; those with entries from its fastjson2 itself.
    const FASTJSON2: [&str; 4] = [
        "{\n\t\"orderedConsumptionLevel\":\"QUEUE\",\n\t\"table\":{\n\t\t\n\t}\n}",
        "{\n\t\"groupTopicMap\":{\n\t\t\"g\":[\n\t\t\t\"q\",\n\t\t\t\"r\"\n\t\t]\n\t},\
         \n\t\"offsetTable\":{\n\t\t\"t@g\":{\n\t\t\t0:5,\n\t\t\t1:7\n\t\t}\n\t}\n}",
        "{\n\t\"offsetTable\":{\n\t\t1:6,\n\t\t2:7\n\t}\n}",
        "{\n\t\"table\":{\n\t\t\"t@g\":{\n\t\t\t0:{\n\t\t\t\t\"o\":[1,2],\n\t\t\t\t\
         \"oc\":{\n\t\t\t\t\t5:1\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}",
    ];

    fn error(text: &str) -> String {
        parse(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn files_of_real_brokers_are_written_byte_for_byte_as_read() {
        for (dialect, texts) in [(Fastjson1, &FASTJSON1[..]), (Fastjson2, &FASTJSON2[..])] {
            for text in texts {
                let value = parse(text.as_bytes()).expect(text);
                assert_eq!(write(&value, dialect), *text);
                // Either dialect, and plain JSON, give the same value.
                assert_eq!(parse(to_fastjson(&value).as_bytes()).as_ref(), Ok(&value));
                assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
            }
        }
    }

    #[test]
    fn integer_keys_are_read_bare_and_quoted_and_nothing_in_a_string_is_touched() {
        let plain = serde_json::json!({"0": 5, "-1": {"7": [1, 2]}, "s": "{0:5,1:7}\\\"{2:3", "e": 1e3});
        let texts = [
            r#"{0:5,-1:{"7":[1,2]},"s":"{0:5,1:7}\\\"{2:3","e":1e3}"#,
            "{\t0 :5,\n-1\r:{ 7\n:[1,2]},\"s\":\"{0:5,1:7}\\\\\\\"{2:3\",\"e\":1e3}",
            r#"{"0":5,"-1":{"7":[1,2]},"s":"{0:5,1:7}\\\"{2:3","e":1e3}"#,
        ];
        for text in texts {
            assert_eq!(parse(text.as_bytes()), Ok(plain.clone()), "{text}");
        }
    }

    #[test]
    fn a_truncated_file_is_an_error_with_its_place_at_every_length() {
        for text in FASTJSON1.iter().chain(&FASTJSON2) {
            for len in 0..text.len() {
                assert!(matches!(parse(&text.as_bytes()[..len]), Err(ConfigError::Syntax { .. })), "{text} {len}");
            }
        }
        assert_eq!(error("{\n\t\"offsetTable\":{1:6,2:"), "line 2 column 22: EOF while parsing a value");
    }

    #[test]
    fn errors_tell_the_column_of_the_file_not_of_the_quoted_text() {
        assert_eq!(error("{\n1:6,22:7,x:8}"), "line 2 column 10: key must be a string");
        assert_eq!(error("{0:5,1:7}}"), "line 1 column 10: trailing characters");
        for text in
            ["[1:2]", "[0,1:2]", "{-:1}", "{1.5:1}", "{a:1}", "{0:5,}", "{'a':1}", "1:2", "", "\"\\", "{\"a\":1 2}"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_flipped_byte_is_another_number_or_an_error() {
        assert_eq!(parse(b"{0:5,1:7}").map(|value| value["1"].as_i64()), Ok(Some(7)));
        assert_eq!(parse(b"{0:5,1:6}").map(|value| value["1"].as_i64()), Ok(Some(6)));
        assert!(parse(b"{0:5,1;7}").is_err() && parse(b"{\"\xFF\":7}").is_err());
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |levels: usize| [b"{0:".repeat(levels), b"1".to_vec(), b"}".repeat(levels)].concat();
        assert!(parse(&nested(127)).is_ok());
        assert!(parse(&nested(100_000)).is_err_and(|e| e.to_string().ends_with("recursion limit exceeded")));
        assert_eq!(parse(&vec![b' '; MAX_LEN + 1]), Err(ConfigError::TooLong(MAX_LEN + 1)));
    }

    #[test]
    fn strings_are_escaped_as_by_each_fastjson() {
        let value = Value::from("x\u{1}\u{b}\u{7f}\u{85}\u{2028}é/\\\"\u{8}\u{c}\n\r\t<>&'😀");
        let old = r#""x\u0001\u000B\u007F\u0085\u2028é/\\\"\b\f\n\r\t<>&'😀""#;
        let new = "\"x\\u0001\\u000b\u{7f}\u{85}\u{2028}é/\\\\\\\"\\b\\f\\n\\r\\t<>&'😀\"";
        assert_eq!((to_fastjson(&value), write(&value, Fastjson2)), (old.to_owned(), new.to_owned()));
        assert_eq!((parse(old.as_bytes()), parse(new.as_bytes())), (Ok(value.clone()), Ok(value)));
    }

    #[test]
    fn topics_and_groups_named_by_integers_stay_quoted() {
        let value = serde_json::json!({"topicConfigTable": {"12": {"perm": 6}}, "forbiddenTable": {"1": {"2": 3}}});
        let text = to_fastjson(&value);
        assert!(text.contains("\t\"12\":{\n") && text.contains("\t\"1\":{\n\t\t\t\"2\":3\n"), "{text}");
    }
}
