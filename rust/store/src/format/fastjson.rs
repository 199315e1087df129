//! Writes strings and fractions of JSON as RocketMQ's fastjson does, in files and in bodies.
//!
//! Source: `SerializeWriter` of fastjson 1.2.69, `JSONWriter` of fastjson 2, `Double.toString`.
use std::fmt::Write;

/// Characters that are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// Those of fastjson 1: control characters, U+2028 and U+2029.
    Fastjson1,
    /// Those of fastjson 1 with `SerializerFeature.BrowserCompatible`: all that is not plain ASCII, and `/`.
    Browser,
    /// Those of fastjson 2: control characters below U+0020, with digits in lower case.
    Fastjson2,
}

/// Appends a string with its quotes.
pub fn write_text(text: &str, escapes: Escapes, out: &mut String) {
    out.push('"');
    write_letters(text, escapes, out);
    out.push('"');
}

/// Appends a string of UTF-16 units. One without its partner is escaped with [`Escapes::Browser`], else it becomes `?`,
/// as in Java.
pub fn write_units(units: impl Iterator<Item = u16>, escapes: Escapes, out: &mut String) {
    out.push('"');
    for letter in char::decode_utf16(units) {
        match letter {
            Ok(letter) => write_letters(letter.encode_utf8(&mut [0; 4]), escapes, out),
            Err(lone) if escapes == Escapes::Browser => write_escape(lone.unpaired_surrogate(), escapes, out),
            Err(_) => out.push('?'),
        }
    }
    out.push('"');
}

fn write_letters(text: &str, escapes: Escapes, out: &mut String) {
    let mut copied = 0;
    for (at, letter) in text.char_indices() {
        if is_escaped(letter, escapes) {
            // copies whole runs of letters that need no escape
            out.push_str(&text[copied..at]);
            copied = at + letter.len_utf8();
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write_escape(*unit, escapes, out);
            }
        }
    }
    out.push_str(&text[copied..]);
}

/// Appends the escape of a UTF-16 unit.
fn write_escape(unit: u16, escapes: Escapes, out: &mut String) {
    let short = match unit {
        0x08 => "\\b",
        0x09 => "\\t",
        0x0A => "\\n",
        0x0C => "\\f",
        0x0D => "\\r",
        0x22 => "\\\"",
        0x2F => "\\/",
        0x5C => "\\\\",
        _ => {
            let written = match escapes {
                Escapes::Fastjson2 => write!(out, "\\u{unit:04x}"),
                _ => write!(out, "\\u{unit:04X}"),
            };
            debug_assert!(written.is_ok(), "a string takes all");
            return;
        }
    };
    out.push_str(short);
}

fn is_escaped(letter: char, escapes: Escapes) -> bool {
    match letter {
        '"' | '\\' | '\0'..='\u{1F}' => true,
        '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' => escapes != Escapes::Fastjson2,
        '/' | '\u{A0}'.. => escapes == Escapes::Browser,
        _ => false,
    }
}

/// Returns a fraction as Java prints it, with its shortest digits. NaN and infinity become `null`, as in fastjson.
pub fn java_double(number: f64) -> String {
    if !number.is_finite() {
        return "null".into();
    }
    if number == 0.0 || (1e-3..1e7).contains(&number.abs()) {
        return format!("{number:?}");
    }
    // as `1.5e7`, or `1e7`
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}
