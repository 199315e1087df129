//! Bodies of JSON, by arrow-json.
use super::arrays::{Zone, fit_struct, with_zones};
use super::fields::{self, Leaves};
use super::format::{BodyDecoder, BodyFormat};
use super::json_syntax::{Counts, Shape, check};
use crate::{Error, Result};
use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{ArrowError, DataType, Field, Fields};

/// Approximate bytes of memory of a value or key while it is decoded, beside the bytes of its text.
const TOKEN_BYTES: usize = 16;
/// Approximate bytes of memory of a leaf of the schema, in each row or item: its value and its position.
const LEAF_BYTES: usize = 32;
/// Least bytes of an item in a body, such as `1,`.
const ITEM_LEN: usize = 2;

#[derive(Clone, Debug)]
pub struct Json {
    fields: Fields,
    leaves: Leaves,
}

impl Json {
    /// Creates the format from the fields of a body, of which `paths` chooses some. Fails for types that JSON cannot be
    /// decoded to.
    pub fn new(fields: &Fields, paths: Option<&[String]>) -> Result<Self> {
        fields::check(fields)?;
        check_types(fields)?;
        let fields = fields::select(fields, paths)?;
        let leaves = Leaves::of(&fields);
        let json = Self { fields, leaves };
        json.build(1).map_err(|error| Error::invalid("schema", "types that JSON can be decoded to", error))?;
        Ok(json)
    }

    fn build(&self, rows: usize) -> std::result::Result<Decoder, ArrowError> {
        let field = Field::new("value", DataType::Struct(with_zones(&self.fields, Zone::Usual)), true);
        ReaderBuilder::new_with_field(field).with_batch_size(rows).with_coerce_primitive(true).build_decoder()
    }
}

impl BodyFormat for Json {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn row_cost(&self) -> usize {
        self.leaves.of_row * LEAF_BYTES
    }

    fn cost_per_byte(&self) -> usize {
        (2 * TOKEN_BYTES + self.leaves.of_item * LEAF_BYTES) / ITEM_LEN + 1
    }

    fn decoder(&self) -> Box<dyn BodyDecoder> {
        Box::new(JsonDecoder { shape: Shape::of(&self.fields), format: self.clone(), decoder: None, rows: 0 })
    }
}

struct JsonDecoder {
    format: Json,
    shape: Shape,
    /// arrow-json's decoder of batches of up to `rows` rows. `None` at first, and after an error.
    decoder: Option<Decoder>,
    rows: usize,
}

impl BodyDecoder for JsonDecoder {
    fn check(&mut self, payload: &[u8]) -> std::result::Result<usize, String> {
        let Counts { tokens, items, members } = check(payload, &self.shape)?;
        let leaves = self.format.leaves;
        // The members of an object are items only of a map.
        let items = items + if leaves.has_maps { members } else { 0 };
        Ok(payload.len() + tokens * TOKEN_BYTES + items * leaves.of_item * LEAF_BYTES)
    }

    fn decode(&mut self, payloads: &[Option<&[u8]>]) -> std::result::Result<StructArray, String> {
        let decoder = match self.decoder.take().filter(|_| payloads.len() <= self.rows) {
            Some(decoder) => decoder,
            None => {
                self.rows = payloads.len().next_power_of_two();
                self.format.build(self.rows).map_err(text)?
            }
        };
        // Kept only if all goes well, since arrow-json's decoder cannot be used after an error.
        let decoder = self.decoder.insert(decoder);
        let result =
            decode(decoder, payloads).and_then(|values| fit_struct(&values, &self.format.fields).map_err(text));
        if result.is_err() {
            self.decoder = None;
        }
        result
    }
}

fn decode(decoder: &mut Decoder, payloads: &[Option<&[u8]>]) -> std::result::Result<StructArray, String> {
    for payload in payloads {
        decoder.decode(payload.unwrap_or(b"null")).map_err(text)?;
    }
    match decoder.flush().map_err(text)? {
        Some(batch) if batch.num_rows() == payloads.len() => Ok(batch.column(0).as_struct().clone()),
        batch => Err(format!("expected {} rows, got {}", payloads.len(), batch.map_or(0, |batch| batch.num_rows()))),
    }
}

fn text(error: ArrowError) -> String {
    match error {
        ArrowError::JsonError(text) | ArrowError::InvalidArgumentError(text) | ArrowError::ParseError(text) => text,
        other => other.to_string(),
    }
}

/// Fails for the first type that is not in the list. arrow-json has more types, some of which panic on odd schemas.
fn check_types(fields: &Fields) -> Result<()> {
    fields.iter().try_for_each(|field| check_type(field.data_type()))
}

fn check_type(data_type: &DataType) -> Result<()> {
    use DataType as D;
    match data_type {
        D::Struct(fields) if fields.is_empty() => Err(Error::invalid("schema", "a field at least", data_type)),
        D::Struct(fields) => check_types(fields),
        D::List(item) | D::LargeList(item) | D::Map(item, false) => check_type(item.data_type()),
        D::Boolean | D::Float32 | D::Float64 | D::Decimal128(..) | D::Decimal256(..) => Ok(()),
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Binary | D::LargeBinary | D::BinaryView => Ok(()),
        D::Date32 | D::Timestamp(..) | D::Time32(_) | D::Time64(_) => Ok(()),
        other if other.is_integer() => Ok(()),
        other => Err(Error::invalid("schema", "types that JSON can be decoded to", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ddl;
    use super::*;
    use arrow_array::Array;
    use arrow_array::types::Int64Type;

    fn decoder(schema: &str) -> Box<dyn BodyDecoder> {
        Json::new(&ddl::parse(schema).expect("parsed"), None).expect("a format").decoder()
    }

    #[test]
    fn a_batch_is_decoded_after_one_that_failed() {
        let mut decoder = decoder("a bigint");
        let bodies = [Some(&b"{\"a\":1}"[..]), None, Some(b"{}\n"), Some(b" {\"b\":[{}],\"a\":-2} ")];
        for _ in 0..2 {
            let values = decoder.decode(&bodies).expect("decoded");
            let nulls: Vec<bool> = (0..4).map(|row| values.is_null(row)).collect();
            assert_eq!(nulls, [false, true, false, false]);
            let column = values.column(0).as_primitive::<Int64Type>();
            assert_eq!((column.value(0), column.is_null(2), column.value(3)), (1, true, -2));
            let reason = decoder.decode(&[Some(b"{\"a\":true}")]).expect_err("no number");
            assert!(reason.contains("expected primitive got true"), "{reason}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        for (schema, body) in [
            ("a tinyint", "{\"a\":128}"),
            ("a bigint", "{\"a\":9223372036854775808}"),
            ("a decimal(4,2)", "{\"a\":100}"),
            ("a date", "{\"a\":\"2026-13-01\"}"),
            ("a int NOT NULL", "{}"),
            ("a struct<b: int>", "{\"a\":[]}"),
        ] {
            assert!(decoder(schema).decode(&[Some(body.as_bytes())]).is_err(), "{schema} {body}");
        }
    }

    #[test]
    fn types_that_json_has_not_are_refused() {
        let fields = Fields::from(vec![Field::new("a", DataType::Duration(arrow_schema::TimeUnit::Second), true)]);
        let error = Json::new(&fields, None).expect_err("refused").to_string();
        assert_eq!(error, "schema: expected types that JSON can be decoded to, got Duration(s)");
    }
}
