//! The syntax of JSON: a cursor that reads the values of a body, and refuses whatever RFC 8259 does.
use super::values::{Checked, Fault};
use memchr::memchr2;
use std::borrow::Cow;

/// Maximum depth of objects and arrays in a body.
const MAX_DEPTH: usize = 128;

/// Checks that a body is one JSON object. The error is a reason for the user.
pub fn check(body: &[u8]) -> Result<(), String> {
    let check = |body| Cursor::new(body)?.document(|cursor| cursor.skip_object(0));
    check(body).map_err(|fault: Fault| fault.to_string())
}

/// A position in a body.
pub struct Cursor<'a> {
    text: &'a str,
    body: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(body: &'a [u8]) -> Checked<Self> {
        match str::from_utf8(body) {
            Ok(text) => Ok(Self { text, body, at: 0 }),
            Err(error) => Err(Fault::elsewhere(format!("expected UTF-8, got another byte at {}", error.valid_up_to()))),
        }
    }

    /// Reads the object that a body is, by `read`, up to the end of the body.
    pub fn document(&mut self, read: impl FnOnce(&mut Self) -> Checked) -> Checked {
        match self.next_byte() {
            Some(b'{') => read(self)?,
            _ => return self.fail("a JSON object"),
        }
        match self.next_byte() {
            None => Ok(()),
            Some(_) => self.fail("nothing behind the object"),
        }
    }

    /// Reads the object that begins here. `read` gets each key, and must read the value.
    #[inline]
    pub fn object(&mut self, depth: usize, mut read: impl FnMut(&mut Self, &str) -> Checked) -> Checked {
        self.enter(depth)?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.next_byte() != Some(b'"') {
                return self.fail("a key");
            }
            let key = self.string()?;
            if !self.take(b':') {
                return self.fail("':'");
            }
            read(self, &key)?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.fail("',' or '}'");
            }
        }
    }

    /// Reads the array that begins here. `read` must read an item.
    #[inline]
    pub fn array(&mut self, depth: usize, mut read: impl FnMut(&mut Self) -> Checked) -> Checked {
        self.enter(depth)?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            read(self)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.fail("',' or ']'");
            }
        }
    }

    /// Passes a value.
    pub fn skip(&mut self, depth: usize) -> Checked {
        match self.next_byte() {
            Some(b'"') => self.pass_string().map(drop),
            Some(b'{') => self.skip_object(depth),
            Some(b'[') => self.array(depth, |cursor| cursor.skip(depth + 1)),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => self.fail("a value"),
        }
    }

    fn skip_object(&mut self, depth: usize) -> Checked {
        self.object(depth, |cursor, _| cursor.skip(depth + 1))
    }

    /// Returns the position, for [`since`](Self::since).
    pub fn place(&self) -> usize {
        self.at
    }

    /// Returns what was read since a position, as it stands in the body.
    pub fn since(&self, place: usize) -> &'a str {
        &self.text[place..self.at]
    }

    fn enter(&mut self, depth: usize) -> Checked {
        if depth >= MAX_DEPTH {
            return self.fail("at most 128 levels");
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the string that begins here, without its escapes.
    #[inline]
    pub fn string(&mut self) -> Checked<Cow<'a, str>> {
        let start = self.at;
        let has_escapes = self.pass_string()?;
        let quoted = &self.text[start..self.at];
        if has_escapes {
            // The escapes were checked.
            serde_json::from_str(quoted).map(Cow::Owned).map_err(|error| Fault::elsewhere(error.to_string()))
        } else {
            Ok(Cow::Borrowed(&quoted[1..quoted.len() - 1]))
        }
    }

    /// Passes a string. Returns whether it has escapes.
    fn pass_string(&mut self) -> Checked<bool> {
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let rest = &self.body[self.at..];
            let len = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            // The minimum of all bytes, since this is faster than to stop at the first control character.
            if rest[..len].iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                self.at += rest.iter().position(|byte| *byte < b' ').unwrap_or(0);
                return self.fail("no control character in a string");
            }
            self.at += len;
            match rest.get(len) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escapes);
                }
                Some(_) => self.escape()?,
                None => return self.fail("the end of a string"),
            }
            has_escapes = true;
        }
    }

    fn escape(&mut self) -> Checked {
        let start = self.at;
        self.at += 2;
        match self.body.get(self.at - 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => match self.hex()? {
                // Half a character is no text: the other half must follow.
                0xD800..=0xDBFF if self.body[self.at..].starts_with(b"\\u") => {
                    self.at += 2;
                    match self.hex()? {
                        0xDC00..=0xDFFF => Ok(()),
                        _ => self.fail_at("a pair of surrogates", start),
                    }
                }
                0xD800..=0xDFFF => self.fail_at("a pair of surrogates", start),
                _ => Ok(()),
            },
            _ => self.fail_at("an escape", start),
        }
    }

    fn hex(&mut self) -> Checked<u32> {
        let digits = self.body.get(self.at..self.at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let Some(code) = digits.and_then(|d| str::from_utf8(d).ok()).and_then(|d| u32::from_str_radix(d, 16).ok())
        else {
            return self.fail("four hexadecimal digits");
        };
        self.at += 4;
        Ok(code)
    }

    /// Returns the number that begins here, as it stands in the body.
    #[inline]
    pub fn number(&mut self) -> Checked<&'a str> {
        let start = self.at;
        self.at += usize::from(self.body[self.at] == b'-');
        match self.body.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.body.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.body.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.body.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Checked {
        let len = self.body[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        if len == 0 { self.fail("a digit") } else { Ok(()) }
    }

    pub fn literal(&mut self, literal: &str) -> Checked {
        if self.body[self.at..].starts_with(literal.as_bytes()) {
            self.at += literal.len();
            return Ok(());
        }
        self.fail("a value")
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.next_byte() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Returns the next byte that is no space, without taking it.
    #[inline]
    pub fn next_byte(&mut self) -> Option<u8> {
        while let Some(byte) = self.body.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    pub fn fail<T>(&self, expected: &str) -> Checked<T> {
        self.fail_at(expected, self.at)
    }

    #[cold]
    fn fail_at<T>(&self, expected: &str, at: usize) -> Checked<T> {
        let got = self.text.get(at..).and_then(|rest| rest.chars().next());
        let got = got.map_or_else(|| "the end".to_owned(), |got| format!("{got:?}"));
        Err(Fault::elsewhere(format!("expected {expected} at byte {at}, got {got}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    fn reason(body: &str) -> String {
        check(body.as_bytes()).map_or_else(|reason| reason, |()| "fine".to_owned())
    }

    #[test]
    fn reasons_name_the_byte() {
        for (body, expected) in [
            ("", "expected a JSON object at byte 0, got the end"),
            (" [1]", "expected a JSON object at byte 1, got '['"),
            ("null", "expected a JSON object at byte 0, got 'n'"),
            ("{} {}", "expected nothing behind the object at byte 3, got '{'"),
            ("{}x", "expected nothing behind the object at byte 2, got 'x'"),
            ("{\"a\" 1}", "expected ':' at byte 5, got '1'"),
            ("{\"a\":1 \"b\":2}", "expected ',' or '}' at byte 7, got '\"'"),
            ("{\"a\":[1,]}", "expected a value at byte 8, got ']'"),
            ("{,}", "expected a key at byte 1, got ','"),
            ("{\"a\":01}", "expected ',' or '}' at byte 6, got '1'"),
            ("{\"a\":1.}", "expected a digit at byte 7, got '}'"),
            ("{\"a\":NaN}", "expected a value at byte 5, got 'N'"),
            ("{\"a\":\"\n\"}", "expected no control character in a string at byte 6, got '\\n'"),
            ("{\"a\":\"\\ud800\"}", "expected a pair of surrogates at byte 6, got '\\\\'"),
            ("{\"a\":\"\\x\"}", "expected an escape at byte 6, got '\\\\'"),
            ("{\"a\":\"é", "expected the end of a string at byte 8, got the end"),
        ] {
            assert_eq!(reason(body), expected, "{body}");
        }
        assert_eq!(check(b"{\"a\":\"\xff\"}").expect_err("no text"), "expected UTF-8, got another byte at 6");
    }

    #[test]
    fn depth_is_limited() {
        let nest = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(reason(&nest(MAX_DEPTH - 1)), "fine");
        assert!(reason(&nest(MAX_DEPTH)).starts_with("expected at most 128 levels at byte"));
        assert!(reason(&"{\"a\":".repeat(1 << 20)).starts_with("expected at most 128 levels"));
    }

    proptest! {
        /// serde_json is the reference. It has no rule for depth here, takes half a surrogate pair where it skips a text,
        /// and takes any value.
        #[test]
        fn what_passes_is_json(parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\n\"", "\"", "\\", "1", "-", "0", ".5", "e3", "E", "+", "true", "null", "fals",
            " ", "\t", "é", "{\"a\":1}", "\"k\":", "[1,2]", "{}", "\\u00e9",
        ]), 0..12)) {
            let body = format!("{{{}}}", parts.concat());
            let passes = check(body.as_bytes()).is_ok();
            let is_json = serde_json::from_str::<IgnoredAny>(&body).is_ok();
            prop_assert_eq!(passes, is_json, "{}", body);
        }
    }
}
