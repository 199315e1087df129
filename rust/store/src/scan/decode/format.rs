//! Formats of bodies: their fields, limits and decoders.
use super::framing::{Framing, SchemaId};
use super::values::Rows;
use crate::Result;
use arrow_schema::{DataType, Field, Fields};
use std::fmt::Debug;
use std::sync::Arc;

/// The name of the decoded column.
pub const VALUE: &str = "value";

/// A format of bodies with its schema.
pub trait BodyFormat: Debug + Send + Sync {
    fn fields(&self) -> &Fields;

    /// Returns the format with only these fields. They have the names of its own, and types that their values fit: a text for
    /// an enum, or another unit for a time.
    fn with_fields(&self, fields: &Fields) -> Result<Arc<dyn BodyFormat>>;

    /// Returns the bytes of memory that each row takes, even if its body is empty.
    fn row_cost(&self) -> usize;

    /// Returns the most bytes of memory that a byte of a body can take.
    fn cost_per_byte(&self) -> usize;

    fn decoder(&self) -> Box<dyn BodyDecoder>;
}

/// A decoder of one scan.
pub trait BodyDecoder: Send {
    /// Appends the values of a body without its prefix. Returns the bytes of memory that they take. The error is a reason for the
    /// user; then nothing was appended.
    fn append(&mut self, payload: &[u8]) -> std::result::Result<usize, String>;

    /// Returns the rows that were appended.
    fn rows(&mut self) -> &mut Rows;
}

/// The decoding of bodies that a request asks for.
#[derive(Clone, Debug)]
pub struct Decode {
    pub format: Arc<dyn BodyFormat>,
    pub framing: Framing,
    /// The schema id that each body must have. `None` takes every id.
    pub schema_id: Option<SchemaId>,
    /// Whether the scan stops at the first bad body.
    pub fails: bool,
    /// Whether the scan lists all bad bodies instead of a sample.
    pub lists_all: bool,
    /// Position of the column `value` in a batch. `None` is behind all other columns.
    pub at: Option<usize>,
}

impl Decode {
    /// Returns the field of the column `value`.
    pub fn field(&self) -> Field {
        Field::new(VALUE, DataType::Struct(self.format.fields().clone()), true)
    }

    /// Returns the decoding of only these fields. See [`BodyFormat::with_fields`].
    pub fn with_fields(&self, fields: &Fields) -> Result<Self> {
        Ok(Self { format: self.format.with_fields(fields)?, ..self.clone() })
    }

    /// Puts the column `value` between the other columns of a batch.
    pub fn insert<T>(&self, columns: &mut Vec<T>, value: T) {
        columns.insert(self.at.unwrap_or(usize::MAX).min(columns.len()), value);
    }
}
