//! Infers a schema, as DDL, from bodies of JSON.
use super::json_syntax::check;
use super::{ddl, fields};
use crate::{Error, Result};
use arrow_schema::{DataType, Field, Fields};
use serde_json::{Map, Number, Value};
use std::sync::Arc;

/// The schema of the bodies seen so far. Fields stand in the order in which they appeared.
#[derive(Debug, Default)]
pub struct Inference {
    fields: Vec<(String, Kind)>,
    bodies: u64,
    bad: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Kind {
    /// No value yet but null.
    #[default]
    Unknown,
    Boolean,
    Whole,
    /// A whole number beyond 64 bits with a sign.
    Large,
    Double,
    Text,
    List(Box<Kind>),
    Object(Vec<(String, Kind)>),
}

impl Inference {
    /// Adds a body. One that is no JSON object only counts as bad. Fails if a field has values that no type holds together.
    pub fn add(&mut self, body: &[u8]) -> Result<()> {
        let object = check(body).ok().and_then(|_| serde_json::from_slice::<Map<String, Value>>(body).ok());
        match object {
            Some(object) => {
                self.bodies += 1;
                merge_object(&mut self.fields, &object, &mut Vec::new())
            }
            None => {
                self.bad += 1;
                Ok(())
            }
        }
    }

    /// Returns the number of bodies that were no JSON objects.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    pub fn ddl(&self) -> Result<String> {
        if self.fields.is_empty() {
            let got = format!("{} objects without one, and {} other bodies", self.bodies, self.bad);
            return Err(Error::invalid("bodies", "JSON objects with a field", got));
        }
        let schema = schema(&self.fields);
        fields::check(&schema)?;
        ddl::print(&schema)
    }
}

fn merge_object(fields: &mut Vec<(String, Kind)>, object: &Map<String, Value>, path: &mut Vec<String>) -> Result<()> {
    for (name, value) in object {
        let at = fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            fields.push((name.clone(), Kind::Unknown));
            fields.len() - 1
        });
        path.push(name.clone());
        merge(&mut fields[at].1, value, path)?;
        path.pop();
    }
    Ok(())
}

fn merge(kind: &mut Kind, value: &Value, path: &mut Vec<String>) -> Result<()> {
    let other = match value {
        Value::Null => return Ok(()),
        Value::Array(items) => {
            if *kind == Kind::Unknown {
                *kind = Kind::List(Box::default());
            }
            if let Kind::List(item) = kind {
                return items.iter().try_for_each(|value| merge(item, value, path));
            }
            Kind::List(Box::default())
        }
        Value::Object(object) => {
            if *kind == Kind::Unknown {
                *kind = Kind::Object(Vec::new());
            }
            if let Kind::Object(fields) = kind {
                return merge_object(fields, object, path);
            }
            Kind::Object(Vec::new())
        }
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) => of_number(number),
        Value::String(_) => Kind::Text,
    };
    *kind = match (&*kind, other) {
        (known, other) if *known == other => other,
        (Kind::Unknown, other) => other,
        (known, other) if is_number(known) && is_number(&other) => {
            let both = [known, &other];
            if both.contains(&&Kind::Double) { Kind::Double } else { Kind::Large }
        }
        // A text field also takes numbers and booleans.
        (known, other) if is_scalar(known) && is_scalar(&other) => Kind::Text,
        (known, other) => {
            let expected = format!("values of one type at {}", path.join("."));
            return Err(Error::invalid("bodies", expected, format!("{} and {}", name(known), name(&other))));
        }
    };
    Ok(())
}

fn of_number(number: &Number) -> Kind {
    match number {
        _ if number.is_i64() => Kind::Whole,
        _ if number.is_u64() => Kind::Large,
        _ => Kind::Double,
    }
}

fn is_number(kind: &Kind) -> bool {
    matches!(kind, Kind::Whole | Kind::Large | Kind::Double)
}

fn is_scalar(kind: &Kind) -> bool {
    is_number(kind) || matches!(kind, Kind::Boolean | Kind::Text)
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::List(_) => "arrays",
        Kind::Object(_) => "objects",
        _ => "others",
    }
}

fn schema(kinds: &[(String, Kind)]) -> Fields {
    kinds.iter().map(|(name, kind)| Field::new(name, data_type(kind), true)).collect()
}

fn data_type(kind: &Kind) -> DataType {
    match kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Whole => DataType::Int64,
        Kind::Large => DataType::Decimal128(20, 0),
        Kind::Double => DataType::Float64,
        Kind::Unknown | Kind::Text => DataType::Utf8,
        Kind::List(item) => DataType::List(Arc::new(Field::new("item", data_type(item), true))),
        // An object that never has a field holds only that it is there, as an empty map does.
        Kind::Object(fields) if fields.is_empty() => ddl::map_of(DataType::Utf8, DataType::Utf8),
        Kind::Object(fields) => DataType::Struct(schema(fields)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(bodies: &[&str]) -> String {
        let mut inference = Inference::default();
        match bodies.iter().try_for_each(|body| inference.add(body.as_bytes())).and_then(|()| inference.ddl()) {
            Ok(ddl) => format!("{ddl}; {} bad", inference.bad()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn types_are_those_that_hold_all_values() {
        let bodies =
            [r#"{"b":1,"a":null,"c":[{"x":1}],"d":true,"odd name":{}}"#, "no", r#"{"c":[{"y":"z"}],"b":2.5,"d":"x"}"#];
        let expected = "b double, a string, c array<struct<x: bigint, y: string>>, d string, `odd name` map<string, string>; 1 bad";
        assert_eq!(inferred(&bodies), expected);
        assert_eq!(inferred(&[r#"{"a":1}"#, r#"{"a":18446744073709551615}"#]), "a decimal(20,0); 0 bad");
        assert_eq!(
            inferred(&[r#"{"a":{"b":1}}"#, r#"{"a":{"b":[]}}"#]),
            "bodies: expected values of one type at a.b, got others and arrays"
        );
        let none = "bodies: expected JSON objects with a field, got 1 objects without one, and 1 other bodies";
        assert_eq!(inferred(&["{}", "[]"]), none);
    }
}
