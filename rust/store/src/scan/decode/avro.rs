//! Bodies of Avro. A body is one record without a header, which the schema of its writer decodes.
use super::avro_fingerprint;
use super::avro_type::{AvroType, RecordField, record_fields};
use super::fields::{self, Leaves, VALUE_BYTES};
use super::format::{BodyDecoder, BodyFormat};
use super::framing::SchemaId;
use super::scalar::{Scalar, uuid};
use super::values::{Budget, Checked, Fault, Kind, Lists, Maps, Rows, Structs, Values};
use crate::Result;
use arrow_schema::{DataType, Fields};
use serde_json::Value;
use std::fmt::Arguments;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Avro {
    schema: Value,
    avro_type: AvroType,
    /// The record with all fields.
    whole: DataType,
    fields: Fields,
    leaves: Leaves,
}

impl Avro {
    /// Creates the format from a schema of the writer as JSON. `paths` chooses some of its fields.
    pub fn new(text: &str, paths: Option<&[String]>) -> Result<Self> {
        let (schema, avro_type) = AvroType::parse(text)?;
        let fields = match &avro_type {
            AvroType::Record(fields) => record_fields(fields),
            _ => Fields::empty(),
        };
        fields::check(&fields)?;
        let chosen = fields::select(&fields, paths)?;
        let whole = DataType::Struct(fields);
        Ok(Self { schema, avro_type, whole, fields: Fields::empty(), leaves: Leaves::default() }.choosing(&chosen))
    }

    fn choosing(mut self, fields: &Fields) -> Self {
        self.avro_type.project(&DataType::Struct(fields.clone()));
        Self { fields: fields.clone(), leaves: Leaves::of(fields), ..self }
    }

    /// Returns the fingerprint that Avro's single-object encoding has for the schema.
    pub fn fingerprint(&self) -> SchemaId {
        avro_fingerprint::fingerprint(&self.schema)
    }
}

impl BodyFormat for Avro {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn with_fields(&self, fields: &Fields) -> Result<Arc<dyn BodyFormat>> {
        Ok(Arc::new(self.clone().choosing(fields)))
    }

    fn row_cost(&self) -> usize {
        (self.leaves.of_row + 1) * VALUE_BYTES
    }

    fn cost_per_byte(&self) -> usize {
        // A symbol of an enum can be longer than the byte that stands for it.
        (self.leaves.of_item + 1) * VALUE_BYTES + 1 + self.avro_type.longest_symbol()
    }

    fn decoder(&self) -> Box<dyn BodyDecoder> {
        Box::new(AvroDecoder { avro_type: self.avro_type.clone(), rows: Rows::of(&self.fields, &self.whole) })
    }
}

struct AvroDecoder {
    avro_type: AvroType,
    rows: Rows,
}

impl BodyDecoder for AvroDecoder {
    fn append(&mut self, payload: &[u8]) -> std::result::Result<usize, String> {
        let avro_type = &self.avro_type;
        self.rows.append(|rows, budget| {
            let mut cursor = Cursor { len: payload.len(), rest: payload };
            match avro_type {
                AvroType::Record(fields) => cursor.append_record(fields, rows, budget)?,
                other => return Err(Fault::elsewhere(format!("expected a record, got {}", other.data_type()))),
            }
            cursor.end()
        })
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }
}

/// A position in a body.
struct Cursor<'a> {
    len: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn append_record(&mut self, fields: &[RecordField], structs: &mut Structs, budget: &mut Budget) -> Checked {
        for field in fields {
            match field.position {
                Some(at) => self
                    .append(&field.avro_type, &mut structs.fields[at], budget)
                    .map_err(|fault| fault.within(&field.name))?,
                None => self.skip(&field.avro_type)?,
            }
        }
        structs.append(budget)
    }

    /// Appends the value that begins here.
    fn append(&mut self, avro_type: &AvroType, values: &mut Values, budget: &mut Budget) -> Checked {
        match (avro_type, &mut values.kind) {
            (AvroType::Null, _) => values.append_null(budget),
            (AvroType::Record(fields), Kind::Struct(structs)) => self.append_record(fields, structs, budget),
            (AvroType::Array(items), Kind::List(lists)) => self.append_list(items, lists, budget),
            (AvroType::Map(inner), Kind::Map(maps)) => self.append_map(inner, maps, budget),
            (AvroType::Union(branches), Kind::Union(unions)) => {
                let branch = self.index(branches.len(), "a branch")?;
                budget.take(VALUE_BYTES)?;
                self.append(&branches[branch].1, unions.begin(branch), budget)
            }
            // A union with null, whose other branch the values have.
            (AvroType::Union(branches), _) => {
                let branch = self.index(branches.len(), "a branch")?;
                self.append(&branches[branch].1, values, budget)
            }
            (_, Kind::Leaf(leaf)) => {
                let scalar = self.scalar(avro_type)?;
                budget.take(VALUE_BYTES + scalar.text_len())?;
                if leaf.append(scalar) {
                    Ok(())
                } else {
                    Err(Fault::misfit(values.data_type(), &format!("{scalar:?}")))
                }
            }
            _ => Err(Fault::misfit(values.data_type(), &avro_type.data_type().to_string())),
        }
    }

    fn append_list(&mut self, items: &AvroType, lists: &mut Lists, budget: &mut Budget) -> Checked {
        self.blocks(|cursor| cursor.append(items, &mut lists.items, budget))?;
        lists.append(budget)
    }

    fn append_map(&mut self, inner: &AvroType, maps: &mut Maps, budget: &mut Budget) -> Checked {
        self.blocks(|cursor| {
            cursor.append(&AvroType::Text, &mut maps.keys, budget)?;
            cursor.append(inner, &mut maps.values, budget)
        })?;
        maps.append(budget)
    }

    /// Reads a value without parts.
    #[inline]
    fn scalar<'t>(&mut self, avro_type: &'t AvroType) -> Checked<Scalar<'t>>
    where
        'a: 't,
    {
        Ok(match avro_type {
            AvroType::Boolean => match self.take(1)? {
                [0] => Scalar::Boolean(false),
                [1] => Scalar::Boolean(true),
                other => return self.fail(format_args!("0 or 1"), format_args!("{}", other[0])),
            },
            AvroType::Int(_) => match i32::try_from(self.long()?) {
                Ok(number) => Scalar::Long(number.into()),
                Err(_) => return self.fail(format_args!("an int"), format_args!("a long")),
            },
            AvroType::Float => Scalar::Double(f32::from_le_bytes(self.array()?).into()),
            AvroType::Double => Scalar::Double(f64::from_le_bytes(self.array()?)),
            AvroType::Bytes(_) => Scalar::Bytes(self.bytes()?),
            AvroType::Fixed(len, _) => Scalar::Bytes(self.take(*len)?),
            AvroType::Text => Scalar::Text(self.text()?),
            AvroType::Uuid => match self.text().map(|text| (text, uuid(text)))? {
                (_, Some(bytes)) => Scalar::Uuid(bytes),
                (text, None) => return self.fail(format_args!("a UUID"), format_args!("{text:?}")),
            },
            AvroType::Enum(symbols) => Scalar::Symbol(symbols, self.index(symbols.len(), "a symbol")?),
            _ => Scalar::Long(self.long()?),
        })
    }

    /// Passes the value that begins here.
    fn skip(&mut self, avro_type: &AvroType) -> Checked {
        match avro_type {
            AvroType::Null => Ok(()),
            AvroType::Array(items) => self.blocks(|cursor| cursor.skip(items)),
            AvroType::Map(values) => self.blocks(|cursor| {
                cursor.text()?;
                cursor.skip(values)
            }),
            AvroType::Record(fields) => fields.iter().try_for_each(|field| self.skip(&field.avro_type)),
            AvroType::Union(branches) => {
                let branch = self.index(branches.len(), "a branch")?;
                self.skip(&branches[branch].1)
            }
            _ => self.scalar(avro_type).map(drop),
        }
    }

    /// Reads the items of an array or a map by `read`.
    fn blocks(&mut self, mut read: impl FnMut(&mut Self) -> Checked) -> Checked {
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
                return self.fail(format_args!("at most {before} items"), format_args!("{count}"));
            }
            for _ in 0..count {
                read(self)?;
            }
            let got = (before - self.rest.len()) as i64;
            if let Some(expected) = size.filter(|size| *size != got) {
                return self.fail(format_args!("a block of {expected} bytes"), format_args!("{got}"));
            }
        }
    }

    fn text(&mut self) -> Checked<&'a str> {
        let bytes = self.bytes()?;
        match str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => self.fail(format_args!("UTF-8"), format_args!("other bytes")),
        }
    }

    fn bytes(&mut self) -> Checked<&'a [u8]> {
        let len = self.long()?;
        match usize::try_from(len) {
            Ok(len) => self.take(len),
            Err(_) => self.fail(format_args!("a length"), format_args!("{len}")),
        }
    }

    fn index(&mut self, count: usize, what: &str) -> Checked<usize> {
        let index = self.long()?;
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => self.fail(format_args!("{what} of {count}"), format_args!("number {index}")),
        }
    }

    #[inline]
    fn long(&mut self) -> Checked<i64> {
        let mut value = 0;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7F);
            if i == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        let got = if self.rest.len() < 10 { "the end" } else { "more than 64 bits" };
        self.fail(format_args!("a varint"), format_args!("{got}"))
    }

    fn array<const N: usize>(&mut self) -> Checked<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => self.fail(format_args!("{N} bytes"), format_args!("{}", self.rest.len())),
        }
    }

    fn take(&mut self, len: usize) -> Checked<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return self.fail(format_args!("{len} bytes"), format_args!("{}", self.rest.len()));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn end(&self) -> Checked {
        match self.rest.len() {
            0 => Ok(()),
            more => self.fail(format_args!("the end"), format_args!("{more} more bytes")),
        }
    }

    #[cold]
    fn fail<T>(&self, expected: Arguments<'_>, got: Arguments<'_>) -> Checked<T> {
        let at = self.len - self.rest.len();
        Err(Fault::elsewhere(format!("expected {expected} at byte {at}, got {got}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_array::{Array, ArrayRef};
    use arrow_schema::Field;
    use serde_json::json;

    fn avro(fields: &Value, paths: Option<&[&str]>) -> Avro {
        let schema = json!({"type": "record", "name": "R", "namespace": "n", "fields": fields}).to_string();
        let paths: Option<Vec<String>> = paths.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        Avro::new(&schema, paths.as_deref()).expect("a format")
    }

    fn of_field(field_type: &Value) -> Avro {
        avro(&json!([{"name": "f", "type": field_type}]), None)
    }

    fn values(field_type: &Value, bodies: &[&[u8]]) -> ArrayRef {
        let mut decoder = of_field(field_type).decoder();
        for body in bodies {
            decoder.append(body).expect("a record");
        }
        decoder.rows().finish().expect("arrays").column(0).clone()
    }

    fn reason(field_type: &Value, body: &[u8]) -> String {
        of_field(field_type).decoder().append(body).map_or_else(|reason| reason, |_| "fine".to_owned())
    }

    #[test]
    fn bodies_are_read_to_their_end() {
        for (field_type, body, expected) in [
            (json!("int"), &[2][..], "fine"),
            (json!("int"), &[2, 0], "expected the end at byte 1, got 1 more bytes"),
            (json!("int"), &[], "expected a varint at byte 0, got the end"),
            (json!("int"), &[0xFF, 0xFF, 0xFF, 0xFF, 0x1F], "expected an int at byte 5, got a long"),
            (json!("long"), &[0xFF; 11], "expected a varint at byte 0, got more than 64 bits"),
            (json!("boolean"), &[1], "fine"),
            (json!("boolean"), &[2], "expected 0 or 1 at byte 1, got 2"),
            (json!("string"), &[4, 0xC3, 0xA9], "fine"),
            (json!("string"), &[2, 0xC3], "expected UTF-8 at byte 2, got other bytes"),
            (json!("bytes"), &[3], "expected a length at byte 1, got -2"),
            (json!("bytes"), &[200, 1, 0], "expected 100 bytes at byte 2, got 1"),
            (json!("double"), &[0; 7], "expected 8 bytes at byte 0, got 7"),
            (json!(["null", "int"]), &[2, 2], "fine"),
            (json!(["null", "int"]), &[4, 2], "expected a branch of 2 at byte 1, got number 2"),
            (
                json!({"type": "enum", "name": "E", "symbols": ["A"]}),
                &[2],
                "expected a symbol of 1 at byte 1, got number 1",
            ),
            (json!({"type": "array", "items": "int"}), &[4, 2, 4, 2, 6, 0], "fine"),
            (json!({"type": "array", "items": "int"}), &[3, 4, 2, 4, 0], "fine"),
            (
                json!({"type": "array", "items": "int"}),
                &[3, 6, 2, 4, 0],
                "expected a block of 3 bytes at byte 4, got 2",
            ),
            (json!({"type": "array", "items": "int"}), &[200, 1, 2], "expected at most 1 items at byte 2, got 100"),
            (json!({"type": "map", "values": "int"}), &[2, 2, b'k', 8, 0], "fine"),
            (json!({"type": "string", "logicalType": "uuid"}), &[2, b'x'], "expected a UUID at byte 2, got \"x\""),
        ] {
            assert_eq!(reason(&field_type, body), expected, "{field_type} {body:?}");
        }
        // The least number is its own negative.
        let least = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0];
        assert!(reason(&json!({"type": "array", "items": "int"}), &least).starts_with("expected at most 0 items"));
    }

    #[test]
    fn bad_bodies_stand_between_others_and_leave_nothing() {
        let fields = json!([
            {"name": "id", "type": "long"},
            {"name": "u", "type": ["null", "int", {"type": "array", "items": "string"}]},
        ]);
        let mut decoder = avro(&fields, None).decoder();
        for _ in 0..2 {
            decoder.append(&[2, 4, 2, 2, b'a', 0]).expect("a list");
            decoder.append(&[4, 4, 4, 2, b'b', 2, 0xFF]).expect_err("no UTF-8");
            decoder.rows().append_null();
            decoder.append(&[6, 2, 8]).expect("an int");
            decoder.append(&[6, 2, 8, 9]).expect_err("more");
            decoder.append(&[8, 0]).expect("null");
            let rows = decoder.rows().finish().expect("arrays");
            assert_eq!((0..4).map(|row| rows.is_null(row)).collect::<Vec<_>>(), [false, true, false, false]);
            assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[1, 0, 3, 4]);
            let unions = rows.column(1).as_union();
            assert_eq!(unions.type_ids()[..], [2, 0, 1, 0]);
            assert_eq!(unions.child(1).as_primitive::<Int32Type>().values(), &[4]);
            assert_eq!(unions.child(2).as_list::<i32>().value(0).as_string::<i32>().value(0), "a");
        }
    }

    #[test]
    fn types_are_those_of_arrow() {
        for (field_type, expected) in [
            (json!({"type": "int", "logicalType": "date"}), "Date32"),
            (json!({"type": "int", "logicalType": "time-millis"}), "Time32(ms)"),
            (json!({"type": "long", "logicalType": "time-micros"}), "Time64(µs)"),
            (json!({"type": "long", "logicalType": "timestamp-millis"}), "Timestamp(ms, \"UTC\")"),
            (json!({"type": "long", "logicalType": "local-timestamp-micros"}), "Timestamp(µs)"),
            (json!({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}), "Decimal128(10, 2)"),
            (json!({"type": "bytes", "logicalType": "decimal", "precision": 50}), "Decimal256(50, 0)"),
            (json!({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}), "Binary"),
            (json!({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}), "Interval(MonthDayNano)"),
            (json!({"type": "string", "logicalType": "uuid"}), "FixedSizeBinary(16)"),
            (json!({"type": "int", "logicalType": "unknown"}), "Int32"),
            (json!(["string", "null"]), "Utf8"),
            (json!({"type": "enum", "name": "E", "symbols": ["A"]}), "Dictionary(Int32, Utf8)"),
        ] {
            assert_eq!(of_field(&field_type).fields()[0].data_type().to_string(), expected, "{field_type}");
        }
        assert!(of_field(&json!(["string", "null"])).fields()[0].is_nullable());
        assert!(!of_field(&json!("string")).fields()[0].is_nullable());
        let times = values(&json!({"type": "long", "logicalType": "timestamp-micros"}), &[&[2], &[4]]);
        assert_eq!(times.to_data().buffers()[0].typed_data::<i64>(), &[1, 2]);
    }

    #[test]
    fn fields_are_chosen_in_records_lists_and_optional_records() {
        let inner = json!({"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}]});
        let fields = json!([
            {"name": "a", "type": "long"},
            {"name": "b", "type": ["null", inner]},
            {"name": "c", "type": {"type": "array", "items": "I"}},
        ]);
        let body = [2, 2, 4, 6, 4, 8, 10, 12, 14, 0];
        let named = avro(&fields, Some(&["c.y", "b.x"]));
        let mut decoder = named.decoder();
        decoder.append(&body).expect("a record");
        let rows = decoder.rows().finish().expect("arrays");
        assert_eq!(rows.column(0).as_struct().column(0).as_primitive::<Int32Type>().values(), &[2]);
        let lists = rows.column(1).as_list::<i32>().value(0);
        assert_eq!(lists.as_struct().column(0).as_primitive::<Int32Type>().values(), &[5, 7]);
        assert_eq!((rows.num_columns(), lists.as_struct().num_columns()), (2, 1));
    }

    #[test]
    fn a_small_body_cannot_ask_for_much_memory() {
        let fixed = json!(["null", {"type": "fixed", "name": "F", "size": 65_536}]);
        let symbol = json!({"type": "enum", "name": "E", "symbols": ["s".repeat(60_000)]});
        for (items, target) in [(fixed, None), (symbol, Some(DataType::Utf8))] {
            let format = of_field(&json!({"type": "array", "items": items}));
            let own = format.fields()[0].data_type().clone();
            let item = |target| DataType::List(Arc::new(Field::new("item", target, true)));
            let fields = Fields::from(vec![Field::new("f", target.map_or(own, item), true)]);
            let mut decoder = format.with_fields(&fields).expect("a format").decoder();
            // 5,000 items of a byte each, and the end
            let body = [&[0x90, 0x4E][..], &[0; 5_001]].concat();
            let reason = decoder.append(&body).expect_err("too much");
            assert!(reason.contains("expected values of at most"), "{reason}");
            assert!(decoder.append(&[2, 0, 0]).is_ok());
        }
    }

    #[test]
    fn a_body_takes_no_more_memory_than_its_cost() {
        let inner = json!({"type": "record", "name": "I", "fields": [{"name": "x", "type": "null"}, {"name": "y", "type": "null"}]});
        let format = of_field(&json!({"type": "array", "items": ["null", inner]}));
        let mut decoder = format.decoder();
        for body in [&[0][..], &[4, 2, 2, 0], &[4, 0, 0, 0], &[2, 2, 0]] {
            let cost = decoder.append(body).expect("a record");
            assert!(cost <= format.row_cost() + body.len() * format.cost_per_byte(), "{cost}");
        }
    }
}
