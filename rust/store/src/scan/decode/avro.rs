//! Bodies of Avro, by arrow-avro. A body is one record without a header, which the schema of its writer decodes.
use super::arrays::{Zone, fit_struct, with_zones};
use super::avro_type::AvroType;
use super::fields::{self, Leaves};
use super::format::{BodyDecoder, BodyFormat};
use super::framing::SchemaId;
use crate::{Error, Result};
use arrow_array::StructArray;
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use arrow_buffer::NullBuffer;
use arrow_schema::Fields;

/// Approximate bytes of memory of a leaf of the schema, in each row or item.
const LEAF_BYTES: usize = 32;
/// The prefix that arrow-avro gets before each body, with the only id that its decoder knows.
const PREFIX: [u8; 5] = [0, 0, 0, 0, 1];
const ID: Fingerprint = Fingerprint::Id(1);

#[derive(Clone, Debug)]
pub struct Avro {
    schema: AvroSchema,
    avro_type: AvroType,
    /// Positions of the record's fields that are decoded. `None` decodes all.
    projection: Option<Vec<usize>>,
    fields: Fields,
    leaves: Leaves,
}

impl Avro {
    /// Creates the format from a schema of the writer as JSON. `paths` chooses some of its fields.
    pub fn new(text: &str, paths: Option<&[String]>) -> Result<Self> {
        let avro_type = AvroType::parse(text)?;
        let mut avro = Self {
            schema: AvroSchema::new(text.to_owned()),
            avro_type,
            projection: None,
            fields: Fields::empty(),
            leaves: Leaves::default(),
        };
        let whole = with_zones(avro.build().map_err(refuse)?.schema().fields(), Zone::Offset);
        fields::check(&whole)?;
        avro.fields = fields::select(&whole, paths)?;
        avro.leaves = Leaves::of(&avro.fields);
        if avro.fields.len() < whole.len() {
            let is_chosen = |at: &usize| avro.fields.find(whole[*at].name()).is_some();
            avro.projection = Some((0..whole.len()).filter(is_chosen).collect());
            // A type that is defined in a field which is not chosen is unknown in the others. Then all are decoded.
            if avro.build().is_err() {
                avro.projection = None;
            }
        }
        Ok(avro)
    }

    /// Returns the fingerprint that Avro's single-object encoding has for the schema.
    pub fn fingerprint(&self) -> Result<SchemaId> {
        match self.schema.fingerprint(FingerprintAlgorithm::Rabin).map_err(refuse)? {
            Fingerprint::Rabin(fingerprint) => Ok(fingerprint),
            other => Err(refuse(format!("{other:?}"))),
        }
    }

    fn build(&self) -> std::result::Result<Decoder, String> {
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        store.set(ID, self.schema.clone()).map_err(text)?;
        let builder = ReaderBuilder::new().with_writer_schema_store(store).with_batch_size(usize::MAX);
        let builder = match &self.projection {
            Some(projection) => builder.with_projection(projection.clone()),
            None => builder,
        };
        builder.build_decoder().map_err(text)
    }
}

impl BodyFormat for Avro {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn row_cost(&self) -> usize {
        self.leaves.of_row * LEAF_BYTES
    }

    fn cost_per_byte(&self) -> usize {
        self.leaves.of_item * LEAF_BYTES + 1
    }

    fn decoder(&self) -> Box<dyn BodyDecoder> {
        let mut placeholder = Vec::new();
        self.avro_type.write_placeholder(&mut placeholder);
        Box::new(AvroDecoder { format: self.clone(), placeholder, decoder: None })
    }
}

struct AvroDecoder {
    format: Avro,
    /// Stands in for bodies that are null.
    placeholder: Vec<u8>,
    /// `None` at first, and after an error.
    decoder: Option<Decoder>,
}

impl BodyDecoder for AvroDecoder {
    fn check(&mut self, payload: &[u8]) -> std::result::Result<usize, String> {
        let items = self.format.avro_type.check(payload)?;
        Ok(payload.len() + items * self.format.leaves.of_item * LEAF_BYTES)
    }

    fn decode(&mut self, payloads: &[Option<&[u8]>]) -> std::result::Result<StructArray, String> {
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => self.format.build()?,
        };
        for payload in payloads {
            feed(&mut decoder, payload.unwrap_or(&self.placeholder))?;
        }
        let batch = match decoder.flush().map_err(text)? {
            Some(batch) if batch.num_rows() == payloads.len() => batch,
            batch => {
                return Err(format!("expected {} rows, got {}", payloads.len(), batch.map_or(0, |b| b.num_rows())));
            }
        };
        // Kept only if all went well, since arrow-avro's decoder cannot be used after an error.
        self.decoder = Some(decoder);
        let values = fit_struct(&StructArray::from(batch), &self.format.fields).map_err(text)?;
        let nulls: NullBuffer = payloads.iter().map(Option::is_some).collect();
        let (fields, columns, _) = values.into_parts();
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        StructArray::try_new(fields, columns, nulls).map_err(text)
    }
}

fn feed(decoder: &mut Decoder, payload: &[u8]) -> std::result::Result<(), String> {
    for bytes in [&PREFIX[..], payload] {
        let read = decoder.decode(bytes).map_err(text)?;
        if read != bytes.len() {
            return Err(format!("expected a record of {} bytes, got one that ends at {read}", bytes.len()));
        }
    }
    Ok(())
}

fn refuse(error: impl ToString) -> Error {
    Error::invalid("schema", "an Avro schema", error)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use serde_json::json;

    fn avro(fields: serde_json::Value, paths: Option<&[&str]>) -> Avro {
        let schema = json!({"type": "record", "name": "R", "fields": fields}).to_string();
        let paths: Option<Vec<String>> = paths.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        Avro::new(&schema, paths.as_deref()).expect("a format")
    }

    fn names(fields: &Fields) -> Vec<&str> {
        fields.iter().map(|field| field.name().as_str()).collect()
    }

    #[test]
    fn null_rows_stand_between_others_and_decoding_goes_on_after_an_error() {
        let fields =
            json!([{"name": "id", "type": "long"}, {"name": "u", "type": {"type": "string", "logicalType": "uuid"}}]);
        let mut decoder = avro(fields, None).decoder();
        let uuid = |id: u8, text: &[u8; 36]| [&[id, 72][..], text].concat();
        let (good, bad) = (uuid(2, b"11111111-1111-1111-1111-111111111111"), uuid(4, &[b'x'; 36]));
        for _ in 0..2 {
            let values = decoder.decode(&[Some(&good), None, Some(&good)]).expect("decoded");
            assert_eq!((values.is_null(0), values.is_null(1), values.is_null(2)), (false, true, false));
            assert_eq!(values.column(0).as_primitive::<Int64Type>().value(2), 1);
            // The check has no rule for what a UUID holds.
            assert!(decoder.check(&bad).is_ok());
            assert!(decoder.decode(&[Some(&good), Some(&bad)]).expect_err("no UUID").contains("uuid"));
        }
    }

    #[test]
    fn a_projection_reaches_the_decoder_unless_a_name_is_needed() {
        let inner = json!({"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}]});
        let fields = json!([
            {"name": "a", "type": "long"},
            {"name": "b", "type": inner},
            {"name": "c", "type": {"type": "array", "items": "I"}},
        ]);
        let chosen = avro(fields.clone(), Some(&["b.y"]));
        assert_eq!((names(&chosen.fields), chosen.projection.as_deref()), (vec!["b"], Some(&[1][..])));
        let named = avro(fields, Some(&["c.y", "a"]));
        assert_eq!((names(&named.fields), named.projection.as_deref()), (vec!["a", "c"], None));
        let body = [2, 4, 6, 4, 8, 10, 12, 14, 0];
        let values = named.decoder().decode(&[Some(&body)]).expect("decoded");
        let lists = values.column(1).as_list::<i32>().value(0);
        assert_eq!(lists.as_struct().column(0).as_primitive::<Int32Type>().values(), &[5, 7]);
    }

    #[test]
    fn the_fingerprint_is_that_of_the_specification() {
        // From Avro's own tests: the fingerprint of the schema "int" is 0x7275d51a3f395c8f.
        let schema = AvroSchema::new("\"int\"".to_owned());
        let expected = Fingerprint::Rabin(0x7275_d51a_3f39_5c8f);
        assert_eq!(schema.fingerprint(FingerprintAlgorithm::Rabin).expect("a schema"), expected);
    }
}
