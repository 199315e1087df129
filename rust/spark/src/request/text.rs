//! String functions that match Python's, so that errors and option values are the same in Python and in Rust.
use serde_json::Value;

/// Python's `str.strip()`: removes Unicode white space and the four ASCII separators.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

pub fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Python's `int(text)` for ASCII digits: allows white space around, a sign, and single underscores between digits.
///
/// The ASCII separators do not count as white space here.
pub fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_grouped = digits.split('_').all(|group| !group.is_empty() && is_digits(group));
    is_grouped.then(|| text.replace('_', "").parse().ok()).flatten()
}

pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Python's `repr` of a string.
pub fn quote(text: &str) -> String {
    // Python quotes with '"' only if that avoids an escape
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push(mark);
    out
}

/// Python's `json.dumps` of a string.
pub fn json_quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            // characters beyond 16 bits become two escapes
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out.push('"');
    out
}

/// Python's `repr` of a `bytes` object.
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mark = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{mark}");
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ if char::from(*byte) == mark => out.extend(['\\', mark]),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(mark);
    out
}

/// Python's `repr` of a list of strings.
pub fn quoted_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", texts.into_iter().map(quote).collect::<Vec<_>>().join(", "))
}

/// Python's `repr` of a parsed JSON value.
pub fn python_text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // an exponent has a sign in Python's form, and an integer is never shown as a float
        Value::Number(number) if number.is_f64() => float(&number.to_string()),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(python_text).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let parts: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", quote(key), python_text(value))).collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

/// Formats a float in Python's form: an exponent has a sign and two digits.
fn float(shown: &str) -> String {
    let Some((mantissa, exponent)) = shown.split_once('e') else { return shown.to_owned() };
    let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{:0>2}", digits.trim_start_matches('+'))
}

/// Python's `str.isprintable()`. A character is printable if `escape_debug` leaves it unchanged after an `a`. At the
/// start of a string, it would also escape combining marks.
fn is_printable(c: char) -> bool {
    let pair: String = ['a', c].iter().collect();
    c == '"' || c == '\'' || pair.escape_debug().eq(['a', c])
}

/// Returns up to three names of `known` that are most similar to `name`, ignoring case.
pub fn close<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let mut scored: Vec<(f64, String, &str)> = Vec::new();
    for candidate in known {
        let lower = candidate.to_lowercase();
        let letters: Vec<char> = lower.chars().collect();
        let ratio = 2.0 * matching(&letters, &name) as f64 / (letters.len() + name.len()).max(1) as f64;
        // the cutoff of `difflib.get_close_matches`, which finds Python's hints
        if ratio >= 0.6 {
            scored.push((ratio, lower, candidate));
        }
    }
    // same order as `heapq.nlargest` of pairs: among equal scores the name that sorts last comes first
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    scored.into_iter().take(3).map(|(_, _, candidate)| candidate).collect()
}

/// Returns `did you mean ...? `, or an empty string.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = close(name, known);
    if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) }
}

/// Counts equal characters as Python's `difflib` does: in the longest common block, and recursively to its left and
/// right.
fn matching(a: &[char], b: &[char]) -> usize {
    let (mut longest, mut at) = (0, (0, 0));
    for i in 0..a.len() {
        for j in 0..b.len() {
            let length = a[i..].iter().zip(&b[j..]).take_while(|(x, y)| x == y).count();
            // the first of the longest blocks, like `SequenceMatcher.find_longest_match`
            if length > longest {
                (longest, at) = (length, (i, j));
            }
        }
    }
    if longest == 0 {
        return 0;
    }
    longest + matching(&a[..at.0], &b[..at.1]) + matching(&a[at.0 + longest..], &b[at.1 + longest..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        for (text, number) in [("5", 5), ("+5", 5), (" -5\n", -5), ("1_000", 1000), ("\u{a0}007", 7)] {
            assert_eq!(integer(text), Some(number), "{text:?}");
        }
        for text in ["", "\x1f7", "_1", "1_", "1__0", "+", "+ 5", "++5", "0x10", "1.0", "9223372036854775808"] {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    #[test]
    fn texts_are_shown_as_python_shows_them() {
        let expected = ["'a'", "\"it's\"", "'\\'\"'", "'\\\\'", "'\\t\\x00\\xa0\\u200b'", "'é\u{301}'"];
        assert_eq!(["a", "it's", "'\"", "\\", "\t\0\u{a0}\u{200b}", "é\u{301}"].map(quote), expected);
        let bytes = [&b"a"[..], b"it's", b"'\"", b"\\", b"\t\0\xff"].map(quote_bytes);
        assert_eq!(bytes, ["b'a'", "b\"it's\"", "b'\\'\"'", "b'\\\\'", "b'\\t\\x00\\xff'"]);
        let value = serde_json::from_str(r#"{"a": [1, 1e22, 1e-7, 0.5, -0.0, true, null, "it's"]}"#).expect("JSON");
        assert_eq!(python_text(&value), r#"{'a': [1, 1e+22, 1e-07, 0.5, -0.0, True, None, "it's"]}"#);
    }

    #[test]
    fn the_likest_names_come_first() {
        assert_eq!(close("startOffsets", ["startingOffsets", "endingOffsets", "tags"]), ["startingOffsets"]);
        assert_eq!(close("TOPIK", ["topic", "path"]), ["topic"]);
        assert_eq!(hint("zzz", ["topic"]), "");
    }
}
