//! Schemas of Avro as a tree, and the check that a body is one record of it. arrow-avro reads on behind the record, takes
//! branches of unions that do not exist, and cannot be used after an error, so it only gets bodies that pass.
use super::fields::MAX_DEPTH;
use crate::{Error, Result};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum number of types in a schema, where a type that is named again counts again with all that it holds.
const MAX_TYPES: usize = 4096;
const UUID: &[u8] = b"00000000-0000-0000-0000-000000000000";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AvroType {
    Null,
    Boolean,
    Int,
    Long,
    Fixed(usize),
    Bytes,
    Text,
    Uuid,
    Enum(usize),
    Array(Box<AvroType>),
    Map(Box<AvroType>),
    Record(Vec<AvroType>),
    Union(Vec<AvroType>),
}

impl AvroType {
    /// Parses a schema. Fails for a type that is no record, that holds itself, or that has items without bytes, of which a
    /// few bytes could ask for billions.
    pub fn parse(text: &str) -> Result<Self> {
        let schema: Value = serde_json::from_str(text).map_err(|e| Error::invalid("schema", "an Avro schema", e))?;
        let mut names = Names { by_name: HashMap::new(), count: 0 };
        let parsed = names.parse(&schema, "", 0)?;
        match &parsed {
            Self::Record(fields) if fields.is_empty() => fail("a record with fields", &schema),
            Self::Record(_) if parsed.least_len() == 0 => fail("fields that take bytes", &schema),
            Self::Record(_) => Ok(parsed),
            _ => fail("a record", &schema),
        }
    }

    /// Returns the least length of an encoded value.
    fn least_len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Fixed(len) => *len,
            Self::Record(fields) => fields.iter().map(Self::least_len).sum(),
            _ => 1,
        }
    }

    /// Appends an encoded value, which stands in for a body that is null.
    pub fn write_placeholder(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Fixed(len) => out.resize(out.len() + len, 0),
            Self::Uuid => {
                out.push((UUID.len() * 2) as u8);
                out.extend_from_slice(UUID);
            }
            Self::Record(fields) => fields.iter().for_each(|field| field.write_placeholder(out)),
            Self::Union(branches) => {
                out.push(0);
                branches.iter().take(1).for_each(|branch| branch.write_placeholder(out));
            }
            Self::Boolean | Self::Int | Self::Long | Self::Bytes | Self::Text => out.push(0),
            Self::Enum(_) | Self::Array(_) | Self::Map(_) => out.push(0),
        }
    }

    /// Checks that a body is one value. Returns its number of items in arrays and maps. The error is a reason for the user.
    pub fn check(&self, body: &[u8]) -> std::result::Result<usize, String> {
        let mut check = Check { len: body.len(), rest: body, items: 0 };
        match check.value(self) {
            Ok(()) if check.rest.is_empty() => Ok(check.items),
            Ok(()) => Err(format!("expected the end at byte {}, got {} more", check.at(), check.rest.len())),
            Err(reason) => Err(reason),
        }
    }
}

struct Names {
    by_name: HashMap<String, AvroType>,
    count: usize,
}

impl Names {
    fn parse(&mut self, schema: &Value, namespace: &str, depth: usize) -> Result<AvroType> {
        self.note_types(1)?;
        if depth >= 2 * MAX_DEPTH {
            return Err(Error::invalid("schema", format!("at most {} levels", 2 * MAX_DEPTH), "more"));
        }
        match schema {
            Value::String(name) => self.of_name(name, namespace),
            Value::Array(branches) if branches.is_empty() => fail("a branch of a union", schema),
            Value::Array(branches) => {
                let parse = |branch| self.parse(branch, namespace, depth + 1);
                Ok(AvroType::Union(branches.iter().map(parse).collect::<Result<_>>()?))
            }
            Value::Object(object) => self.complex(object, schema, namespace, depth),
            _ => fail("a type", schema),
        }
    }

    fn of_name(&mut self, name: &str, namespace: &str) -> Result<AvroType> {
        Ok(match name {
            "null" => AvroType::Null,
            "boolean" => AvroType::Boolean,
            "int" => AvroType::Int,
            "long" => AvroType::Long,
            "float" => AvroType::Fixed(4),
            "double" => AvroType::Fixed(8),
            "bytes" => AvroType::Bytes,
            "string" => AvroType::Text,
            _ => {
                let known = self.by_name.get(&full_name(name, namespace)).or_else(|| self.by_name.get(name)).cloned();
                let Some(known) = known else {
                    return fail("a type that is defined before, and does not hold itself", &Value::from(name));
                };
                self.note_types(count(&known))?;
                known
            }
        })
    }

    fn complex(
        &mut self,
        object: &Map<String, Value>,
        schema: &Value,
        namespace: &str,
        depth: usize,
    ) -> Result<AvroType> {
        let name = object.get("type").and_then(Value::as_str);
        let inner =
            |key: &str| object.get(key).ok_or_else(|| Error::invalid("schema", format!("\"{key}\""), short(schema)));
        match name {
            Some("array") => self.items(inner("items")?, namespace, depth).map(|items| AvroType::Array(items.into())),
            Some("map") => {
                let values = self.parse(inner("values")?, namespace, depth + 1)?;
                Ok(AvroType::Map(Box::new(values)))
            }
            Some("fixed") => match inner("size")?.as_u64() {
                Some(size @ 1..=65_536) => self.define(object, namespace, AvroType::Fixed(size as usize)),
                _ => fail("a size from 1 to 65536", schema),
            },
            Some("enum") => match inner("symbols")?.as_array() {
                Some(symbols) if !symbols.is_empty() => self.define(object, namespace, AvroType::Enum(symbols.len())),
                _ => fail("symbols", schema),
            },
            Some("record") => {
                let Some(fields) = inner("fields")?.as_array() else { return fail("fields", schema) };
                let space = space_of(object, namespace);
                let mut parsed = Vec::with_capacity(fields.len());
                for field in fields {
                    let Some(field_type) = field.get("type") else { return fail("a field with a type", field) };
                    parsed.push(self.parse(field_type, &space, depth + 1)?);
                }
                self.define(object, namespace, AvroType::Record(parsed))
            }
            Some("string") if object.get("logicalType").and_then(Value::as_str) == Some("uuid") => Ok(AvroType::Uuid),
            Some(name) => self.of_name(name, namespace),
            None => match object.get("type") {
                Some(inner) => self.parse(inner, namespace, depth + 1),
                None => fail("a type", schema),
            },
        }
    }

    fn items(&mut self, items: &Value, namespace: &str, depth: usize) -> Result<AvroType> {
        let parsed = self.parse(items, namespace, depth + 1)?;
        if parsed.least_len() == 0 { fail("items that take bytes", items) } else { Ok(parsed) }
    }

    fn define(&mut self, object: &Map<String, Value>, namespace: &str, defined: AvroType) -> Result<AvroType> {
        let Some(name) = object.get("name").and_then(Value::as_str) else {
            return fail("a name", &Value::Object(object.clone()));
        };
        self.by_name.insert(full_name(name, &space_of(object, namespace)), defined.clone());
        Ok(defined)
    }

    fn note_types(&mut self, count: usize) -> Result<()> {
        self.count += count;
        if self.count > MAX_TYPES {
            return Err(Error::invalid("schema", format!("at most {MAX_TYPES} types"), "more"));
        }
        Ok(())
    }
}

fn count(avro: &AvroType) -> usize {
    1 + match avro {
        AvroType::Array(inner) | AvroType::Map(inner) => count(inner),
        AvroType::Record(inner) | AvroType::Union(inner) => inner.iter().map(count).sum(),
        _ => 0,
    }
}

/// Returns the namespace that applies within a named type.
fn space_of(object: &Map<String, Value>, around: &str) -> String {
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
    match (name.rsplit_once('.'), object.get("namespace").and_then(Value::as_str)) {
        (Some((space, _)), _) => space.to_owned(),
        (None, Some(space)) => space.to_owned(),
        (None, None) => around.to_owned(),
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn fail<T>(expected: &str, got: &Value) -> Result<T> {
    Err(Error::invalid("schema", expected, short(got)))
}

/// Returns a part of the schema as text, cut to a length that an error can have.
fn short(schema: &Value) -> String {
    let text = schema.to_string();
    let cut: String = text.chars().take(120).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

struct Check<'a> {
    len: usize,
    rest: &'a [u8],
    items: usize,
}

type Checked<T = ()> = std::result::Result<T, String>;

impl<'a> Check<'a> {
    fn value(&mut self, avro: &AvroType) -> Checked {
        match avro {
            AvroType::Null => Ok(()),
            AvroType::Boolean => self.take(1).map(drop),
            AvroType::Fixed(len) => self.take(*len).map(drop),
            AvroType::Int => match self.varint()? {
                ..=0xFFFF_FFFF => Ok(()),
                more => Err(format!("expected an int before byte {}, got the varint {more}", self.at())),
            },
            AvroType::Long => self.varint().map(drop),
            AvroType::Bytes => self.bytes().map(drop),
            AvroType::Text | AvroType::Uuid => self.text(),
            AvroType::Enum(symbols) => self.index(*symbols, "a symbol").map(drop),
            AvroType::Array(item) => self.blocks(|check| check.value(item)),
            AvroType::Map(value) => self.blocks(|check| {
                check.text()?;
                check.value(value)
            }),
            AvroType::Record(fields) => fields.iter().try_for_each(|field| self.value(field)),
            AvroType::Union(branches) => {
                let branch = self.index(branches.len(), "a branch")?;
                self.value(&branches[branch])
            }
        }
    }

    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Checked) -> Checked {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            // A negative count is followed by the size of the block.
            let size = if count < 0 { Some(self.long()?) } else { None };
            let (count, before) = (count.unsigned_abs(), self.rest.len());
            // Each item takes a byte at least.
            if count > before as u64 {
                return Err(format!("expected at most {before} items at byte {}, got {count}", self.at()));
            }
            for _ in 0..count {
                item(self)?;
            }
            self.items += count as usize;
            let got = (before - self.rest.len()) as i64;
            if let Some(expected) = size.filter(|size| *size != got) {
                return Err(format!("expected a block of {expected} bytes before byte {}, got {got}", self.at()));
            }
        }
    }

    fn text(&mut self) -> Checked {
        let bytes = self.bytes()?;
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("expected UTF-8 before byte {}, got other bytes", self.at())),
        }
    }

    fn bytes(&mut self) -> Checked<&'a [u8]> {
        let len = self.long()?;
        match usize::try_from(len) {
            Ok(len) => self.take(len),
            Err(_) => Err(format!("expected a length before byte {}, got {len}", self.at())),
        }
    }

    fn index(&mut self, count: usize, what: &str) -> Checked<usize> {
        let index = self.long()?;
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => Err(format!("expected {what} of {count} before byte {}, got number {index}", self.at())),
        }
    }

    fn long(&mut self) -> Checked<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn varint(&mut self) -> Checked<u64> {
        let mut value = 0;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7F);
            if i == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        let got = if self.rest.len() < 10 { "the end" } else { "more than 64 bits" };
        Err(format!("expected a varint at byte {}, got {got}", self.at()))
    }

    fn take(&mut self, len: usize) -> Checked<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(format!("expected {len} bytes at byte {}, got {}", self.at(), self.rest.len()));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn at(&self) -> usize {
        self.len - self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(field_type: &Value) -> String {
        json!({"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "f", "type": field_type}]})
            .to_string()
    }

    fn reason(field_type: &Value, body: &[u8]) -> String {
        let parsed = AvroType::parse(&record(field_type)).expect("parsed");
        parsed.check(body).map_or_else(|reason| reason, |items| format!("{items} items"))
    }

    #[test]
    fn bodies_are_checked_to_their_end() {
        for (field_type, body, expected) in [
            (json!("int"), &[2][..], "0 items"),
            (json!("int"), &[2, 0], "expected the end at byte 1, got 1 more"),
            (json!("int"), &[], "expected a varint at byte 0, got the end"),
            (json!("int"), &[0xFF, 0xFF, 0xFF, 0xFF, 0x1F], "expected an int before byte 5, got the varint 8589934591"),
            (json!("long"), &[0xFF; 11], "expected a varint at byte 0, got more than 64 bits"),
            (json!("string"), &[4, 0xC3, 0xA9], "0 items"),
            (json!("string"), &[2, 0xC3], "expected UTF-8 before byte 2, got other bytes"),
            (json!("bytes"), &[3], "expected a length before byte 1, got -2"),
            (json!("bytes"), &[200, 1, 0], "expected 100 bytes at byte 2, got 1"),
            (json!(["null", "int"]), &[2, 2], "0 items"),
            (json!(["null", "int"]), &[4, 2], "expected a branch of 2 before byte 1, got number 2"),
            (
                json!({"type": "enum", "name": "E", "symbols": ["A"]}),
                &[2],
                "expected a symbol of 1 before byte 1, got number 1",
            ),
            (json!({"type": "array", "items": "int"}), &[4, 2, 4, 2, 6, 0], "3 items"),
            (json!({"type": "array", "items": "int"}), &[3, 4, 2, 4, 0], "2 items"),
            (
                json!({"type": "array", "items": "int"}),
                &[3, 6, 2, 4, 0],
                "expected a block of 3 bytes before byte 4, got 2",
            ),
            (json!({"type": "array", "items": "int"}), &[200, 1, 2], "expected at most 1 items at byte 2, got 100"),
            (json!({"type": "map", "values": "int"}), &[2, 2, b'k', 8, 0], "1 items"),
        ] {
            assert_eq!(reason(&field_type, body), expected, "{field_type} {body:?}");
        }
        // The least number is its own negative.
        let least = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0];
        assert!(reason(&json!({"type": "array", "items": "int"}), &least).starts_with("expected at most 0 items"));
    }

    #[test]
    fn schemas_that_could_exhaust_memory_are_refused() {
        let refused = |field_type: &Value| AvroType::parse(&record(field_type)).expect_err("refused").to_string();
        assert_eq!(
            refused(&json!({"type": "array", "items": "null"})),
            "schema: expected items that take bytes, got \"null\""
        );
        assert_eq!(refused(&json!("null")).split(", got").next(), Some("schema: expected fields that take bytes"));
        let own = "schema: expected a type that is defined before, and does not hold itself, got \"R\"";
        assert_eq!(refused(&json!(["null", "R"])), own);
        let mut doubled = json!({"type": "fixed", "name": "X0", "size": 1});
        for i in 1..40 {
            let before = format!("X{}", i - 1);
            doubled = json!({"type": "record", "name": format!("X{i}"), "fields": [
                {"name": "a", "type": doubled}, {"name": "b", "type": before}
            ]});
        }
        assert!(refused(&doubled).contains("4096 types"), "{}", refused(&doubled));
        let error = AvroType::parse("\"int\"").expect_err("no record").to_string();
        assert_eq!(error, "schema: expected a record, got \"int\"");
        assert!(AvroType::parse(&"[".repeat(1 << 16)).is_err());
    }

    #[test]
    fn names_are_found_in_their_namespace() {
        let field_type = json!({"type": "record", "name": "S", "fields": [
            {"name": "a", "type": {"type": "fixed", "name": "o.F", "size": 2}},
            {"name": "b", "type": "o.F"},
            {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "d", "type": "n.E"},
            {"name": "e", "type": "E"},
        ]});
        assert_eq!(reason(&field_type, &[1, 2, 3, 4, 0, 0, 0]), "0 items");
    }
}
