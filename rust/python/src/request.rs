//! Converts `rmqfast.store.request.ScanRequest`, attribute by attribute.
use crate::decode::{DecodeArguments, PyBodySchema};
use crate::error::to_python;
use pyo3::prelude::*;
use rmqfast_store::filter::{Sql92, TagExpression};
use rmqfast_store::scan::{Column, OffsetBound, Piece, PropertyNames, ScanRequest, TimeUnit, Way};
use std::collections::BTreeMap;

#[derive(FromPyObject)]
pub struct PyScanRequest {
    topic: Option<String>,
    among: Option<Vec<String>>,
    queue_ids: Option<Vec<i32>>,
    tags: String,
    sql: Option<String>,
    keys: Option<Vec<String>>,
    keys_prefix: Option<String>,
    start_offset: Option<PyOffsetBound>,
    end_offset: Option<PyOffsetBound>,
    start_time: Option<i64>,
    end_time: Option<i64>,
    columns: Option<Vec<String>>,
    decode: Option<String>,
    schema: Option<PyBodySchema>,
    framing: String,
    on_error: String,
    schema_id: Option<u64>,
    property_names: Option<Vec<String>>,
    microseconds: bool,
    broker_name: Option<String>,
    batch_rows: usize,
    batch_bytes: usize,
    verify_crc: bool,
    max_body_bytes: usize,
}

/// One offset for all queues, or an offset for each queue id.
#[derive(FromPyObject)]
pub enum PyOffsetBound {
    Every(i64),
    ByQueue(BTreeMap<i32, i64>),
}

/// A piece of a scan as a tuple: `(way, from, end, verify_crc)`.
pub type PyPiece = (String, u64, u64, bool);

impl PyScanRequest {
    pub fn into_request(self) -> PyResult<ScanRequest> {
        let (decode, schema, schema_id) = (self.decode, self.schema, self.schema_id);
        let decode = DecodeArguments { decode, schema, framing: self.framing, on_error: self.on_error, schema_id };
        let (names, decode) = decode.split(self.columns, self.microseconds)?;
        Ok(ScanRequest {
            topic: self.topic,
            among: self.among,
            queue_ids: self.queue_ids,
            tags: TagExpression::parse(&self.tags).map_err(to_python)?,
            sql: self.sql.map(|text| Sql92::parse(&text)).transpose().map_err(to_python)?,
            keys: self.keys,
            keys_prefix: self.keys_prefix,
            start_offset: self.start_offset.map(PyOffsetBound::into_bound),
            end_offset: self.end_offset.map(PyOffsetBound::into_bound),
            start_time: self.start_time,
            end_time: self.end_time,
            columns: columns(names)?,
            decode,
            property_names: property_names(self.property_names)?,
            time_unit: time_unit(self.microseconds),
            broker_name: self.broker_name,
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
            verify_crc: self.verify_crc,
            // `verify_crc` reports damage instead; `checks_bodies` would only make bodies null
            checks_bodies: false,
            max_body_bytes: self.max_body_bytes,
        })
    }
}

impl PyOffsetBound {
    fn into_bound(self) -> OffsetBound {
        match self {
            Self::Every(offset) => OffsetBound::Every(offset),
            Self::ByQueue(offsets) => OffsetBound::ByQueue(offsets),
        }
    }
}

/// Parses column names; `None` gives all columns.
pub fn columns(names: Option<Vec<String>>) -> PyResult<Vec<Column>> {
    let Some(names) = names else { return Ok(Column::ALL.to_vec()) };
    names.iter().map(|name| Column::of_name(name)).collect::<Result<_, _>>().map_err(to_python)
}

/// Parses property names; `None` gives all properties.
fn property_names(names: Option<Vec<String>>) -> PyResult<Option<PropertyNames>> {
    names.map(PropertyNames::of).transpose().map_err(to_python)
}

pub fn time_unit(microseconds: bool) -> TimeUnit {
    if microseconds { TimeUnit::Microsecond } else { TimeUnit::Millisecond }
}

/// Parses a tag expression into tags and their hash codes. Both lists are empty if the expression selects all messages.
#[pyfunction]
pub fn parse_tags(expression: &str) -> PyResult<(Vec<String>, Vec<i32>)> {
    let parsed = TagExpression::parse(expression).map_err(to_python)?;
    Ok((parsed.tags().to_vec(), parsed.codes().to_vec()))
}

/// Returns the property names in a SQL92 expression.
#[pyfunction]
pub fn sql_properties(expression: &str) -> PyResult<Vec<String>> {
    Ok(Sql92::parse(expression).map_err(to_python)?.properties().map(str::to_owned).collect())
}

pub fn column_names() -> Vec<&'static str> {
    Column::ALL.iter().map(|column| column.name()).collect()
}

pub fn from_piece(piece: &Piece) -> PyPiece {
    let way = match piece.way {
        Way::Log => "log",
        Way::Queue => "queue",
    };
    (way.to_owned(), piece.from, piece.end, piece.verify_crc)
}

pub fn to_piece((way, from, end, verify_crc): PyPiece) -> PyResult<Piece> {
    Ok(Piece { way: to_way(&way)?, from, end, verify_crc })
}

pub fn to_way(name: &str) -> PyResult<Way> {
    match name {
        "log" => Ok(Way::Log),
        "queue" => Ok(Way::Queue),
        other => Err(to_python(rmqfast_store::Error::invalid("way", "'log' or 'queue'", other))),
    }
}
