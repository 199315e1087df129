//! Checks that a body is one JSON object. arrow-json takes commas for spaces, reads on behind the first object, and cuts
//! fractions off integers, so it only gets bodies that pass.
use arrow_schema::{DataType, Fields};
use memchr::memchr2;

/// Maximum depth of objects and arrays in a body.
const MAX_DEPTH: usize = 128;

/// The parts of a schema that the check needs: the integers, and the way to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A part without integers.
    Other,
    Integer,
    /// Fields that have integers, sorted by name.
    Object(Vec<(String, Shape)>),
    /// An array, or the values of a map.
    Items(Box<Shape>),
}

impl Shape {
    pub fn of(fields: &Fields) -> Self {
        let mut inner: Vec<_> = fields.iter().map(|f| (f.name().clone(), Self::of_type(f.data_type()))).collect();
        inner.retain(|(_, shape)| *shape != Self::Other);
        inner.sort_by(|a, b| a.0.cmp(&b.0));
        if inner.is_empty() { Self::Other } else { Self::Object(inner) }
    }

    fn of_type(data_type: &DataType) -> Self {
        let items = |shape| if shape == Self::Other { shape } else { Self::Items(Box::new(shape)) };
        match data_type {
            DataType::Struct(fields) => Self::of(fields),
            DataType::List(item) | DataType::LargeList(item) => items(Self::of_type(item.data_type())),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) => items(pair.get(1).map_or(Self::Other, |v| Self::of_type(v.data_type()))),
                _ => Self::Other,
            },
            other if other.is_integer() => Self::Integer,
            _ => Self::Other,
        }
    }

    fn of_key(&self, key: &[u8]) -> &Self {
        match self {
            Self::Object(fields) => match fields.binary_search_by(|(name, _)| name.as_bytes().cmp(key)) {
                Ok(at) => &fields[at].1,
                Err(_) => &Self::Other,
            },
            Self::Items(values) => values,
            _ => &Self::Other,
        }
    }
}

/// The expected value, and the byte where something else is.
struct Fault {
    expected: &'static str,
    at: usize,
}

type Checked<T = ()> = Result<T, Fault>;

/// The parts of a body, which bound the memory that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values and keys. An object or array counts twice, for its begin and its end.
    pub tokens: usize,
    /// Values in arrays.
    pub items: usize,
    /// Values in objects.
    pub members: usize,
}

/// Checks a body and counts its parts. The error is a reason for the user.
pub fn check(body: &[u8], shape: &Shape) -> Result<Counts, String> {
    if let Err(error) = std::str::from_utf8(body) {
        return Err(format!("expected UTF-8, got another byte at {}", error.valid_up_to()));
    }
    let mut check = Check { body, at: 0, counts: Counts::default() };
    check.document(shape).map(|()| check.counts).map_err(|Fault { expected, at }| {
        let got = match body.get(at..).and_then(|rest| str::from_utf8(rest).ok()).and_then(|rest| rest.chars().next()) {
            Some(got) => format!("{got:?}"),
            None if at < body.len() => format!("byte {:02x}", body[at]),
            None => "the end".to_owned(),
        };
        format!("expected {expected} at byte {at}, got {got}")
    })
}

struct Check<'a> {
    body: &'a [u8],
    at: usize,
    counts: Counts,
}

impl Check<'_> {
    fn document(&mut self, shape: &Shape) -> Checked {
        match self.next_byte() {
            Some(b'{') => self.object(shape, 0)?,
            _ => return self.fail("a JSON object"),
        }
        match self.next_byte() {
            None => Ok(()),
            Some(_) => self.fail("nothing behind the object"),
        }
    }

    fn value(&mut self, shape: &Shape, depth: usize) -> Checked {
        self.counts.tokens += 1;
        match self.next_byte() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(shape, depth),
            Some(b'[') => self.array(shape, depth),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(*shape == Shape::Integer),
            _ => self.fail("a value"),
        }
    }

    fn object(&mut self, shape: &Shape, depth: usize) -> Checked {
        self.enter(depth)?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.next_byte() != Some(b'"') {
                return self.fail("a key");
            }
            let start = self.at + 1;
            let has_escapes = self.string()?;
            let key = &self.body[start..self.at - 1];
            let inner = match shape {
                Shape::Other | Shape::Integer => &Shape::Other,
                _ if has_escapes => shape.of_key(unescaped(&self.body[start - 1..self.at]).as_bytes()),
                _ => shape.of_key(key),
            };
            self.counts.tokens += 1;
            self.counts.members += 1;
            if !self.take(b':') {
                return self.fail("':'");
            }
            self.value(inner, depth + 1)?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.fail("',' or '}'");
            }
        }
    }

    fn array(&mut self, shape: &Shape, depth: usize) -> Checked {
        self.enter(depth)?;
        if self.take(b']') {
            return Ok(());
        }
        let items = if let Shape::Items(items) = shape { items } else { &Shape::Other };
        loop {
            self.counts.items += 1;
            self.value(items, depth + 1)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.fail("',' or ']'");
            }
        }
    }

    fn enter(&mut self, depth: usize) -> Checked {
        self.counts.tokens += 1;
        if depth >= MAX_DEPTH {
            return self.fail("at most 128 levels");
        }
        self.at += 1;
        Ok(())
    }

    /// Passes a string. Returns whether it has escapes.
    fn string(&mut self) -> Checked<bool> {
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
                        _ => Err(Fault { expected: "a pair of surrogates", at: start }),
                    }
                }
                0xD800..=0xDFFF => Err(Fault { expected: "a pair of surrogates", at: start }),
                _ => Ok(()),
            },
            _ => Err(Fault { expected: "an escape", at: start }),
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

    fn number(&mut self, is_integer: bool) -> Checked {
        let start = self.at;
        self.at += usize::from(self.body[self.at] == b'-');
        match self.body.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        let whole_end = self.at;
        if self.body.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.body.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.body.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        if is_integer && self.at > whole_end && !is_whole(&self.body[start..self.at]) {
            return Err(Fault { expected: "a whole number", at: start });
        }
        Ok(())
    }

    fn digits(&mut self) -> Checked {
        let len = self.body[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        if len == 0 { self.fail("a digit") } else { Ok(()) }
    }

    fn literal(&mut self, literal: &[u8]) -> Checked {
        if self.body[self.at..].starts_with(literal) {
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
    fn next_byte(&mut self) -> Option<u8> {
        while let Some(byte) = self.body.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn fail<T>(&self, expected: &'static str) -> Checked<T> {
        Err(Fault { expected, at: self.at })
    }
}

/// Returns whether a number with a fraction or an exponent is whole, as `1.0` and `1e3` are. arrow-json reads such a number
/// as a double, so one that a double does not hold exactly is not taken.
fn is_whole(number: &[u8]) -> bool {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let number = str::from_utf8(number).ok().and_then(|number| number.parse::<f64>().ok());
    number.is_some_and(|number| number.fract() == 0.0 && number.abs() <= EXACT)
}

/// Returns a key without escapes. `quoted` was checked.
fn unescaped(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::ddl;
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    fn reason(body: &str, schema: &str) -> String {
        let shape = Shape::of(&ddl::parse(schema).expect("parsed"));
        check(body.as_bytes(), &shape).map_or_else(|reason| reason, |_| "fine".to_owned())
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
            assert_eq!(reason(body, "a int"), expected, "{body}");
        }
        assert_eq!(
            check(b"{\"a\":\"\xff\"}", &Shape::Other).expect_err("no text"),
            "expected UTF-8, got another byte at 6"
        );
    }

    #[test]
    fn integers_have_no_fraction() {
        for (body, schema, expected) in [
            (r#"{"a":1.5}"#, "a int", "expected a whole number at byte 5, got '1'"),
            (r#"{"a":1.5}"#, "a double", "fine"),
            (r#"{"a":1.0,"b":1e3,"c":1.5}"#, "a int, b int", "fine"),
            (r#"{"\u0061":1.5}"#, "a int", "expected a whole number at byte 10, got '1'"),
            (
                r#"{"a":[{"n":1},{"n":-0.5}]}"#,
                "a array<struct<n: bigint>>",
                "expected a whole number at byte 19, got '-'",
            ),
            (r#"{"a":{"x":1,"y":2.5}}"#, "a map<string, int>", "expected a whole number at byte 16, got '2'"),
            (r#"{"a":{"b":1.5}}"#, "b int", "fine"),
            (r#"{"a":1e17}"#, "a bigint", "expected a whole number at byte 5, got '1'"),
        ] {
            assert_eq!(reason(body, schema), expected, "{body}");
        }
    }

    #[test]
    fn parts_are_counted() {
        let counts = check(br#"{"a":[1,[2],{}],"b":{"c":null}}"#, &Shape::Other).expect("fine");
        assert_eq!(counts, Counts { tokens: 15, items: 4, members: 3 });
    }

    #[test]
    fn depth_is_limited() {
        let nest = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(reason(&nest(MAX_DEPTH - 1), "b int"), "fine");
        assert!(reason(&nest(MAX_DEPTH), "b int").starts_with("expected at most 128 levels at byte"));
        assert!(reason(&"{\"a\":".repeat(1 << 20), "a int").starts_with("expected at most 128 levels"));
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
            let passes = check(body.as_bytes(), &Shape::Other).is_ok();
            let is_json = serde_json::from_str::<IgnoredAny>(&body).is_ok();
            prop_assert_eq!(passes, is_json, "{}", body);
        }
    }
}
