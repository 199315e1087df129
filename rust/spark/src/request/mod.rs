//! Parses options, offsets, times and schemas.
pub mod cluster;
pub mod column_warning;
pub mod offsets;
pub mod options;
pub mod schema;
pub mod table_options;
pub mod text;
pub mod time;
