//! Converts the arguments that decode bodies, and infers schemas from bodies.
use crate::arrow::{ArrowFields, Batches};
use crate::error::to_python;
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use rmqfast_store::scan::decode::{Avro, BadBody, BodyFormat, Decode, Framing, Inference, Json, SchemaId, VALUE, ddl};
use rmqfast_store::{Error, Result};
use std::sync::Arc;

/// A bad body as a tuple: `(topic, queue_id, queue_offset, physical_offset, reason)`.
pub type PyBadBody = (String, i32, i64, i64, String);

pub fn from_bad_body(body: &BadBody) -> PyBadBody {
    (body.topic.clone(), body.queue_id, body.queue_offset, body.physical_offset, body.reason.clone())
}

/// A schema as DDL or JSON of Avro, or as an Arrow schema.
#[derive(FromPyObject)]
pub enum PyBodySchema {
    Text(String),
    Arrow(ArrowFields),
}

/// The arguments of `ScanRequest` that decode bodies.
pub struct DecodeArguments {
    pub decode: Option<String>,
    pub schema: Option<PyBodySchema>,
    pub framing: String,
    pub on_error: String,
    pub schema_id: Option<SchemaId>,
}

impl DecodeArguments {
    /// Splits the names of columns into those of messages, and the decoding of bodies. There is none if `names` has neither
    /// `value` nor a field of it. `None` for `names` chooses all columns and all fields.
    pub fn split(self, names: Option<Vec<String>>) -> PyResult<(Option<Vec<String>>, Option<Decode>)> {
        let Some(format) = &self.decode else { return Ok((names, None)) };
        let (names, paths) = match names {
            None => (None, None),
            Some(names) => {
                let (values, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| path(name).is_some());
                if values.is_empty() {
                    return Ok((Some(names), None));
                }
                let paths: Vec<String> = values.iter().filter_map(|name| path(name)).map(str::to_owned).collect();
                (Some(names), Some(paths).filter(|paths| !paths.iter().any(String::is_empty)))
            }
        };
        let decode = self.decode(format, paths.as_deref()).map_err(to_python)?;
        Ok((names, Some(decode)))
    }

    fn decode(&self, format: &str, paths: Option<&[String]>) -> Result<Decode> {
        let framing = Framing::of_name(&self.framing)?;
        let fails = match self.on_error.as_str() {
            "null" => false,
            "fail" => true,
            other => return Err(Error::invalid("on_error", "'null' or 'fail'", format!("'{other}'"))),
        };
        let schema =
            self.schema.as_ref().ok_or_else(|| Error::invalid("schema", "the schema of the bodies", "None"))?;
        let (format, own_id): (Arc<dyn BodyFormat>, _) = match (format, schema) {
            ("json", PyBodySchema::Text(text)) => (Arc::new(Json::new(&ddl::parse(text)?, paths)?), None),
            ("json", PyBodySchema::Arrow(fields)) => (Arc::new(Json::new(&fields.0, paths)?), None),
            ("avro", PyBodySchema::Text(text)) => {
                let avro = Avro::new(text, paths)?;
                let id = match framing {
                    Framing::SingleObject => Some(avro.fingerprint()),
                    // Bytes of another schema could be decoded to anything.
                    Framing::Confluent if self.schema_id.is_none() => {
                        let expected = "the id that the registry has for the schema, for Avro with framing='confluent'";
                        return Err(Error::invalid("schema_id", expected, "None"));
                    }
                    _ => None,
                };
                (Arc::new(avro), id)
            }
            ("avro", PyBodySchema::Arrow(_)) => {
                return Err(Error::invalid("schema", "the text of an .avsc, or a path to one", "an Arrow schema"));
            }
            (other, _) => return Err(Error::invalid("decode", "'json' or 'avro'", format!("'{other}'"))),
        };
        if self.schema_id.is_some() && framing != Framing::Confluent {
            return Err(Error::invalid(
                "schema_id",
                "framing='confluent' with it",
                format!("framing='{}'", self.framing),
            ));
        }
        Ok(Decode { format, framing, schema_id: own_id.or(self.schema_id), fails })
    }
}

/// Returns the path in `value` that a column's name stands for, which is empty for all of `value`.
fn path(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(VALUE)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// Rows with a column `body`, or bodies.
#[derive(FromPyObject)]
pub enum PyBodies {
    // first, since a table is a sequence of columns, too
    Rows(Batches),
    Bodies(Vec<Vec<u8>>),
}

/// Infers DDL from bodies of JSON, up to a number of bytes. Returns the DDL, the number of bodies that were no JSON objects,
/// and whether all bodies were read.
#[pyfunction]
pub fn infer_json(py: Python<'_>, bodies: PyBodies, max_bytes: usize) -> PyResult<(String, u64, bool)> {
    py.detach(|| {
        let mut sample = Sample { inference: Inference::default(), rest: max_bytes };
        let is_whole = match bodies {
            PyBodies::Bodies(bodies) => sample.add_all(bodies.iter().map(|body| Some(&body[..])))?,
            PyBodies::Rows(rows) => sample.add_rows(rows)?,
        };
        Ok((sample.inference.ddl()?, sample.inference.bad(), is_whole))
    })
    .map_err(to_python)
}

struct Sample {
    inference: Inference,
    rest: usize,
}

impl Sample {
    /// Adds bodies until the limit. Returns whether all were added.
    fn add_all<'a>(&mut self, bodies: impl Iterator<Item = Option<&'a [u8]>>) -> Result<bool> {
        for body in bodies.flatten() {
            let Some(rest) = self.rest.checked_sub(body.len()) else { return Ok(false) };
            self.rest = rest;
            self.inference.add(body)?;
        }
        Ok(true)
    }

    fn add_rows(&mut self, rows: Batches) -> Result<bool> {
        for batch in rows.into_reader() {
            let batch = batch.map_err(|e| Error::invalid("bodies", "rows of Arrow", e))?;
            if !self.add_batch(&batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn add_batch(&mut self, batch: &RecordBatch) -> Result<bool> {
        let Some(bodies) = batch.column_by_name("body") else {
            let names: Vec<_> = batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
            return Err(Error::invalid("bodies", "a column 'body'", names.join(", ")));
        };
        match bodies.data_type() {
            DataType::Binary => self.add_all(bodies.as_binary::<i32>().iter()),
            DataType::LargeBinary => self.add_all(bodies.as_binary::<i64>().iter()),
            DataType::BinaryView => self.add_all(bodies.as_binary_view().iter()),
            DataType::Utf8 => self.add_all(bodies.as_string::<i32>().iter().map(|text| text.map(str::as_bytes))),
            DataType::LargeUtf8 => self.add_all(bodies.as_string::<i64>().iter().map(|text| text.map(str::as_bytes))),
            DataType::Utf8View => self.add_all(bodies.as_string_view().iter().map(|text| text.map(str::as_bytes))),
            other => Err(Error::invalid("bodies", "a column 'body' of bytes or text", other)),
        }
    }
}
