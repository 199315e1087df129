//! Parses usual JSON headers in one pass, several times faster than a general parser.
//!
//! For unusual or invalid headers it returns `None`, and [`json_header`](crate::json_header) parses them. Both parsers
//! give the same result for every header that both accept.
use crate::command::Command;
use crate::language::Language;
use memchr::memchr2;
use std::borrow::Cow;

/// Decodes a header. Returns `None` if the general parser must decode it.
pub fn decode(header: &[u8]) -> Option<Command<'_>> {
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

/// The state of decoding a header. Blanks between tokens count as unusual.
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

    /// Parses a string that has an escape. `before` is the part before the first escape, and the scan continues
    /// behind it.
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
    use crate::json_header::decode_any;
    use proptest::prelude::*;

    const SENT: &str = r#"{"code":310,"extFields":{"a":"g","b":"t\/","e":"0","i":"KEYS\u0001k\u0002TAGS\u0001\u6807"},"flag":0,"language":"JAVA","opaque":-7,"remark":"é","serializeTypeCurrentRPC":"JSON","version":401}"#;

    #[test]
    fn what_clients_send_is_read_here() {
        let command = super::decode(SENT.as_bytes()).expect("usual");
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
            if let Some(command) = super::decode(&bytes) {
                let general = decode_any(&bytes).ok();
                prop_assert_eq!(general.as_ref(), Some(&command));
            }
        }
    }
}
