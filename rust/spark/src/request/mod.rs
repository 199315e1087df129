//! Parses options, offsets, times, schemas and pushed filters.
pub mod cluster;
pub mod offsets;
pub mod options;
pub mod push_down;
pub mod schema;
pub mod table_options;
pub mod text;
pub mod time;
