//! Bodies as columns: decodes the bodies of a scan into the struct column `value`.
//!
//! ```text
//! rows ──► BodyColumn ── bodies ──► Json or Avro ── values ──► Values ──► value
//!                                       └──► bad bodies, which leave no values
//! ```
pub mod arguments;
pub mod avro;
mod avro_fingerprint;
mod avro_logical;
pub mod avro_type;
pub mod bad_bodies;
pub mod column;
pub mod ddl;
pub mod fields;
pub mod format;
pub mod framing;
pub mod infer;
pub mod json;
pub mod json_syntax;
mod leaf;
mod scalar;
mod values;

pub use arguments::{BodySchema, DecodeArguments, SplitNames};
pub use avro::Avro;
pub use bad_bodies::{BadBodies, BadBody};
pub use column::{DecodedColumn, ValueColumn};
pub use format::{BodyDecoder, BodyFormat, Decode, VALUE};
pub use framing::{Framing, SchemaId};
pub use infer::Inference;
pub use json::Json;
pub use values::Rows;
