//! Bodies of JSON.
use super::fields::{self, Leaves, VALUE_BYTES};
use super::format::{BodyDecoder, BodyFormat};
use super::json_syntax::Cursor;
use super::scalar::Scalar;
use super::values::{Budget, Checked, Fault, Kind, Maps, Rows, Structs, Values, check_types};
use crate::Result;
use arrow_schema::{DataType, Fields};
use std::sync::Arc;

/// Least bytes of an item in a body, such as `1,`.
const ITEM_LEN: usize = 2;

#[derive(Clone, Debug)]
pub struct Json {
    /// All fields, with the types that bodies have.
    declared: DataType,
    fields: Fields,
    leaves: Leaves,
}

impl Json {
    /// Creates the format from the fields of a body, of which `paths` chooses some. Fails for types that JSON cannot be
    /// decoded to.
    pub fn new(fields: &Fields, paths: Option<&[String]>) -> Result<Self> {
        fields::check(fields)?;
        check_types(fields)?;
        let chosen = fields::select(fields, paths)?;
        let leaves = Leaves::of(&chosen);
        Ok(Self { declared: DataType::Struct(fields.clone()), fields: chosen, leaves })
    }
}

impl BodyFormat for Json {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn with_fields(&self, fields: &Fields) -> Result<Arc<dyn BodyFormat>> {
        check_types(fields)?;
        Ok(Arc::new(Self { declared: self.declared.clone(), fields: fields.clone(), leaves: Leaves::of(fields) }))
    }

    fn row_cost(&self) -> usize {
        (self.leaves.of_row + 1) * VALUE_BYTES
    }

    fn cost_per_byte(&self) -> usize {
        (self.leaves.of_item + 1) * VALUE_BYTES / ITEM_LEN + 1
    }

    fn decoder(&self) -> Box<dyn BodyDecoder> {
        Box::new(JsonDecoder { rows: Rows::of(&self.fields, &self.declared) })
    }
}

struct JsonDecoder {
    rows: Rows,
}

impl BodyDecoder for JsonDecoder {
    fn append(&mut self, payload: &[u8]) -> std::result::Result<usize, String> {
        self.rows.append(|rows, budget| Cursor::new(payload)?.document(|cursor| append_object(cursor, rows, 0, budget)))
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }
}

fn append_object(cursor: &mut Cursor<'_>, structs: &mut Structs, depth: usize, budget: &mut Budget) -> Checked {
    let (row, mut next) = (structs.len(), 0);
    cursor.object(depth, |cursor, key| {
        let Some(at) = structs.find(key, next) else { return cursor.skip(depth + 1) };
        next = at + 1;
        let field = &mut structs.fields[at];
        // The last of several values of a key counts.
        field.truncate(row);
        append_value(cursor, field, depth + 1, budget).map_err(|fault| fault.within(field.name()))
    })?;
    structs.append(budget)
}

fn append_value(cursor: &mut Cursor<'_>, values: &mut Values, depth: usize, budget: &mut Budget) -> Checked {
    match (&mut values.kind, cursor.next_byte()) {
        (_, Some(b'n')) => {
            cursor.literal("null")?;
            values.append_null(budget)
        }
        (Kind::Leaf(leaf), Some(b'"')) => {
            let start = cursor.place();
            let text = cursor.string()?;
            budget.take(VALUE_BYTES + text.len())?;
            if leaf.append(Scalar::Text(&text)) { Ok(()) } else { misfit(values, cursor.since(start)) }
        }
        (Kind::Leaf(leaf), Some(b'-' | b'0'..=b'9')) => {
            let number = cursor.number()?;
            budget.take(VALUE_BYTES + number.len())?;
            if leaf.append(Scalar::Number(number)) { Ok(()) } else { misfit(values, number) }
        }
        (Kind::Leaf(leaf), Some(byte @ (b't' | b'f'))) => {
            let literal = if byte == b't' { "true" } else { "false" };
            cursor.literal(literal)?;
            budget.take(VALUE_BYTES + literal.len())?;
            if leaf.append(Scalar::Boolean(byte == b't')) { Ok(()) } else { misfit(values, literal) }
        }
        (Kind::Struct(structs), Some(b'{')) => append_object(cursor, structs, depth, budget),
        (Kind::List(lists), Some(b'[')) => {
            cursor.array(depth, |cursor| append_value(cursor, &mut lists.items, depth + 1, budget))?;
            lists.append(budget)
        }
        (Kind::Map(maps), Some(b'{')) => append_map(cursor, maps, depth, budget),
        _ => {
            let start = cursor.place();
            cursor.skip(depth)?;
            misfit(values, cursor.since(start))
        }
    }
}

fn append_map(cursor: &mut Cursor<'_>, maps: &mut Maps, depth: usize, budget: &mut Budget) -> Checked {
    cursor.object(depth, |cursor, key| {
        budget.take(VALUE_BYTES + key.len())?;
        let is_key = if let Kind::Leaf(keys) = &mut maps.keys.kind { keys.append(Scalar::Text(key)) } else { false };
        if !is_key {
            return misfit(&maps.keys, key);
        }
        append_value(cursor, &mut maps.values, depth + 1, budget)
    })?;
    maps.append(budget)
}

fn misfit(values: &Values, got: &str) -> Checked {
    Err(Fault::misfit(values.data_type(), got))
}

#[cfg(test)]
mod tests {
    use super::super::ddl;
    use super::super::fields::MAX_BODY_COST;
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_schema::Field;

    fn decoder(schema: &str) -> Box<dyn BodyDecoder> {
        Json::new(&ddl::parse(schema).expect("parsed"), None).expect("a format").decoder()
    }

    fn reason(schema: &str, body: &str) -> String {
        decoder(schema).append(body.as_bytes()).expect_err(body)
    }

    #[test]
    fn a_bad_body_leaves_nothing_behind() {
        let mut decoder = decoder("a array<struct<b: int, c: string>>, d map<string, int>, e bigint");
        let good = br#" {"a":[{"b":1},{"c":"x"}],"d":{"k":2},"e":3} "#;
        for _ in 0..2 {
            decoder.append(good).expect("fine");
            decoder.append(br#"{"a":[{"b":5,"c":"y"},{"b":1.5}],"d":{"l":6}}"#).expect_err("a fraction");
            decoder.append(br#"{"e":9,"d":{"l":6},"a":[{"b":5,"c":"y"}"#).expect_err("no end");
            decoder.rows().append_null();
            decoder.append(b"{}").expect("fine");
            let values = decoder.rows().finish().expect("arrays");
            assert_eq!((0..3).map(|row| values.is_null(row)).collect::<Vec<_>>(), [false, true, false]);
            let items = values.column(0).as_list::<i32>().values().as_struct();
            assert_eq!((items.len(), items.column(0).as_primitive::<Int32Type>().value(0)), (2, 1));
            let pairs = values.column(1).as_map().entries();
            assert_eq!((pairs.len(), pairs.column(1).as_primitive::<Int32Type>().value(0)), (1, 2));
            let numbers = values.column(2).as_primitive::<Int64Type>();
            assert_eq!((numbers.value(0), numbers.is_null(2)), (3, true));
        }
    }

    #[test]
    fn reasons_name_the_field() {
        for (schema, body, expected) in [
            ("a tinyint", r#"{"a":128}"#, "a: expected Int8, got 128"),
            ("a bigint", r#"{"a":9223372036854775808}"#, "a: expected Int64, got 9223372036854775808"),
            ("a bigint", r#"{"a":1e17}"#, "a: expected Int64, got 1e17"),
            ("a int", r#"{"a":1.5}"#, "a: expected Int32, got 1.5"),
            ("a int", r#"{"\u0061":1.5}"#, "a: expected Int32, got 1.5"),
            ("a int", r#"{"a":true}"#, "a: expected Int32, got true"),
            ("a decimal(4,2)", r#"{"a":100}"#, "a: expected Decimal128(4, 2), got 100"),
            ("a date", r#"{"a":"2026-13-01"}"#, r#"a: expected Date32, got "2026-13-01""#),
            ("a binary", r#"{"a":"abc"}"#, r#"a: expected Binary, got "abc""#),
            ("a int NOT NULL", "{}", "a: expected a value, got null"),
            ("a int NOT NULL", r#"{"a":null}"#, "a: expected a value, got null"),
            ("a array<struct<n: bigint>>", r#"{"a":[{"n":1},{"n":-0.5}]}"#, "a.n: expected Int64, got -0.5"),
            ("a map<string, int>", r#"{"a":{"x":1,"y":2.5}}"#, "a: expected Int32, got 2.5"),
            ("a int", r#"{"a":[1, {"b":2}]}"#, r#"a: expected Int32, got [1, {"b":2}]"#),
        ] {
            assert_eq!(reason(schema, body), expected, "{schema} {body}");
        }
        assert!(reason("a struct<b: int>", r#"{"a":[]}"#).ends_with(", got []"));
        assert!(reason("a int", &format!("{{\"a\":\"{}\"}}", "é".repeat(1000))).len() < 150);
    }

    #[test]
    fn numbers_that_are_whole_are_integers_and_the_last_of_a_key_counts() {
        let mut decoder = decoder("a int, b int");
        decoder.append(br#"{"a":1.0,"b":7,"b":1e3,"c":1.5}"#).expect("fine");
        let values = decoder.rows().finish().expect("arrays");
        let number = |at: usize| values.column(at).as_primitive::<Int32Type>().value(0);
        assert_eq!((number(0), number(1)), (1, 1000));
    }

    #[test]
    fn a_body_takes_no_more_memory_than_its_cost() {
        let json = Json::new(&ddl::parse("a array<struct<b: int, c: int>>").expect("parsed"), None).expect("a format");
        let mut decoder = json.decoder();
        for body in [&b"{}"[..], br#"{"a":[{},{},{},{"b":1}]}"#, br#"{"a":[null,null]}"#] {
            let cost = decoder.append(body).expect("fine");
            assert!(cost <= json.row_cost() + body.len() * json.cost_per_byte(), "{cost}");
        }
        let items = vec!["{}"; MAX_BODY_COST / VALUE_BYTES / 3 + 1].join(",");
        let reason = decoder.append(format!("{{\"a\":[{items}]}}").as_bytes()).expect_err("too much");
        assert!(reason.starts_with("expected values of at most 268435456 bytes in memory"), "{reason}");
    }

    #[test]
    fn types_that_json_has_not_are_refused() {
        let fields = Fields::from(vec![Field::new("a", DataType::Duration(arrow_schema::TimeUnit::Second), true)]);
        let error = Json::new(&fields, None).expect_err("refused").to_string();
        assert_eq!(error, "schema: expected types that bodies can be decoded to, got Duration(s)");
    }
}
