//! Schemas as text, in the form of Spark's DDL: `id bigint, customer struct<id: string>, amount decimal(10,2)`.
use super::fields::MAX_DEPTH;
use crate::{Error, Result};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use std::fmt::Write;
use std::sync::Arc;

/// Zone of `timestamp`, as the columns of a scan have it.
pub const UTC: &str = "UTC";
/// Maximum length of a text in bytes.
const MAX_LEN: usize = 1 << 20;
/// Names of types without arguments, for errors.
const TYPES: &str = "a type (boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, binary, date, \
                     timestamp, timestamp_ntz, array<>, map<,>, struct<>)";

/// Parses a text into the fields of a struct.
pub fn parse(text: &str) -> Result<Fields> {
    if text.len() > MAX_LEN {
        let got = format!("{} bytes", text.len());
        return Err(Error::invalid("schema", format!("DDL of at most {MAX_LEN} bytes"), got));
    }
    let mut parser = Parser { text, at: 0 };
    let fields = parser.fields(None, 0)?;
    Ok(fields.into())
}

/// Returns the text of fields, which [`parse`] reads. Types that DDL does not have are errors.
pub fn print(fields: &Fields) -> Result<String> {
    let mut out = String::new();
    print_fields(fields, " ", &mut out)?;
    Ok(out)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Parses fields up to `end`, or up to the end of the text.
    fn fields(&mut self, end: Option<char>, depth: usize) -> Result<Vec<FieldRef>> {
        let mut fields = Vec::new();
        loop {
            let name = self.name()?;
            if fields.iter().any(|field: &FieldRef| *field.name() == name) {
                return Err(Error::invalid(
                    "schema",
                    "each field once",
                    format!("{name} again before {}", self.place()),
                ));
            }
            self.take(':');
            let data_type = self.data_type(depth)?;
            let is_nullable = !self.not_null()?;
            self.comment()?;
            fields.push(Arc::new(Field::new(name, data_type, is_nullable)));
            if self.take(',') {
                continue;
            }
            match end {
                Some(end) if self.take(end) => return Ok(fields),
                None if self.is_at_end() => return Ok(fields),
                Some(end) => return self.fail(&format!("',' or '{end}'")),
                None => return self.fail("',' or the end"),
            }
        }
    }

    fn data_type(&mut self, depth: usize) -> Result<DataType> {
        if depth >= MAX_DEPTH {
            return self.fail(&format!("at most {MAX_DEPTH} levels"));
        }
        let start = self.at;
        let word = self.word().to_ascii_lowercase();
        Ok(match word.as_str() {
            "boolean" => DataType::Boolean,
            "tinyint" | "byte" => DataType::Int8,
            "smallint" | "short" => DataType::Int16,
            "int" | "integer" => DataType::Int32,
            "bigint" | "long" => DataType::Int64,
            "float" | "real" => DataType::Float32,
            "double" => DataType::Float64,
            "string" => DataType::Utf8,
            "binary" => DataType::Binary,
            "date" => DataType::Date32,
            "timestamp" | "timestamp_ltz" => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "array" => {
                self.expect('<')?;
                let item = self.data_type(depth + 1)?;
                self.expect('>')?;
                DataType::List(Arc::new(Field::new("item", item, true)))
            }
            "map" => {
                self.expect('<')?;
                let key = self.data_type(depth + 1)?;
                self.expect(',')?;
                let value = self.data_type(depth + 1)?;
                self.expect('>')?;
                map_of(key, value)
            }
            "struct" => {
                self.expect('<')?;
                DataType::Struct(self.fields(Some('>'), depth + 1)?.into())
            }
            _ => {
                self.at = start;
                return self.fail(TYPES);
            }
        })
    }

    fn decimal(&mut self) -> Result<DataType> {
        if !self.take('(') {
            return Ok(DataType::Decimal128(10, 0));
        }
        let precision = self.number(1, 38)?;
        let scale = if self.take(',') { self.number(0, precision)? } else { 0 };
        self.expect(')')?;
        Ok(DataType::Decimal128(precision, scale as i8))
    }

    fn number(&mut self, least: u8, most: u8) -> Result<u8> {
        self.skip_spaces();
        let start = self.at;
        match self.word().parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => {
                self.at = start;
                self.fail(&format!("a number from {least} to {most}"))
            }
        }
    }

    /// Parses a name, which is a word, or any text in backticks. Two backticks within stand for one.
    fn name(&mut self) -> Result<String> {
        self.skip_spaces();
        if !self.rest().starts_with('`') {
            let word = self.word();
            return if word.is_empty() { self.fail("the name of a field") } else { Ok(word.to_owned()) };
        }
        let start = self.at;
        match self.quoted('`') {
            Some(name) if !name.is_empty() => Ok(name),
            _ => {
                self.at = start;
                self.fail("a name between backticks")
            }
        }
    }

    fn not_null(&mut self) -> Result<bool> {
        if !self.take_word("not") {
            return Ok(false);
        }
        if self.take_word("null") { Ok(true) } else { self.fail("NULL") }
    }

    /// Skips `COMMENT 'text'`.
    fn comment(&mut self) -> Result<()> {
        if self.take_word("comment") {
            self.skip_spaces();
            let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
            if self.quoted(quote).is_none() {
                return self.fail("a text in quotes");
            }
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut rest = self.rest().strip_prefix(quote)?;
        let mut text = String::new();
        loop {
            let end = rest.find(quote)?;
            text.push_str(&rest[..end]);
            rest = &rest[end + quote.len_utf8()..];
            match rest.strip_prefix(quote) {
                Some(behind) => {
                    text.push(quote);
                    rest = behind;
                }
                None => {
                    self.at = self.text.len() - rest.len();
                    return Some(text);
                }
            }
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let start = self.at;
        let is_there = self.word().eq_ignore_ascii_case(word);
        if !is_there {
            self.at = start;
        }
        is_there
    }

    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn expect(&mut self, expected: char) -> Result<()> {
        if self.take(expected) { Ok(()) } else { self.fail(&format!("'{expected}'")) }
    }

    fn take(&mut self, expected: char) -> bool {
        self.skip_spaces();
        let is_there = self.rest().starts_with(expected);
        self.at += if is_there { expected.len_utf8() } else { 0 };
        is_there
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_spaces();
        self.at == self.text.len()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn place(&self) -> String {
        format!("position {}", self.text[..self.at].chars().count())
    }

    fn fail<T>(&mut self, expected: &str) -> Result<T> {
        self.skip_spaces();
        let word: String = self.rest().chars().take_while(|c| c.is_alphanumeric()).take(30).collect();
        let got = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(c) if word.is_empty() => format!("'{c}'"),
            Some(_) => format!("'{word}'"),
        };
        Err(Error::invalid("schema", expected, format!("{got} at {}", self.place())))
    }
}

/// Returns the type of a map, with the names of fields that the column `properties` has.
pub fn map_of(key: DataType, value: DataType) -> DataType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

fn print_fields(fields: &Fields, between: &str, out: &mut String) -> Result<()> {
    for (i, field) in fields.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        let name = field.name();
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let _ = if is_word { write!(out, "{name}") } else { write!(out, "`{}`", name.replace('`', "``")) };
        out.push_str(between);
        print_type(field.data_type(), out)?;
        out.push_str(if field.is_nullable() { "" } else { " NOT NULL" });
    }
    Ok(())
}

fn print_type(data_type: &DataType, out: &mut String) -> Result<()> {
    let name = match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        DataType::Decimal128(precision, scale) => {
            let _ = write!(out, "decimal({precision},{scale})");
            return Ok(());
        }
        DataType::List(item) => {
            out.push_str("array<");
            print_type(item.data_type(), out)?;
            ">"
        }
        DataType::Struct(fields) => {
            out.push_str("struct<");
            print_fields(fields, ": ", out)?;
            ">"
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return unprintable(data_type) };
            let [key, value] = &pair[..] else { return unprintable(data_type) };
            out.push_str("map<");
            print_type(key.data_type(), out)?;
            out.push_str(", ");
            print_type(value.data_type(), out)?;
            ">"
        }
        other => return unprintable(other),
    };
    out.push_str(name);
    Ok(())
}

fn unprintable<T>(data_type: &DataType) -> Result<T> {
    Err(Error::invalid("schema", "types that DDL has", data_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> String {
        parse(text).expect_err("refused").to_string()
    }

    #[test]
    fn a_text_of_all_types_is_printed_as_it_was() {
        let text = "id bigint NOT NULL, customer struct<id: string, tags: array<string>>, at timestamp, local timestamp_ntz, \
                    props map<string, string>, amount decimal(10,2), a boolean, b tinyint, c smallint, d int, e float, \
                    f double, g binary, h date, `odd name` string, `tick``s` array<struct<n: int>>";
        assert_eq!(print(&parse(text).expect("parsed")).expect("printed"), text);
    }

    #[test]
    fn other_spellings_are_read() {
        let fields =
            parse("  a:INT not null comment 'it''s', b DEC, c Numeric( 5 ), d STRUCT<x LONG>").expect("parsed");
        let text = "a int NOT NULL, b decimal(10,0), c decimal(5,0), d struct<x: bigint>";
        assert_eq!(print(&fields).expect("printed"), text);
    }

    #[test]
    fn errors_name_the_position() {
        assert_eq!(refused(""), "schema: expected the name of a field, got the end at position 0");
        assert_eq!(refused("é strng"), format!("schema: expected {TYPES}, got 'strng' at position 2"));
        assert_eq!(refused("a int b int"), "schema: expected ',' or the end, got 'b' at position 6");
        assert_eq!(refused("a array<int"), "schema: expected '>', got the end at position 11");
        assert_eq!(refused("a struct<b: int;"), "schema: expected ',' or '>', got ';' at position 15");
        assert_eq!(refused("a decimal(39,0)"), "schema: expected a number from 1 to 38, got '39' at position 10");
        assert_eq!(refused("a decimal(5,6)"), "schema: expected a number from 0 to 5, got '6' at position 12");
        assert_eq!(refused("`a int"), "schema: expected a name between backticks, got '`' at position 0");
        assert_eq!(refused("a int, a int"), "schema: expected each field once, got a again before position 8");
        let deep = format!("a {}int{}", "array<".repeat(10_000), ">".repeat(10_000));
        assert!(refused(&deep).contains(&format!("expected at most {MAX_DEPTH} levels")), "{}", refused(&deep));
        assert!(refused(&" ".repeat(MAX_LEN + 1)).contains("expected DDL of at most"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(a|int|`|<|>|struct|array|map|:|,|\\(|decimal|é| |5){0,30}") {
            if let Ok(fields) = parse(&text) {
                let printed = print(&fields).expect("printed");
                prop_assert_eq!(parse(&printed).expect("parsed"), fields);
            }
        }
    }
}
