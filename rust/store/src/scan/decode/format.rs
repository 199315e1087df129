//! Formats of bodies: their fields, limits and decoders.
use super::framing::{Framing, SchemaId};
use arrow_array::StructArray;
use arrow_schema::{DataType, Field, Fields};
use std::fmt::Debug;
use std::sync::Arc;

/// The name of the decoded column.
pub const VALUE: &str = "value";

/// Maximum bytes of memory for the values of one body. A body with more is bad.
pub const MAX_BODY_COST: usize = 256 << 20;

/// A format of bodies with its schema.
pub trait BodyFormat: Debug + Send + Sync {
    fn fields(&self) -> &Fields;

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
    fn append(&mut self, payload: &[u8]) -> Result<usize, String>;

    fn append_null(&mut self);

    /// Returns the values of all bodies, and begins anew. Fails only because of a bug in this crate.
    fn finish(&mut self) -> crate::Result<StructArray>;
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
}

impl Decode {
    /// Returns the field of the column `value`.
    pub fn field(&self) -> Field {
        Field::new(VALUE, DataType::Struct(self.format.fields().clone()), true)
    }
}
