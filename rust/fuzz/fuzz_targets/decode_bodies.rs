//! Bodies of any bytes, as JSON and as Avro: no panic, a bad body leaves nothing behind, and the arrays are valid.
#![no_main]
use arrow_array::Array;
use libfuzzer_sys::fuzz_target;
use rmqfast_store::scan::decode::{Avro, BodyFormat, Framing, Json, ddl};
use std::sync::LazyLock;

const DDL: &str = "a bigint, b tinyint, c double, d string, e boolean, f timestamp, g decimal(10,2), h date, i binary, \
                   j struct<a: int, b: array<string>>, k array<struct<a: int, b: map<string, int>>>, l map<string, array<int>>";
const AVSC: &str = r#"{"type": "record", "name": "R", "fields": [
    {"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string", "int"]}, {"name": "c", "type": ["null", "bytes"]},
    {"name": "d", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}},
    {"name": "e", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}}},
    {"name": "f", "type": {"type": "map", "values": {"type": "array", "items": "boolean"}}},
    {"name": "g", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "h", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "i", "type": {"type": "fixed", "name": "F", "size": 3}}
]}"#;
static JSON: LazyLock<Json> = LazyLock::new(|| Json::new(&ddl::parse(DDL).expect("fields"), None).expect("a format"));
static AVRO: LazyLock<Avro> = LazyLock::new(|| Avro::new(AVSC, None).expect("a format"));
static FEW: LazyLock<Avro> = LazyLock::new(|| Avro::new(AVSC, Some(&["e.x".into(), "i".into()])).expect("a format"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let framing = [Framing::None, Framing::Confluent, Framing::SingleObject][usize::from(kind) / 4 % 3];
    let formats: [&dyn BodyFormat; 3] = [&*JSON, &*AVRO, &*FEW];
    let mut decoder = formats[usize::from(kind) % 3].decoder();
    let mut is_good = Vec::new();
    for body in rest.split(|byte| *byte == 0xFE) {
        let appended = framing.split(body).and_then(|(_, payload)| decoder.append(payload));
        if appended.is_err() {
            decoder.rows().append_null();
        }
        is_good.push(appended.is_ok());
    }
    let values = decoder.rows().finish().expect("values of the schema");
    assert!(is_good.iter().enumerate().all(|(row, is_good)| values.is_null(row) != *is_good));
    values.to_data().validate_full().expect("a valid array");
});
