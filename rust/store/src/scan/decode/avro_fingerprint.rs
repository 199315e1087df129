//! The fingerprint of a schema: CRC-64-AVRO of its Parsing Canonical Form.
use super::avro_type::{full_name, space_of};
use serde_json::{Map, Value, json};

const EMPTY: u64 = 0xC15D_213A_A4D7_A795;

/// Returns the fingerprint that Avro's single-object encoding has for a schema.
pub fn fingerprint(schema: &Value) -> u64 {
    let mut text = String::new();
    write_canonical(schema, "", &mut text);
    text.bytes().fold(EMPTY, |sum, byte| {
        let mut remainder = (sum ^ u64::from(byte)) & 0xFF;
        for _ in 0..8 {
            remainder = (remainder >> 1) ^ if remainder & 1 == 1 { EMPTY } else { 0 };
        }
        (sum >> 8) ^ remainder
    })
}

/// Writes the form that the specification has: full names, only what decides how values are read, in one order, without spaces.
fn write_canonical(schema: &Value, namespace: &str, out: &mut String) {
    match schema {
        Value::String(name) if is_primitive(name) => out.push_str(&json!(name).to_string()),
        Value::String(name) => out.push_str(&json!(full_name(name, namespace)).to_string()),
        Value::Array(branches) => write_list(branches, out, |branch, out| write_canonical(branch, namespace, out)),
        Value::Object(object) => write_object(object, namespace, out),
        _ => {}
    }
}

fn write_object(object: &Map<String, Value>, namespace: &str, out: &mut String) {
    let kind = match object.get("type") {
        Some(Value::String(kind)) => kind,
        Some(inner) => return write_canonical(inner, namespace, out),
        None => return,
    };
    let space = space_of(object, namespace);
    let list = |key: &str| object.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let "record" | "enum" | "fixed" = kind.as_str() {
        let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
        out.push_str(&format!(r#"{{"name":{},"type":"{kind}","#, json!(full_name(name, &space))));
    }
    match kind.as_str() {
        "record" => {
            out.push_str(r#""fields":"#);
            write_list(list("fields"), out, |field, out| {
                out.push_str(&format!(r#"{{"name":{},"type":"#, field["name"]));
                write_canonical(&field["type"], &space, out);
                out.push('}');
            });
            out.push('}');
        }
        "enum" => {
            out.push_str(r#""symbols":"#);
            write_list(list("symbols"), out, |symbol, out| out.push_str(&symbol.to_string()));
            out.push('}');
        }
        "fixed" => out.push_str(&format!(r#""size":{}}}"#, object.get("size").unwrap_or(&Value::Null))),
        "array" | "map" => {
            let inner = if kind == "array" { "items" } else { "values" };
            out.push_str(&format!(r#"{{"type":"{kind}","{inner}":"#));
            if let Some(inner) = object.get(inner) {
                write_canonical(inner, namespace, out);
            }
            out.push('}');
        }
        other => write_canonical(&Value::from(other), namespace, out),
    }
}

fn write_list(items: &[Value], out: &mut String, write: impl Fn(&Value, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

fn is_primitive(name: &str) -> bool {
    matches!(name, "null" | "boolean" | "int" | "long" | "float" | "double" | "bytes" | "string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_the_specification() {
        // From Avro's own tests.
        for (schema, expected) in [
            (json!("int"), 0x7275_d51a_3f39_5c8f),
            (json!({"type": "int"}), 0x7275_d51a_3f39_5c8f),
            (json!("null"), 0x63dd_24e7_cc25_8f8a),
            (json!("long"), 0xd054_e144_93f4_1db7),
            (json!("string"), 0x8f01_4872_6345_03c7),
        ] {
            assert_eq!(fingerprint(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn the_canonical_form_has_full_names_and_no_more_than_readers_need() {
        let schema = json!({"doc": "x", "type": "record", "namespace": "n", "name": "R", "aliases": ["Q"], "fields": [
            {"default": 1, "type": {"type": "int", "logicalType": "date"}, "name": "a"},
            {"name": "b", "type": ["null", {"size": 2, "type": "fixed", "name": "o.F"}]},
            {"name": "c", "type": {"items": "o.F", "type": "array"}},
            {"name": "d", "type": {"values": {"symbols": ["X"], "name": "E", "type": "enum"}, "type": "map"}},
            {"name": "e", "type": {"type": {"type": "E"}}},
        ]});
        let mut text = String::new();
        write_canonical(&schema, "", &mut text);
        let expected = concat!(
            r#"{"name":"n.R","type":"record","fields":[{"name":"a","type":"int"},"#,
            r#"{"name":"b","type":["null",{"name":"o.F","type":"fixed","size":2}]},"#,
            r#"{"name":"c","type":{"type":"array","items":"o.F"}},"#,
            r#"{"name":"d","type":{"type":"map","values":{"name":"n.E","type":"enum","symbols":["X"]}}},"#,
            r#"{"name":"e","type":"n.E"}]}"#,
        );
        assert_eq!(text, expected);
    }
}
