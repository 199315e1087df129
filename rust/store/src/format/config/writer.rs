//! Writes JSON exactly as fastjson does, byte for byte.
use serde_json::{Map, Value};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Version 1 of fastjson, used by RocketMQ 4.9.4, and by 5.x up to 5.3.3.
    Fastjson1,
    Fastjson2,
}

/// Formats `value` exactly as RocketMQ does.
pub fn write(value: &Value, dialect: Dialect) -> String {
    let mut writer = Writer { dialect, member: "", out: String::new() };
    writer.value(value, 0);
    writer.out
}

struct Writer<'a> {
    dialect: Dialect,
    /// Name of the top-level member that is being written. It tells which maps have integer keys.
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
        // Java knows a map's type. Here only the member's name tells it.
        let bare = matches!(self.member, "offsetTable" | "table") && map.keys().all(|key| is_integer(key));
        self.out.push('{');
        for (i, (key, value)) in map.iter().enumerate() {
            self.comma(i);
            // fastjson 1 writes a map with integer keys on one line, and only its end on a new one.
            if !bare || self.dialect == Dialect::Fastjson2 {
                self.line(depth + 1);
            }
            // Only the top-level member tells the type of the maps below it.
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

    /// Writes a character that has no short escape.
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

/// Returns whether `key` is an integer in the form that Java prints, without a plus sign or leading zeroes.
fn is_integer(key: &str) -> bool {
    // A key such as `007` would change if Java read it as a number and wrote it again.
    key.parse::<i64>().is_ok_and(|number| number.to_string() == key)
}
