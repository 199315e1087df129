//! Converts the arguments that decode bodies, and infers schemas from bodies.
use crate::arrow::{ArrowFields, Batches};
use crate::error::{spark, to_python};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use rmqfast_spark::request::spark_format::in_types_of_spark;
use rmqfast_store::scan::decode::{self, BadBody, BodySchema, Decode, Inference, SchemaId, SplitNames, ddl, fields};
use rmqfast_store::{Error, Result};

/// A bad body as a tuple: `(topic, queue_id, queue_offset, physical_offset, reason)`.
pub type PyBadBody = (String, i32, i64, i64, String, Option<String>);

pub fn from_bad_body(body: &BadBody) -> PyBadBody {
    (body.topic.clone(), body.queue_id, body.queue_offset, body.physical_offset, body.reason.clone(), None)
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
    /// `value` nor a field of it. `None` for `names` chooses all columns and all fields. `is_for_spark` gives types of Spark,
    /// and `value` where its first name is.
    pub fn split(
        self,
        names: Option<Vec<String>>,
        is_for_spark: bool,
    ) -> PyResult<(Option<Vec<String>>, Option<Decode>)> {
        let Some(decode) = self.decode else { return Ok((names, None)) };
        let schema = self.schema.map(|schema| match schema {
            PyBodySchema::Text(text) => BodySchema::Text(text),
            PyBodySchema::Arrow(fields) => BodySchema::Fields(fields.0),
        });
        let (framing, on_error, schema_id) = (self.framing, self.on_error, self.schema_id);
        let build = || {
            let whole = decode::DecodeArguments { decode, schema, framing, on_error, schema_id }.build();
            let whole = whole.map_err(to_python)?;
            if is_for_spark { in_types_of_spark(&whole).map_err(spark) } else { Ok(whole) }
        };
        let Some(names) = names else { return Ok((None, Some(build()?))) };
        let names = SplitNames::of(names);
        if names.paths.is_empty() {
            return Ok((Some(names.columns), None));
        }
        let whole = build()?;
        let chosen = fields::select(whole.format.fields(), names.chosen()).map_err(to_python)?;
        let decode = whole.with_fields(&chosen).map_err(to_python)?;
        let at = Some(names.at).filter(|_| is_for_spark);
        Ok((Some(names.columns), Some(Decode { at, ..decode })))
    }
}

/// Returns the DDL of an Arrow schema.
#[pyfunction]
pub fn ddl_of(schema: ArrowFields) -> PyResult<String> {
    ddl::print(&schema.0).map_err(to_python)
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
