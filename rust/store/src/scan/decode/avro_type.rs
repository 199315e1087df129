//! Schemas of Avro as a tree, and the types of Arrow that their values have.
use super::avro_logical::logical_type;
use super::fields::MAX_DEPTH;
use crate::{Error, Result};
use arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of types in a schema, where a type that is named again counts again with all that it holds.
const MAX_TYPES: usize = 4096;
/// Maximum number of branches of a union: Arrow numbers them by seven bits.
const MAX_BRANCHES: usize = 127;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AvroType {
    Null,
    Boolean,
    Int(DataType),
    Long(DataType),
    Float,
    Double,
    Bytes(DataType),
    Fixed(usize, DataType),
    Text,
    Uuid,
    Enum(Vec<String>),
    Array(Box<AvroType>),
    Map(Box<AvroType>),
    Record(Vec<RecordField>),
    /// Branches by name.
    Union(Vec<(String, AvroType)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordField {
    pub name: String,
    pub avro_type: AvroType,
    /// The position among the fields that are decoded. `None` for a field that is not.
    pub position: Option<usize>,
}

impl AvroType {
    /// Parses a schema. Fails for a type that is no record, that holds itself, or that has items without bytes, of which a
    /// few bytes could ask for billions.
    pub fn parse(text: &str) -> Result<(Value, Self)> {
        let schema: Value = serde_json::from_str(text).map_err(|e| Error::invalid("schema", "an Avro schema", e))?;
        let mut names = Names { by_name: HashMap::new(), count: 0 };
        let parsed = names.parse(&schema, "", 0)?;
        match &parsed {
            Self::Record(fields) if fields.is_empty() => fail("a record with fields", &schema),
            Self::Record(_) if parsed.least_len() == 0 => fail("fields that take bytes", &schema),
            Self::Record(_) => Ok((schema, parsed)),
            _ => fail("a record", &schema),
        }
    }

    /// Returns the least length of an encoded value.
    fn least_len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Float => 4,
            Self::Double => 8,
            Self::Fixed(len, _) => *len,
            Self::Record(fields) => fields.iter().map(|field| field.avro_type.least_len()).sum(),
            _ => 1,
        }
    }

    /// Returns the type of Arrow.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Boolean => DataType::Boolean,
            Self::Int(data_type) | Self::Long(data_type) | Self::Bytes(data_type) | Self::Fixed(_, data_type) => {
                data_type.clone()
            }
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Enum(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Array(items) => DataType::List(Arc::new(items.field(Field::LIST_FIELD_DEFAULT_NAME))),
            Self::Map(values) => {
                let pair = [Field::new("key", DataType::Utf8, false), values.field("value")];
                DataType::Map(
                    Arc::new(Field::new("entries", DataType::Struct(pair.into_iter().collect()), false)),
                    false,
                )
            }
            Self::Record(fields) => DataType::Struct(record_fields(fields)),
            Self::Union(branches) => match self.optional() {
                Some(branch) => branch.data_type(),
                None => {
                    let fields = branches.iter().map(|(name, branch)| Arc::new(branch.field(name)));
                    DataType::Union((0_i8..).zip(fields).collect::<UnionFields>(), UnionMode::Dense)
                }
            },
        }
    }

    fn field(&self, name: &str) -> Field {
        let is_nullable = match self {
            Self::Union(branches) => branches.iter().any(|(_, branch)| *branch == Self::Null),
            other => *other == Self::Null,
        };
        Field::new(name, self.data_type(), is_nullable)
    }

    /// Returns the branch beside null, if the type is a union of two.
    pub fn optional(&self) -> Option<&Self> {
        match self {
            Self::Union(branches) => match &branches[..] {
                [(_, Self::Null), (_, branch)] | [(_, branch), (_, Self::Null)] => Some(branch),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the length of the longest symbol of an enum.
    pub fn longest_symbol(&self) -> usize {
        match self {
            Self::Enum(symbols) => symbols.iter().map(String::len).max().unwrap_or(0),
            Self::Array(inner) | Self::Map(inner) => inner.longest_symbol(),
            Self::Record(fields) => fields.iter().map(|field| field.avro_type.longest_symbol()).max().unwrap_or(0),
            Self::Union(branches) => branches.iter().map(|(_, branch)| branch.longest_symbol()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Marks the fields that are decoded: those of `fields`, which were chosen from [`data_type`](Self::data_type).
    pub fn project(&mut self, data_type: &DataType) {
        match (self, data_type) {
            (Self::Record(fields), DataType::Struct(chosen)) => {
                for field in fields {
                    field.position = chosen.iter().position(|each| *each.name() == field.name);
                    if let Some(at) = field.position {
                        field.avro_type.project(chosen[at].data_type());
                    }
                }
            }
            (Self::Array(items), DataType::List(item)) => items.project(item.data_type()),
            // One of the two is null.
            (Self::Union(branches), other) if !matches!(other, DataType::Union(..)) => {
                branches.iter_mut().for_each(|(_, branch)| branch.project(other));
            }
            _ => {}
        }
    }
}

pub fn record_fields(fields: &[RecordField]) -> Fields {
    fields.iter().map(|field| field.avro_type.field(&field.name)).collect()
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
                let parse =
                    |branch| Ok((self.branch_name(branch, namespace), self.parse(branch, namespace, depth + 1)?));
                let branches: Vec<_> = branches.iter().map(parse).collect::<Result<_>>()?;
                check_branches(&branches, schema)?;
                Ok(AvroType::Union(branches))
            }
            Value::Object(object) => self.complex(object, schema, namespace, depth),
            _ => fail("a type", schema),
        }
    }

    fn of_name(&mut self, name: &str, namespace: &str) -> Result<AvroType> {
        Ok(match name {
            "null" => AvroType::Null,
            "boolean" => AvroType::Boolean,
            "int" => AvroType::Int(DataType::Int32),
            "long" => AvroType::Long(DataType::Int64),
            "float" => AvroType::Float,
            "double" => AvroType::Double,
            "bytes" => AvroType::Bytes(DataType::Binary),
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
                Some(size @ 1..=65_536) => {
                    let data_type = logical_type(object, &DataType::FixedSizeBinary(size as i32));
                    self.define(object, namespace, AvroType::Fixed(size as usize, data_type))
                }
                _ => fail("a size from 1 to 65536", schema),
            },
            Some("enum") => match inner("symbols")?.as_array() {
                Some(symbols) if !symbols.is_empty() => {
                    let symbols =
                        symbols.iter().map(|symbol| symbol.as_str().map(str::to_owned)).collect::<Option<_>>();
                    let Some(symbols) = symbols else { return fail("symbols that are texts", schema) };
                    self.define(object, namespace, AvroType::Enum(symbols))
                }
                _ => fail("symbols", schema),
            },
            Some("record") => {
                let Some(fields) = inner("fields")?.as_array() else { return fail("fields", schema) };
                let space = space_of(object, namespace);
                let mut parsed = Vec::with_capacity(fields.len());
                for field in fields {
                    let (Some(name), Some(field_type)) = (field.get("name").and_then(Value::as_str), field.get("type"))
                    else {
                        return fail("a field with a name and a type", field);
                    };
                    let avro_type = self.parse(field_type, &space, depth + 1)?;
                    parsed.push(RecordField { name: name.to_owned(), avro_type, position: Some(parsed.len()) });
                }
                self.define(object, namespace, AvroType::Record(parsed))
            }
            Some("string") if object.get("logicalType").and_then(Value::as_str) == Some("uuid") => Ok(AvroType::Uuid),
            Some(name) => Ok(match self.of_name(name, namespace)? {
                AvroType::Int(plain) => AvroType::Int(logical_type(object, &plain)),
                AvroType::Long(plain) => AvroType::Long(logical_type(object, &plain)),
                AvroType::Bytes(plain) => AvroType::Bytes(logical_type(object, &plain)),
                other => other,
            }),
            None => match object.get("type") {
                Some(inner) => self.parse(inner, namespace, depth + 1),
                None => fail("a type", schema),
            },
        }
    }

    /// Returns the name of a union's branch: that of a named type, or the type's.
    fn branch_name(&self, branch: &Value, namespace: &str) -> String {
        match branch {
            Value::String(name) if self.by_name.contains_key(&full_name(name, namespace)) => full_name(name, namespace),
            Value::String(name) => name.clone(),
            Value::Object(object) => match object.get("name").and_then(Value::as_str) {
                Some(name) => full_name(name, &space_of(object, namespace)),
                None => object.get("type").map_or_else(String::new, |inner| self.branch_name(inner, namespace)),
            },
            _ => String::new(),
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
        AvroType::Record(fields) => fields.iter().map(|field| count(&field.avro_type)).sum(),
        AvroType::Union(branches) => branches.iter().map(|(_, branch)| count(branch)).sum(),
        _ => 0,
    }
}

/// Returns the namespace that applies within a named type.
pub fn space_of(object: &Map<String, Value>, around: &str) -> String {
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
    match (name.rsplit_once('.'), object.get("namespace").and_then(Value::as_str)) {
        (Some((space, _)), _) => space.to_owned(),
        (None, Some(space)) => space.to_owned(),
        (None, None) => around.to_owned(),
    }
}

pub fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn check_branches(branches: &[(String, AvroType)], schema: &Value) -> Result<()> {
    let mut names = HashSet::new();
    if branches.len() > MAX_BRANCHES {
        return fail(&format!("a union of at most {MAX_BRANCHES} branches"), schema);
    }
    if branches.iter().any(|(name, branch)| matches!(branch, AvroType::Union(_)) || !names.insert(name)) {
        return fail("a union of different types, none of them a union", schema);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(field_type: &Value) -> String {
        json!({"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "f", "type": field_type}]})
            .to_string()
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
}
