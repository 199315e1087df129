//! The files `config/*.json`. Brokers write them with fastjson, whose maps have bare integer keys: `{0:5,1:7}`.
//!
//! The parser reads JSON with bare or quoted integer keys. A bare key becomes a string in the value.
//! The writer reproduces a broker's file byte for byte:
//!
//! | | fastjson 1 (4.9.4, 5.3.3) | fastjson 2 (5.4.0) |
//! |---|---|---|
//! | indentation | tabs, no space after `:`, no last newline | the same |
//! | map with integer keys | `{0:5,1:7`, a new line, `}` | a line for each key |
//! | empty map | `{}` | `{`, a line of indentation, `}` |
//! | array | on one line; in `table` a line for each item | numbers on one line, else a line for each |
//! | control characters | `\u001F`; U+007F to U+009F, U+2028 and U+2029, too | `\u001f`; only those below U+0020 |
//!
//! Java knows from a map's type whether its keys are integers. Here a map has integer keys if all of its keys are integers and it belongs
//! to `offsetTable` or `table` (consumerOrderInfo.json). Members keep their order: RocketMQ sorts the fields of an object by name, and
//! leaves maps in hash order.
//! The files have no checksum: a flipped digit is another number. Like RocketMQ the parser takes the last of equal keys and skips a byte
//! order mark. It refuses what only fastjson accepts (zeroes behind the text, a comma before a brace, single quotes, fractions), since no
//! broker writes that.
//!
//! Source: `RemotingSerializable.toJson`, `ConfigManager.load`.
use memchr::memchr2;
use serde_json::Value;
use std::borrow::Cow;

mod shape;
mod writer;

pub use shape::{NAMES, check};
pub use writer::{Dialect, in_broker_order, write};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum length of a file in bytes. Java cannot hold a longer string.
pub const MAX_LEN: usize = i32::MAX as usize;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("expected a configuration of at most {MAX_LEN} bytes, got {0}")]
    TooLong(usize),
    /// The text is not JSON, even if bare integer keys are allowed, or is nested deeper than 127 levels.
    #[error("line {line} column {column}: {reason}")]
    Syntax {
        line: usize,
        /// Byte position in the line, from 1; 0 stands for the end of the line before.
        column: usize,
        reason: String,
    },
}

pub fn parse(text: &[u8]) -> Result<Value, ConfigError> {
    if text.len() > MAX_LEN {
        return Err(ConfigError::TooLong(text.len()));
    }
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    serde_json::from_slice(&quote_integer_keys(text)).map_err(|error| syntax_error(text, &error))
}

pub fn to_fastjson(value: &Value) -> String {
    write(value, Dialect::Fastjson1)
}

/// Quotes bare integer keys, which are numbers between `{` or `,` and `:`. Other deviations from JSON stay, for the parser to refuse.
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
                // Only behind a brace or comma: a number after a colon is a value.
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
    // Without bare keys the text needs no copy.
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

/// Returns whether `token` is an integer and a colon follows. A lone sign is not an integer.
fn is_key(token: &[u8], rest: &[u8]) -> bool {
    token.last().is_some_and(u8::is_ascii_digit) && rest.trim_ascii_start().first() == Some(&b':')
}

/// Returns the length of a string, closing quote included. `text` begins behind the opening quote. Without a closing
/// quote the string ends with `text`.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(mark) = memchr2(b'"', b'\\', &text[at..]) {
        at += mark + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // Skip the escaped character, which may be a quote.
        at = (at + 1).min(text.len());
    }
    text.len()
}

/// Converts the parser's error. The parser read the text with quoted keys, so the column is mapped back to the
/// original text.
fn syntax_error(text: &[u8], error: &serde_json::Error) -> ConfigError {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    let reason = words.split(" at line ").next().unwrap_or_default().to_owned();
    let source = text.split(|b| *b == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    ConfigError::Syntax { line, column: column_before_quoting(source, column), reason }
}

/// Maps a column of a line with quoted keys to the column in the original `line`.
fn column_before_quoting(line: &[u8], quoted: usize) -> usize {
    // A key may begin the line, after a brace or comma on the line before: prepend a comma so that such a key is quoted, too.
    let led = [b",", line].concat();
    let quoted_line = quote_integer_keys(&led);
    let (mut column, mut added) = (0, 0);
    for byte in quoted_line.iter().skip(1).take(quoted) {
        if line.get(column) == Some(byte) { column += 1 } else { added += 1 }
    }
    quoted - added
}

#[cfg(test)]
mod tests;
