//! The type of the column `value` in the form of Spark's `DataType.json`, and the choice of some of its fields by such a type.
use crate::error::{Error, Result};
use crate::request::text::hint;
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use rmqfast_store::scan::decode::VALUE;
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the JSON of a struct type with these fields.
///
/// # Errors
/// A type that Spark does not have.
pub fn to_json(fields: &Fields) -> Result<Value> {
    let fields = fields.iter().map(|field| {
        let kind = kind_of(field.name(), field.data_type())?;
        Ok(json!({"name": field.name(), "type": kind, "nullable": field.is_nullable(), "metadata": {}}))
    });
    Ok(json!({"type": "struct", "fields": fields.collect::<Result<Vec<_>>>()?}))
}

fn kind_of(path: &str, data_type: &DataType) -> Result<Value> {
    let name = match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "byte",
        DataType::Int16 => "short",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        DataType::Decimal128(precision, scale) => return Ok(json!(format!("decimal({precision},{scale})"))),
        DataType::Struct(fields) => return to_json(fields),
        DataType::List(item) => {
            let kind = kind_of(path, item.data_type())?;
            return Ok(json!({"type": "array", "elementType": kind, "containsNull": item.is_nullable()}));
        }
        DataType::Map(entries, _) => {
            let [key, value] = pair(entries)?;
            let (keys, values) = (kind_of(path, key.data_type())?, kind_of(path, value.data_type())?);
            return Ok(
                json!({"type": "map", "keyType": keys, "valueType": values, "valueContainsNull": value.is_nullable()}),
            );
        }
        other => {
            let text = format!("option valueSchema: field {path}: expected a type that Spark has, got {other}");
            return Err(Error::argument(text));
        }
    };
    Ok(json!(name))
}

/// Returns the fields that a struct type of Spark has, in its order.
///
/// # Errors
/// A field that does not exist, or that has another type.
pub fn choose(fields: &Fields, chosen: &Value) -> Result<Fields> {
    choose_fields(VALUE, fields, chosen)
}

fn choose_fields(path: &str, fields: &Fields, chosen: &Value) -> Result<Fields> {
    let Some(members) = chosen["fields"].as_array().filter(|members| !members.is_empty()) else {
        return Err(misfit(path, &to_json(fields)?, chosen));
    };
    members.iter().map(|member| choose_field(path, fields, member)).collect()
}

fn choose_field(path: &str, fields: &Fields, member: &Value) -> Result<Arc<Field>> {
    let name = member["name"].as_str().unwrap_or_default();
    let Some((_, field)) = fields.find(name) else {
        let names = fields.iter().map(|field| field.name().as_str());
        let all = names.clone().collect::<Vec<_>>().join(", ");
        let text = format!("schema: column {path}: unknown field {name}; {}the fields are {all}", hint(name, names));
        return Err(Error::argument(text));
    };
    let path = format!("{path}.{name}");
    // Spark would trust NOT NULL and skip its null checks
    if field.is_nullable() && member["nullable"] == json!(false) {
        return Err(Error::argument(format!("schema: column {path}: expected nullable, got NOT NULL")));
    }
    let data_type = choose_type(&path, field.data_type(), &member["type"])?;
    Ok(Arc::new(Field::clone(field).with_data_type(data_type)))
}

fn choose_type(path: &str, data_type: &DataType, chosen: &Value) -> Result<DataType> {
    let child = |field: &Arc<Field>, kind: &Value| -> Result<Arc<Field>> {
        Ok(Arc::new(Field::clone(field).with_data_type(choose_type(path, field.data_type(), kind)?)))
    };
    match (data_type, chosen["type"].as_str()) {
        (DataType::Struct(fields), Some("struct")) => Ok(DataType::Struct(choose_fields(path, fields, chosen)?)),
        (DataType::List(item), Some("array")) => Ok(DataType::List(child(item, &chosen["elementType"])?)),
        (DataType::Map(entries, is_sorted), Some("map")) => {
            let [key, value] = pair(entries)?;
            let pair = Fields::from(vec![child(key, &chosen["keyType"])?, child(value, &chosen["valueType"])?]);
            let entries = Field::clone(entries).with_data_type(DataType::Struct(pair));
            Ok(DataType::Map(Arc::new(entries), *is_sorted))
        }
        _ => match kind_of(path, data_type)? {
            kind if kind == *chosen => Ok(data_type.clone()),
            kind => Err(misfit(path, &kind, chosen)),
        },
    }
}

fn pair(entries: &Field) -> Result<[&Arc<Field>; 2]> {
    match entries.data_type() {
        DataType::Struct(fields) if fields.len() == 2 => Ok([&fields[0], &fields[1]]),
        other => Err(Error::argument(format!("option valueSchema: expected keys and values, got {other}"))),
    }
}

fn misfit(path: &str, expected: &Value, got: &Value) -> Error {
    let text = |kind: &Value| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned);
    Error::argument(format!("schema: column {path}: expected {}, got {}", text(expected), text(got)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::scan::decode::ddl;

    const DDL: &str = "a int NOT NULL, b struct<c: string, d: array<struct<e: decimal(10,2), f: timestamp>>>, \
                       m map<string, struct<g: bigint, h: binary>>, n timestamp_ntz, `o p` tinyint";

    fn fields(text: &str) -> Fields {
        ddl::parse(text).expect("parsed")
    }

    fn chosen(text: &str) -> String {
        let json = to_json(&fields(text)).expect("types of Spark");
        choose(&fields(DDL), &json).map_or_else(|e| e.to_string(), |fields| ddl::print(&fields).expect("printed"))
    }

    #[test]
    fn a_type_of_spark_chooses_the_fields_that_it_has() {
        let within = "`o p` tinyint, m map<string, struct<h: binary>>, b struct<d: array<struct<e: decimal(10,2)>>>";
        for text in [DDL, within] {
            assert_eq!(chosen(text), text);
        }
        assert_eq!(chosen("a int"), "a int NOT NULL");
    }

    #[test]
    fn other_fields_and_types_are_refused_by_their_paths() {
        for (text, error) in [
            ("b struct<x: int>", "schema: column value.b: unknown field x; the fields are c, d"),
            ("a bigint", "schema: column value.a: expected integer, got long"),
            ("n timestamp", "schema: column value.n: expected timestamp_ntz, got timestamp"),
            ("n timestamp_ntz NOT NULL", "schema: column value.n: expected nullable, got NOT NULL"),
            ("m map<int, struct<g: bigint>>", "schema: column value.m: expected string, got integer"),
        ] {
            assert_eq!(chosen(text), error);
        }
        let error = choose(&fields("a int"), &json!("integer")).expect_err("no struct").to_string();
        assert!(error.starts_with("schema: column value: expected {"), "{error}");
    }
}
