//! Splits an expression into tokens. The longest token wins, as in RocketMQ's JavaCC lexer.
//!
//! Source: `SelectorParser.jj` (tokens).
use crate::error::Error;
use std::fmt;

/// The RocketMQ version whose keywords apply. The versions differ in nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// RocketMQ 4.x: `CONTAINS`, `STARTSWITH` and `ENDSWITH` are ordinary names.
    V4,
    /// RocketMQ 5.x: `CONTAINS`, `STARTSWITH` and `ENDSWITH` are operators, so properties cannot have these names.
    #[default]
    V5,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'t> {
    Not,
    And,
    Or,
    Between,
    In,
    True,
    False,
    Null,
    Is,
    Contains,
    StartsWith,
    EndsWith,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Plus,
    Minus,
    Open,
    Comma,
    Close,
    Name(&'t str),
    /// Digits, with an optional `L`.
    Integer(&'t str),
    /// Digits with a point or an exponent.
    Decimal(&'t str),
    /// A string without its outer quotes. Doubled quotes inside the string are still doubled.
    Text(&'t str),
    End,
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(word) | Self::Integer(word) | Self::Decimal(word) => write!(f, "'{word}'"),
            Self::Text(text) => write!(f, "the string '{text}'"),
            Self::End => f.write_str("the end"),
            _ => f.write_str(WORDS.iter().find(|(_, kind)| kind == self).map_or("?", |(word, _)| word)),
        }
    }
}

/// All tokens with a fixed spelling. The keywords of 5.x come first, and `<>` and `<=` come before `<`.
const WORDS: [(&str, Kind<'static>); 23] = [
    ("CONTAINS", Kind::Contains),
    ("STARTSWITH", Kind::StartsWith),
    ("ENDSWITH", Kind::EndsWith),
    ("NOT", Kind::Not),
    ("AND", Kind::And),
    ("OR", Kind::Or),
    ("BETWEEN", Kind::Between),
    ("IN", Kind::In),
    ("TRUE", Kind::True),
    ("FALSE", Kind::False),
    ("NULL", Kind::Null),
    ("IS", Kind::Is),
    ("<>", Kind::NotEqual),
    ("<=", Kind::LessOrEqual),
    (">=", Kind::GreaterOrEqual),
    ("<", Kind::Less),
    (">", Kind::Greater),
    ("=", Kind::Equal),
    ("+", Kind::Plus),
    ("-", Kind::Minus),
    ("(", Kind::Open),
    (",", Kind::Comma),
    (")", Kind::Close),
];
const WORDS_OF_V5: usize = 3;

/// Reads tokens on demand. Text behind the end of the expression is never read, so it may be invalid.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    dialect: Dialect,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str, dialect: Dialect) -> Self {
        Self { text, at: 0, dialect }
    }

    /// Returns the next token. At the end returns [`Kind::End`], however often it is called.
    pub(super) fn token(&mut self) -> Result<Token<'t>, Fault> {
        // Blanks and comments only separate tokens.
        while let Some(blank) = blank_len(&self.text[self.at..]) {
            self.at += blank;
        }
        let rest = &self.text[self.at..];
        let (kind, len) = self.longest(rest)?;
        let at = self.at;
        self.at += len;
        Ok(Token { kind, at })
    }

    fn longest(&self, rest: &'t str) -> Result<(Kind<'t>, usize), Fault> {
        let Some(first) = rest.bytes().next() else { return Ok((Kind::End, 0)) };
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => Ok(word(rest, self.dialect)),
            // A decimal may begin with its point.
            b'0'..=b'9' | b'.' => number(rest).ok_or_else(|| self.unexpected_character(rest)),
            b'\'' => string(rest).ok_or_else(|| Fault::new(self.at, "string without a closing quote")),
            _ => symbol(rest).ok_or_else(|| self.unexpected_character(rest)),
        }
    }

    fn unexpected_character(&self, rest: &str) -> Fault {
        let Some(character) = rest.chars().next() else { return Fault::new(self.at, "unexpected end") };
        let hint = match character {
            '!' => "; not equal is written <>",
            '"' => "; strings stand in single quotes",
            '.' => "; names hold no dots",
            _ => "",
        };
        Fault::new(self.at, format!("unexpected character {character:?}{hint}"))
    }
}

/// Returns the length of the blank or comment at the start of `rest`, or `None`.
fn blank_len(rest: &str) -> Option<usize> {
    match rest.as_bytes() {
        [b' ' | b'\t' | b'\n' | b'\r' | 0x0C, ..] => Some(1),
        // Without an end of line this is no comment but two minus signs, as in RocketMQ's lexer.
        [b'-', b'-', ..] => rest.find(['\n', '\r']).map(|end| end + 1),
        [b'/', b'*', ..] => rest[2..].find("*/").map(|end| end + 4),
        _ => None,
    }
}

fn word(rest: &str, dialect: Dialect) -> (Kind<'_>, usize) {
    let len = prefix_len(rest, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$');
    let name = &rest[..len];
    (keyword(name, dialect).unwrap_or(Kind::Name(name)), len)
}

fn keyword(name: &str, dialect: Dialect) -> Option<Kind<'static>> {
    let words = if dialect == Dialect::V5 { &WORDS[..] } else { &WORDS[WORDS_OF_V5..] };
    // Keywords ignore case, as in RocketMQ's grammar.
    words.iter().find(|(word, _)| word.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
}

fn number(rest: &str) -> Option<(Kind<'_>, usize)> {
    let digits = prefix_len(rest, |b| b.is_ascii_digit());
    match decimal_len(rest, digits) {
        Some(len) => Some((Kind::Decimal(&rest[..len]), len)),
        None => integer_len(rest, digits).map(|len| (Kind::Integer(&rest[..len]), len)),
    }
}

/// Returns the length of a decimal such as `5.`, `.5`, `5.5E-3` or `5e3`. Unlike an integer, a decimal may have leading
/// zeros. Returns `None` if `rest` does not begin with a decimal.
fn decimal_len(rest: &str, digits: usize) -> Option<usize> {
    let point = rest[digits..].starts_with('.');
    let fraction = if point { prefix_len(&rest[digits + 1..], |b| b.is_ascii_digit()) } else { 0 };
    if digits + fraction == 0 {
        return None;
    }
    let mantissa = digits + usize::from(point) + fraction;
    match exponent_len(&rest[mantissa..]) {
        Some(exponent) => Some(mantissa + exponent),
        None => point.then_some(mantissa),
    }
}

fn exponent_len(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix(['e', 'E'])?;
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    let len = prefix_len(digits, |b| b.is_ascii_digit());
    // Without digits the `e` is not part of the number.
    (len > 0).then(|| rest.len() - digits.len() + len)
}

/// Returns the length of an integer, or `None`. An integer is `0`, or digits that do not begin with 0, followed by an
/// optional `L`.
fn integer_len(rest: &str, digits: usize) -> Option<usize> {
    match rest.as_bytes() {
        // The grammar has no integers with leading zeros, so `007` is three tokens.
        [b'0', ..] => Some(1),
        bytes if digits > 0 => Some(digits + usize::from(matches!(bytes.get(digits), Some(b'l' | b'L')))),
        _ => None,
    }
}

/// Reads the longest string in quotes. A doubled quote continues the string, unless no closing quote follows.
fn string(rest: &str) -> Option<(Kind<'_>, usize)> {
    let bytes = rest.as_bytes();
    let mut from = 1;
    let mut closed = None;
    while let Some(quote) = memchr::memchr(b'\'', &bytes[from..]) {
        let end = from + quote;
        closed = Some(end);
        // A single quote ends the string. After a doubled quote a later quote may end it.
        if bytes.get(end + 1) != Some(&b'\'') {
            break;
        }
        from = end + 2;
    }
    closed.map(|end| (Kind::Text(&rest[1..end]), end + 1))
}

fn symbol(rest: &str) -> Option<(Kind<'_>, usize)> {
    // Finds symbols only, since `rest` does not begin with a letter here.
    WORDS.iter().find(|(word, _)| rest.starts_with(word)).map(|(word, kind)| (*kind, word.len()))
}

fn prefix_len(rest: &str, is_part: impl Fn(u8) -> bool) -> usize {
    rest.bytes().position(|b| !is_part(b)).unwrap_or(rest.len())
}

/// The reason why an expression does not compile, without the expression.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }

    /// Returns the error for the expression `text`.
    pub(super) fn of(self, text: &str) -> Error {
        let position = text[..self.at].chars().count();
        Error::Expression { expression: text.to_owned(), position, reason: self.reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        let mut lexer = Lexer::new(text, Dialect::V5);
        let mut kinds = Vec::new();
        loop {
            match lexer.token().expect("legal tokens").kind {
                Kind::End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    #[test]
    fn numbers_are_cut_where_java_cuts_them() {
        use Kind::{Decimal, Integer, Name};
        assert_eq!(kinds("007"), [Integer("0"), Integer("0"), Integer("7")]);
        assert_eq!(kinds("00.5 5. .5 5e2 1.5E-3"), ["00.5", "5.", ".5", "5e2", "1.5E-3"].map(Decimal));
        assert_eq!(kinds("5L 0L"), [Integer("5L"), Integer("0"), Name("L")]);
        assert_eq!(kinds("1e 1.e 0x1"), [Integer("1"), Name("e"), Decimal("1."), Name("e"), Integer("0"), Name("x1")]);
    }

    #[test]
    fn a_doubled_quote_stays_inside_the_string() {
        assert_eq!(kinds("'it''s' ''"), [Kind::Text("it''s"), Kind::Text("")]);
        let mut lexer = Lexer::new("'a''b", Dialect::V5);
        assert_eq!(lexer.token().expect("the closed part").kind, Kind::Text("a"));
        assert!(lexer.token().is_err());
    }

    #[test]
    fn two_minus_signs_comment_only_up_to_an_end_of_line() {
        assert_eq!(kinds("a --b\nc"), [Kind::Name("a"), Kind::Name("c")]);
        assert_eq!(kinds("a --b"), [Kind::Name("a"), Kind::Minus, Kind::Minus, Kind::Name("b")]);
        assert_eq!(kinds("a /* * / **/ c"), [Kind::Name("a"), Kind::Name("c")]);
    }

    #[test]
    fn keywords_ignore_case_and_names_do_not_end_in_them() {
        assert_eq!(kinds("Not nOTE $in"), [Kind::Not, Kind::Name("nOTE"), Kind::Name("$in")]);
        let mut old = Lexer::new("contains", Dialect::V4);
        assert_eq!(old.token().expect("a name").kind, Kind::Name("contains"));
    }

    #[test]
    fn foreign_characters_name_themselves() {
        for (text, word) in [("a != 1", "<>"), ("\"a\"", "single"), ("日", "日"), ("/* a", "/")] {
            let mut lexer = Lexer::new(text, Dialect::V5);
            let fault = loop {
                match lexer.token() {
                    Ok(token) => assert!(token.kind != Kind::End, "{text}"),
                    Err(fault) => break fault,
                }
            };
            assert!(fault.reason.contains(word), "{}", fault.reason);
        }
    }
}
